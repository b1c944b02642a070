/** How an evaluation on catbAbI, its model and its curves are presented. */
import { basename, resolve } from "node:path";
import { z } from "zod";
import { taskNames } from "../../babi/format.ts";
import { DataError } from "../../errors.ts";
import type { BarsSpec } from "../../report/bars.ts";
import { type CardAbout, cardHead } from "../../report/card.ts";
import { type FigureLine, type FigureSpec, runNames } from "../../report/figure.ts";
import { type RunResult, stepsOf } from "../../report/result.ts";
import { percent, table, thousands } from "../../report/table.ts";
import type { ReportedRun } from "../kind.ts";
import type { Calibration } from "./calibration.ts";
import type { CatbabiEvaluation, StretchEvaluation } from "./options.ts";
import { stretchSection } from "./presentStretch.ts";
import type { CatbabiPaper } from "./settings.ts";

/** The paper's test result for the same experiment; null for generated and own stories, of which it says nothing. */
export function published(
  { generated, ownTasks }: CatbabiEvaluation,
  paper: CatbabiPaper | undefined,
): { accuracy: number; perplexity: number } | null {
  return paper && !generated && !ownTasks ? { accuracy: paper.accuracy, perplexity: paper.perplexity } : null;
}

/** The evaluation as a table. */
export function showAnswers(evaluation: CatbabiEvaluation, known: CatbabiPaper | undefined): string {
  const { model, step, split, batch, state, perTask, questions, correct, accuracy, perplexity } = evaluation;
  const paper = published(evaluation, known);
  const rows = Object.entries(perTask).map(([task, tally]) => [
    evaluation.ownTasks?.[Number(task)] ?? `task ${task}`,
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
    `${split}, ${batch === 1 ? "one stream" : `${batch} streams`}, starting from ` +
    `${state === "train" ? "the training state of row 0" : "zeros"}\n\n${lines}\n` +
    `answer perplexity ${perplexity.toFixed(4)}${paper ? ` (paper, test: ${paper.perplexity})` : ""}\n` +
    showCalibration(evaluation.calibration)
  );
}

/** How sure the model was: in all, then of its right and of its wrong answers. */
function showCalibration(calibration: Calibration | null | undefined): string {
  if (!calibration) return "";
  const { confidence, calibrationError } = calibration;
  return `mean confidence ${percent(confidence)}, calibration error ${percent(calibrationError)}\n${certainties(calibration).join("\n")}\n`;
}

/** "right answers: median probability 99.90%, 99.30% of 1,000 above 90 %", and the same of wrong ones. */
function certainties({ right, wrong }: Calibration): string[] {
  return Object.entries({ right, wrong }).flatMap(([name, { answers, median, above90 }]) =>
    median === null
      ? []
      : [
          `${name} answers: median probability ${percent(median)}, ${percent(above90 / answers)} of ${thousands(answers)} above 90 %`,
        ],
  );
}

/** The evaluation in a line. */
export function showAnswersLine(evaluation: CatbabiEvaluation, known: CatbabiPaper | undefined): string {
  const { accuracy, perplexity, split, questions } = evaluation;
  const paper = published(evaluation, known);
  return (
    `${split}: accuracy ${percent(accuracy)} of ${thousands(questions)} questions, ` +
    `perplexity ${perplexity.toFixed(3)}${paper ? `  (paper, test: ${percent(paper.accuracy)})` : ""}`
  );
}

/** The card of a model that answers, as Markdown. */
export function answersCard(
  result: RunResult<CatbabiPaper>,
  score: CatbabiEvaluation,
  about: CardAbout,
): string {
  const { training, system } = result.settings as {
    training: { batch: number; window: number };
    system: { vocabulary: number };
  };
  const paper = published(score, result.paper ?? undefined);
  const rows = Object.entries(score.perTask).map(
    ([task, { accuracy, questions }]) =>
      `| ${task} | ${(score.ownTasks?.[Number(task)] ?? taskNames[Number(task) - 1]) || ""} | ${questions} | ${percent(accuracy)} |`,
  );
  const weak = Object.entries(score.perTask)
    .filter(([, { accuracy }]) => accuracy < 0.9)
    .map(([task, { accuracy }]) => `${task} (${percent(accuracy)})`);
  const head = cardHead(result, about, "step", {
    score: [
      [
        `accuracy, ${score.split}`,
        `**${percent(score.accuracy)}** of ${thousands(score.questions)} questions${paper ? ` (paper: ${percent(paper.accuracy)})` : ""}`,
      ],
      ["perplexity", `${score.perplexity.toFixed(3)}${paper ? ` (paper: ${paper.perplexity})` : ""}`],
      ...(score.calibration
        ? [
            ["confidence", certainties(score.calibration).join("; ")] as const,
            ["calibration error", percent(score.calibration.calibrationError)] as const,
          ]
        : []),
      ["protocol", `${score.split} split, batch ${score.batch}, start state: ${score.state}`],
    ],
    amount: `${thousands(result.steps * training.batch * training.window)} tokens`,
  });
  const data = score.notes.length > 0 ? score.notes.join("; ") : "bAbI v1.2, en-valid-10k";
  const words = score.ownTasks
    ? `the ${thousands(system.vocabulary - 2)} words of its stories and their`
    : "bAbI's 178 words and its";
  return `${head}
Data: ${data}.${score.ownTasks ? "" : " bAbI is CC BY 3.0 (Facebook, Inc.)."}

| task | | questions | accuracy |
| --- | --- | --- | --- |
${rows.join("\n")}

## Limits

It knows ${words} kinds of sentences; other words are refused, other sentences mean nothing to it.${
    weak.length > 0 ? ` Weak tasks: ${weak.join(", ")}.` : ""
  } It answers with one word, always, also when the story does not say.
${(about.further ?? []).filter(isStretchScore).map(stretchSection).join("\n")}`;
}

function isStretchScore(score: object): score is StretchEvaluation {
  return "suite" in score && score.suite === "stretch";
}

/** Validation accuracy over steps: every run, the authors' points as far as the runs went, the published result. */
export function accuracyFigure(runs: readonly ReportedRun<CatbabiPaper>[]): FigureSpec {
  const folderOf = ({ folder }: ReportedRun<CatbabiPaper>): string => basename(resolve(folder));
  // A run that started with the weights of another goes on where that one stood.
  const stepsBefore = ({ result }: ReportedRun<CatbabiPaper>): number => {
    const { initFrom } = result;
    const source = runs.find(
      (run) => initFrom?.startsWith(`${folderOf(run)} after `) && run.result !== result,
    );
    return stepsOf(initFrom) + (source ? stepsBefore(source) : 0);
  };
  const names = runNames(runs.map(({ result }) => result));
  const ours = runs.map((run, i): FigureLine => {
    const before = stepsBefore(run);
    const name = names[i]!;
    // Two runs of one seed and one name differ in something else: their folders tell them apart.
    const twins = runs.filter((other, k) => names[k] === name && other.result.seed === run.result.seed);
    return {
      name: twins.length === 1 ? name : `${name}, ${folderOf(run)}`,
      points: (run.result.curves.valid ?? []).map(({ step, values }) => ({
        x: before + step,
        y: values.accuracy!,
      })),
    };
  });
  const last = Math.max(...ours.flatMap(({ points }) => points.map(({ x }) => x)));
  const paper = runs.find(({ result }) => result.paper)?.result.paper;
  const theirs: FigureLine = {
    name: "the authors' released run (read off their plot)",
    points: (paper?.curve ?? [])
      .filter(({ step }) => step <= last)
      .map(({ step, accuracy }) => ({ x: step, y: accuracy })),
    look: "circles",
  };
  return {
    title: "Validation accuracy",
    x: "step",
    y: "accuracy",
    percent: true,
    lines: theirs.points.length > 0 ? [...ours, theirs] : ours,
    marks: paper ? [{ name: `paper, test: ${percent(paper.accuracy)}`, y: paper.accuracy }] : [],
  };
}

const perTaskSchema = z.object({
  split: z.string(),
  perTask: z.record(z.string(), z.object({ accuracy: z.number() })),
});

/** Accuracy on each task, one colour per evaluation. */
export function taskBars(
  evaluations: readonly { readonly name: string; readonly evaluation: unknown }[],
): BarsSpec {
  const read = evaluations.map(({ name, evaluation }) => {
    const parsed = perTaskSchema.safeParse(evaluation);
    if (!parsed.success) throw new DataError(`${name}: no evaluation by task`, { hint: "report it again" });
    return { name, ...parsed.data };
  });
  const splits = [...new Set(read.map(({ split }) => split))];
  return {
    title: `Accuracy by task, ${splits.join(" and ")}`,
    x: "task",
    y: "accuracy",
    percent: true,
    series: read.map(({ name, split, perTask }) => ({
      name: splits.length > 1 ? `${name}, ${split}` : name,
      values: Object.fromEntries(Object.entries(perTask).map(([task, { accuracy }]) => [task, accuracy])),
    })),
  };
}
