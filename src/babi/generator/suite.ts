/**
 * The stretch suite: how far a model holds beyond what bAbI asks, along seven axes. Its stories are the same for everybody,
 * from a seed that training cannot have; version 1.
 */
import type { Story } from "../format.ts";
import { gatheringStory } from "./carrying.ts";
import { ordinary } from "./difficulty.ts";
import { generateStory } from "./generate.ts";
import { StoryRandom } from "./random.ts";
import { distantStory } from "./walking.ts";
import { family } from "./writer.ts";

/** An axis: what grows along it, and its points. */
export interface SuiteAxis {
  readonly name: string;
  /** What is counted along it. */
  readonly label: string;
  readonly points: readonly number[];
  /** Stories per point. */
  readonly stories: number;
  /** Story `index` of a point. */
  story(point: number, index: number): Story;
}

/** Above every seed of a run. */
const suiteSeed = 2 ** 40;

const task1 = 1;

/** The axes of the suite. */
export const stretchAxes: readonly SuiteAxis[] = [
  {
    name: "distance",
    label: "sentences back to the fact",
    points: [10, 20, 40, 80, 160],
    stories: 200,
    story: (point, index) => ({
      task: task1,
      lines: distantStory(randomOf("distance", point, index), family, point, 1).lines,
    }),
  },
  {
    name: "located",
    label: "objects carried: where is one?",
    points: [1, 2, 3, 4, 5],
    stories: 200,
    story: (point, index) => gathered("located", 2, point, index, 5),
  },
  {
    name: "counted",
    label: "objects carried: how many, what?",
    points: [1, 2, 3],
    stories: 200,
    story: (point, index) => gathered("counted", index % 2 === 0 ? 7 : 8, point, index, 3),
  },
  {
    name: "rooms",
    label: "rooms on the way",
    points: [3, 4, 5, 6, 7, 8],
    stories: 100,
    story: (point, index) =>
      generateStory({
        ...{ task: 19, seed: suiteSeed, index },
        difficulty: { ...ordinary, rooms: point, path: point },
      }),
  },
  {
    name: "sizes",
    label: "comparisons in a row",
    points: [1, 2, 3, 4, 5],
    stories: 100,
    story: (point, index) =>
      generateStory({ task: 18, seed: suiteSeed, index, difficulty: { ...ordinary, chain: point } }),
  },
  {
    name: "shapes",
    label: "positions in a row",
    points: [1, 2, 3, 4, 5],
    stories: 60,
    story: (point, index) =>
      generateStory({ task: 17, seed: suiteSeed, index, difficulty: { ...ordinary, chain: point } }),
  },
  {
    name: "stories",
    label: "stories without an end mark",
    points: [1, 2, 3, 4],
    stories: 60,
    // Every task leads three of them.
    story: (point, index) =>
      generateStory({
        ...{ task: 1 + (index % 20), seed: suiteSeed, index },
        difficulty: { ...ordinary, stories: point },
      }),
  },
];

/** Streams of the axes whose stories `generateStory` does not give. */
const streams = { distance: 2000, located: 3000, counted: 4000 } as const;

function gathered(
  axis: "located" | "counted",
  task: 2 | 7 | 8,
  carried: number,
  index: number,
  objects: number,
): Story {
  const random = randomOf(axis, carried, index);
  return { task, lines: gatheringStory(task, random, { ...ordinary, objects, carried }).lines };
}

function randomOf(axis: keyof typeof streams, point: number, index: number): StoryRandom {
  return new StoryRandom(suiteSeed, streams[axis] + point, index);
}
