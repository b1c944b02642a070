/**
 * Where a stream's stories come from: prepared files, the generator, or both. A source answers "which story
 * stands at this position of this epoch" from its arguments alone, so that a stream can be picked up anywhere.
 */

import { type Bystanders, fewerBystanders } from "../babi/bystanders.ts";
import { type Fact, type Line, type Story, storyTokens } from "../babi/format.ts";
import { type DifficultyRanges, drawDifficulty } from "../babi/generator/difficulty.ts";
import { tasks as allTasks, generateStory, streamStory } from "../babi/generator/generate.ts";
import { drawFewNames, drawRenaming, renameToken } from "../babi/rename.ts";
import { DataError, UsageError } from "../errors.ts";
import { integer, keyOf, permutation, uniform } from "../random.ts";
import { catbabiVocabulary, type Vocabulary } from "./vocabulary.ts";

/** One story as numbers: `answers[i]` is 1 where token i answers the question before it. */
export interface EncodedStory {
  readonly tokens: Uint16Array | Int32Array;
  readonly answers: Uint8Array;
  readonly task: number;
  /** What the answers follow from, where that is known, in the order of the answers. */
  readonly facts?: readonly Fact[];
}

/** Stories in a fixed order: the same arguments always give the same story. */
export interface StorySource {
  /** Infinity when the source never ends; then there is only epoch 0. */
  readonly storiesPerEpoch: number;
  story(epoch: number, position: number): EncodedStory;
}

/** The stories of one split, as numbers: what `preparedSource` needs of prepared data. */
export interface StorySet {
  readonly name: string;
  readonly stories: number;
  story(index: number): EncodedStory;
}

/** The stories of a split that are of some tasks. */
export function storiesOf(split: StorySet, tasks: readonly number[]): StorySet {
  const all = Array.from({ length: split.stories }, (_, index) => index);
  const indices = all.filter((index) => tasks.includes(split.story(index).task));
  return { name: split.name, stories: indices.length, story: (index) => split.story(indices[index]!) };
}

/** The story as numbers; an unknown word throws, naming the story's file and line when it has one. */
export function encodeStory(story: Story, vocabulary: Vocabulary = catbabiVocabulary): EncodedStory {
  const { tokens, answers, facts } = storyTokens(story);
  const where = story.source ? `${story.source.file}:${story.source.line}` : `a story of task ${story.task}`;
  return {
    tokens: vocabulary.encode(tokens, where),
    answers: Uint8Array.from(answers, Number),
    task: story.task,
    ...(facts.length > 0 ? { facts } : {}),
  };
}

/** The story in words again: what `encodeStory` was given, without supporting facts. */
export function decodeStory(
  { tokens, answers, task }: EncodedStory,
  vocabulary: Vocabulary = catbabiVocabulary,
): Story {
  const lines: Line[] = [];
  let words: string[] = [];
  for (const [i, id] of tokens.entries()) {
    const word = vocabulary.word(id);
    if (answers[i] === 1) {
      lines.push({ kind: "question", id: lines.length + 1, words, answer: word, supports: [] });
    } else if (word === ".") lines.push({ kind: "statement", id: lines.length + 1, words });
    else {
      // The "?" stays out of the question's words.
      if (word !== "?") words.push(word);
      continue;
    }
    words = [];
  }
  return { task, lines };
}

// The authors shuffle valid and test once, when the data is made, and keep that order for ever. Their seed is
// not known; any constant mixes the tasks as well.
const fixedOrder = keyOf("order of held-out stories");

/**
 * The stories of a prepared split. Train is reshuffled every epoch by (seed, epoch); any other split keeps
 * one order whatever the seed and epoch, in which the tasks are mixed.
 */
export function preparedSource(split: StorySet, seed: number): StorySource {
  if (split.stories === 0) {
    throw new DataError(`the ${split.name} split has no stories`, {
      hint: "prepare the data with more tasks, or with --keep-last-story",
    });
  }
  let orderedEpoch = -1;
  let order: Uint32Array = new Uint32Array(0);
  return {
    storiesPerEpoch: split.stories,
    story(epoch, position) {
      const shuffleEpoch = split.name === "train" ? epoch : 0;
      if (shuffleEpoch !== orderedEpoch) {
        const key = split.name === "train" ? keyOf(seed, "order of stories", epoch) : fixedOrder;
        order = permutation(key, split.stories);
        orderedEpoch = shuffleEpoch;
      }
      const index = order[position];
      if (index === undefined)
        throw new RangeError(`the epoch has ${split.stories} stories, not ${position}`);
      return split.story(index);
    },
  };
}

/** How stories are renamed. */
interface RenamingOptions {
  /** Whether the words of a story become the first ones of their kind. */
  readonly few?: boolean;
  readonly vocabulary?: Vocabulary;
}

/**
 * A source whose stories come under other names each time, `src/babi/rename.ts`; one that the vocabulary has no word for
 * keeps its own.
 */
export function renamedSource(
  source: StorySource,
  seed: number,
  { few = false, vocabulary = catbabiVocabulary }: RenamingOptions = {},
): StorySource {
  const parts = (token: string): string[] => token.split(",");
  return {
    storiesPerEpoch: source.storiesPerEpoch,
    story(epoch, position) {
      const story = source.story(epoch, position);
      const tokens = Array.from(story.tokens, (id) => vocabulary.word(id));
      const names = few
        ? drawFewNames({ task: story.task, words: new Set(tokens.flatMap(parts)) }, seed, epoch, position)
        : drawRenaming(story.task, seed, epoch, position);
      const ids = tokens.map((token) => vocabulary.id(renameToken(token, names)));
      return ids.includes(undefined) ? story : { ...story, tokens: Uint16Array.from(ids as number[]) };
    },
  };
}

/** A source whose stories have fewer bystanders, others each time. */
export function shortenedSource(source: StorySource, seed: number, bystanders: Bystanders): StorySource {
  return {
    storiesPerEpoch: source.storiesPerEpoch,
    story(epoch, position) {
      const story = decodeStory(source.story(epoch, position));
      return encodeStory(fewerBystanders(story, bystanders, seed, epoch, position));
    },
  };
}

/** An endless source: `generate` gives the story at a position. */
export function endlessSource(generate: (position: number) => Story): StorySource {
  return {
    storiesPerEpoch: Number.POSITIVE_INFINITY,
    story: (_epoch, position) => encodeStory(generate(position)),
  };
}

/** How often a task comes: with this probability. They add up to 1. */
export type TaskShares = Readonly<Record<number, number>>;

/** What holds from generated story number `from` on, up to the next change. */
export interface StreamChange {
  readonly from: number;
  /** As without changes unless given. */
  readonly shares?: TaskShares;
  /** As without changes unless given. */
  readonly difficulty?: DifficultyRanges;
}

/** What may be said of a generated stream besides its tasks. */
export interface GeneratedOptions {
  /** What changes on the way. */
  readonly changes?: readonly StreamChange[];
  /** How hard stories are; ordinary unless given. */
  readonly difficulty?: DifficultyRanges;
}

/**
 * The generator's endless stream: a mixture of all tasks in the proportions of the real training set, or of
 * some tasks in equal parts; after a change in the shares that it gives.
 */
export function generatedSource(
  seed: number,
  tasks: readonly number[] = allTasks,
  { changes = [], difficulty: usual }: GeneratedOptions = {},
): StorySource {
  const key = keyOf(seed, "task of story");
  return endlessSource((position) => {
    const { shares, difficulty: ranges = usual } = changes.findLast(({ from }) => from <= position) ?? {};
    const difficulty = ranges && drawDifficulty(ranges, seed, position);
    if (shares === undefined && tasks.length === allTasks.length) {
      return streamStory(seed, position, difficulty);
    }
    const task = shares
      ? drawTask(shares, uniform(key, position))
      : tasks[integer(key, position, tasks.length)]!;
    return generateStory({ task, seed, index: position, ...(difficulty ? { difficulty } : {}) });
  });
}

/** The task at `draw` (0 to 1) when the shares lie end to end, in the order of the tasks. */
function drawTask(shares: TaskShares, draw: number): number {
  const entries = Object.entries(shares).filter(([, share]) => share > 0);
  let left = draw;
  for (const [task, share] of entries) {
    left -= share;
    if (left < 0) return Number(task);
  }
  // The shares add up to 1 but for rounding.
  return Number(entries.at(-1)![0]);
}

/** How many generated stories a stream has given before a position of an epoch; a fraction of 1: generated ones alone. */
export function generatedStories(
  at: { readonly storiesPerEpoch: number | null; readonly epoch: number; readonly position: number },
  generatedFraction: number,
): number {
  const among = (stories: number): number => Math.floor(stories * generatedFraction);
  return at.epoch * among(at.storiesPerEpoch ?? 0) + among(at.position);
}

/**
 * Real stories with generated ones between them, evenly spaced: `generatedFraction` of all stories (0 to 1, not 1)
 * come from `generated`, which is endless. An epoch ends when every real story was used once; the generated ones
 * never repeat.
 */
export function mixedSource(
  real: StorySource,
  generated: StorySource,
  generatedFraction: number,
): StorySource {
  if (!(generatedFraction >= 0 && generatedFraction < 1)) {
    throw new UsageError(
      `the fraction of generated stories must be at least 0 and below 1, not ${generatedFraction}`,
      { hint: "for generated stories alone use the generated source" },
    );
  }
  const generatedBefore = (position: number) => Math.floor(position * generatedFraction);
  // The fewest stories with all real ones among them. The division may round either way: begin one below.
  let storiesPerEpoch = Math.floor(real.storiesPerEpoch / (1 - generatedFraction)) - 1;
  while (storiesPerEpoch - generatedBefore(storiesPerEpoch) < real.storiesPerEpoch) storiesPerEpoch++;
  return {
    storiesPerEpoch,
    story(epoch, position) {
      const before = generatedBefore(position);
      return generatedBefore(position + 1) > before
        ? generated.story(0, generatedStories({ storiesPerEpoch, epoch, position }, generatedFraction))
        : real.story(epoch, position - before);
    },
  };
}
