/**
 * Stories of one's own in bAbI's format: any words, any tasks. Files become the same prepared folder that catbAbI has,
 * with a vocabulary of their own.
 *
 *   kinship_train.txt, kinship_valid.txt, kinship_test.txt     a task and its splits; any number of tasks
 *   train.txt, valid.txt, test.txt                             one task
 *   kinship.txt                                                a task that is split by shares of its stories
 *
 * A split that a task has no file for is a share of its training file. Which stories go where is drawn under a seed.
 */
import { readdir, readFile, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { parseStories, type Story, storyTokens } from "../../babi/format.ts";
import { DataError, UsageError } from "../../errors.ts";
import { keyOf, permutation } from "../../random.ts";
import {
  type CatbabiSplit,
  decodeText,
  joinStories,
  mostTasks,
  type SplitName,
  splitNames,
} from "../catbabi.ts";
import { encodeStory } from "../streams.ts";
import { Vocabulary } from "../vocabulary.ts";
import { sha256 } from "./official.ts";
import { type Provenance, readHeader, readWords } from "./prepared.ts";

/** How own stories are found and split. */
export interface OwnStoriesOptions {
  /** A file, or a folder of `.txt` files. */
  readonly from: string;
  /** Shares of a task's stories, where they are not in files of their own. */
  readonly validShare: number;
  readonly testShare: number;
  /** Seed of which stories go where. */
  readonly seed: number;
  /** A prepared folder whose words are used, for a model that was trained on it. */
  readonly vocabulary?: string | undefined;
  readonly onNote?: (text: string) => void;
}

/** Own stories, not yet written. */
export interface OwnStories {
  readonly provenance: Provenance;
  readonly vocabulary: Vocabulary;
  readonly splits: Readonly<Record<SplitName, CatbabiSplit>>;
}

/** Largest file that is read: stories are held in memory. */
const largestFile = 1 << 28;
/** Words have 16 bits. */
const mostWords = 1 << 16;

interface TaskFile {
  readonly task: string;
  /** Undefined for a file that is split by shares. */
  readonly split: SplitName | undefined;
  readonly path: string;
}

/** Stories of a task that a split has, and the file they stand in. */
interface TaskPart {
  readonly task: number;
  readonly split: SplitName;
  readonly path: string;
  readonly sha256: string;
  readonly stories: readonly Story[];
}

/** Reads, splits and encodes stories. Whatever is wrong with a line is a `DataError` that names file and line. */
export async function prepareOwnStories(options: OwnStoriesOptions): Promise<OwnStories> {
  const { from, validShare, testShare } = options;
  if (!(validShare > 0 && testShare > 0 && validShare + testShare < 1)) {
    throw new UsageError(
      `the shares of valid (${validShare}) and test (${testShare}) must be above 0 and leave some to train`,
    );
  }
  const known = options.vocabulary === undefined ? undefined : await wordsOf(options.vocabulary);
  const files = await findFiles(from);
  const tasks = numberTasks([...new Set(files.map(({ task }) => task))], from);
  const parts: TaskPart[] = [];
  for (const [name, task] of tasks) {
    const own = files.filter((file) => file.task === name);
    parts.push(...(await splitTask(name, task, own, options)));
  }
  checkSplits(parts, from);
  const vocabulary = known ?? buildVocabulary(parts, from);
  if (known) checkKnown(parts, known, options.vocabulary!);
  const split = (wanted: SplitName): CatbabiSplit =>
    joinStories(
      wanted,
      parts
        .filter((part) => part.split === wanted)
        .flatMap(({ stories }) => stories.map((story) => encodeStory(story, vocabulary))),
    );
  return {
    provenance: {
      variant: "own",
      tasks: [...tasks.values()],
      names: [...tasks.keys()],
      keepLastStory: true,
      origin: from,
      files: parts.map(({ task, split: name, path, sha256: digest, stories }) => ({
        ...{ task, split: name, name: basename(path), sha256: digest, state: "own" },
        stories: stories.length,
        questions: stories.reduce((sum, { lines }) => sum + lines.filter(isQuestion).length, 0),
      })),
      missing: [],
      partial: [],
      filled: [],
    },
    vocabulary,
    splits: { train: split("train"), valid: split("valid"), test: split("test") },
  };
}

async function findFiles(from: string): Promise<TaskFile[]> {
  const info = await stat(from).catch(() => undefined);
  if (!info) {
    throw new DataError(`${from}: no such file or folder`, {
      hint: "give a file of stories in bAbI's format, or a folder of them",
    });
  }
  if (!info.isDirectory()) return [{ task: taskOf(basename(from)), split: undefined, path: from }];
  const names = (await readdir(from)).filter((name) => name.endsWith(".txt")).toSorted();
  if (names.length === 0) throw new DataError(`${from}: the folder has no .txt files`);
  return names.map((name) => {
    const [, task = "stories", split] = /^(?:(.+)[_.-])?(train|valid|test)\.txt$/.exec(name) ?? [];
    const path = join(from, name);
    return split === undefined
      ? { task: taskOf(name), split: undefined, path }
      : { task, split: split as SplitName, path };
  });
}

function taskOf(name: string): string {
  return name.replace(/\.txt$/, "") || name;
}

/** A number for every task: of qa7 it is 7, where all are called so; otherwise by the order of the names. */
function numberTasks(names: readonly string[], from: string): Map<string, number> {
  const sorted = names.toSorted((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const numbers = sorted.map((name) => Number(/^qa(\d{1,3})$/.exec(name)?.[1]));
  const isNumbered = numbers.every((number) => number >= 1 && number <= mostTasks);
  if (sorted.length > mostTasks) {
    throw new DataError(`${from}: ${sorted.length} tasks are too many`, { most: mostTasks });
  }
  return new Map(sorted.map((name, i) => [name, isNumbered ? numbers[i]! : i + 1]));
}

/** The stories of a task by split; a split without a file of its own is a share of the training file. */
async function splitTask(
  name: string,
  task: number,
  files: readonly TaskFile[],
  { validShare, testShare, seed, onNote }: OwnStoriesOptions,
): Promise<TaskPart[]> {
  const whole = files.find(({ split }) => split === undefined);
  const train = files.find(({ split }) => split === "train") ?? whole;
  if (!train || (whole && files.length > 1)) {
    throw new DataError(
      whole
        ? `${whole.path}: task ${name} also has ${basename(files.find((file) => file !== whole)!.path)}`
        : `${files[0]!.path}: task ${name} has no training file`,
      { hint: `give ${name}_train.txt, ${name}_valid.txt and ${name}_test.txt, or ${name}.txt alone` },
    );
  }
  const read = async ({ path }: TaskFile): Promise<{ sha256: string; stories: Story[] }> => {
    const { size } = await stat(path);
    if (size > largestFile) {
      throw new DataError(`${path}: ${size} bytes is too large for a file of stories`, { most: largestFile });
    }
    const bytes = await readFile(path);
    const stories = parseStories(decodeText(bytes, path), { file: path, task }, "any");
    if (stories.length === 0) throw new DataError(`${path}: the file has no stories`);
    return { sha256: sha256(bytes), stories };
  };
  const source = await read(train);
  const order = permutation(keyOf(seed, "split of stories", name), source.stories.length);
  const shares = { valid: validShare, test: testShare };
  let taken = 0;
  const parts: TaskPart[] = [];
  for (const split of ["valid", "test"] as const) {
    const own = files.find((file) => file.split === split);
    if (own) {
      parts.push({ task, split, path: own.path, ...(await read(own)) });
      continue;
    }
    const count = Math.round(shares[split] * source.stories.length);
    // In the order of the file, whatever order they were drawn in.
    const chosen = [...order.subarray(taken, taken + count)].sort((a, b) => a - b);
    taken += count;
    parts.push({
      ...{ task, split, path: train.path, sha256: source.sha256 },
      stories: chosen.map((i) => source.stories[i]!),
    });
    if (!whole)
      onNote?.(`${name} has no ${split} file: ${count} stories of ${basename(train.path)} are used`);
  }
  const left = [...order.subarray(taken)].sort((a, b) => a - b);
  return [
    {
      ...{ task, split: "train", path: train.path, sha256: source.sha256 },
      stories: left.map((i) => source.stories[i]!),
    },
    ...parts,
  ];
}

function isQuestion({ kind }: Story["lines"][number]): boolean {
  return kind === "question";
}

function checkSplits(parts: readonly TaskPart[], from: string): void {
  for (const split of splitNames) {
    const own = parts.filter((part) => part.split === split);
    const stories = own.flatMap((part) => part.stories);
    const where = own.find((part) => part.stories.length === 0)?.path ?? own[0]?.path ?? from;
    if (stories.length === 0) {
      throw new DataError(`${where}: the ${split} split is empty`, {
        hint: "give more stories, a larger share, or a file for each split",
      });
    }
    if (stories.some(({ lines }) => lines.some(isQuestion))) continue;
    throw new DataError(`${where}: the ${split} split has no questions`, {
      hint: "a question is 'ID words?', a tab and its answer",
    });
  }
}

/** `<pad>`, `<eos>`, and every word of all splits in code-unit order. */
function buildVocabulary(parts: readonly TaskPart[], from: string): Vocabulary {
  const words = new Set([".", "?"]);
  for (const { stories } of parts) {
    for (const story of stories) for (const token of storyTokens(story).tokens) words.add(token);
  }
  if (words.size + 2 > mostWords) {
    throw new DataError(`${from}: ${words.size} different words are too many`, { most: mostWords - 2 });
  }
  return new Vocabulary(["<pad>", "<eos>", ...[...words].sort()]);
}

async function wordsOf(folder: string): Promise<Vocabulary> {
  return readWords(folder, await readHeader(folder));
}

/** Refuses a word that a given vocabulary does not have, with its file and line. */
function checkKnown(parts: readonly TaskPart[], vocabulary: Vocabulary, folder: string): void {
  for (const { stories } of parts) {
    for (const { lines, source } of stories) {
      for (const [i, line] of lines.entries()) {
        const words = line.kind === "question" ? [...line.words, line.answer] : line.words;
        const unknown = words.find((word) => vocabulary.id(word) === undefined);
        if (unknown === undefined) continue;
        throw new DataError(
          `${source!.file}:${source!.line + i}: the vocabulary has no word ${JSON.stringify(unknown)}`,
          { vocabulary: folder, nearest: vocabulary.nearest(unknown).join(", ") },
        );
      }
    }
  }
}
