/**
 * The generator: new stories for all twenty tasks, each a pure function of its seed and number.
 *
 * `generateStory` gives story `index` of one task; `streamStory` gives story `index` of an endless mixture of
 * all tasks, in the proportions of the real training set.
 */
import { UsageError } from "../../errors.ts";
import type { Story } from "../format.ts";
import { carryingStory } from "./carrying.ts";
import { colourStory, fearStory } from "./creatures.ts";
import { dayStory } from "./days.ts";
import { shapeStory, sizeStory } from "./figures.ts";
import { neighbourStory, pathStory } from "./maps.ts";
import { moodStory } from "./moods.ts";
import { StoryRandom } from "./random.ts";
import { walkingStory } from "./walking.ts";
import type { StoryWriter } from "./writer.ts";

/** The tasks' numbers, 1 to 20. */
export const tasks: readonly number[] = Array.from({ length: 20 }, (_, index) => index + 1);

/** Stories of each task in the real training set (`en-valid-10k`, last story of a file dropped). */
export const trainingStories: Readonly<Record<number, number>> = {
  ...Object.fromEntries(tasks.map((task) => [task, 1799])),
  ...{ 4: 8999, 15: 2249, 16: 8999, 17: 1124, 18: 1780, 19: 8999, 20: 839 },
};

// Keeps the choice of tasks apart from the stories' own draws.
const taskStream = 0;

/** Story `index` of task `task`: the same arguments give the same story, whatever was drawn before. */
export function generateStory({ task, seed, index }: { task: number; seed: number; index: number }): Story {
  if (!tasks.includes(task)) {
    throw new UsageError(`task ${task}: there is no such bAbI task`, { hint: "tasks are numbered 1 to 20" });
  }
  if (!Number.isSafeInteger(seed) || !Number.isSafeInteger(index) || index < 0) {
    throw new UsageError(
      `seed ${seed}, story ${index}: both must be whole numbers, the story's not negative`,
    );
  }
  return { task, lines: write(task, new StoryRandom(seed, task, index)).lines };
}

function write(task: number, random: StoryRandom): StoryWriter {
  switch (task) {
    case 4:
      return neighbourStory(random);
    case 14:
      return dayStory(random);
    case 15:
      return fearStory(random);
    case 16:
      return colourStory(random);
    case 17:
      return shapeStory(random);
    case 18:
      return sizeStory(random);
    case 19:
      return pathStory(random);
    case 20:
      return moodStory(random);
    case 2:
    case 3:
    case 5:
    case 6:
    case 7:
    case 8:
      return carryingStory(task, random);
    default:
      return walkingStory(task, random);
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
export function streamStory(seed: number, index: number): Story {
  return generateStory({ task: taskOfStory(seed, index), seed, index });
}

/** `count` stories of one task, from story `first` on. */
export function generateStories(options: {
  task: number;
  seed: number;
  count: number;
  first?: number;
}): Story[] {
  const { task, seed, count, first = 0 } = options;
  return Array.from({ length: count }, (_, offset) => generateStory({ task, seed, index: first + offset }));
}
