/**
 * The worlds of tasks 15 (deduction) and 16 (induction): named animals, their kinds, fears and colours.
 */
import { colours, plurals } from "../lexicon.ts";
import type { Difficulty } from "./difficulty.ts";
import type { StoryRandom } from "./random.ts";
import { StoryWriter } from "./writer.ts";

/** Animals of task 15. */
export const fearful = ["gertrude", "winona", "emily", "jessica"] as const;
const fearKinds = Object.keys(plurals);
/** Animals of task 16, and their kinds. */
export const coloured = ["lily", "bernhard", "greg", "brian", "julius"] as const;
export const colourKinds = ["frog", "lion", "rhino", "swan"] as const;
const none = -1;

/** A story of task 15: four kinds each fear one, four animals are of kinds already spoken of; four questions. */
export function fearStory(random: StoryRandom): StoryWriter {
  const story = new StoryWriter();
  const fears = fearKinds.map((_, kind) => random.other(fearKinds.length, kind));
  const fearIds = fearKinds.map(() => 0);
  const kinds = fearful.map(() => none);
  const kindIds = fearful.map(() => 0);
  for (let stated = 0; stated < fearful.length + fearKinds.length; ) {
    // A drawn fact is stated if it is new and, for an animal, of a kind whose fear has been stated.
    const kind = random.below(fearKinds.length);
    if (random.coin()) {
      if (fearIds[kind] !== 0) continue;
      const [who, whom] = [plurals[fearKinds[kind]!]!, plurals[fearKinds[fears[kind]!]!]!];
      fearIds[kind] = story.state([who, "are", "afraid", "of", whom]);
    } else {
      const who = random.below(fearful.length);
      if (kinds[who] !== none || fearIds[kind] === 0) continue;
      kinds[who] = kind;
      kindIds[who] = story.state([fearful[who]!, "is", "a", fearKinds[kind]!]);
    }
    stated++;
  }
  for (let asked = 0; asked < 4; asked++) {
    const who = random.below(fearful.length);
    const kind = kinds[who]!;
    story.ask(["what", "is", fearful[who]!, "afraid", "of"], fearKinds[fears[kind]!]!, [
      kindIds[who]!,
      fearIds[kind]!,
    ]);
  }
  return story;
}

/** A story of task 16: five animals or fewer, their kinds and all colours but one, which is asked for. */
export function colourStory(random: StoryRandom, { animals }: Pick<Difficulty, "animals">): StoryWriter {
  for (;;) {
    const story = tryColourStory(random, coloured.slice(0, animals));
    if (story !== null) return story;
  }
}

interface Animal {
  readonly kind: number;
  /** The statement of its kind; 0 before. */
  kindId: number;
  colour: number;
  /** The statement of its colour; 0 before. */
  colourId: number;
}

/** One attempt; `null` when the last animal's colour does not follow as it does in the real files. */
function tryColourStory(random: StoryRandom, names: readonly string[]): StoryWriter | null {
  const story = new StoryWriter();
  const animals: Animal[] = names.map(() => ({
    kind: random.below(colourKinds.length),
    kindId: 0,
    colour: none,
    colourId: 0,
  }));
  // As in the files, a kind gets a new colour whenever an animal is said to be of it; whoever is coloured
  // between two such statements has the same one.
  const kindColour = colourKinds.map(() => none);
  const facts = 2 * animals.length - 1;
  while (story.lines.length < facts) {
    const who = random.below(animals.length);
    const animal = animals[who]!;
    if (animal.kindId === 0) {
      animal.kindId = story.state([names[who]!, "is", "a", colourKinds[animal.kind]!]);
      kindColour[animal.kind] = random.below(colours.length);
    } else if (animal.colourId === 0) {
      animal.colour = kindColour[animal.kind]!;
      animal.colourId = story.state([names[who]!, "is", colours[animal.colour]!]);
    }
  }
  const asked = animals.findIndex(({ colourId }) => colourId === 0);
  const { kind, kindId } = animals[asked]!;
  const alike = animals
    .filter((animal) => animal.kind === kind && animal.colourId !== 0)
    .sort((a, b) => a.kindId - b.kindId);
  // The files have no story in which exactly two others are of the kind asked for.
  const like = alike.at(-1);
  if (like === undefined || alike.length === 2) return null;
  story.ask(["what", "color", "is", names[asked]!], colours[like.colour]!, [
    kindId,
    like.kindId,
    like.colourId,
  ]);
  return story;
}
