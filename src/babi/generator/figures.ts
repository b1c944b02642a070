/**
 * The worlds of tasks 17 (shapes on a page) and 18 (things that fit inside each other).
 */
import { relations, shapes } from "../lexicon.ts";
import type { Difficulty } from "./difficulty.ts";
import type { StoryRandom } from "./random.ts";
import { phrase, StoryWriter } from "./writer.ts";

const relationNames = Object.keys(relations);
const relationWords: Readonly<Record<string, readonly string[]>> = Object.fromEntries(
  relationNames.map((name) => [name, phrase(name)]),
);
const shapeWords = shapes.map(phrase);

const opposite = (relation: string): string => {
  const [east, north] = relations[relation]!;
  return relationNames.find((name) => relations[name]![0] === -east && relations[name]![1] === -north)!;
};

/** A story of task 17: a shape with two others beside it, and eight questions about those two. */
export function shapeStory(random: StoryRandom, { chain, orders }: Difficulty): StoryWriter {
  if (chain !== 2 || orders === 1) return shapeChain(random, { chain, orders });
  const story = new StoryWriter();
  const order = random.shuffled(shapeWords);
  const middle = order[0]!;
  const ends = [order[1]!, order[2]!];
  const first = random.pick(relationNames);
  // Where each end lies from the middle; the two never lie on the same side.
  const sides = [first, random.pick(relationNames.filter((relation) => relation !== first))];
  const ids: number[] = [];
  for (let stated = 0; stated < 2; ) {
    const drawn = random.below(3);
    const end = drawn === 2 ? random.below(2) : drawn;
    if (ids[end] !== undefined) continue;
    // Drawing an end describes the middle from it; drawing the middle describes the end.
    const side = sides[end]!;
    const [subject, relation, reference] =
      drawn === 2 ? [ends[end]!, side, middle] : [middle, opposite(side), ends[end]!];
    ids[end] = story.state(["the", ...subject, "is", ...relationWords[relation]!, "the", ...reference]);
    stated++;
  }
  for (let asked = 0; asked < 8; asked++) {
    const subject = random.below(2);
    const [here, there] = [relations[sides[subject]!]!, relations[sides[1 - subject]!]!];
    const holds = (relation: string) => {
      const [east, north] = relations[relation]!;
      return (here[0] - there[0]) * east + (here[1] - there[1]) * north > 0;
    };
    const yes = random.coin();
    const relation = random.pick(relationNames.filter((name) => holds(name) === yes));
    story.ask(
      ["is", "the", ...ends[subject]!, ...relationWords[relation]!, "the", ...ends[1 - subject]!],
      yes ? "yes" : "no",
      [ids[subject]!, ids[1 - subject]!],
    );
  }
  return story;
}

/** A row of shapes, each beside the one before it, and eight questions about the first and the last. */
function shapeChain(
  random: StoryRandom,
  { chain, orders }: Pick<Difficulty, "chain" | "orders">,
): StoryWriter {
  const row = random.shuffled(shapeWords).slice(0, chain + 1);
  const { sides, at } = crossFreeRow(random, chain);
  const story = new StoryWriter();
  const ids: number[] = [];
  for (const i of random.shuffled(sides.map((_, index) => index))) {
    const [subject, relation, reference] =
      orders === 1 || random.coin()
        ? [row[i + 1]!, sides[i]!, row[i]!]
        : [row[i]!, opposite(sides[i]!), row[i + 1]!];
    ids[i] = story.state(["the", ...subject, "is", ...relationWords[relation]!, "the", ...reference]);
  }
  for (let asked = 0; asked < 8; asked++) {
    const [subject, reference] = orders === 2 && random.coin() ? [0, chain] : [chain, 0];
    const [here, there] = [at[subject]!, at[reference]!];
    const holds = (relation: string) => {
      const [east, north] = relations[relation]!;
      return (here[0] - there[0]) * east + (here[1] - there[1]) * north > 0;
    };
    const yes = random.coin();
    const relation = random.pick(relationNames.filter((name) => holds(name) === yes));
    story.ask(
      ["is", "the", ...row[subject]!, ...relationWords[relation]!, "the", ...row[reference]!],
      yes ? "yes" : "no",
      subject === 0 ? ids : ids.toReversed(),
    );
  }
  return story;
}

/** Where each of a row of shapes lies from the one before, and the places: no two the same. */
function crossFreeRow(
  random: StoryRandom,
  chain: number,
): { sides: string[]; at: (readonly [east: number, north: number])[] } {
  for (;;) {
    const sides = Array.from({ length: chain }, () => random.pick(relationNames));
    const at: (readonly [number, number])[] = [[0, 0]];
    for (const side of sides) {
      const [[x, y], [east, north]] = [at.at(-1)!, relations[side]!];
      at.push([x + east, y + north]);
    }
    if (new Set(at.map(String)).size === at.length) return { sides, at };
  }
}

const chocolates = ["chocolate", "box of chocolates"].map(phrase);
const containers = ["box", "chest", "container", "suitcase"].map(phrase);

interface Comparison {
  readonly bigger: number;
  readonly smaller: number;
  readonly id: number;
}

/** A story of task 18: comparisons in fives until one follows from two others, then five questions. */
export function sizeStory(random: StoryRandom, { chain }: Difficulty): StoryWriter {
  if (chain !== 2) return sizeChain(random, chain);
  const story = new StoryWriter();
  // From small to big: a chocolate, a box of chocolates, then the containers in any order.
  const things = [...chocolates, ...random.shuffled(containers)];
  const comparisons: Comparison[] = [];
  for (let asked = 0; asked < 5; ) {
    do compareFive(random, story, things, comparisons);
    while (!comparisons.some(({ smaller }) => comparisons.some(({ bigger }) => bigger === smaller)));
    // Now and then the files break off the questions, compare five more and ask five again.
    const breaks = comparisons.length > 5 ? 88 : 1000;
    for (asked = 0; asked < 5 && random.below(breaks) > 0; asked++) {
      askSize(random, story, things, comparisons);
    }
  }
  return story;
}

/** The biggest things in a row, each compared with the next, and five questions about the first and the last. */
function sizeChain(random: StoryRandom, chain: number): StoryWriter {
  const story = new StoryWriter();
  const things = [...chocolates, ...random.shuffled(containers)].slice(-chain - 1);
  const ids: number[] = [];
  for (const i of random.shuffled(Array.from({ length: chain }, (_, index) => index))) {
    ids[i] = compare(random, story, things[i]!, things[i + 1]!);
  }
  for (let asked = 0; asked < 5; asked++) {
    const yes = random.coin();
    const [bigger, smaller] = yes ? [things[chain]!, things[0]!] : [things[0]!, things[chain]!];
    // From the bigger one named first: down to what is smaller for "yes", up for "no".
    askBigger(random, story, { bigger, smaller, yes }, yes ? ids.toReversed() : ids);
  }
  return story;
}

/** States that one thing is smaller than another. */
function compare(
  random: StoryRandom,
  story: StoryWriter,
  smaller: readonly string[],
  bigger: readonly string[],
): number {
  return story.state(
    random.coin()
      ? ["the", ...bigger, "is", "bigger", "than", "the", ...smaller]
      : ["the", ...smaller, "fits", "inside", "the", ...bigger],
  );
}

function askBigger(
  random: StoryRandom,
  story: StoryWriter,
  { bigger, smaller, yes }: { bigger: readonly string[]; smaller: readonly string[]; yes: boolean },
  supports: readonly number[],
): void {
  const words = random.coin()
    ? ["is", "the", ...bigger, "bigger", "than", "the", ...smaller]
    : ["does", "the", ...smaller, "fit", "in", "the", ...bigger];
  story.ask(words, yes ? "yes" : "no", supports);
}

function compareFive(
  random: StoryRandom,
  story: StoryWriter,
  things: readonly (readonly string[])[],
  comparisons: Comparison[],
): void {
  for (let count = 0; count < 5; count++) {
    const one = random.below(things.length);
    const other = random.other(things.length, one);
    const [smaller, bigger] = [Math.min(one, other), Math.max(one, other)];
    const id = compare(random, story, things[smaller]!, things[bigger]!);
    comparisons.push({ bigger, smaller, id });
  }
}

/** Asks what follows from any statement and the first that goes on from it: down for "yes", up for "no". */
function askSize(
  random: StoryRandom,
  story: StoryWriter,
  things: readonly (readonly string[])[],
  comparisons: readonly Comparison[],
): void {
  const yes = random.coin();
  const chains = comparisons.flatMap((first) => {
    const second = comparisons.find(({ bigger, smaller }) =>
      yes ? bigger === first.smaller : smaller === first.bigger,
    );
    return second === undefined ? [] : [[first, second] as const];
  });
  const [first, second] = random.pick(chains);
  const [bigger, smaller] = yes
    ? [things[first.bigger]!, things[second.smaller]!]
    : [things[first.smaller]!, things[second.bigger]!];
  askBigger(random, story, { bigger, smaller, yes }, [first.id, second.id]);
}
