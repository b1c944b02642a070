/**
 * How hard a story is, as numbers. Each one stays within its world's rules and words: an answer is one of bAbI's tokens, so
 * ways have two steps, counting ends at three, and lists are of three things.
 */
import { integer, keyOf, uniform } from "../../random.ts";

/** How hard a story is. */
export interface Difficulty {
  /** Sentences that have nothing to do with a question, before and between the story's own lines. */
  readonly distractors: number;
  /** How many of the latest statements a question may be about (tasks 1 to 3 and 5 to 14). */
  readonly lookback: number;
  /** Things that can be carried (tasks 2, 3 and 5 to 8). */
  readonly objects: number;
  /** Things that somebody gathers before anything else happens (the same tasks). */
  readonly carried: number;
  /** Rooms on the map, and those of them along one way whose legs are asked for (task 19). */
  readonly rooms: number;
  readonly path: number;
  /** Statements in a row that an answer follows from (tasks 17 and 18). */
  readonly chain: number;
  /** Stories one after another without an end mark between them. */
  readonly stories: number;
  /** Animals whose kinds are stated (task 16): fewer are easier than bAbI's five. */
  readonly animals: number;
  /** In how many orders two shapes or rooms are named (tasks 17 and 19): 1, as the question has them; 2, either. */
  readonly orders: number;
  /** Sentences about other people between facts and the questions about them, instead of distractors (task 1). */
  readonly distance: number;
}

/** Stories as bAbI has them. */
export const ordinary: Difficulty = {
  distractors: 0,
  lookback: 5,
  objects: 3,
  carried: 0,
  rooms: 6,
  path: 3,
  chain: 2,
  stories: 1,
  animals: 5,
  orders: 2,
  distance: 0,
};

/** The least and the most of each. */
export const difficultyLimits: Readonly<Record<keyof Difficulty, readonly [least: number, most: number]>> = {
  distractors: [0, 1000],
  lookback: [1, 1000],
  objects: [3, 5],
  carried: [0, 5],
  rooms: [3, 9],
  path: [3, 9],
  chain: [1, 5],
  stories: [1, 4],
  animals: [3, 5],
  orders: [1, 2],
  distance: [0, 1000],
};

/** From which difficulties stories are drawn. */
export type DifficultyRanges = Readonly<Record<keyof Difficulty, readonly [least: number, most: number]>> & {
  /** The fraction of stories that are ordinary. */
  readonly ordinary: number;
};

/** Drawn as evenly over their orders of magnitude, so that most stories stay short. */
const byMagnitude: ReadonlySet<keyof Difficulty> = new Set(["distractors", "lookback"]);

/** The difficulty of story `index`: ordinary, or every number from its range. */
export function drawDifficulty(ranges: DifficultyRanges, seed: number, index: number): Difficulty {
  if (uniform(keyOf(seed, "ordinary story"), index) < ranges.ordinary) return ordinary;
  const key = keyOf(seed, "difficulty", index);
  const names = Object.keys(ordinary) as (keyof Difficulty)[];
  const drawn = Object.fromEntries(
    names.map((name, i) => {
      const [least, most] = ranges[name];
      const value = byMagnitude.has(name)
        ? Math.floor((least + 1) * ((most + 2) / (least + 1)) ** uniform(key, i)) - 1
        : least + integer(key, i, most - least + 1);
      return [name, value];
    }),
  ) as Record<keyof Difficulty, number>;
  return {
    ...drawn,
    carried: Math.min(drawn.carried, drawn.objects),
    path: Math.min(drawn.path, drawn.rooms),
  };
}
