/** Language models of `fwm paper`: the paper's tables with ours beside, and the small models, which it does not have. */
import { changedSettings } from "../../report/changed.ts";
import { drawFigure, type FigureLine } from "../../report/figure.ts";
import { thousands } from "../../report/table.ts";
import { experimentNames, kindOf, requireExperiment } from "../registry.ts";
import type { TextSettings } from "../text/settings.ts";
import { groupNames, groupsOf, link, links, markdownTable, withSpread } from "./groups.ts";
import { appendixTable, publishedEpochs, table2 } from "./published.ts";
import type { FiledRun, Results } from "./read.ts";
import { notRun } from "./tables.ts";

/** Table 2: perplexity of language models. */
export function languageTable({ runs }: Results, folder: string): string {
  const rows = Object.entries(table2).map(([name, { title, valid, test }]) => {
    const found = scoredRuns(runs, name);
    const ours = (split: "valid" | "test"): string => {
      const reachedThere = found.flatMap((run) => perplexityOf(run, split) ?? []);
      return reachedThere.length > 0 ? withSpread(reachedThere, 2) : missing(runs, name);
    };
    const theirs = (value: number | null): string => value?.toFixed(2) ?? "-";
    const seeds = links(found, folder, (run) => perplexityOf(run, "test")?.toFixed(2));
    return [`\`${name}\``, title, theirs(valid), ours("valid"), theirs(test), ours("test"), seeds];
  });
  return markdownTable([
    ["experiment", "model", "valid, paper", "valid, ours", "test, paper", "test, ours", "results"],
    ...rows,
  ]);
}

/** What stands for a score of ours that there is none of. */
function missing(runs: readonly FiledRun[], name: string): string {
  return runs.some(({ experiment }) => experiment === name) ? "only [first epochs](#epoch-by-epoch)" : notRun;
}

/** The perplexity on a split, of a score of that split or of all of them. */
function perplexityOf({ score }: FiledRun, split: string): number | undefined {
  return score?.splits?.[split]?.perplexity ?? (score?.split === split ? score.perplexity : undefined);
}

/** The appendix's table: every seed, theirs and ours, on every split. */
export function appendix({ runs }: Results, folder: string): string {
  const rows = Object.keys(table2).flatMap((name) => [
    ...(appendixTable[name] ?? []).map(({ seed, train, valid, test }) => [
      `\`${name}\``,
      `paper, seed ${seed}`,
      ...[train, valid, test].map((value) => value.toFixed(2)),
    ]),
    ...oursOf(runs, name, folder),
  ]);
  return markdownTable([["experiment", "run", "train", "valid", "test"], ...rows]);
}

function oursOf(runs: readonly FiledRun[], name: string, folder: string): string[][] {
  const found = scoredRuns(runs, name);
  if (found.length === 0) return [[`\`${name}\``, "ours", ...new Array<string>(3).fill(missing(runs, name))]];
  return found.map((run) => [
    `\`${name}\``,
    `ours, ${link(run, folder, `seed ${run.seed}`)}`,
    ...["train", "valid", "test"].map((split) => perplexityOf(run, split)?.toFixed(2) ?? notRun),
  ]);
}

/** Validation perplexity after each of the first epochs, the authors' seeds and ours; undefined before any run of ours. */
export function epochsTable({ runs }: Results, name: string, folder: string): string | undefined {
  const ours = runs
    .filter(({ experiment }) => experiment === name)
    .map((run) => ({
      run,
      epochs: (run.curves.valid ?? []).filter(({ values }) => Number.isInteger(values.epoch)),
    }))
    .filter(({ epochs }) => epochs.length > 0);
  if (ours.length === 0) return undefined;
  const { seeds, epochs: theirs } = publishedEpochs[name] ?? { seeds: [], epochs: [] };
  const last = Math.min(
    10,
    Math.max(...ours.flatMap(({ epochs }) => epochs.map(({ values }) => values.epoch!))),
  );
  return markdownTable([
    [
      "epoch",
      ...seeds.map((seed) => `authors, seed ${seed}`),
      ...ours.map(({ run }) => `ours, ${link(run, folder, `seed ${run.seed}`)}`),
    ],
    ...Array.from({ length: last }, (_, i) => [
      String(i + 1),
      ...seeds.map((_seed, column) => theirs[i]?.[column]?.toFixed(1) ?? ""),
      ...ours.map(
        ({ epochs }) =>
          epochs.find(({ values }) => values.epoch === i + 1)?.values.perplexity?.toFixed(1) ?? "",
      ),
    ]),
  ]);
}

/** Small language models, which the paper does not have: what each cost, and its perplexities by every way of evaluating. */
export function smallLanguageTable({ runs, languages }: Results, folder: string): string {
  const shown = (value: number | undefined): string => value?.toFixed(2) ?? "-";
  return markdownTable([
    [
      "experiment",
      "weights",
      "rate",
      "other settings than the experiment's",
      "steps",
      "tokens",
      "minutes of processor time",
      "valid",
      "test",
      "test, temperature",
      "test, cache",
      "test, dynamic",
      "results",
    ],
    ...smallNames().flatMap((name) => {
      const found = scoredRuns(runs, name);
      const alone = languages.filter(({ experiment }) => experiment === name);
      if (found.length + alone.length === 0)
        return [[`\`${name}\``, ...new Array<string>(6).fill(""), notRun, notRun, "", "", "", ""]];
      const scored = found.map((run) => {
        const { batch, window, optimizer } = (run.settings as unknown as TextSettings).training;
        return [
          `\`${name}\``,
          run.weights ? thousands(run.weights) : "-",
          String(optimizer.learningRate),
          otherSettings(run),
          thousands(run.steps),
          `${((run.steps * batch * window) / 1e6).toFixed(1)} M`,
          processorMinutes(run)?.toFixed(0) ?? "-",
          ...perplexitiesOf(run.score!).map(shown),
          link(run, folder),
        ];
      });
      return [
        ...scored,
        ...alone.map((language) => [
          `\`${name}\`, the model \`${language.score.model}\``,
          ...new Array<string>(6).fill(""),
          ...perplexitiesOf(language.score).map(shown),
          link(language, folder),
        ]),
      ];
    }),
  ]);
}

/** What a run has that its experiment, as it is today, has not; rate and steps have columns of their own. */
function otherSettings({ experiment, settings }: FiledRun): string {
  const today = requireExperiment(experiment).settings;
  // Filled up with what settings that came later default to.
  const parsed = kindOf(today).schema.safeParse(settings);
  if (!parsed.success) return "?";
  return Object.entries(changedSettings(today, parsed.data))
    .filter(([name]) => name !== "training.optimizer.learningRate" && name !== "training.steps")
    .map(([name, { run }]) => `${name.replace(/^(system|training)\.(optimizer\.)?/, "")} ${run ?? "none"}`)
    .join(", ");
}

/** What a run's score and one alone have in common. */
type Scored = Pick<NonNullable<FiledRun["score"]>, "splits" | "tuning">;

/** Perplexities of a score: valid and test at temperature 1, then test at the temperature found, with cache, and dynamic. */
function perplexitiesOf(score: Scored): (number | undefined)[] {
  const { test, valid } = score.splits ?? {};
  return [
    (valid?.plain ?? valid)?.perplexity ?? tunedAtOne(score),
    (test?.plain ?? test)?.perplexity,
    test?.plain ? test.perplexity : undefined,
    test?.cache?.perplexity,
    test?.dynamic?.perplexity,
  ];
}

/** The settings of evaluations alone, found on the validation split; undefined where there is none. */
export function languageSettings({ languages }: Results, folder: string): string | undefined {
  const lines = languages.map((language) => {
    const { temperature, cache, dynamic } = language.score;
    return `- ${link(language, folder)}: ${[
      `temperature ${temperature.toFixed(2)}`,
      ...(cache ? [`cache λ ${cache.lambda}, θ ${cache.theta}, window ${thousands(cache.window)}`] : []),
      ...(dynamic
        ? [`dynamic evaluation η ${dynamic.rate}, λ ${dynamic.decay}, segments of ${dynamic.segment} tokens`]
        : []),
    ].join("; ")}`;
  });
  return lines.length === 0 ? undefined : ["Found on the validation split:", "", ...lines].join("\n");
}

/** Validation perplexity at temperature 1, where the search for another one met it. */
function tunedAtOne({ tuning }: Scored): number | undefined {
  const met = tuning?.find(({ temperature }) => Math.abs(temperature - 1) < 1e-9);
  return met && Math.exp(met.loss);
}

/** Validation perplexity of the small models of a text over steps, of a window each; undefined before any run. */
export async function smallLanguageFigure(
  { runs }: Results,
  text: "ptb" | "wt2",
): Promise<string | undefined> {
  const groups = groupsOf(
    smallNames()
      .filter((name) => name.startsWith(text))
      .flatMap((name) => scoredRuns(runs, name)),
  );
  if (groups.length === 0) return undefined;
  const names = groupNames(groups);
  return drawFigure({
    title: `Validation perplexity, small models, ${text === "ptb" ? "Penn Treebank" : "WikiText-2"}`,
    x: "step",
    y: "perplexity",
    lines: groups.flatMap(({ runs: members }, i) =>
      members.map(
        ({ curves }): FigureLine => ({
          name: names[i]!,
          color: i,
          points: (curves.valid ?? []).map(({ step, values }) => ({ x: step, y: values.perplexity! })),
        }),
      ),
    ),
  });
}

function smallNames(): string[] {
  return experimentNames().filter((name) => /^(ptb|wt2)-.*-small$/.test(name));
}

function scoredRuns(runs: readonly FiledRun[], name: string): FiledRun[] {
  return runs.filter(({ experiment, score }) => experiment === name && score !== null);
}

function processorMinutes({ curves }: FiledRun): number | undefined {
  const hours = curves.valid?.at(-1)?.processorHours;
  return hours === undefined ? undefined : 60 * hours;
}
