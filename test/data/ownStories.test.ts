/** Stories of one's own: any words and tasks, splits by files or by shares, and messages that name file and line. */
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parseStories } from "../../src/babi/format.ts";
import { type OwnStoriesOptions, prepareOwnStories } from "../../src/data/sources/ownStories.ts";
import { loadPrepared, writePrepared } from "../../src/data/sources/prepared.ts";
import { nodeFileSystem } from "../../src/store/atomic.ts";
import { emptyFolder } from "./support/tiny.ts";

function folderOf(files: Record<string, string | Uint8Array>): string {
  const folder = emptyFolder();
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  return folder;
}

const prepare = (from: string, more: Partial<OwnStoriesOptions> = {}) =>
  prepareOwnStories({ from, validShare: 0.2, testShare: 0.2, seed: 1, ...more });

/** A story of an invented world; `i` makes it a story of its own. */
const story = (i: number, place = "x-42"): string =>
  `1 Zoë’s Ü${i} lives in ${place}.\n2 Where is Ü${i}?\t${place}\t1\n`;
const stories = (count: number, place?: string): string =>
  Array.from({ length: count }, (_, i) => story(i, place)).join("");

test("any words, in lower case; the vocabulary is <pad>, <eos> and the words of all splits", async () => {
  const from = folderOf({
    "train.txt": "1 Ада ЖИВЁТ в Москве.\n2 Где Ада?\tмосква,лес\n",
    "valid.txt": "1 It's 3-4 o'clock.\r\n2 When?\tnow\t\r\n",
    "test.txt": "1 日本 は 島.\n2 日本?\t島\t1",
  });
  const { vocabulary, provenance, splits } = await prepare(from);
  const words = "ада живёт в москве где москва,лес it's 3-4 o'clock when now 日本 は 島".split(" ");
  expect(vocabulary.words).toEqual(["<pad>", "<eos>", ...[".", "?", ...words].sort()]);
  expect(provenance).toMatchObject({ variant: "own", tasks: [1], names: ["stories"] });
  expect(vocabulary.decode(splits.test.story(0).tokens)).toEqual([
    "日本",
    "は",
    "島",
    ".",
    "日本",
    "?",
    "島",
  ]);
  expect([...splits.test.story(0).answers]).toEqual([0, 0, 0, 0, 0, 0, 1]);
});

describe("tasks", () => {
  test("are named by their files; qa7 is number 7 where all are called so", async () => {
    const files = (names: string[]) =>
      Object.fromEntries(
        names.flatMap((name) =>
          ["train", "valid", "test"].map((split) => [`${name}_${split}.txt`, story(1)]),
        ),
      );
    const numbered = await prepare(folderOf(files(["qa10", "qa7"])));
    expect([numbered.provenance.tasks, numbered.provenance.names]).toEqual([
      [7, 10],
      ["qa7", "qa10"],
    ]);
    expect([...numbered.splits.train.arrays.tasks]).toEqual([7, 10]);
    const named = await prepare(folderOf(files(["kinship", "a b", "qa7"])));
    expect([named.provenance.tasks, named.provenance.names]).toEqual([
      [1, 2, 3],
      ["a b", "kinship", "qa7"],
    ]);
  });

  test("a file without a split is split by shares: every story once, the same ones under a seed", async () => {
    const from = folderOf({ "kinship.txt": stories(20), "more.txt": stories(10, "y") });
    const { splits, vocabulary } = await prepare(from);
    const tellers = (name: "train" | "valid" | "test", seen = splits) =>
      Array.from({ length: seen[name].stories }, (_, i) => vocabulary.decode(seen[name].story(i).tokens)[1]!);
    expect([splits.train.stories, splits.valid.stories, splits.test.stories]).toEqual([18, 6, 6]);
    const all = [...tellers("train"), ...tellers("valid"), ...tellers("test")].sort();
    expect(all).toEqual(
      [
        ...Array.from({ length: 20 }, (_, i) => `ü${i}`),
        ...Array.from({ length: 10 }, (_, i) => `ü${i}`),
      ].sort(),
    );
    expect(tellers("valid", (await prepare(from)).splits)).toEqual(tellers("valid"));
    expect(tellers("valid", (await prepare(from, { seed: 2 })).splits)).not.toEqual(tellers("valid"));
  });

  test("a missing held-out file is a share of the training file, with a note", async () => {
    const notes: string[] = [];
    const from = folderOf({ "qa1_train.txt": stories(10), "qa1_test.txt": stories(3, "y") });
    const { splits } = await prepare(from, { onNote: (note) => notes.push(note) });
    expect([splits.train.stories, splits.valid.stories, splits.test.stories]).toEqual([8, 2, 3]);
    expect(notes).toEqual(["qa1 has no valid file: 2 stories of qa1_train.txt are used"]);
  });
});

test("the prepared folder is read as it was written, and damage is noticed", async () => {
  const from = folderOf({ "kinship.txt": stories(10) });
  const { provenance, splits, vocabulary } = await prepare(from);
  const out = join(emptyFolder(), "prepared");
  const header = await writePrepared(out, provenance, splits, nodeFileSystem, vocabulary);
  const read = await loadPrepared(out);
  expect(read.header).toEqual(header);
  expect(read.vocabulary.words).toEqual(vocabulary.words);
  expect(read.splits).toEqual(splits);
  writeFileSync(join(out, "vocab.json"), JSON.stringify(["<pad>", "<eos>", "?"]));
  await expect(loadPrepared(out)).rejects.toThrow("vocab.json: damaged: its checksum differs");
});

test("the words of another folder: an unknown one is named with its line", async () => {
  const { provenance, splits, vocabulary } = await prepare(folderOf({ "kinship.txt": stories(10) }));
  const words = join(emptyFolder(), "prepared");
  await writePrepared(words, provenance, splits, nodeFileSystem, vocabulary);
  const same = await prepare(folderOf({ "kinship.txt": stories(5) }), { vocabulary: words });
  expect(same.vocabulary.words).toEqual(vocabulary.words);
  const other = folderOf({ "k.txt": `${stories(5)}1 Zoë’s Ü1 lives in x-42.\n2 Where is Gertrud?\tx-42\n` });
  await expect(prepare(other, { vocabulary: words })).rejects.toThrow(
    /k\.txt:12: the vocabulary has no word "gertrud"/,
  );
});

describe("a mistake names the file and the line", () => {
  test.each<[string, Record<string, string | Uint8Array>]>([
    ["k.txt:3: not a bAbI line: expected an ID", { "k.txt": `${story(1)}no number\n` }],
    ["k.txt:3: not a bAbI line: expected ID 1 (a new story) or 3, got 7", { "k.txt": `${story(1)}7 A b.\n` }],
    ["k.txt:1: not a bAbI line: a statement ends in '.'", { "k.txt": "1 Hello\n" }],
    ["k.txt:2: not a bAbI line: the answer is not one token", { "k.txt": "1 A.\n2 B?\ttwo words\n" }],
    ["k.txt:2: not a bAbI line: the answer is not one token", { "k.txt": "1 A.\n2 B?\t\n" }],
    ['k.txt:1: not a bAbI line: "3.5": a word has no "."', { "k.txt": "1 It is 3.5 now.\n" }],
    ['k.txt:1: not a bAbI line: "well,": a word has no "."', { "k.txt": "1 Well, then.\n" }],
    ['k.txt:1: not a bAbI line: "<eos>": a word has no "."', { "k.txt": "1 <eos> then.\n" }],
    ["k.txt:1: not a bAbI line: a sentence has no words", { "k.txt": "1  .\n" }],
    ["k.txt:2: not UTF-8 text", { "k.txt": Buffer.concat([Buffer.from("1 A.\n2 "), Buffer.from([0xff])]) }],
    ["k.txt: the file has no stories", { "k.txt": "" }],
    ["k.txt: the valid split is empty", { "k.txt": story(1) }],
    ["k.txt: the train split has no questions", { "k.txt": "1 A b.\n".repeat(20) }],
    ["k_test.txt: task k has no training file", { "k_valid.txt": story(1), "k_test.txt": story(1) }],
    ["k.txt: task k also has k_train.txt", { "k.txt": story(1), "k_train.txt": story(1) }],
    ["the folder has no .txt files", { "notes.md": "" }],
  ])("%s", async (message, files) => {
    const from = folderOf(files);
    await expect(prepare(from)).rejects.toThrow(message);
    expect(readdirSync(from).sort()).toEqual(Object.keys(files).sort());
  });

  test("no such place, and shares that leave nothing", async () => {
    await expect(prepare("/no/such/place")).rejects.toThrow("no such file or folder");
    await expect(
      prepare(folderOf({ "k.txt": stories(9) }), { validShare: 0.7, testShare: 0.3 }),
    ).rejects.toThrow("must be above 0 and leave some to train");
  });
});

test("bAbI's own files are still read strictly", () => {
  const where = { file: "qa1", task: 1 };
  expect(() => parseStories("1 It is 42.\n", where)).toThrow("words of letters");
  expect(() => parseStories("1 A is b.\n2 Where is a?\tb\n", where)).toThrow("supporting IDs");
  expect(() => parseStories("1 A is b.\n2 Where is a?\tb\t\n", where)).toThrow("supporting IDs");
});
