/** `fwm eval`: what a saved model reaches beside the paper's numbers: answers by task, or an agent's reward. */
import { experiments } from "../../experiments/index.ts";
import { UsageError } from "../errors.ts";
import type { Experiment } from "../experiment/settings.ts";
import type { Evaluation, StartState } from "../inference/evaluate.ts";
import type { LoadedModel } from "../store/model-folder.ts";
import { command } from "./command.ts";
import type { Output } from "./output.ts";
import { folder, integer, oneOf } from "./params.ts";
import { publishedFor, refuse, scoreAgent, showAgent, usualEpisodes } from "./scoreAgent.ts";
import { table, thousands } from "./table.ts";

/** The `eval` command. */
export const evalCommand = command({
  name: "eval",
  summary: "Evaluate a run or model: right answers on a split, or the reward of an agent.",
  details:
    "Answers, by the paper's protocol: the whole split once, the state carried throughout. Test is one single stream " +
    "(batch 1). It begins in the state training left row 0 in (--state train, as the paper says) or in zeros " +
    "(--state zero, as the authors' program does; always so for a model folder without training state). " +
    "Agents (metarl-…) play --episodes on every test graph, or on those they were trained on (--split train), with " +
    "their weights as they are.",
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
    {
      line: "fwm eval runs/metarl-fwm-seed1",
      trial: "fwm eval $AGENT --episodes 2",
    },
    {
      line: "fwm eval runs/metarl-fwm-seed1 --split train --episodes 50 --json",
      trial: "fwm eval $AGENT --split train --episodes 2 --json",
    },
  ],
  args: { model: folder({ help: "run, checkpoint or model folder; of a run its best checkpoint" }) },
  options: {
    split: oneOf(["valid", "test", "train"], {
      help: "what to evaluate on; default: valid, and test for agents; train is for agents",
    }),
    batch: integer({ min: 1, max: 4096, help: "answers: rows; default: 1 for test, 128 for valid" }),
    state: oneOf(["zero", "train"], {
      help: "answers: where the stream begins; default: train where it was saved",
    }),
    data: folder({ help: "answers: prepared data, if not in the usual place" }),
    episodes: integer({
      min: 1,
      max: 100_000,
      help: `agents: episodes on every graph; default: ${usualEpisodes}`,
    }),
    seed: integer({ max: 0xffffffff, help: "agents: seed of places and sampled actions; default: 1" }),
    checkpoint: oneOf(["best", "last"], { help: "of a run: which checkpoint; default: best, else last" }),
    threads: integer({ min: 1, help: "threads; default: all cores", env: "FWM_THREADS" }),
  },
  run: async ({ args, options, out, env }) => {
    const { isAgent } = await import("../experiment/metarlSaved.ts");
    const { loadModelFolder } = await import("../store/model-folder.ts");
    const { split, batch, state, data, episodes, seed, checkpoint, threads } = options;
    const model = await loadModelFolder(args.model, checkpoint ? { which: checkpoint } : {});
    if (isAgent(model)) {
      refuse("agents", { batch, state, data });
      const evaluation = await scoreAgent(model, { split: split ?? "test", episodes, seed, threads }, out);
      out.result({ ...evaluation, paper: publishedFor(evaluation) }, () => showAgent(evaluation));
      return;
    }
    refuse("models that answer", { episodes, seed });
    const evaluation = await scoreAnswers(
      model,
      { split: split ?? "valid", batch, state, data, threads },
      env,
      out,
    );
    for (const remark of evaluation.remarks) out.note(`note: ${remark}`);
    out.result(evaluation, () => show(evaluation));
  },
});

/** What commands let a person choose for a model that answers. */
export interface ScoreAnswersOptions {
  readonly split: "valid" | "test" | "train";
  readonly batch: number | undefined;
  readonly state?: StartState | undefined;
  readonly data?: string | undefined;
  readonly threads: number | undefined;
}

/** Scores a model's answers, with progress. */
export async function scoreAnswers(
  model: string | LoadedModel,
  { split, batch, state, data, threads }: ScoreAnswersOptions,
  env: Readonly<Record<string, string | undefined>>,
  out: Output,
): Promise<Evaluation> {
  if (split === "train") {
    throw new UsageError("--split train: answers are scored on stories that were not trained on", {
      hint: "use --split valid or --split test",
    });
  }
  const { evaluateModel } = await import("../inference/evaluate.ts");
  let progress: ReturnType<typeof out.progress> | undefined;
  try {
    return await evaluateModel(model, {
      split,
      env,
      ...(batch ? { batch } : {}),
      ...(state ? { state } : {}),
      ...(data ? { data } : {}),
      ...(threads ? { threads } : {}),
      onWindow(done, total) {
        progress ??= out.progress({ label: `evaluating ${split}`, total, show: thousands, every: 10_000 });
        progress.update(done, "windows");
      },
    });
  } finally {
    progress?.stop();
  }
}

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
