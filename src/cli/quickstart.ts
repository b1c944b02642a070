/** `fwm quickstart`: a memory learns within minutes, beside an LSTM; then it answers a question, and shows how. */
import { quickstartFwm, quickstartLstm } from "../../experiments/quickstart.ts";
import type { QuickstartAnswer, QuickstartRun } from "../experiment/quickstart.ts";
import { plotShares } from "../report/plot.ts";
import { table, thousands } from "../report/table.ts";
import { command } from "./command.ts";
import { drawReads } from "./heatmap.ts";
import type { Output } from "./output.ts";
import { flag, folder, integer } from "./params.ts";
import { shipped, whereIs } from "./shipped.ts";
import { packageVersion } from "./version.ts";

/** The `quickstart` command. */
export const quickstartCommand = command({
  name: "quickstart",
  summary: "See a memory learn within minutes: no download, one command.",
  details:
    "Trains a small Fast Weight Memory and an LSTM of the same width on new stories, shows both curves, and " +
    "answers a question that needs two facts chained, with what each read of the memory matched.",
  examples: [{ line: "fwm quickstart", trial: "fwm quickstart --smoke --out $EMPTY/quick" }],
  options: {
    out: folder({ default: "runs", help: "where the two run folders go" }),
    seed: integer({ default: 1, help: "seed of the stories and the weights" }),
    threads: integer({ min: 1, help: "threads; default: all cores", env: "FWM_THREADS" }),
    smoke: flag({ help: "a few steps: a check that everything works" }),
  },
  graceful: true,
  run: async ({ options, out, signal, env }) => {
    const { askOfWolves, findChainedAnswer, quickstartRun } = await import("../experiment/quickstart.ts");
    const train = async (
      name: string,
      definition: typeof quickstartFwm,
    ): Promise<QuickstartRun | undefined> => {
      const chosen = withSeed(definition, options.seed, options.smoke);
      const { steps } = chosen.settings.training;
      const progress = out.progress({ label: name, total: steps, show: thousands, every: 15_000 });
      try {
        return await quickstartRun(`quickstart-${name}`, chosen, `${options.out}/quickstart-${name}`, {
          env: { ...env, FWM_DATA: "" },
          signal,
          command: ["fwm", ...process.argv.slice(2)],
          packageVersion: packageVersion(),
          ...(options.threads ? { threads: options.threads } : {}),
          callbacks: {
            onStep: (done, { means }, speed) =>
              progress.update(
                done,
                `loss ${Number(means.loss).toFixed(2)} ${thousands(Math.round(speed))} tokens/s`,
              ),
            onEvaluation: (_step, values) =>
              out.detail(`${name}: ${(100 * values.accuracy!).toFixed(1)}% of held-out questions`),
          },
        });
      } finally {
        progress.stop();
      }
    };
    out.note("Stories like these are made up as they are needed; none repeats:\n");
    out.note(sampleStory());
    out.note("\nFirst the memory learns to answer, then an LSTM of the same width, from the same stories.\n");
    const fwm = await train("fwm", quickstartFwm);
    const lstm = fwm && (await train("lstm", quickstartLstm));
    if (!fwm || !lstm) {
      out.note("stopped; what was trained so far is kept in the run folder");
      return;
    }
    const chained = await findChainedAnswer(fwm.folder, quickstartFwm.settings, 2);
    const shippedAnswer = await askOfWolves(whereIs(shipped.answers, "fwm train catbabi-qa-fwm makes one"));
    const document = { ...documentOf(fwm, lstm, chained), shipped: inferenceOf(shippedAnswer) };
    out.result(document, () => show(out, fwm, lstm, chained, shippedAnswer));
  },
});

function withSeed(definition: typeof quickstartFwm, seed: number, smoke: boolean): typeof quickstartFwm {
  const { settings } = definition;
  const training = { ...settings.training, ...(smoke ? definition.smoke.training : {}), seed };
  return { ...definition, settings: { ...settings, training } };
}

function sampleStory(): string {
  return [
    "  Mary took the apple there.",
    "  Mary journeyed to the garden.",
    "  John moved to the office.",
    "  Where is the apple?    garden",
  ].join("\n");
}

function documentOf(fwm: QuickstartRun, lstm: QuickstartRun, chained: QuickstartAnswer | undefined) {
  const brief = ({ folder, seconds, steps, curve, score }: QuickstartRun) => ({
    folder,
    seconds,
    steps,
    accuracy: score.accuracy,
    questions: score.questions,
    perTask: score.perTask,
    curve,
  });
  return {
    fwm: brief(fwm),
    lstm: brief(lstm),
    inference: chained && inferenceOf(chained),
  };
}

function inferenceOf({ story, question, answer, reply }: QuickstartAnswer) {
  return { story, question, answer, answers: reply.answers };
}

function show(
  out: Output,
  fwm: QuickstartRun,
  lstm: QuickstartRun,
  chained: QuickstartAnswer | undefined,
  shippedAnswer: QuickstartAnswer,
): string {
  const { bold, dim } = out.color;
  const percent = (share: number): string => `${(100 * share).toFixed(1)}%`;
  const row = (name: string, run: QuickstartRun): (string | number)[] => [
    name,
    percent(run.score.accuracy),
    ...Object.values(run.score.perTask).map(({ accuracy }) => percent(accuracy)),
    `${run.seconds.toFixed(0)} s`,
  ];
  const tasks = Object.keys(fwm.score.perTask).map((task) =>
    task === "1" ? "one fact" : "two facts chained",
  );
  const lines = [
    plotShares(
      [
        { name: "memory (FWM)", mark: "●", points: fwm.curve },
        { name: "LSTM of the same width", mark: "·", points: lstm.curve },
      ],
      { columns: Math.min(64, out.columns - 10), x: "step" },
    ),
    "",
    bold("Answers to questions about stories neither has seen"),
    table([["", "all", ...tasks, "trained in"], row("memory", fwm), row("LSTM", lstm)]).trimEnd(),
  ];
  if (chained) {
    lines.push(
      "",
      bold("One question, and what each read of the memory matched"),
      ...showAnswer(out, chained),
    );
  }
  lines.push(
    "",
    bold("The paper's example, asked of the model of all twenty tasks that ships with fwm"),
    ...showAnswer(out, shippedAnswer),
  );
  lines.push(
    "",
    bold("Next"),
    `  fwm ask                                  ${dim("tell the shipped model a story of your own")}`,
    `  fwm ask ${fwm.folder}        ${dim("or the one just trained")}`,
    `  fwm rollout                              ${dim("watch an agent with a memory find its way")}`,
    `  fwm data prepare catbabi                 ${dim("the real bAbI stories, all twenty tasks")}`,
    `  fwm train catbabi-qa-fwm                 ${dim("the authors' released recipe")}`,
    dim("  (from a clone: npx fwm …, or node dist/src/cli/main.js …)"),
  );
  return lines.join("\n");
}

/** A story, its question and the answer, and below what each read matched. */
function showAnswer(out: Output, { story, question, answer, reply: { trace } }: QuickstartAnswer): string[] {
  const start = trace.words.lastIndexOf("<eos>") + 1;
  const strip = {
    words: trace.words.slice(start),
    reads: trace.rows.map(({ values }) => values.subarray(start)),
  };
  return [
    ...story.map((sentence) => `  ${sentence}`),
    `  ${question.replace(" ?", "?")}  ${out.color.green(answer)}`,
    "",
    drawReads(strip, { color: out.color.isColorSupported, columns: out.columns }),
  ];
}
