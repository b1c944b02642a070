/** `fwm compare`: two language models on the same text, word by word. */
import { basename, dirname } from "node:path";
import { UsageError } from "../errors.ts";
import type { LossComparison, Passage } from "../experiment/text/compare.ts";
import { table, thousands } from "../report/table.ts";
import { command } from "./command.ts";
import { figureParams } from "./figure.ts";
import { drawStrips } from "./heatmap.ts";
import type { Output } from "./output.ts";
import { file, folder, integer, oneOf, threadCount } from "./params.ts";
import { checkWritable, reporter, writeJson, writeResult } from "./writeResult.ts";

const { figure, title, width } = figureParams("the passages, a cell for every word");

/** The `compare` command. */
export const compareCommand = command({
  name: "compare",
  summary: "Compare two language models word by word: the losses of both, and where the second is ahead.",
  details:
    "Both read the split from its start, one column, as in an evaluation. A passage begins at word --at, or is found " +
    "with --search: those where the second model is ahead most, none overlapping. Rows: the first model's loss, the " +
    "second's, and the difference, in bits; above zero the second is better.",
  examples: [
    {
      line: "fwm compare runs/ptb-lstm-small-seed1 runs/ptb-fwm-small-seed1 --split test --at 3200 --words 60",
      trial: "fwm compare $LANGUAGEONE $LANGUAGETWO --data $PREPARED --at 7 --words 20",
    },
    {
      line: "fwm compare runs/ptb-lstm-small-seed1 runs/ptb-fwm-small-seed1 --search 3 --figure where.svg",
      trial:
        "fwm compare $LANGUAGEONE $LANGUAGETWO --data $PREPARED --search 2 --words 9 --figure $EMPTY/where.svg",
    },
    {
      line: "fwm compare runs/ptb-lstm-small-seed1 runs/ptb-fwm-small-seed1 --search 1 --out results/losses-ptb.json",
      trial:
        "fwm compare $LANGUAGEONE $LANGUAGETWO --data $PREPARED --search 1 --words 9 --out $EMPTY/losses.json",
    },
    {
      line: "fwm compare runs/ptb-lstm-small-seed1 runs/ptb-fwm-small-seed1 --search 5 --json",
      trial: "fwm compare $LANGUAGEONE $LANGUAGETWO --data $PREPARED --search 2 --words 9 --json",
    },
  ],
  args: {
    first: folder({ help: "run, checkpoint or model folder; of a run its best checkpoint" }),
    second: folder({ help: "the model it is compared with, trained on the same text" }),
  },
  options: {
    split: oneOf(["train", "valid", "test"], { default: "test", help: "part of the text" }),
    at: integer({ min: 1, help: "number of the passage's first word in the split; default: 1" }),
    words: integer({ min: 1, max: 10_000, default: 60, help: "words of a passage" }),
    search: integer({ min: 1, max: 1000, help: "find so many passages instead" }),
    figure,
    title,
    width,
    out: file({ help: "also write it as a result file: with command, commit and machine" }),
    data: folder({ help: "prepared text, if not in the usual place" }),
    threads: threadCount(),
  },
  run: async ({ args, options, out, env }) => {
    const { split, at, words, search, data, threads, figure: path, out: filed } = options;
    if (at !== undefined && search !== undefined) {
      throw new UsageError("--at and --search exclude each other");
    }
    for (const target of [path, filed]) if (target !== undefined) await checkWritable(target);
    const { compareModels } = await import("../experiment/text/compare.ts");
    let progress: ReturnType<typeof out.progress> | undefined;
    const comparison = await compareModels(
      [args.first, args.second],
      {
        split,
        words,
        ...(at === undefined ? {} : { at }),
        ...(search === undefined ? {} : { search }),
        ...(data === undefined ? {} : { data }),
      },
      {
        env,
        ...(threads ? { threads } : {}),
        onProgress(done, total, what) {
          progress ??= out.progress({ label: "reading", total, show: thousands, every: 10_000 });
          progress.update(done, what);
        },
      },
    ).finally(() => progress?.stop());
    const names = namesOf(comparison, [args.first, args.second]);
    if (path !== undefined) {
      const { drawWords } = await import("../report/wordFigure.ts");
      const svg = await drawWords({
        title: options.title ?? `Loss of ${names[0]} and ${names[1]}, ${split} split`,
        rows: [names[0], names[1], "difference"],
        scales: ["loss, bits", "difference, bits"],
        passages: comparison.passages.map(({ at: start, words: shown, bits, difference }) => ({
          ...{ title: `from word ${thousands(start)}`, words: shown, values: bits, difference },
        })),
        ...(options.width === undefined ? {} : { width: options.width }),
      });
      await writeResult(path, svg);
    }
    if (filed !== undefined) {
      const { comparisonFile } = await import("../experiment/evaluationFile.ts");
      await writeJson(filed, await comparisonFile(comparison, reporter(threads)));
    }
    out.result({ ...comparison, ...(path === undefined ? {} : { figure: path }) }, () =>
      [
        headOf(comparison, names),
        ...comparison.passages.map((passage) => showPassage(passage, names, out)),
        ...(path === undefined ? [] : [`figure: ${path}`]),
        ...(filed === undefined ? [] : [`written to ${filed}`]),
      ].join("\n\n"),
    );
  },
});

type Names = readonly [string, string];

/** What the models are called: their experiments; folders where these are the same. */
function namesOf({ models }: LossComparison, paths: Names): Names {
  const [first, second] = models.map(({ experiment }) => experiment) as [string, string];
  if (first !== second) return [first, second];
  const [a, b] = paths.map((path) => basename(path)) as [string, string];
  return a === b ? [`${basename(dirname(paths[0]))}/${a}`, `${basename(dirname(paths[1]))}/${b}`] : [a, b];
}

function headOf({ split, tokens, models }: LossComparison, names: Names): string {
  return table([
    [`${split}, ${thousands(tokens)} words`, "bits per word"],
    ...models.map(({ bits }, i) => [names[i]!, bits.toFixed(3)]),
    ["difference", (models[0].bits - models[1].bits).toFixed(3)],
  ]).trimEnd();
}

/** Words that are named with their numbers: where the difference is largest. */
const named = 5;

function showPassage({ at, words, bits, difference }: Passage, names: Names, out: Output): string {
  const highest = (values: readonly number[]): number =>
    values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const mostBits = Math.max(...bits.map(highest));
  const strips = drawStrips(
    words,
    [
      { label: names[0], values: bits[0], most: mostBits },
      { label: names[1], values: bits[1], most: mostBits },
      { label: "difference", values: difference, most: highest(difference) },
    ],
    { color: out.color.isColorSupported, columns: out.columns },
  );
  const strongest = Array.from(words.keys())
    .sort((a, b) => Math.abs(difference[b]!) - Math.abs(difference[a]!) || a - b)
    .slice(0, named);
  const mean = difference.reduce((a, b) => a + b, 0) / words.length;
  const rows = strongest.map((i) => [
    `  ${words[i]} (word ${thousands(at + i)})`,
    ...[bits[0][i]!, bits[1][i]!, difference[i]!].map((value) => value.toFixed(2)),
  ]);
  return [
    `words ${thousands(at)} to ${thousands(at + words.length - 1)}: difference ${mean.toFixed(3)} bits per word`,
    strips,
    table([["  bits", names[0], names[1], "difference"], ...rows]).trimEnd(),
  ].join("\n\n");
}
