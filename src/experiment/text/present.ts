/** How an evaluation on text, its model and its curves are presented. */
import { splitNames } from "../../data/catbabi.ts";
import { type CardAbout, cardHead } from "../../report/card.ts";
import type { FigureLine, FigureSpec } from "../../report/figure.ts";
import type { RunResult } from "../../report/result.ts";
import { table, thousands } from "../../report/table.ts";
import type { ReportedRun } from "../kind.ts";
import type { TextEvaluation } from "./options.ts";
import type { TextPaper, TextSettings } from "./settings.ts";

/** The published perplexities; null for other text, of which the paper says nothing. */
export function published(
  { isOfficial }: Pick<TextEvaluation, "isOfficial">,
  paper: TextPaper | undefined,
): { valid?: number; test: number } | null {
  if (!paper || !isOfficial) return null;
  return { ...(paper.valid === undefined ? {} : { valid: paper.valid }), test: paper.test };
}

/** The evaluation as a table: a row for every split, as in the paper's appendix. */
export function showText(evaluation: TextEvaluation, known: TextPaper | undefined): string {
  const { model, step, dataset, batch, window, temperature, tuning, splits } = evaluation;
  const paper = published(evaluation, known);
  const theirs = (name: string): string =>
    name === "train" ? "" : (paper?.[name as "valid" | "test"]?.toFixed(2) ?? "");
  const rows = splitNames.flatMap((name) => {
    const score = splits[name];
    if (!score) return [];
    const row = [
      name,
      score.tokens,
      score.loss.toFixed(4),
      score.perplexity.toFixed(2),
      score.bits.toFixed(3),
    ];
    return [paper ? [...row, theirs(name)] : row];
  });
  const head = ["", "tokens", "loss", "perplexity", "bits per word"];
  return (
    `${model}${step === null ? "" : `, after ${thousands(step)} steps`}\n` +
    `${dataset}, ${batch === 1 ? "one column" : `${batch} columns`}, windows of ${window}, temperature ` +
    `${temperature}${tuning ? ` (tuned on valid: ${tuning.length} tried)` : ""}\n\n` +
    table([paper ? [...head, "paper, perplexity"] : head, ...rows])
  );
}

/** The evaluation in a line. */
export function showTextLine(evaluation: TextEvaluation, known: TextPaper | undefined): string {
  const { split, splits, temperature } = evaluation;
  const paper = published(evaluation, known);
  const named = split === "all" ? "test" : split;
  const theirs = named === "train" ? undefined : paper?.[named];
  const score = splits[named]!;
  return (
    `${named}: perplexity ${score.perplexity.toFixed(2)}, ${score.bits.toFixed(3)} bits per word, ` +
    `${thousands(score.tokens)} tokens, temperature ${temperature}${theirs ? `  (paper: ${theirs})` : ""}`
  );
}

/** The card of a language model, as Markdown. */
export function textCard(result: RunResult<TextPaper>, evaluation: TextEvaluation, about: CardAbout): string {
  const { training, system } = result.settings as unknown as TextSettings;
  const { splits, batch, window, temperature, tuning, dataset, notes } = evaluation;
  const paper = published(evaluation, result.paper ?? undefined);
  const scores = splitNames.flatMap((name): (readonly [string, string])[] => {
    const score = splits[name];
    if (!score) return [];
    const theirs = name === "train" ? undefined : paper?.[name];
    return [
      [
        `perplexity, ${name}`,
        `**${score.perplexity.toFixed(2)}**, ${score.bits.toFixed(3)} bits per word${theirs ? ` (paper: ${theirs})` : ""}`,
      ],
    ];
  });
  const head = cardHead(result, about, "step", {
    score: [
      ...scores,
      [
        "protocol",
        `batch ${batch}, windows of ${window}, temperature ${temperature}${tuning ? ", tuned on valid" : ""}`,
      ],
    ],
    amount: `about ${thousands(result.steps * training.batch * training.window)} tokens`,
  });
  return `${head}
Text: ${[dataset, ...notes].join("; ")}.

## Limits

It knows the ${thousands(system.vocabulary)} words of its text, as that text is tokenised; every other word is \`<unk>\`. It was
trained to predict the next word and on nothing else.
`;
}

/** Validation perplexity over epochs: every run, and the authors' log as far as the runs went. */
export function perplexityFigure(runs: readonly ReportedRun<TextPaper>[]): FigureSpec {
  const ours = runs.map(
    ({ result }): FigureLine => ({
      name: `${result.experiment}, seed ${result.seed}`,
      points: (result.curves.valid ?? []).map(({ values }) => ({
        x: values.epoch!,
        y: values.perplexity!,
      })),
    }),
  );
  const last = Math.max(0, ...ours.flatMap(({ points }) => points.map(({ x }) => x)));
  const names = [...new Set(runs.map(({ result }) => result.experiment))];
  const theirs = names.flatMap((name): FigureLine[] => {
    const { curve = [] } = runs.find(({ result }) => result.experiment === name)!.result.paper ?? {};
    const shown = curve.filter(({ epoch }) => epoch <= last);
    if (shown.length === 0) return [];
    const points = shown.map(({ epoch, perplexity }) => ({ x: epoch, y: perplexity }));
    return [{ name: `authors, ${name}`, points, look: "circles" }];
  });
  return {
    title: "Validation perplexity",
    x: "epoch",
    y: "perplexity",
    lines: [...ours, ...theirs],
  };
}
