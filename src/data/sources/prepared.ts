/**
 * Prepared catbAbI as a folder: written once, whole or not at all; checked whole whenever it is read.
 *
 *   catbabi.json        version, provenance, counts, a checksum of each other file, and one of itself
 *   vocab.json          the words; a word's place in the list is its number. Always catbAbI's, but for own stories
 *   train.safetensors   and valid.safetensors, test.safetensors: the arrays of a split
 *
 *     offsets  u32   [stories + 1]   where each story begins in the tokens; the last is their number
 *     tokens   u16   [tokens]        token numbers
 *     answers  bool  [tokens]        whether the token is an answer
 *     tasks    u8    [stories]       task of each story
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { DataError } from "../../errors.ts";
import { type FileSystem, nodeFileSystem } from "../../store/atomic.ts";
import { parseJson } from "../../store/json.ts";
import {
  decodeSafetensors,
  encodeSafetensors,
  expectTensors,
  type Tensors,
} from "../../store/safetensors.ts";
import {
  CatbabiSplit,
  mostTasks,
  type SplitArrays,
  type SplitName,
  splitFault,
  splitNames,
} from "../catbabi.ts";
import { catbabiVocabulary, Vocabulary } from "../vocabulary.ts";
import { sha256 } from "./official.ts";
import { replaceFolder } from "./replace.ts";

/** The version of the format that this code writes and reads. Version 1 had binary files of its own. */
const preparedVersion = 2;
/** The file that makes a folder a prepared one. */
export const headerName = "catbabi.json";
const vocabularyName = "vocab.json";
const fileOf = (split: SplitName): string => `${split}.safetensors`;

const count = z.int().min(0);
const countsSchema = z.strictObject({ stories: count, questions: count, tokens: count });
const taskNumber = z.int().min(1).max(mostTasks);
const placeSchema = z.strictObject({
  task: taskNumber,
  split: z.enum(splitNames),
});

const headerSchema = z.strictObject({
  format: z.literal("fwm-catbabi"),
  version: z.literal(preparedVersion),
  /** Which of bAbI's sizes; "own": stories that are not bAbI's. */
  variant: z.enum(["10k", "1k", "own"]),
  tasks: z.array(taskNumber),
  /** Of own stories: the name of each task. */
  names: z.array(z.string()).optional(),
  keepLastStory: z.boolean(),
  /** The folder, archive or address the files came from. */
  origin: z.string(),
  /** Every file that was used; `official` when its checksum is the published one. */
  files: z.array(
    z.strictObject({
      ...placeSchema.shape,
      name: z.string(),
      sha256: z.string(),
      state: z.enum(["official", "unverified", "partial", "own"]),
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
  readonly vocabulary: Vocabulary;
  readonly splits: Readonly<Record<SplitName, CatbabiSplit>>;
}

/** Writes a prepared folder at `path`; one that is there is replaced, anything else there is refused. */
export async function writePrepared(
  path: string,
  provenance: Provenance,
  splits: Readonly<Record<SplitName, CatbabiSplit>>,
  fs: FileSystem = nodeFileSystem,
  vocabulary: Vocabulary = catbabiVocabulary,
): Promise<CatbabiHeader> {
  const vocabularyText = textOf(vocabulary);
  const files = new Map<string, Uint8Array>([[vocabularyName, Buffer.from(vocabularyText)]]);
  for (const name of splitNames) files.set(fileOf(name), encodeSafetensors(tensorsOf(splits[name].arrays)));
  const describe = (name: SplitName) => {
    const { stories, questions, tokens } = splits[name].counts();
    return { stories, questions, tokens, sha256: sha256(files.get(fileOf(name))!) };
  };
  const header: CatbabiHeader = {
    format: "fwm-catbabi",
    version: preparedVersion,
    ...provenance,
    vocabulary: { size: vocabulary.size, sha256: sha256(vocabularyText) },
    splits: { train: describe("train"), valid: describe("valid"), test: describe("test") },
  };
  files.set(headerName, Buffer.from(headerText(header)));
  await replaceFolder(path, files, headerName, fs);
  return header;
}

/** Reads a prepared folder, checking every byte; damage throws a `DataError` that names the file. */
export async function loadPrepared(path: string): Promise<Catbabi> {
  const header = await readHeader(path);
  const vocabulary = await readWords(path, header);
  const read = async (name: SplitName) => {
    const file = join(path, fileOf(name));
    const bytes = await readPart(path, fileOf(name));
    const expected = header.splits[name];
    if (sha256(bytes) !== expected.sha256) throw damaged(file, "its checksum differs");
    const split = new CatbabiSplit(name, arraysOf(decodeSafetensors(bytes, { file }).tensors, file));
    const below = header.variant === "own" ? mostTasks + 1 : undefined;
    const fault = splitFault(split.arrays, vocabulary.size, vocabulary.id("?")!, below);
    if (fault !== undefined) throw damaged(file, fault);
    const { stories, questions, tokens } = split.counts();
    if (stories !== expected.stories || questions !== expected.questions || tokens !== expected.tokens) {
      throw damaged(file, `its counts differ from those in ${headerName}`);
    }
    return split;
  };
  return {
    header,
    vocabulary,
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
    throw new DataError(
      `${path}: prepared by another version of fwm (format ${version}; this one reads ${preparedVersion})`,
      { hint: "run `fwm data prepare catbabi` again" },
    );
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

/** The words of a prepared folder: catbAbI's, or those of own stories. */
export async function readWords(path: string, header: CatbabiHeader): Promise<Vocabulary> {
  const file = join(path, vocabularyName);
  const text = (await readPart(path, vocabularyName)).toString("utf8");
  const { size, sha256: expected } = header.vocabulary;
  if (header.variant !== "own") {
    if (text === textOf(catbabiVocabulary) && size === catbabiVocabulary.size) return catbabiVocabulary;
    throw damaged(file, "it is not the vocabulary of this version");
  }
  if (sha256(text) !== expected) throw damaged(file, "its checksum differs");
  const words = z.array(z.string()).safeParse(parseJson(text, { file }));
  if (!words.success || words.data.length !== size || new Set(words.data).size !== size) {
    throw damaged(file, `it is not a list of ${size} words`);
  }
  const wanted = ["<pad>", "<eos>"].find((word, id) => words.data[id] !== word);
  if (wanted !== undefined || !words.data.includes("?")) {
    throw damaged(file, `it has no ${wanted ?? "?"} in its place`);
  }
  return new Vocabulary(words.data);
}

function textOf({ words }: Vocabulary): string {
  return JSON.stringify(words, null, 1) + "\n";
}

function tensorsOf({ offsets, tokens, answers, tasks }: SplitArrays): Tensors {
  return {
    offsets: { dtype: "u32", shape: [offsets.length], data: offsets },
    tokens: { dtype: "u16", shape: [tokens.length], data: tokens },
    answers: { dtype: "bool", shape: [answers.length], data: answers },
    tasks: { dtype: "u8", shape: [tasks.length], data: tasks },
  };
}

/** The arrays of a split, whose types and sizes fit together. */
function arraysOf(tensors: Tensors, file: string): SplitArrays {
  const [stories, tokens] = [tensors.tasks?.data.length ?? 0, tensors.tokens?.data.length ?? 0];
  const expected = {
    offsets: { dtype: "u32", shape: [stories + 1] },
    tokens: { dtype: "u16", shape: [tokens] },
    answers: { dtype: "bool", shape: [tokens] },
    tasks: { dtype: "u8", shape: [stories] },
  } as const;
  expectTensors(tensors, expected, { file });
  return {
    offsets: tensors.offsets!.data as Uint32Array,
    tokens: tensors.tokens!.data as Uint16Array,
    answers: tensors.answers!.data as Uint8Array,
    tasks: tensors.tasks!.data as Uint8Array,
  };
}

function damaged(file: string, what: string): DataError {
  return new DataError(`${file}: damaged: ${what}`, { hint: "run `fwm data prepare catbabi` again" });
}
