/** `fwm eval`: the accuracy and perplexity of a saved model on a split, by task, beside the paper's. */
import { experiments } from "../../experiments/index.ts";
import type { Experiment } from "../experiment/settings.ts";
import type { Evaluation } from "../inference/evaluate.ts";
import { command } from "./command.ts";
import { folder, integer, oneOf } from "./params.ts";
import { table, thousands } from "./table.ts";

/** The `eval` command. */
export const evalCommand = command({
  name: "eval",
  summary: "Evaluate a run or model on the validation or test split.",
  details:
    "By the paper's protocol: the whole split once, the state carried throughout. Test is one single stream " +
    "(batch 1). It begins in the state training left row 0 in (--state train, as the paper says) or in zeros " +
    "(--state zero, as the authors' program does; always so for a model folder without training state).",
  examples: [
    {
      line: "fwm eval runs/catbabi-qa-fwm-seed1 --split test",
      trial: "fwm eval $RUN --split test --batch 64",
    },
    {
      line: "fwm eval runs/catbabi-qa-fwm-seed1 --split valid --json",
      trial: "fwm eval $RUN --split valid --batch 16 --json",
    },
    {
      line: "fwm eval runs/catbabi-qa-fwm-seed1 --split test --state zero --threads 2",
      trial: "fwm eval $RUN --split valid --batch 32 --state zero --threads 2",
    },
  ],
  args: { model: folder({ help: "run, checkpoint or model folder; of a run its best checkpoint" }) },
  options: {
    split: oneOf(["valid", "test"], { default: "valid", help: "what to evaluate on" }),
    batch: integer({ min: 1, max: 4096, help: "rows; default: 1 for test, 128 for valid" }),
    state: oneOf(["zero", "train"], { help: "where the stream begins; default: train where it was saved" }),
    checkpoint: oneOf(["best", "last"], { help: "of a run: which checkpoint; default: best, else last" }),
    data: folder({ help: "prepared data, if not in the usual place" }),
    threads: integer({ min: 1, help: "threads; default: all cores", env: "FWM_THREADS" }),
  },
  run: async ({ args, options, out, env }) => {
    const { evaluateModel } = await import("../inference/evaluate.ts");
    const { split, batch, state, checkpoint, data, threads } = options;
    let progress: ReturnType<typeof out.progress> | undefined;
    try {
      const evaluation = await evaluateModel(args.model, {
        split,
        env,
        ...(batch ? { batch } : {}),
        ...(state ? { state } : {}),
        ...(checkpoint ? { which: checkpoint } : {}),
        ...(data ? { data } : {}),
        ...(threads ? { threads } : {}),
        onWindow(done, total) {
          progress ??= out.progress({ label: `evaluating ${split}`, total, show: thousands, every: 10_000 });
          progress.update(done, "windows");
        },
      });
      progress?.stop();
      for (const remark of evaluation.remarks) out.note(`note: ${remark}`);
      out.result(evaluation, () => show(evaluation));
    } finally {
      progress?.stop();
    }
  },
});

function show(evaluation: Evaluation): string {
  const { model, step, split, batch, state, perTask, questions, correct, accuracy, perplexity } = evaluation;
  const rows = Object.entries(perTask).map(([task, tally]) => [
    `task ${task}`,
    tally.questions,
    tally.correct,
    percent(tally.accuracy),
  ]);
  const lines = table([
    ["", "questions", "right", "accuracy"],
    ...rows,
    ["all", questions, correct, percent(accuracy)],
    ...paperRow(evaluation),
  ]);
  return (
    `${model}${step === null ? "" : `, after ${thousands(step)} steps`}\n` +
    `${split}, ${batch === 1 ? "one stream" : `${batch} streams`}, beginning in ` +
    `${state === "train" ? "the training state of row 0" : "zeros"}\n\n${lines}\n` +
    `answer perplexity ${perplexity.toFixed(4)}${paperPerplexity(evaluation)}\n`
  );
}

/** The published numbers of the experiment; they say nothing of generated stories. */
function paperOf({ experiment, generated }: Evaluation): Experiment["paper"] {
  const known = (experiments as Readonly<Record<string, Experiment>>)[experiment];
  return generated ? undefined : known?.paper;
}

function paperRow(evaluation: Evaluation): string[][] {
  const accuracy = paperOf(evaluation)?.accuracy;
  return accuracy === undefined ? [] : [["paper (test)", "19,910", "", percent(accuracy)]];
}

function paperPerplexity(evaluation: Evaluation): string {
  const perplexity = paperOf(evaluation)?.perplexity;
  return perplexity === undefined ? "" : ` (paper, test: ${perplexity})`;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(2)}%`;
}
