/**
 * Prepared text as a folder: written once, whole or not at all; read in slices, so that its size does not matter.
 *
 *   text.json            version, provenance, counts, a checksum of each other file
 *   vocabulary.txt       a word and how often it occurs per line; the line's number, counted from 0, is the word's id
 *   train.safetensors    and valid.safetensors, test.safetensors: one tensor `tokens`, u16 or i32 [N]
 *
 * Ids are in the order of first appearance. A system with an adaptive softmax wants them by frequency instead; that
 * is a renumbering of a few numbers, done when the folder is opened.
 */
import { createHash } from "node:crypto";
import { closeSync, createReadStream, openSync, readSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { DataError, UsageError } from "../../errors.ts";
import { type FileContent, type FileSystem, nodeFileSystem } from "../../store/atomic.ts";
import { decodeUtf8, formatJson, parseJsonObject } from "../../store/json.ts";
import { encodeHead } from "../../store/safetensors.ts";
import { type SplitName, splitNames } from "../catbabi.ts";
import { sha256 } from "../sources/official.ts";
import { replaceFolder } from "../sources/replace.ts";
import { Vocabulary } from "../vocabulary.ts";
import { eosWord } from "./tokens.ts";

const preparedVersion = 1;
/** The file that makes a folder a prepared one. */
export const textHeaderName = "text.json";

const count = z.int().min(0);
const splitSchema = z.strictObject({
  tokens: count,
  lines: count,
  /** Tokens that are `<unk>`. */
  unknown: count,
  sha256: z.string(),
});

const headerSchema = z.strictObject({
  format: z.literal("fwm-text"),
  version: z.literal(preparedVersion),
  dataset: z.enum(["ptb", "wikitext-2", "text"]),
  /** The folder, file, archive or address the text came from. */
  origin: z.string(),
  files: z.array(
    z.strictObject({
      split: z.enum(splitNames),
      name: z.string(),
      start: count,
      end: count,
      isOfficial: z.boolean().optional(),
    }),
  ),
  vocabulary: z.strictObject({ size: count, sha256: z.string() }),
  splits: z.strictObject({ train: splitSchema, valid: splitSchema, test: splitSchema }),
});

/** What a prepared folder says about itself. */
export type TextHeader = z.infer<typeof headerSchema>;

/** A split to be written: its counts are known, its ids come piece by piece. */
export interface SplitContent {
  readonly tokens: number;
  readonly lines: number;
  /** The ids; returns how many of them are `<unk>`. */
  ids(): AsyncGenerator<ArrayLike<number>, number>;
}

/** Writes a prepared folder at `path`; one that is there is replaced, anything else there is refused. */
export async function writeText(
  path: string,
  about: Pick<TextHeader, "dataset" | "origin" | "files">,
  vocabulary: ReadonlyMap<string, number>,
  splits: Readonly<Record<SplitName, SplitContent>>,
  fs: FileSystem = nodeFileSystem,
): Promise<TextHeader> {
  const words = Buffer.from([...vocabulary].map(([word, times]) => `${word} ${times}\n`).join(""));
  const dtype = dtypeFor(vocabulary.size);
  const described: Partial<Record<SplitName, TextHeader["splits"][SplitName]>> = {};
  async function* tokenFile(split: SplitName): AsyncGenerator<Uint8Array> {
    const { tokens, lines, ids } = splits[split];
    const hash = createHash("sha256");
    const head = fileHead(vocabulary.size, tokens);
    hash.update(head);
    yield head;
    const source = ids();
    for (;;) {
      const next = await source.next();
      if (next.done) {
        described[split] = { tokens, lines, unknown: next.value, sha256: hash.digest("hex") };
        return;
      }
      const typed = dtype === "u16" ? Uint16Array.from(next.value) : Int32Array.from(next.value);
      const bytes = new Uint8Array(typed.buffer);
      hash.update(bytes);
      yield bytes;
    }
  }
  let header: TextHeader | undefined;
  async function* headerFile(): AsyncGenerator<Uint8Array> {
    const { train, valid, test } = described as TextHeader["splits"];
    header = headerSchema.parse({
      format: "fwm-text",
      version: preparedVersion,
      ...about,
      vocabulary: { size: vocabulary.size, sha256: sha256(words) },
      splits: { train, valid, test },
    } satisfies TextHeader);
    yield Buffer.from(formatJson(header, textHeaderName));
  }
  await replaceFolder(
    path,
    new Map<string, FileContent>([
      ["vocabulary.txt", words],
      ...splitNames.map((split) => [`${split}.safetensors`, tokenFile(split)] as const),
      [textHeaderName, headerFile()],
    ]),
    textHeaderName,
    fs,
  );
  return header!;
}

/** How the ids of an opened folder are ordered. */
export type WordOrder = "appearance" | "frequency";

/** Prepared text: its vocabulary, and its splits as streams of ids. Close it when it is no longer needed. */
export interface PreparedText {
  readonly header: TextHeader;
  readonly vocabulary: Vocabulary;
  /** How often each word occurs, by id. */
  readonly counts: readonly number[];
  readonly splits: Readonly<Record<SplitName, TokenStream>>;
  close(): void;
}

/** Ids one after the other, read in slices. */
export interface TokenStream {
  /** What it is, for messages. */
  readonly name: string;
  readonly length: number;
  /** Ids `start` to `start + into.length`, into an array. */
  read(start: number, into: Int32Array): void;
}

/** Opens a prepared folder, checking every byte once; damage throws a `DataError` that names the file. */
export async function openText(path: string, order: WordOrder = "appearance"): Promise<PreparedText> {
  const header = await readTextHeader(path);
  const { words, counts } = await readVocabulary(path, header);
  const renumbered = order === "frequency" ? byFrequency(words, counts) : undefined;
  const newId = renumbered && inverse(renumbered);
  const opened: TokenFile[] = [];
  try {
    for (const split of splitNames) opened.push(await openTokens(path, split, header, newId));
  } catch (error) {
    for (const file of opened) file.close();
    throw error;
  }
  const [train, valid, test] = opened as [TokenFile, TokenFile, TokenFile];
  return {
    header,
    vocabulary: new Vocabulary(renumbered ? Array.from(renumbered, (id) => words[id]!) : words),
    counts: renumbered ? Array.from(renumbered, (id) => counts[id]!) : counts,
    splits: { train, valid, test },
    close: () => {
      for (const file of opened) file.close();
    },
  };
}

/** Refuses text with more words than a model has. */
export function checkVocabularyFits(
  { vocabulary }: Pick<TextHeader, "vocabulary">,
  path: string,
  model: number,
): void {
  if (vocabulary.size <= model) return;
  throw new UsageError(
    `${join(path, "vocabulary.txt")}:${model + 1}: the text has more words than the model`,
    {
      text: vocabulary.size,
      model,
      hint: "give the model that vocabulary, or prepare the text with fewer words: --max-words, --min-count",
    },
  );
}

/** Reads what a prepared folder says about itself, without the data. */
export async function readTextHeader(path: string): Promise<TextHeader> {
  const file = join(path, textHeaderName);
  const bytes = await readFile(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT" && error.code !== "ENOTDIR") throw error;
    throw new DataError(`${path}: no prepared text here (${textHeaderName} is missing)`, {
      hint: "run `fwm data prepare` first, or say where the data is",
    });
  });
  const value = parseJsonObject(bytes, { file });
  if (typeof value.version === "number" && value.version !== preparedVersion) {
    throw new DataError(`${file}: prepared form ${value.version}, this program reads ${preparedVersion}`, {
      hint: "run `fwm data prepare` again",
    });
  }
  const checked = headerSchema.safeParse(value);
  if (!checked.success) throw damaged(file, z.prettifyError(checked.error).split("\n")[0]!);
  return checked.data;
}

/** The words of a prepared folder and how often each occurs, by id. */
export async function readVocabulary(
  path: string,
  { vocabulary }: TextHeader,
): Promise<{ words: string[]; counts: number[] }> {
  const file = join(path, "vocabulary.txt");
  const bytes = await readFile(file).catch(() => undefined);
  if (!bytes) throw damaged(file, "it is missing");
  if (sha256(bytes) !== vocabulary.sha256) throw damaged(file, "its checksum differs");
  const rows = decodeUtf8(bytes, file).trimEnd().split("\n");
  if (rows.length !== vocabulary.size) throw damaged(file, `it has ${rows.length} words`);
  const cut = rows.map((row) => row.lastIndexOf(" "));
  return {
    words: rows.map((row, i) => row.slice(0, cut[i])),
    counts: rows.map((row, i) => Number(row.slice(cut[i]! + 1))),
  };
}

/** Ids by frequency: `<eos>` first, as Transformer-XL's vocabulary has it, then most frequent first, ties as they were. */
function byFrequency(words: readonly string[], counts: readonly number[]): Int32Array {
  const weight = (id: number): number => (words[id] === eosWord ? Number.POSITIVE_INFINITY : counts[id]!);
  return Int32Array.from(words.keys()).sort((a, b) => Math.sign(weight(b) - weight(a)) || a - b);
}

function inverse(order: Int32Array): Int32Array {
  const at = new Int32Array(order.length);
  order.forEach((id, place) => {
    at[id] = place;
  });
  return at;
}

function dtypeFor(vocabulary: number): "u16" | "i32" {
  return vocabulary <= 1 << 16 ? "u16" : "i32";
}

function fileHead(vocabulary: number, tokens: number): Uint8Array {
  return encodeHead([{ name: "tokens", dtype: dtypeFor(vocabulary), shape: [tokens] }]);
}

async function openTokens(
  path: string,
  split: SplitName,
  { vocabulary, splits }: TextHeader,
  newId: Int32Array | undefined,
): Promise<TokenFile> {
  const file = join(path, `${split}.safetensors`);
  const { tokens, sha256: expected } = splits[split];
  const info = await stat(file).catch(() => undefined);
  if (!info) throw damaged(file, "it is missing");
  const head = fileHead(vocabulary.size, tokens);
  const width = dtypeFor(vocabulary.size) === "u16" ? 2 : 4;
  if (info.size !== head.length + width * tokens) throw damaged(file, `it has ${info.size} bytes`);
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(file, { highWaterMark: 1 << 20 })) hash.update(chunk as Buffer);
  if (hash.digest("hex") !== expected) throw damaged(file, "its checksum differs");
  return new TokenFile(file, tokens, { offset: head.length, width, vocabulary: vocabulary.size, newId });
}

/** Ids in a file: a slice costs one read of its bytes. */
class TokenFile implements TokenStream {
  readonly #descriptor: number;
  #bytes = new Uint8Array(0);
  #closed = false;

  constructor(
    readonly name: string,
    readonly length: number,
    private readonly layout: {
      readonly offset: number;
      readonly width: 2 | 4;
      readonly vocabulary: number;
      readonly newId: Int32Array | undefined;
    },
  ) {
    this.#descriptor = openSync(name, "r");
  }

  read(start: number, into: Int32Array): void {
    const { offset, width, vocabulary, newId } = this.layout;
    if (this.#closed) throw new Error(`internal: ${this.name} is closed`);
    if (start < 0 || start + into.length > this.length) {
      throw new RangeError(`${this.name}: tokens ${start} to ${start + into.length} of ${this.length}`);
    }
    const size = into.length * width;
    if (this.#bytes.length < size) this.#bytes = new Uint8Array(size);
    let done = 0;
    while (done < size) {
      const read = readSync(this.#descriptor, this.#bytes, done, size - done, offset + start * width + done);
      if (read === 0) throw damaged(this.name, "it became shorter");
      done += read;
    }
    const ids =
      width === 2
        ? new Uint16Array(this.#bytes.buffer, 0, into.length)
        : new Int32Array(this.#bytes.buffer, 0, into.length);
    for (let i = 0; i < ids.length; i++) {
      const id = ids[i]!;
      if (id >= vocabulary || id < 0) throw damaged(this.name, `token ${start + i} is ${id}`);
      into[i] = newId ? newId[id]! : id;
    }
  }

  close(): void {
    if (!this.#closed) closeSync(this.#descriptor);
    this.#closed = true;
  }
}

function damaged(file: string, what: string): DataError {
  return new DataError(`${file}: damaged: ${what}`, { hint: "run `fwm data prepare` again" });
}
