/**
 * `fwm data prepare ptb | wikitext-2 | text`: text becomes streams of word numbers.
 */
import { basename, join } from "node:path";
import type { TextHeader } from "../data/text/prepared.ts";
import type { CorpusName } from "../data/text/sources.ts";
import { UsageError } from "../errors.ts";
import { table, thousands } from "../report/table.ts";
import { type Command, command } from "./command.ts";
import { downloadDisplay } from "./downloadDisplay.ts";
import type { Output } from "./output.ts";
import { folder, integer, number, text } from "./params.ts";

const out = folder({ help: "the folder to write; one with prepared data is replaced" });

function corpusCommand(name: CorpusName, title: string): Command {
  return command({
    name,
    summary: `Turn ${title} into streams of word numbers, ready to train on.`,
    details:
      "Without --from the three files are downloaded and checked. The result goes to --out, or to " +
      `${name} under $FWM_DATA (default ~/.cache/fwm/data). See docs/language-modelling.md.`,
    examples: [
      {
        line: `fwm data prepare ${name}`,
        trial: `fwm data prepare ${name} --from $TEXT`,
      },
      {
        line: `fwm data prepare ${name} --from ${name}.tar.gz --out my-${name}`,
        trial: `fwm data prepare ${name} --from $TEXT --out $EMPTY/my-${name}`,
      },
    ],
    options: {
      from: text({ placeholder: "folder or .tar.gz", help: "a local copy instead of a download" }),
      out,
    },
    run: async ({ options, out, env, signal }) => {
      const { dataRoot } = await import("../data/sources/prepare.ts");
      const { prepareText } = await import("../data/text/prepare.ts");
      const { findCorpus } = await import("../data/text/sources.ts");
      const root = dataRoot(env);
      const path = options.out ?? join(root, name);
      const download = downloadDisplay(out);
      const onNote = (note: string) => out.note(note);
      const found = await findCorpus(name, {
        from: options.from,
        downloads: join(root, "downloads"),
        signal,
        onNote,
        onDownload: download.update,
      }).finally(download.stop);
      const header = await prepareText(path, name, found, { kind: "all" }, { signal, onNote });
      const others = found.files.filter(({ isOfficial }) => !isOfficial).map((file) => file.name);
      if (others.length > 0) out.warn(`not the published files: ${others.join(", ")}`);
      show(path, header, out);
    },
  });
}

const textCommand = command({
  name: "text",
  summary: "Turn text of your own into streams of word numbers, ready to train on.",
  details:
    "Words are what stands between white space, in any language; each line ends with <eos>. A folder with train.txt, " +
    "valid.txt and test.txt is split as its files are. One file, or the .txt files of any other folder in the order of " +
    "their names, is cut by shares at ends of lines. Files of any size are read piece by piece.",
  examples: [
    { line: "fwm data prepare text --from my.txt", trial: "fwm data prepare text --from $TEXT/train.txt" },
    {
      line: "fwm data prepare text --from books --min-count 3 --max-words 50_000 --out my-books",
      trial: "fwm data prepare text --from $TEXT --min-count 2 --max-words 50 --out $EMPTY/books",
    },
  ],
  options: {
    from: text({ required: true, placeholder: "file or folder", help: "the text" }),
    validShare: number({ default: 0.05, help: "share of the text that becomes the valid split" }),
    testShare: number({ default: 0.05, help: "share of the text that becomes the test split" }),
    minCount: integer({ min: 1, default: 1, help: "rarer words of the training split become <unk>" }),
    maxWords: integer({ min: 3, default: 100_000, help: "words of the vocabulary, the most frequent ones" }),
    vocabulary: folder({ help: "a prepared folder whose vocabulary is used, for a model trained on it" }),
    out,
  },
  run: async ({ options, origins, out, env, signal }) => {
    const { dataRoot } = await import("../data/sources/prepare.ts");
    const { prepareText } = await import("../data/text/prepare.ts");
    const { findText } = await import("../data/text/sources.ts");
    const { from, minCount, maxWords, vocabulary } = options;
    if (vocabulary !== undefined && (origins.minCount === "flag" || origins.maxWords === "flag")) {
      throw new UsageError("--vocabulary: the words are given; leave --min-count and --max-words out");
    }
    const path = options.out ?? join(dataRoot(env), `text-${basename(from).replace(/\.txt$/, "")}`);
    const found = await findText(from, { valid: options.validShare, test: options.testShare });
    const rule =
      vocabulary === undefined
        ? ({ kind: "train", minCount, maxWords } as const)
        : ({ kind: "of", folder: vocabulary } as const);
    const onNote = (note: string) => out.warn(note);
    show(path, await prepareText(path, "text", found, rule, { signal, onNote }), out);
  },
});

function show(path: string, header: TextHeader, out: Output): void {
  out.result({ path, ...header }, () => {
    const rows = Object.entries(header.splits).map(([name, { tokens, lines, unknown }]) => [
      name,
      tokens,
      lines,
      unknown,
    ]);
    const words = `vocabulary ${thousands(header.vocabulary.size)}`;
    return `${table([["split", "tokens", "lines", "<unk>"], ...rows])}${words}; written to ${path}`;
  });
}

/** The commands for text. */
export const prepareTextCommands: readonly Command[] = [
  corpusCommand("ptb", "Penn Treebank"),
  corpusCommand("wikitext-2", "WikiText-2"),
  textCommand,
];
