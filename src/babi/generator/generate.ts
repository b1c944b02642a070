/**
 * The generator: new stories for all twenty tasks, each a pure function of its seed and number.
 *
 * `generateStory` gives story `index` of one task; `streamStory` gives story `index` of an endless mixture of
 * all tasks, in the proportions of the real training set.
 */
import { UsageError } from "../../errors.ts";
import type { Story } from "../format.ts";
import { people } from "../lexicon.ts";
import { carryingStory } from "./carrying.ts";
import { colourStory, fearStory } from "./creatures.ts";
import { dayStory } from "./days.ts";
import { type Difficulty, ordinary } from "./difficulty.ts";
import { distracted, joined } from "./distract.ts";
import { shapeStory, sizeStory } from "./figures.ts";
import { neighbourStory, pathStory } from "./maps.ts";
import { moodStory } from "./moods.ts";
import { StoryRandom } from "./random.ts";
import { distantStory, walkingStory } from "./walking.ts";
import { family, type StoryWriter } from "./writer.ts";

/** The tasks' numbers, 1 to 20. */
export const tasks: readonly number[] = Array.from({ length: 20 }, (_, index) => index + 1);

/** Stories of each task in the real training set (`en-valid-10k`, last story of a file dropped). */
export const trainingStories: Readonly<Record<number, number>> = {
  ...Object.fromEntries(tasks.map((task) => [task, 1799])),
  ...{ 4: 8999, 15: 2249, 16: 8999, 17: 1124, 18: 1780, 19: 8999, 20: 839 },
};

// Keeps the choice of tasks apart from the stories' own draws.
const taskStream = 0;

/** Which story: the same values give the same story, whatever was drawn before. */
export interface StoryChoice {
  readonly task: number;
  readonly seed: number;
  readonly index: number;
  /** As in bAbI unless given. */
  readonly difficulty?: Difficulty;
}

/** Story `index` of task `task`. */
export function generateStory({ task, seed, index, difficulty = ordinary }: StoryChoice): Story {
  if (!tasks.includes(task)) {
    throw new UsageError(`task ${task}: there is no such bAbI task`, { hint: "tasks are numbered 1 to 20" });
  }
  if (!Number.isSafeInteger(seed) || !Number.isSafeInteger(index) || index < 0) {
    throw new UsageError(
      `seed ${seed}, story ${index}: both must be whole numbers, the story's not negative`,
    );
  }
  const { distractors, stories } = difficulty;
  const own = write(task, new StoryRandom(seed, task, index), difficulty).lines;
  if (distractors === 0 && stories === 1) return { task, lines: own };
  const random = new StoryRandom(seed, extraStream, index);
  const parts = random
    .shuffled(worlds.filter((world) => !world.includes(task)))
    .slice(0, stories - 1)
    .map((world, i) => {
      const other = random.pick(world);
      const draws = new StoryRandom(seed, partStream * (i + 1) + other, index);
      return write(other, draws, { ...difficulty, distance: 0 }).lines;
    });
  const place = random.below(parts.length + 1);
  const all = joined([...parts.slice(0, place), own, ...parts.slice(place)]);
  // A story with a distance may have everybody in it.
  return { task, lines: isDistant(task, difficulty) ? all : distracted(random, all, distractors) };
}

// Keep what is added to a story apart from its own draws, and the stories that are joined apart from those that are not.
const extraStream = 1000;
const partStream = 10_000;

/** Tasks whose stories would speak of the same people, things, places or animals: of these, one story has one. */
const worlds: readonly (readonly number[])[] = [
  [1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 20],
  [4, 19],
  [15],
  [16],
  [17],
  [18],
];

/** Most facts that are kept over a distance. */
const mostFacts = 3;

function isDistant(task: number, { distance }: Difficulty): boolean {
  return task === 1 && distance > 0;
}

function write(task: number, random: StoryRandom, difficulty: Difficulty): StoryWriter {
  if (isDistant(task, difficulty)) {
    // Task 1's own four people, or everybody.
    const names = random.coin() ? family : people;
    return distantStory(random, names, difficulty.distance, 1 + random.below(mostFacts));
  }
  switch (task) {
    case 4:
      return neighbourStory(random);
    case 14:
      return dayStory(random, difficulty);
    case 15:
      return fearStory(random);
    case 16:
      return colourStory(random, difficulty);
    case 17:
      return shapeStory(random, difficulty);
    case 18:
      return sizeStory(random, difficulty);
    case 19:
      return pathStory(random, difficulty);
    case 20:
      return moodStory(random);
    case 2:
    case 3:
    case 5:
    case 6:
    case 7:
    case 8:
      return carryingStory(task, random, difficulty);
    default:
      return walkingStory(task, random, difficulty);
  }
}

const totalStories = tasks.reduce((sum, task) => sum + trainingStories[task]!, 0);

/** The task of story `index` of the endless mixture, drawn in the training set's proportions. */
export function taskOfStory(seed: number, index: number): number {
  let draw = new StoryRandom(seed, taskStream, index).below(totalStories);
  for (const task of tasks) {
    draw -= trainingStories[task]!;
    if (draw < 0) return task;
  }
  throw new Error("internal: the draw lies beyond the last task");
}

/** Story `index` of the endless mixture of all tasks. */
export function streamStory(seed: number, index: number, difficulty?: Difficulty): Story {
  return generateStory({
    task: taskOfStory(seed, index),
    seed,
    index,
    ...(difficulty ? { difficulty } : {}),
  });
}

/** `count` stories of one task, from story `first` on. */
export function generateStories(options: {
  task: number;
  seed: number;
  count: number;
  first?: number;
  difficulty?: Difficulty;
}): Story[] {
  const { task, seed, count, first = 0, difficulty = ordinary } = options;
  return Array.from({ length: count }, (_, offset) =>
    generateStory({ task, seed, index: first + offset, difficulty }),
  );
}
