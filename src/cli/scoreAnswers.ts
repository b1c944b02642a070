/** The score of a model that answers as commands make and show it: with progress, and beside the paper's numbers. */
import { experiments } from "../../experiments/index.ts";
import { UsageError } from "../errors.ts";
import type { Experiment } from "../experiment/settings.ts";
import type { Evaluation, StartState } from "../inference/evaluate.ts";
import type { LoadedModel } from "../store/modelFolder.ts";
import type { Output, Surroundings } from "./output.ts";
import { percent, table, thousands } from "./table.ts";

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
  model: LoadedModel,
  { split, batch, state, data, threads }: ScoreAnswersOptions,
  env: Surroundings["env"],
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

/** The paper's test result for the same experiment; null for generated stories, of which it says nothing. */
export function publishedAnswers({
  experiment,
  generated,
}: Evaluation): { accuracy: number; perplexity: number } | null {
  const paper = (experiments as Readonly<Record<string, Experiment>>)[experiment]?.paper;
  return paper && !generated ? { accuracy: paper.accuracy, perplexity: paper.perplexity } : null;
}

/** The evaluation as a table. */
export function showAnswers(evaluation: Evaluation): string {
  const { model, step, split, batch, state, perTask, questions, correct, accuracy, perplexity } = evaluation;
  const paper = publishedAnswers(evaluation);
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
    ...(paper ? [["paper (test)", "19,910", "", percent(paper.accuracy)]] : []),
  ]);
  return (
    `${model}${step === null ? "" : `, after ${thousands(step)} steps`}\n` +
    `${split}, ${batch === 1 ? "one stream" : `${batch} streams`}, beginning in ` +
    `${state === "train" ? "the training state of row 0" : "zeros"}\n\n${lines}\n` +
    `answer perplexity ${perplexity.toFixed(4)}${paper ? ` (paper, test: ${paper.perplexity})` : ""}\n`
  );
}

/** The evaluation in a line. */
export function answersLine(evaluation: Evaluation): string {
  const { accuracy, perplexity, split, questions } = evaluation;
  const paper = publishedAnswers(evaluation);
  return (
    `${split}: accuracy ${percent(accuracy)} of ${thousands(questions)} questions, ` +
    `perplexity ${perplexity.toFixed(3)}${paper ? `  (paper, test: ${percent(paper.accuracy)})` : ""}`
  );
}
