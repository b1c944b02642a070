/**
 * catbAbI: the stories of the twenty bAbI tasks as three sets of token numbers, and what the paper counted.
 *
 * A split holds all its stories end to end; `<eos>` between them is added when batches are cut. The authors'
 * parser stores a story only when the next one begins and so loses the last story of every file; leaving it
 * out (the default) gives the paper's counts.
 */
import { DataError, UsageError } from "../errors.ts";
import type { EncodedStory, StorySet } from "./streams.ts";

/** The partitions, in the paper's order. */
export const splitNames = ["train", "valid", "test"] as const;
/** The name of a partition. */
export type SplitName = (typeof splitNames)[number];

/** The sizes bAbI is published in, and the folder each has in the official archive. */
export const variantFolders = { "10k": "en-valid-10k", "1k": "en-valid" } as const;
/** 10,000 or 1,000 questions per task, valid included. */
export type Variant = keyof typeof variantFolders;

/** Most tasks that stories of one's own may have: a task is a byte. */
export const mostTasks = 255;

/** The twenty tasks. */
export const allTasks: readonly number[] = Array.from({ length: 20 }, (_, i) => i + 1);

/** Stories, questions and tokens (without `<eos>`) of a split or of one task in it. */
export interface Counts {
  readonly stories: number;
  readonly questions: number;
  readonly tokens: number;
}

/** The paper's table for the 10k variant; it gives tokens only as about 5M, 560k and 560k. */
export const paperCounts: Readonly<
  Record<SplitName, { stories: number; questions: number; tokens: string }>
> = {
  train: { stories: 56_376, questions: 179_909, tokens: "~5M" },
  valid: { stories: 6_245, questions: 19_907, tokens: "~560k" },
  test: { stories: 6_247, questions: 19_910, tokens: "~560k" },
};

/** The arrays of a split. Story i is tokens `offsets[i]` to `offsets[i + 1]`. */
export interface SplitArrays {
  readonly tokens: Uint16Array;
  /** 1 where the token is an answer. */
  readonly answers: Uint8Array;
  readonly offsets: Uint32Array;
  /** The task of each story. */
  readonly tasks: Uint8Array;
}

/** One partition. */
export class CatbabiSplit implements StorySet {
  readonly name: SplitName;
  readonly arrays: SplitArrays;

  constructor(name: SplitName, arrays: SplitArrays) {
    this.name = name;
    this.arrays = arrays;
  }

  /** How many stories there are. */
  get stories(): number {
    return this.arrays.tasks.length;
  }

  /** Story `index`, in the order of the tasks and files. */
  story(index: number): EncodedStory {
    const { tokens, answers, offsets, tasks } = this.arrays;
    const task = tasks[index];
    if (task === undefined) throw new RangeError(`${this.name} has ${this.stories} stories, not ${index}`);
    const [begin, end] = [offsets[index]!, offsets[index + 1]!];
    return { tokens: tokens.subarray(begin, end), answers: answers.subarray(begin, end), task };
  }

  /** What the split holds, altogether and per task. */
  counts(): Counts & { perTask: Map<number, Counts> } {
    const { answers, offsets, tasks } = this.arrays;
    const perTask = new Map<number, { stories: number; questions: number; tokens: number }>();
    tasks.forEach((task, i) => {
      let count = perTask.get(task);
      if (count === undefined) perTask.set(task, (count = { stories: 0, questions: 0, tokens: 0 }));
      count.stories++;
      count.tokens += offsets[i + 1]! - offsets[i]!;
      for (let t = offsets[i]!; t < offsets[i + 1]!; t++) count.questions += answers[t]!;
    });
    const total = { stories: 0, questions: 0, tokens: 0 };
    for (const count of perTask.values()) {
      total.stories += count.stories;
      total.questions += count.questions;
      total.tokens += count.tokens;
    }
    return { ...total, perTask };
  }
}

/** Puts stories, as numbers, end to end into one split. */
export function joinStories(name: SplitName, stories: readonly EncodedStory[]): CatbabiSplit {
  const offsets = new Uint32Array(stories.length + 1);
  stories.forEach((story, i) => {
    offsets[i + 1] = offsets[i]! + story.tokens.length;
  });
  const tokens = new Uint16Array(offsets[stories.length]!);
  const answers = new Uint8Array(tokens.length);
  stories.forEach((story, i) => {
    tokens.set(story.tokens, offsets[i]!);
    answers.set(story.answers, offsets[i]!);
  });
  return new CatbabiSplit(name, {
    tokens,
    answers,
    offsets,
    tasks: Uint8Array.from(stories, ({ task }) => task),
  });
}

/** What is wrong with a split's arrays, or undefined: for data that comes from outside. */
export function splitFault(
  arrays: SplitArrays,
  vocabularySize: number,
  questionMark: number,
  tasksBelow: number = allTasks.length + 1,
): string | undefined {
  const { tokens, answers, offsets, tasks } = arrays;
  if (offsets[0] !== 0 || offsets[tasks.length] !== tokens.length)
    return "the offsets do not cover the tokens";
  for (let i = 0; i < tasks.length; i++) {
    if (offsets[i + 1]! <= offsets[i]!) return `story ${i} is empty`;
    if (tasks[i]! < 1 || tasks[i]! >= tasksBelow) return `story ${i} is of task ${tasks[i]}`;
    if (answers[offsets[i]!] !== 0) return `story ${i} begins with an answer`;
  }
  for (let t = 0; t < tokens.length; t++) {
    if (tokens[t]! >= vocabularySize) return `token ${t} is ${tokens[t]}, beyond the vocabulary`;
    const follows = t > 0 && tokens[t - 1] === questionMark;
    if (answers[t] !== (follows ? 1 : 0)) return `token ${t} is not an answer after "?"`;
  }
  return undefined;
}

/** Reads a list of tasks: `1,2,15-17`. Ascending, each once; `name` starts the message of an error. */
export function parseTasks(text: string, name = "tasks"): readonly number[] {
  const tasks = new Set<number>();
  for (const part of text.split(",")) {
    const range = /^\s*(\d+)(?:\s*-\s*(\d+))?\s*$/.exec(part);
    const first = Number(range?.[1]);
    const last = Number(range?.[2] ?? range?.[1]);
    if (!(first >= 1 && last <= allTasks.length && first <= last)) {
      throw new UsageError(
        `${name}: expected tasks from 1 to 20, such as 1,2,15-17; got ${JSON.stringify(text)}`,
      );
    }
    for (let task = first; task <= last; task++) tasks.add(task);
  }
  return [...tasks].sort((a, b) => a - b);
}

/** Writes a list of tasks as `parseTasks` reads it. */
export function formatTasks(tasks: readonly number[]): string {
  const runs: [number, number][] = [];
  for (const task of tasks) {
    const run = runs.at(-1);
    if (run !== undefined && run[1] === task - 1) run[1] = task;
    else runs.push([task, task]);
  }
  return runs.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(",");
}

/** Text of a data file; a byte that is not UTF-8 is named with its line. */
export function decodeText(bytes: Uint8Array, file: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    let line = 1;
    let begin = 0;
    for (;;) {
      const end = bytes.indexOf(0x0a, begin);
      try {
        new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(begin, end < 0 ? bytes.length : end));
      } catch {
        throw new DataError(`${file}:${line}: not UTF-8 text`, { hint: "get the original file again" });
      }
      if (end < 0) throw new DataError(`${file}: not UTF-8 text`);
      begin = end + 1;
      line++;
    }
  }
}
