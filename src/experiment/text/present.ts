/** How an evaluation on text, its model and its curves are presented. */
import { splitNames } from "../../data/catbabi.ts";
import { type CardAbout, cardHead } from "../../report/card.ts";
import type { FigureLine, FigureSpec } from "../../report/figure.ts";
import type { RunResult } from "../../report/result.ts";
import { table, thousands } from "../../report/table.ts";
import type { ReportedRun } from "../kind.ts";
import type { SplitScores, TextEvaluation } from "./options.ts";
import type { Score } from "./score.ts";
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
  const { model, step, dataset, batch, window, splits } = evaluation;
  const paper = published(evaluation, known);
  const theirs = (name: string): string =>
    name === "train" ? "" : (paper?.[name as "valid" | "test"]?.toFixed(2) ?? "");
  const rows = splitNames.flatMap((name) => {
    const scores = splits[name];
    if (!scores) return [];
    return scoresOf(scores, evaluation).map(({ label, score, isMain }, i) => {
      const row = [
        i === 0 ? name : `  ${label}`,
        score.tokens,
        score.loss.toFixed(4),
        score.perplexity.toFixed(2),
        score.bits.toFixed(3),
      ];
      return paper ? [...row, isMain ? theirs(name) : ""] : row;
    });
  });
  const head = ["", "tokens", "loss", "perplexity", "bits per word"];
  return (
    `${model}${step === null ? "" : `, after ${thousands(step)} steps`}\n` +
    `${dataset}, ${batch === 1 ? "one column" : `${batch} columns`}, windows of ${window}\n` +
    `${settingsOf(evaluation)
      .map((line) => `${line}\n`)
      .join("")}\n` +
    table([paper ? [...head, "paper, perplexity"] : head, ...rows])
  );
}

/** The scores of a split, each with what it was taken with; the paper's number stands beside the main one. */
function scoresOf(
  { plain, cache, dynamic, ...main }: SplitScores,
  { temperature }: TextEvaluation,
): { label: string; score: Score; isMain: boolean }[] {
  const softened = temperature === 1 ? "" : `temperature ${temperature}`;
  return [
    ...(plain ? [{ label: "", score: plain, isMain: false }] : []),
    { label: softened, score: main, isMain: true },
    ...(cache
      ? [{ label: softened ? `${softened} and cache` : "with cache", score: cache, isMain: false }]
      : []),
    ...(dynamic ? [{ label: "dynamic evaluation", score: dynamic, isMain: false }] : []),
  ];
}

/** What was chosen or tuned, a line each. */
function settingsOf({ temperature, tuning, cache, dynamic }: TextEvaluation): string[] {
  const found = (tried: readonly unknown[] | null): string =>
    tried ? ` (tuned on valid: ${tried.length} tried)` : "";
  return [
    `temperature ${temperature}${found(tuning)}`,
    ...(cache
      ? [`cache: λ ${cache.lambda}, θ ${cache.theta}, window ${cache.window}${found(cache.tuning)}`]
      : []),
    ...(dynamic
      ? [
          `dynamic evaluation: rate ${dynamic.rate}, decay ${dynamic.decay}, segments of ${dynamic.segment}` +
            found(dynamic.tuning),
        ]
      : []),
  ];
}

/** The evaluation in a line. */
export function showTextLine(evaluation: TextEvaluation, known: TextPaper | undefined): string {
  const { split, splits, temperature } = evaluation;
  const paper = published(evaluation, known);
  const named = split === "all" ? "test" : split;
  const theirs = named === "train" ? undefined : paper?.[named];
  const { cache, dynamic, ...score } = splits[named]!;
  const besides = [
    ...(cache ? [`with cache ${cache.perplexity.toFixed(2)}`] : []),
    ...(dynamic ? [`with dynamic evaluation ${dynamic.perplexity.toFixed(2)}`] : []),
  ];
  return (
    `${named}: perplexity ${score.perplexity.toFixed(2)}, ${score.bits.toFixed(3)} bits per word, ` +
    `${thousands(score.tokens)} tokens, temperature ${temperature}${theirs ? `  (paper: ${theirs})` : ""}` +
    besides.map((one) => `; ${one}`).join("")
  );
}

/** What the texts that can be downloaded may be used for, by name. */
const licences: Readonly<Record<string, string>> = {
  ptb: "Penn Treebank is licensed by the Linguistic Data Consortium; it is no free data.",
  "wikitext-2": "WikiText-2 is CC BY-SA 3.0: text of Wikipedia, chosen by Merity et al. (2016).",
};

/** The card of a language model, as Markdown. */
export function textCard(result: RunResult<TextPaper>, evaluation: TextEvaluation, about: CardAbout): string {
  const { training, system } = result.settings as unknown as TextSettings;
  const { splits, batch, window, dataset, notes } = evaluation;
  const paper = published(evaluation, result.paper ?? undefined);
  const scores = splitNames.flatMap((name): (readonly [string, string])[] => {
    const scores = splits[name];
    if (!scores) return [];
    const theirs = name === "train" ? undefined : paper?.[name];
    return scoresOf(scores, evaluation).map(({ label, score, isMain }) => {
      const [reached, bits] = [score.perplexity.toFixed(2), score.bits.toFixed(3)];
      return [
        `perplexity, ${[name, ...(label ? [label] : [])].join(", ")}`,
        `${isMain ? `**${reached}**` : reached}, ${bits} bits per word${isMain && theirs ? ` (paper: ${theirs})` : ""}`,
      ];
    });
  });
  const head = cardHead(result, about, "step", {
    score: [
      ...scores,
      ["protocol", [`batch ${batch}, windows of ${window}`, ...settingsOf(evaluation)].join("; ")],
    ],
    amount: `about ${thousands(result.steps * training.batch * training.window)} tokens`,
  });
  const licence = licences[dataset];
  return `${head}
Text: ${[dataset, ...notes].join("; ")}.${licence ? ` ${licence}` : ""}

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
