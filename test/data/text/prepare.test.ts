/** Text becomes ids: counts of the published corpora, vocabularies, splits, and everything that can be wrong with text. */
import { existsSync, readdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { prepareText, type VocabularyRule } from "../../../src/data/text/prepare.ts";
import { checkVocabularyFits, openText, type TokenStream } from "../../../src/data/text/prepared.ts";
import { type CorpusName, corpora, findCorpus, findText } from "../../../src/data/text/sources.ts";
import { readPieces } from "../../../src/data/text/words.ts";
import { decodeSafetensors } from "../../../src/store/safetensors.ts";
import { realData } from "../../support/realData.ts";
import { skipUnless } from "../../support/skip.ts";
import { archiveFile, emptyFolder } from "../support/tiny.ts";

const needsCorpora = skipUnless(
  ["ptb", "wikitext-2"].every((name) => existsSync(join(realData, `${name}.tar.gz`))),
  `ptb.tar.gz and wikitext-2.tar.gz are not in ${realData} (FWM_TEST_DATA names another folder)`,
);

const shares = { valid: 0.2, test: 0.2 };
const every: VocabularyRule = { kind: "train", minCount: 1, maxWords: 1000 };

function textFile(content: string | Uint8Array, name = "my.txt"): string {
  const path = join(emptyFolder(), name);
  writeFileSync(path, content);
  return path;
}

function threeFiles(texts: Record<string, string | Uint8Array>): string {
  const folder = emptyFolder();
  for (const [name, text] of Object.entries(texts)) writeFileSync(join(folder, `${name}.txt`), text);
  return folder;
}

async function prepared(from: string, rule = every) {
  const path = join(emptyFolder(), "prepared");
  const notes: string[] = [];
  const found = await findText(from, shares);
  const header = await prepareText(path, "text", found, rule, { onNote: (note) => notes.push(note) });
  return { path, header, notes, text: await openText(path) };
}

function idsOf(stream: TokenStream): number[] {
  const ids = new Int32Array(stream.length);
  stream.read(0, ids);
  return [...ids];
}

/** Fails with a message that matches, and leaves nothing beside the target. */
async function refused(from: string, message: RegExp, rule = every): Promise<void> {
  const folder = emptyFolder();
  const attempt = async () =>
    prepareText(join(folder, "prepared"), "text", await findText(from, shares), rule);
  await expect(attempt()).rejects.toThrow(message);
  expect(readdirSync(folder)).toEqual([]);
}

describe("the published corpora", needsCorpora, () => {
  test.each(["ptb", "wikitext-2"] satisfies CorpusName[])(
    "%s has the counts the field knows",
    async (name) => {
      const path = join(emptyFolder(), name);
      const found = await findCorpus(name, { from: join(realData, `${name}.tar.gz`), downloads: path });
      expect(found.files.map(({ isOfficial }) => isOfficial)).toEqual([true, true, true]);
      const header = await prepareText(path, name, found, { kind: "all" });
      const { train, valid, test } = header.splits;
      expect({ train: train.tokens, valid: valid.tokens, test: test.tokens }).toEqual(corpora[name].tokens);
      expect(header.vocabulary.size).toBe(corpora[name].vocabulary);
      const unknown = name === "ptb" ? [45_020, 3_485, 4_794] : [54_625, 11_718, 15_218];
      expect([train.unknown, valid.unknown, test.unknown]).toEqual(unknown);
    },
  );
});

describe("prepared text", () => {
  const folder = threeFiles({ train: "b a b\n\na b <unk>\n", valid: "a c\n", test: "b\n" });

  test("ids are in the order of first appearance over train, valid and test", async () => {
    const path = join(emptyFolder(), "prepared");
    const header = await prepareText(path, "ptb", await findText(folder, shares), { kind: "all" });
    const text = await openText(path);
    expect(text.vocabulary.words).toEqual(["b", "a", "<eos>", "<unk>", "c"]);
    expect(text.counts).toEqual([4, 3, 5, 1, 1]);
    expect(idsOf(text.splits.train)).toEqual([0, 1, 0, 2, 2, 1, 0, 3, 2]);
    expect(idsOf(text.splits.valid)).toEqual([1, 4, 2]);
    expect(header.splits.train).toMatchObject({ tokens: 9, lines: 3, unknown: 1 });
    text.close();
  });

  test("or by frequency with <eos> first, the same text", async () => {
    const path = join(emptyFolder(), "prepared");
    await prepareText(path, "ptb", await findText(folder, shares), { kind: "all" });
    const [plain, sorted] = [await openText(path), await openText(path, "frequency")];
    expect(sorted.vocabulary.words).toEqual(["<eos>", "b", "a", "<unk>", "c"]);
    expect(sorted.counts).toEqual([5, 4, 3, 1, 1]);
    for (const split of ["train", "valid", "test"] as const) {
      expect(sorted.vocabulary.decode(idsOf(sorted.splits[split]))).toEqual(
        plain.vocabulary.decode(idsOf(plain.splits[split])),
      );
    }
    plain.close();
    sorted.close();
  });

  test("own text: words of the training split by count, the others are <unk>", async () => {
    const from = threeFiles({ train: "x y x z\ny x w w\n", valid: "x z new\n", test: "y\n" });
    const { text, header } = await prepared(from, { kind: "train", minCount: 2, maxWords: 4 });
    // x 3, y 2, w 2 (later), z 1: two places beside the special words
    expect(text.vocabulary.words).toEqual(["<unk>", "<eos>", "x", "y"]);
    expect(text.counts).toEqual([3, 2, 3, 2]);
    expect(text.vocabulary.decode(idsOf(text.splits.valid))).toEqual(["x", "<unk>", "<unk>", "<eos>"]);
    expect(header.splits.valid.unknown).toBe(2);
    text.close();
  });

  test("any language, any white space; U+FEFF is a word except at the beginning of a file", async () => {
    const { text } = await prepared(
      threeFiles({ train: "\ufeffСобака 犬\u3000犬\r\nκύων\u00a0\ufeff\n", valid: "犬\n", test: "犬\n" }),
    );
    const words = text.vocabulary.decode(idsOf(text.splits.train));
    expect(words).toEqual(["Собака", "犬", "犬", "<eos>", "κύων", "\ufeff", "<eos>"]);
    text.close();
  });

  test("one file is cut by shares, at ends of lines", async () => {
    const lines = Array.from({ length: 100 }, (_, i) => `line ${String(i).padStart(2, "0")}`);
    const { text, header } = await prepared(textFile(lines.join("\n") + "\n"));
    const words = (["train", "valid", "test"] as const).map((split) =>
      text.vocabulary.decode(idsOf(text.splits[split])),
    );
    expect(words.map((split) => split.filter((word) => word === "<eos>").length)).toEqual([60, 20, 20]);
    expect(words.flat().filter((word) => word === "line")).toHaveLength(100);
    expect(header.files.map(({ start, end }) => end - start).reduce((a, b) => a + b)).toBe(
      lines.join("\n").length + 1,
    );
    text.close();
  });

  test("a folder of files is one text in the order of their names", async () => {
    const folder = threeFiles({ b: "3\n4\n5\n", a: "1\n2\n" });
    const { text } = await prepared(folder, { kind: "train", minCount: 1, maxWords: 100 });
    expect(text.vocabulary.decode(idsOf(text.splits.train))).toEqual([
      "1",
      "<eos>",
      "2",
      "<eos>",
      "3",
      "<eos>",
    ]);
    text.close();
  });

  test("pieces do not cut words, whatever their place", async () => {
    const words = Array.from({ length: 400_000 }, (_, i) => `w${i % 977}é`);
    const path = textFile(words.map((word, i) => word + (i % 10 === 9 ? "\n" : " ")).join(""));
    const size = readFileSync(path).length;
    expect(size).toBeGreaterThan(2 << 20);
    const tokens: string[] = [];
    for await (const piece of readPieces({ path, start: 0, end: size })) {
      for (const token of piece.tokens) tokens.push(token);
    }
    expect(tokens.filter((token) => token !== "\n")).toEqual(words);
    expect(tokens).toHaveLength(440_000);
  });

  test("a file of tokens is plain safetensors, and is read in slices", async () => {
    const { path, text } = await prepared(threeFiles({ train: "a b c d e f\n", valid: "a\n", test: "b\n" }));
    const file = join(path, "train.safetensors");
    const { tensors } = decodeSafetensors(readFileSync(file), { file });
    expect([...tensors.tokens!.data]).toEqual(idsOf(text.splits.train));
    const slice = new Int32Array(3);
    text.splits.train.read(2, slice);
    expect([...slice]).toEqual(idsOf(text.splits.train).slice(2, 5));
    expect(() => text.splits.train.read(5, slice)).toThrow(RangeError);
    text.close();
  });

  test("more than 65,536 words take wider ids", async () => {
    const words = Array.from({ length: 70_000 }, (_, i) => `w${i}`);
    const { text } = await prepared(
      threeFiles({ train: words.join(" ") + "\n", valid: "w69999\n", test: "w1\n" }),
      { kind: "train", minCount: 1, maxWords: 100_000 },
    );
    expect(text.vocabulary.decode(idsOf(text.splits.valid))).toEqual(["w69999", "<eos>"]);
    text.close();
  });

  test("another folder's vocabulary can be used", async () => {
    const first = await prepared(threeFiles({ train: "a b\n", valid: "a\n", test: "b\n" }));
    const second = await prepared(threeFiles({ train: "b z\n", valid: "a\n", test: "b\n" }), {
      kind: "of",
      folder: first.path,
    });
    expect(second.text.vocabulary.words).toEqual(first.text.vocabulary.words);
    expect(second.text.vocabulary.decode(idsOf(second.text.splits.train))).toEqual(["b", "<unk>", "<eos>"]);
    first.text.close();
    second.text.close();
  });
});

describe("text that cannot be used", () => {
  const fine = { train: "a b\nc d\n", valid: "a\n", test: "b\n" };

  test("not UTF-8: the file and the line", async () => {
    const latin = Buffer.concat([
      Buffer.from("fine\nalso fine\ncaf"),
      Buffer.from([0xe9]),
      Buffer.from("\nok\n"),
    ]);
    await refused(threeFiles({ ...fine, valid: latin }), /valid\.txt:3: not UTF-8/);
  });

  test("a last line without a line end is read, with a note", async () => {
    const { text, notes } = await prepared(threeFiles({ ...fine, train: "a b\nc d" }));
    expect(idsOf(text.splits.train)).toHaveLength(6);
    expect(notes).toHaveLength(1);
    expect(notes[0]).toMatch(/train\.txt:2: the last line has no line end/);
    text.close();
  });

  test("a single line cannot be cut by shares", async () => {
    await refused(textFile("all in one line ".repeat(100)), /my\.txt: the valid split is empty/);
  });

  test("an empty file, or one without words", async () => {
    await refused(threeFiles({ ...fine, test: "" }), /test\.txt: the test split is empty/);
    await refused(threeFiles({ ...fine, valid: "\n \n" }), /valid\.txt: the valid split has no words/);
  });

  test("a word never seen, where the vocabulary has no <unk>", async () => {
    const path = join(emptyFolder(), "closed");
    await prepareText(path, "ptb", await findText(threeFiles(fine), shares), { kind: "all" });
    const rule = { kind: "of", folder: path } as const;
    await refused(threeFiles({ ...fine, test: "a b\nb zebra\n" }), /test\.txt:2: .*"zebra"/, rule);
  });

  test("a split that is missing, a folder without text, no file at all", async () => {
    await refused(threeFiles({ train: "a\n", valid: "a\n" }), /test\.txt: missing/);
    await refused(emptyFolder(), /no \.txt files/);
    await refused(join(emptyFolder(), "nothing.txt"), /nothing\.txt: no such file/);
  });

  test("a vocabulary larger than the model's names its first word too many", async () => {
    const { path, header, text } = await prepared(threeFiles(fine));
    text.close();
    expect(() => checkVocabularyFits(header, path, 5)).toThrow(
      /vocabulary\.txt:6: .*more words than the model/,
    );
    expect(() => checkVocabularyFits(header, path, 6)).not.toThrow();
  });

  test("a word without end", async () => {
    await refused(
      threeFiles({ ...fine, train: "ok\n" + "x".repeat(2 << 20) }),
      /train\.txt:2: a word of more than/,
    );
  });
});

describe("a damaged folder", () => {
  test.each(["train.safetensors", "vocabulary.txt", "text.json"])("%s", async (name) => {
    const { path, text } = await prepared(threeFiles({ train: "a b\nc\n", valid: "a\n", test: "b\n" }));
    text.close();
    const file = join(path, name);
    const bytes = readFileSync(file);
    bytes[bytes.length - 4]! ^= 1;
    writeFileSync(file, bytes);
    await expect(openText(path)).rejects.toThrow(name);
    truncateSync(file, bytes.length - 5);
    await expect(openText(path)).rejects.toThrow(name);
  });

  test("a folder with something else is left alone", async () => {
    const folder = threeFiles({ train: "a\nb\n", valid: "a\n", test: "b\n" });
    const found = await findText(folder, shares);
    await expect(prepareText(folder, "text", found, every)).rejects.toThrow(/holds something else/);
    expect(existsSync(join(folder, "train.txt"))).toBe(true);
  });
});

describe("a download", () => {
  let server: Server | undefined;
  afterEach(() => {
    server?.closeAllConnections();
    server?.close();
  });

  test("of something else than the published file is refused and thrown away", async () => {
    server = createServer((_, response) => response.end("not the Penn Treebank\n"));
    await new Promise<void>((listening) => server!.listen(0, "127.0.0.1", listening));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const downloads = emptyFolder();
    await expect(findCorpus("ptb", { downloads, addresses: () => [url] })).rejects.toThrow(
      /train\.txt of ptb could not be downloaded[\s\S]*checksum/,
    );
    expect(readdirSync(downloads)).toEqual([]);
  });

  test("is checked, and not repeated", needsCorpora, async () => {
    const folder = join(realData, "ptb.tar.gz");
    const local = await findCorpus("ptb", { from: folder, downloads: "" });
    const bytes = new Map(
      (["train", "valid", "test"] as const).map((split) => [`/${split}`, local.splits[split][0]!.bytes!]),
    );
    let requests = 0;
    server = createServer((request, response) => {
      requests++;
      response.end(bytes.get(request.url!));
    });
    await new Promise<void>((listening) => server!.listen(0, "127.0.0.1", listening));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const options = { downloads: emptyFolder(), addresses: (split: string) => [`${url}/${split}`] };
    const found = await findCorpus("ptb", options);
    expect(found.files.every(({ isOfficial }) => isOfficial)).toBe(true);
    await findCorpus("ptb", options);
    expect(requests).toBe(3);
  });
});

describe("a local copy of a corpus", () => {
  const content = { train: "a b\n", valid: "a\n", test: "b\n" };

  test.each(["folder", "archive"])("%s: found, and said not to be the published files", async (kind) => {
    const names = Object.entries(content).map(([split, text]) => ({ name: `ptb.${split}.txt`, text }));
    const from =
      kind === "archive"
        ? archiveFile(
            names.map(({ name, text }) => ({ name: `simple-examples/data/${name}`, content: text })),
          )
        : emptyFolder();
    if (kind === "folder") for (const { name, text } of names) writeFileSync(join(from, name), text);
    const found = await findCorpus("ptb", { from, downloads: "" });
    expect(found.files.map(({ isOfficial }) => isOfficial)).toEqual([false, false, false]);
    expect(found.splits.train[0]!.end).toBe(4);
  });

  test("without one of its files", async () => {
    const from = threeFiles({ train: "a\n", valid: "a\n" });
    await expect(findCorpus("ptb", { from, downloads: "" })).rejects.toThrow(
      /test\.txt or ptb\.test\.txt is missing/,
    );
  });
});
