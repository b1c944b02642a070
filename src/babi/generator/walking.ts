/**
 * The world of tasks 1 and 9 to 13: four people walk between six places. The tasks differ in how the
 * story says so: plainly, by denial, by halves, with pronouns, or of two people at a time.
 *
 * Everybody starts in a place the story does not give and goes to another one in every event. After every two
 * statements comes a question about somebody in one of the latest five statements; a statement about two people
 * counts as two.
 */
import { sequels } from "../lexicon.ts";
import type { Difficulty } from "./difficulty.ts";
import type { StoryRandom } from "./random.ts";
import { family, friends, goes, phrase, rooms, StoryWriter, town } from "./writer.ts";

const questionsPerStory = 5;
const openings = sequels.map(phrase);
const pronounOf: Readonly<Record<string, string>> = { john: "he", daniel: "he", mary: "she", sandra: "she" };

/** What the story has last said about somebody. */
interface Report {
  /** The place to ask for when the answer is to be "yes", "maybe" or, after a denial, "no". */
  readonly place: string;
  readonly kind: "certain" | "denied" | "either";
  /** Both places of an "either". */
  readonly places: readonly string[];
  readonly ids: readonly number[];
}

class Walk {
  readonly story = new StoryWriter();
  readonly random: StoryRandom;
  readonly names: readonly string[];
  readonly places: readonly string[];
  /** Where each person really is. */
  readonly at: number[];
  readonly reports: (Report | undefined)[] = [];
  /** Whom the statements were about, one entry for each person in each statement. */
  readonly mentioned: number[] = [];

  constructor(
    random: StoryRandom,
    names: readonly string[],
    places: readonly string[],
    private readonly lookback: number,
  ) {
    this.random = random;
    this.names = names;
    this.places = places;
    this.at = names.map(() => random.below(places.length));
  }

  /** Goes to another place; returns the places before and after. */
  go(who: number): { from: string; to: string } {
    const from = this.places[this.at[who]!]!;
    this.at[who] = this.random.other(this.places.length, this.at[who]!);
    return { from, to: this.places[this.at[who]]! };
  }

  report(who: number, report: Report): void {
    this.reports[who] = report;
    this.mentioned.push(who);
  }

  /** Somebody the story has just spoken of. */
  mentionedLately(): number {
    const back = this.random.below(Math.min(this.lookback, this.mentioned.length));
    return this.mentioned[this.mentioned.length - 1 - back]!;
  }

  where(who = this.mentionedLately()): void {
    const { place, ids } = this.reports[who]!;
    this.story.ask(["where", "is", this.names[who]!], place, ids);
  }

  isIn(): void {
    const who = this.mentionedLately();
    const { place, kind, places, ids } = this.reports[who]!;
    // After a denial only the denied place can be asked for; else half of the questions name the right one.
    const asked =
      kind === "denied" || this.random.coin()
        ? place
        : this.places[this.random.other(this.places.length, this.places.indexOf(place))]!;
    const answer = !places.includes(asked) ? "no" : kind === "either" ? "maybe" : "yes";
    this.story.ask(["is", this.names[who]!, "in", "the", asked], answer, ids);
  }
}

/** A story of task 1 or 9 to 13. */
export function walkingStory(task: number, random: StoryRandom, { lookback }: Difficulty): StoryWriter {
  const [names, places] = task === 10 ? [friends, town] : [family, rooms];
  const walk = new Walk(random, names, places, lookback);
  const { state, ask } = forms[task]!;
  for (let asked = 0; asked < questionsPerStory; asked++) {
    state(walk);
    ask(walk);
  }
  return walk.story;
}

/**
 * Facts that are needed much later (task 1): some of the people go somewhere, the others walk about for `distance`
 * sentences, and the question is where each of the first is. At most all but one can be asked for.
 */
export function distantStory(
  random: StoryRandom,
  names: readonly string[],
  distance: number,
  facts: number,
): StoryWriter {
  const order = random.shuffled(names);
  const walk = new Walk(random, order, rooms, distance);
  for (let who = 0; who < facts; who++) plainly(walk, who);
  for (let i = 0; i < distance; i++) plainly(walk, facts + random.below(order.length - facts));
  const asked = random.shuffled(Array.from({ length: facts }, (_, who) => who));
  for (const who of asked) walk.where(who);
  return walk.story;
}

/** How each task makes two statements, and what it asks then. */
const forms: Readonly<Record<number, { state: (walk: Walk) => void; ask: (walk: Walk) => void }>> = {
  1: { state: twice((walk) => plainly(walk)), ask: (walk) => walk.where() },
  9: { state: twice(mixed(byDenial)), ask: (walk) => walk.isIn() },
  10: { state: twice(mixed(byHalves)), ask: (walk) => walk.isIn() },
  11: { state: (walk) => andThen(walk, [walk.random.below(walk.names.length)]), ask: (walk) => walk.where() },
  12: { state: twice((walk) => together(walk, pair(walk))), ask: (walk) => walk.where() },
  13: { state: (walk) => andThen(walk, pair(walk)), ask: (walk) => walk.where() },
};

function twice(state: (walk: Walk) => void): (walk: Walk) => void {
  return (walk) => {
    state(walk);
    state(walk);
  };
}

function plainly(walk: Walk, who = walk.random.below(walk.names.length)): void {
  const { to } = walk.go(who);
  certainly(walk, who, to, goes(walk.random, [walk.names[who]!], to));
}

function certainly(walk: Walk, who: number, place: string, words: readonly string[]): void {
  const id = walk.story.state(words);
  walk.report(who, { place, kind: "certain", places: [place], ids: [id] });
}

// Half of the events are stated as a walk, a quarter by the new place, a quarter by what `uncertainly` makes of it.
function mixed(
  uncertainly: (walk: Walk, who: number, from: string, to: string) => void,
): (walk: Walk) => void {
  return (walk) => {
    const how = walk.random.below(4);
    const who = walk.random.below(walk.names.length);
    const { from, to } = walk.go(who);
    const name = walk.names[who]!;
    if (how === 0) uncertainly(walk, who, from, to);
    else if (how === 1) certainly(walk, who, to, [name, "is", "in", "the", to]);
    else certainly(walk, who, to, goes(walk.random, [name], to));
  };
}

function byDenial(walk: Walk, who: number, from: string): void {
  const not = walk.random.coin() ? ["not"] : ["no", "longer"];
  const id = walk.story.state([walk.names[who]!, "is", ...not, "in", "the", from]);
  walk.report(who, { place: from, kind: "denied", places: [], ids: [id] });
}

// The new place beside any place at all, even the same one: the files have "either in the park or the park".
function byHalves(walk: Walk, who: number, _from: string, to: string): void {
  const any = walk.random.pick(walk.places);
  const [first, second] = walk.random.coin() ? [to, any] : [any, to];
  const words = [walk.names[who]!, "is", "either", "in", "the", first, "or", "the", second];
  const id = walk.story.state(words);
  walk.report(who, { place: to, kind: "either", places: [to, any], ids: [id] });
}

/** Two different people and a place neither is in, drawn together until they fit. */
function pair(walk: Walk): number[] {
  for (;;) {
    const first = walk.random.below(walk.names.length);
    const second = walk.random.other(walk.names.length, first);
    const place = walk.random.below(walk.places.length);
    if (walk.at[first] === place || walk.at[second] === place) continue;
    walk.at[first] = walk.at[second] = place;
    return [first, second];
  }
}

function together(walk: Walk, who: readonly number[]): void {
  const [first, second] = [who[0]!, who[1]!];
  const place = walk.places[walk.at[first]!]!;
  const id = walk.story.state(goes(walk.random, [walk.names[first]!, "and", walk.names[second]!], place));
  for (const person of who) walk.report(person, { place, kind: "certain", places: [place], ids: [id] });
}

/** A statement about one person or two, and another with a pronoun about what they did next. */
function andThen(walk: Walk, who: readonly number[]): void {
  const alone = who.length === 1 ? who[0]! : null;
  if (alone === null) together(walk, who);
  else plainly(walk, alone);
  const pronoun = alone === null ? "they" : pronounOf[walk.names[alone]!]!;
  const firstId = walk.reports[who[0]!]!.ids[0]!;
  const { to } = walk.go(who[0]!);
  const id = walk.story.state(goes(walk.random, [...walk.random.pick(openings), pronoun], to));
  for (const person of who) {
    walk.at[person] = walk.at[who[0]!]!;
    walk.report(person, { place: to, kind: "certain", places: [to], ids: [firstId, id] });
  }
}
