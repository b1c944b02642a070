/**
 * Prepared catbAbI as a folder: written once, whole or not at all; checked whole whenever it is read.
 *
 *   catbabi.json     version, provenance, counts, a checksum of each other file, and one of itself
 *   vocabulary.txt   one word per line; the line number, counted from 0, is the word's number
 *   train.bin        and valid.bin, test.bin: the split's arrays (little-endian, in this order)
 *
 *     u8[8]  "FWMCATB1"        u32  stories        u32  tokens
 *     u32[stories + 1]  offsets of the stories in the tokens
 *     u16[tokens]       token numbers
 *     u8[tokens]        1 where the token is an answer
 *     u8[stories]       task of each story
 */
import { readFile } from "node:fs/promises";
import { endianness } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { DataError } from "../../errors.ts";
import { type FileSystem, nodeFileSystem } from "../../store/atomic.ts";
import { CatbabiSplit, type SplitArrays, type SplitName, splitFault, splitNames } from "../catbabi.ts";
import { catbabiVocabulary } from "../vocabulary.ts";
import { sha256 } from "./official.ts";
import { replaceFolder } from "./replace.ts";

/** The version of the prepared form that this code writes and reads. */
const preparedVersion = 1;
/** The file that makes a folder a prepared one. */
export const headerName = "catbabi.json";

const count = z.int().min(0);
const countsSchema = z.strictObject({ stories: count, questions: count, tokens: count });
const placeSchema = z.strictObject({
  task: z.int().min(1).max(20),
  split: z.enum(splitNames),
});

const headerSchema = z.strictObject({
  format: z.literal("fwm-catbabi"),
  version: z.literal(preparedVersion),
  variant: z.enum(["10k", "1k"]),
  tasks: z.array(z.int().min(1).max(20)),
  keepLastStory: z.boolean(),
  /** The folder, archive or address the files came from. */
  origin: z.string(),
  /** Every file that was used; `official` when its checksum is the published one. */
  files: z.array(
    z.strictObject({
      ...placeSchema.shape,
      name: z.string(),
      sha256: z.string(),
      state: z.enum(["official", "unverified", "partial"]),
      stories: count,
      questions: count,
    }),
  ),
  /** Official files that were not there whole. */
  missing: z.array(z.string()),
  /** Files that stand in for a missing one but have fewer stories. */
  partial: z.array(
    z.strictObject({ ...placeSchema.shape, name: z.string(), stories: count, official: count }),
  ),
  /** Generated stories that complete a task. */
  filled: z.array(z.strictObject({ ...placeSchema.shape, stories: count, seed: z.int() })),
  vocabulary: z.strictObject({ size: count, sha256: z.string() }),
  splits: z.strictObject({
    train: z.strictObject({ ...countsSchema.shape, sha256: z.string() }),
    valid: z.strictObject({ ...countsSchema.shape, sha256: z.string() }),
    test: z.strictObject({ ...countsSchema.shape, sha256: z.string() }),
  }),
});

/** What a prepared folder says about itself. */
export type CatbabiHeader = z.infer<typeof headerSchema>;
/** Where the stories came from: the header without what follows from the arrays. */
export type Provenance = Omit<CatbabiHeader, "format" | "version" | "vocabulary" | "splits">;

/** Prepared data in memory. */
export interface Catbabi {
  readonly header: CatbabiHeader;
  readonly splits: Readonly<Record<SplitName, CatbabiSplit>>;
}

/** Writes a prepared folder at `path`; one that is there is replaced, anything else there is refused. */
export async function writePrepared(
  path: string,
  provenance: Provenance,
  splits: Readonly<Record<SplitName, CatbabiSplit>>,
  fs: FileSystem = nodeFileSystem,
): Promise<CatbabiHeader> {
  const vocabularyText = catbabiVocabulary.words.map((word) => word + "\n").join("");
  const files = new Map<string, Uint8Array>([["vocabulary.txt", Buffer.from(vocabularyText)]]);
  for (const name of splitNames) files.set(`${name}.bin`, packSplit(splits[name].arrays));
  const describe = (name: SplitName) => {
    const { stories, questions, tokens } = splits[name].counts();
    return { stories, questions, tokens, sha256: sha256(files.get(`${name}.bin`)!) };
  };
  const header: CatbabiHeader = {
    format: "fwm-catbabi",
    version: preparedVersion,
    ...provenance,
    vocabulary: { size: catbabiVocabulary.size, sha256: sha256(vocabularyText) },
    splits: { train: describe("train"), valid: describe("valid"), test: describe("test") },
  };
  files.set(headerName, Buffer.from(headerText(header)));
  await replaceFolder(path, files, headerName, fs);
  return header;
}

/** Reads a prepared folder, checking every byte; damage throws a `DataError` that names the file. */
export async function loadPrepared(path: string): Promise<Catbabi> {
  const header = await readHeader(path);
  const vocabulary = await readPart(path, "vocabulary.txt");
  const words = catbabiVocabulary.words.map((word) => word + "\n").join("");
  if (vocabulary.toString("utf8") !== words || header.vocabulary.size !== catbabiVocabulary.size) {
    throw damaged(join(path, "vocabulary.txt"), "it is not the vocabulary of this version");
  }
  const read = async (name: SplitName) => {
    const file = join(path, `${name}.bin`);
    const bytes = await readPart(path, `${name}.bin`);
    if (sha256(bytes) !== header.splits[name].sha256) throw damaged(file, "its checksum differs");
    const split = new CatbabiSplit(name, unpackSplit(bytes, file));
    const fault = splitFault(split.arrays, catbabiVocabulary.size, catbabiVocabulary.id("?")!);
    if (fault !== undefined) throw damaged(file, fault);
    const { stories, questions, tokens } = split.counts();
    const said = header.splits[name];
    if (stories !== said.stories || questions !== said.questions || tokens !== said.tokens) {
      throw damaged(file, `its counts differ from those in ${headerName}`);
    }
    return split;
  };
  return {
    header,
    splits: { train: await read("train"), valid: await read("valid"), test: await read("test") },
  };
}

/** Reads what a prepared folder says about itself, without the data. */
export async function readHeader(path: string): Promise<CatbabiHeader> {
  const file = join(path, headerName);
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT" && error.code !== "ENOTDIR") throw error;
    throw new DataError(`${path}: no prepared data here (${headerName} is missing)`, {
      hint: "run `fwm data prepare catbabi` first, or say where the data is",
    });
  });
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw damaged(file, `not JSON: ${(error as Error).message}`);
  }
  const version = (value as { version?: unknown } | null)?.version;
  if (typeof version === "number" && version !== preparedVersion) {
    throw new DataError(`${file}: prepared form ${version}, this program reads ${preparedVersion}`, {
      hint: "run `fwm data prepare catbabi` again",
    });
  }
  const { checksum, ...rest } = (typeof value === "object" ? value : {}) as { checksum?: unknown };
  const checked = headerSchema.safeParse(rest);
  if (!checked.success) throw damaged(file, z.prettifyError(checked.error).split("\n")[0]!);
  // The text has one spelling, so that any other byte, even between the values, is noticed.
  if (typeof checksum !== "string" || headerText(checked.data) !== text)
    throw damaged(file, "its checksum differs");
  return checked.data;
}

function headerText(header: CatbabiHeader): string {
  // Keys in the schema's order, whatever order the object was built in.
  const ordered = headerSchema.parse(header);
  return JSON.stringify({ ...ordered, checksum: sha256(JSON.stringify(ordered)) }, null, 2) + "\n";
}

async function readPart(path: string, name: string): Promise<Buffer> {
  return readFile(join(path, name)).catch((error: NodeJS.ErrnoException) => {
    throw error.code === "ENOENT" ? damaged(join(path, name), "it is missing") : error;
  });
}

const magic = "FWMCATB1";
const headBytes = 16;

function packSplit({ offsets, tokens, answers, tasks }: SplitArrays): Uint8Array {
  const bytes = Buffer.alloc(splitBytes(tasks.length, tokens.length));
  bytes.write(magic, "latin1");
  bytes.writeUInt32LE(tasks.length, 8);
  bytes.writeUInt32LE(tokens.length, 12);
  let at = headBytes;
  for (const offset of offsets) at = bytes.writeUInt32LE(offset, at);
  for (const token of tokens) at = bytes.writeUInt16LE(token, at);
  bytes.set(answers, at);
  bytes.set(tasks, at + answers.length);
  return bytes;
}

function unpackSplit(bytes: Uint8Array, file: string): SplitArrays {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const head = Buffer.from(bytes.subarray(0, magic.length)).toString("latin1");
  if (bytes.length < headBytes || head !== magic) throw damaged(file, `it does not begin with ${magic}`);
  const stories = view.getUint32(8, true);
  const tokens = view.getUint32(12, true);
  const wanted = splitBytes(stories, tokens);
  if (bytes.length !== wanted) throw damaged(file, `it has ${bytes.length} bytes, ${wanted} are announced`);
  let at = headBytes;
  const take = (length: number) => Uint8Array.prototype.slice.call(bytes, at, (at += length)).buffer;
  return {
    offsets: new Uint32Array(littleEndian(take(4 * (stories + 1)), 4)),
    tokens: new Uint16Array(littleEndian(take(2 * tokens), 2)),
    answers: new Uint8Array(take(tokens)),
    tasks: new Uint8Array(take(stories)),
  };
}

function splitBytes(stories: number, tokens: number): number {
  return headBytes + 4 * (stories + 1) + 2 * tokens + tokens + stories;
}

/** The bytes in the machine's own order, swapped in place on a big-endian one. */
function littleEndian(buffer: ArrayBufferLike, width: 2 | 4): ArrayBufferLike {
  if (endianness() === "BE") {
    const bytes = Buffer.from(buffer);
    if (width === 2) bytes.swap16();
    else bytes.swap32();
  }
  return buffer;
}

function damaged(file: string, what: string): DataError {
  return new DataError(`${file}: damaged: ${what}`, { hint: "run `fwm data prepare catbabi` again" });
}
