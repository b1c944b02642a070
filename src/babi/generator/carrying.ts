/**
 * The world of tasks 2, 3 and 5 to 8: four people walk between six rooms and pick up, put down and give three
 * things (up to five in harder stories).
 *
 * People and things start in rooms the story does not give. An event is drawn by choosing somebody and an
 * action until the two go together, so whoever can do more acts more often, as in the real files; gifts come
 * first where they are possible. After every two statements comes a question about one of the five latest
 * statements, if one can be asked.
 */
import { dropVerbs, giveVerbs, numerals, takeVerbs, things } from "../lexicon.ts";
import type { Difficulty } from "./difficulty.ts";
import type { StoryRandom } from "./random.ts";
import { family, goes, phrase, rooms, StoryWriter } from "./writer.ts";

/** As many there are words for: lists are of the first three things. */
const mostInHand = numerals.length - 1;
// In the files, of several things that could be given the first in the order above is, and of several people
// present the first in a fixed order gets it: this one in task 5, the next in task 7.
/** The people of task 5. */
export const givers = ["mary", "fred", "bill", "jeff"] as const;
const takers = ["john", "mary", "sandra", "daniel"] as const;
const takes = takeVerbs.map(phrase);
const drops = dropVerbs.map(phrase);
const questionsPerStory = 5;
const nobody = -1;

interface Event {
  readonly type: "move" | "take" | "drop" | "give";
  readonly who: number;
  /** The thing; for a move it has no meaning. */
  readonly thing: number;
}

interface Gift {
  readonly id: number;
  readonly from: number;
  readonly thing: number;
  readonly to: number;
}

/** One thing: who holds it, and what the story has said about it. */
interface Thing {
  holder: number;
  room: number;
  /** The statement in which it last was taken, dropped or given. */
  handled: number;
  /** The statement that says where it was put down; 0 when there is none. */
  restsSince: number;
  /** The moves it was carried along since it last was taken. */
  carried: { id: number; room: number }[];
}

/** What differs between the tasks of this world. */
interface Rules {
  readonly names: readonly string[];
  /** Whether people give things to each other. */
  readonly gifts: boolean;
  /** Whether "there" after taking is optional (task 3) instead of always written. */
  readonly thereIsOptional: boolean;
  /** What asks a question about the statement of this event; `null` when it allows none. */
  readonly ask: (world: Carrying, event: Event) => (() => void) | null;
}

const rules: Readonly<Record<number, Rules>> = {
  2: { names: family, gifts: false, thereIsOptional: false, ask: whereIsThing },
  3: { names: family, gifts: false, thereIsOptional: true, ask: whereWasThing },
  5: { names: givers, gifts: true, thereIsOptional: false, ask: aboutGift },
  6: { names: family, gifts: false, thereIsOptional: false, ask: isIn },
  7: { names: takers, gifts: true, thereIsOptional: false, ask: (w, e) => aboutHands(w, e, "count") },
  8: { names: family, gifts: false, thereIsOptional: false, ask: (w, e) => aboutHands(w, e, "list") },
};

/** A story of task 2, 3, 5, 6, 7 or 8. */
export function carryingStory(task: number, random: StoryRandom, difficulty: Difficulty): StoryWriter {
  const world = new Carrying(random, rules[task]!, difficulty);
  const isAboutHands = task === 7 || task === 8;
  let asked = 0;
  if (difficulty.carried > 0) {
    // Soon some of it is put down again, so what was gathered is asked for at once.
    const ask = gatherAndWalk(
      world,
      isAboutHands ? Math.min(difficulty.carried, mostInHand) : difficulty.carried,
    );
    if (ask) {
      ask();
      asked++;
    }
  }
  while (asked < questionsPerStory) {
    world.happen();
    world.happen();
    if (world.question()) asked++;
  }
  return world.story;
}

/**
 * Somebody gathers things and walks on with them; then the question is where one of them is (task 2), how many they are
 * (task 7) or which (task 8).
 */
export function gatheringStory(task: 2 | 7 | 8, random: StoryRandom, difficulty: Difficulty): StoryWriter {
  const world = new Carrying(random, rules[task]!, difficulty);
  gatherAndWalk(world, difficulty.carried)?.();
  return world.story;
}

/** What asks a question about somebody who has gathered `count` things and walked on; `null` when the task has none. */
function gatherAndWalk(world: Carrying, count: number): (() => void) | null {
  const who = world.gather(count);
  world.walk(who);
  const thing = count > 0 ? world.random.pick(world.inHand(who)) : nobody;
  return world.rules.ask(world, { type: "take", who, thing });
}

class Carrying {
  readonly story = new StoryWriter();
  readonly random: StoryRandom;
  readonly rules: Rules;
  /** Where each person is. */
  readonly room: number[];
  /** The statement that says where each person is; 0 before the first. */
  readonly placedBy: number[];
  readonly things: Thing[];
  /** What each person has ever had, in order, with the statements about it. */
  readonly had: { thing: number; handled: number[] }[][];
  readonly gifts: Gift[] = [];
  private readonly events: Event[] = [];
  private readonly lookback: number;

  constructor(random: StoryRandom, taskRules: Rules, { objects, lookback }: Difficulty) {
    this.random = random;
    this.rules = taskRules;
    this.lookback = lookback;
    this.room = taskRules.names.map(() => random.below(rooms.length));
    this.placedBy = taskRules.names.map(() => 0);
    this.had = taskRules.names.map(() => []);
    this.things = things.slice(0, objects).map(() => ({
      holder: nobody,
      room: random.below(rooms.length),
      handled: 0,
      restsSince: 0,
      carried: [],
    }));
  }

  /** One event: a gift three times in seven if one is possible, else somebody and an action that go together. */
  happen(): void {
    let event = this.rules.gifts ? this.gift() : null;
    while (event === null) {
      const who = this.random.below(this.rules.names.length);
      const action = this.random.below(3);
      event = action === 0 ? this.move(who) : action === 1 ? this.take(who) : this.drop(who);
    }
    this.events.push(event);
  }

  /** Somebody collects things until they have `count`; gives who. */
  gather(count: number): number {
    if (count === 0) return 0;
    const who = this.random.below(this.rules.names.length);
    while (this.inHand(who).length < count) {
      const missing = this.things.filter(({ holder }) => holder === nobody);
      const here = missing.some(({ room }) => room === this.room[who]);
      this.events.push(here ? this.take(who)! : this.goTo(who, this.random.pick(missing).room));
    }
    return who;
  }

  /** Somebody goes to another room. */
  walk(who: number): void {
    this.events.push(this.goTo(who, this.random.other(rooms.length, this.room[who]!)));
  }

  /** What somebody holds, in the order in which they first had it. */
  inHand(who: number): number[] {
    return this.had[who]!.filter(({ thing }) => this.holds(who, thing)).map(({ thing }) => thing);
  }

  /** Asks about one of the latest statements; false when there is nothing to ask. */
  question(): boolean {
    const possible = this.events
      .slice(-this.lookback)
      .map((event) => this.rules.ask(this, event))
      .filter((ask) => ask !== null);
    if (possible.length === 0) return false;
    this.random.pick(possible)();
    return true;
  }

  holds(who: number, thing: number): boolean {
    return this.things[thing]!.holder === who;
  }

  private move(who: number): Event | null {
    // The room is drawn like everything else: choosing the one they are in is no event.
    const room = this.random.below(rooms.length);
    return room === this.room[who] ? null : this.goTo(who, room);
  }

  private goTo(who: number, room: number): Event {
    this.room[who] = room;
    const id = this.story.state(goes(this.random, [this.rules.names[who]!], rooms[room]!));
    this.placedBy[who] = id;
    for (const thing of this.things) {
      if (thing.holder !== who) continue;
      thing.room = room;
      thing.carried.push({ id, room });
    }
    return { type: "move", who, thing: nobody };
  }

  private take(who: number): Event | null {
    const thing = this.one((candidate) => candidate.holder === nobody && candidate.room === this.room[who]);
    if (thing === nobody) return null;
    const there = !this.rules.thereIsOptional || this.random.below(5) === 0;
    const id = this.handle(who, thing, takes, there);
    const track = this.things[thing]!;
    track.holder = who;
    track.carried = [];
    track.handled = id;
    return { type: "take", who, thing };
  }

  private drop(who: number): Event | null {
    const thing = this.one((candidate) => candidate.holder === who);
    if (thing === nobody) return null;
    const id = this.handle(who, thing, drops, this.random.below(5) === 0);
    const track = this.things[thing]!;
    track.holder = nobody;
    track.handled = id;
    track.restsSince = this.placedBy[who]!;
    return { type: "drop", who, thing };
  }

  private gift(): Event | null {
    const thing = this.things.findIndex(({ holder }) => holder !== nobody && this.near(holder).length > 0);
    if (thing === nobody || this.random.below(7) >= 3) return null;
    const who = this.things[thing]!.holder;
    return this.give(who, thing, this.near(who)[0]!);
  }

  private near(who: number): number[] {
    return this.room.flatMap((room, person) => (person !== who && room === this.room[who] ? [person] : []));
  }

  private give(who: number, thing: number, to: number): Event {
    const { names } = this.rules;
    const verb = this.random.pick(giveVerbs);
    const id = this.story.state([names[who]!, verb, "the", things[thing]!, "to", names[to]!]);
    this.note(who, thing, id);
    this.note(to, thing, id);
    const track = this.things[thing]!;
    track.holder = to;
    track.carried = [];
    track.handled = id;
    this.gifts.push({ id, from: who, thing, to });
    return { type: "give", who, thing };
  }

  private handle(who: number, thing: number, verbs: readonly (readonly string[])[], there: boolean): number {
    const words = [this.rules.names[who]!, ...this.random.pick(verbs), "the", things[thing]!];
    if (there) words.push("there");
    const id = this.story.state(words);
    this.note(who, thing, id);
    return id;
  }

  private note(who: number, thing: number, id: number): void {
    const had = this.had[who]!;
    const before = had.find((possession) => possession.thing === thing);
    if (before === undefined) had.push({ thing, handled: [id] });
    else before.handled.push(id);
  }

  private one(fits: (thing: Thing) => boolean): number {
    const fitting: number[] = [];
    this.things.forEach((thing, index) => {
      if (fits(thing)) fitting.push(index);
    });
    return fitting.length === 0 ? nobody : this.random.pick(fitting);
  }
}

// Task 2. A thing can be asked for where it was put down, or once it has been carried to a room.
function whereIsThing(world: Carrying, { type, thing }: Event): (() => void) | null {
  if (type === "move") return null;
  const { holder, restsSince, carried, handled, room } = world.things[thing]!;
  const placedBy = holder === nobody ? restsSince : (carried.at(-1)?.id ?? 0);
  if (placedBy === 0) return null;
  return () => {
    world.story.ask(["where", "is", "the", things[thing]!], rooms[room]!, [handled, placedBy]);
  };
}

// Task 3. A thing can be asked for when whoever has or had it last carried it to two rooms or more.
function whereWasThing(world: Carrying, { type, thing }: Event): (() => void) | null {
  const track = world.things[thing];
  if (type === "move" || track === undefined || track.carried.length < 2) return null;
  return () => {
    const { carried, handled } = track;
    let last = 0;
    // The same room may have been visited twice; the question means the last time, and never the first stop.
    while (last === 0) {
      const { room } = world.random.pick(carried);
      last = carried.findLastIndex((stop) => stop.room === room);
    }
    const [before, then] = [carried[last - 1]!, carried[last]!];
    world.story.ask(
      ["where", "was", "the", things[thing]!, "before", "the", rooms[then.room]!],
      rooms[before.room]!,
      [handled, then.id, before.id],
    );
  };
}

// Task 5. A gift is asked for by giver, thing or receiver; the latest gift of its thing is meant.
function aboutGift(world: Carrying, { type, thing }: Event): (() => void) | null {
  if (type !== "give") return null;
  return () => {
    const gift = world.gifts.findLast((candidate) => candidate.thing === thing)!;
    const { names } = world.rules;
    const [from, what, to] = [names[gift.from]!, things[thing]!, names[gift.to]!];
    // "What did Fred give to Bill?" would have another answer if Fred gave Bill another thing afterwards.
    const unique = !world.gifts.some(
      (other) => other.id > gift.id && other.from === gift.from && other.to === gift.to,
    );
    const form = world.random.below(unique ? 6 : 4);
    const ask = (words: string[], answer: string) => {
      world.story.ask(words, answer, [gift.id]);
    };
    if (form === 0) ask(["who", "gave", "the", what], from);
    else if (form === 1) ask(["who", "gave", "the", what, "to", to], from);
    else if (form === 2) ask(["who", "received", "the", what], to);
    else if (form === 3) ask(["who", "did", from, "give", "the", what, "to"], to);
    else ask(["what", "did", from, "give", "to", to], what);
  };
}

// Task 6. Half of the questions name the right room.
function isIn(world: Carrying, { type, who }: Event): (() => void) | null {
  if (type !== "move") return null;
  return () => {
    const right = world.random.coin();
    const here = world.room[who]!;
    const room = right ? here : world.random.other(rooms.length, here);
    world.story.ask(["is", world.rules.names[who]!, "in", "the", rooms[room]!], right ? "yes" : "no", [
      world.placedBy[who]!,
    ]);
  };
}

// Tasks 7 and 8. What somebody who has just handled a thing has in their hands.
function aboutHands(world: Carrying, { type, who }: Event, ask: "count" | "list"): (() => void) | null {
  const held = world.inHand(who);
  const isListed = held.length < 2 || held.every((thing) => thing < mostInHand);
  if (type === "move" || (ask === "list" ? !isListed : held.length > mostInHand)) return null;
  return () => {
    const inHand = held.map((thing) => things[thing]!);
    const supports = world.had[who]!.flatMap(({ handled }) => handled);
    const name = world.rules.names[who]!;
    if (ask === "list") {
      world.story.ask(["what", "is", name, "carrying"], inHand.join(",") || "nothing", supports);
    } else {
      supports.sort((a, b) => a - b);
      world.story.ask(["how", "many", "objects", "is", name, "carrying"], numerals[inHand.length]!, supports);
    }
  };
}
