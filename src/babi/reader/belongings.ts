/**
 * Things that are carried: who holds what, where each thing has been, who gave it to whom (tasks 2, 3, 5 to 8).
 *
 * A thing is where its holder is, and stays where it was put down. Nobody can drop or give what they do not
 * hold, nor take what somebody else holds, and a thing changes hands only between people in one place.
 */
import { numerals } from "../lexicon.ts";
import type { Answer } from "./answer.ts";
import { NotUnderstood } from "./phrases.ts";
import type { Rooms } from "./rooms.ts";

interface Stay {
  readonly place: string | null;
  /** The statement that brought the thing's holder here. */
  readonly ids: readonly number[];
}

interface Track {
  holder: string | null;
  /** The last statement in which the thing was taken, dropped or given. */
  handled: number;
  /** Where it has been, in order, without repetition of neighbours. */
  readonly stays: Stay[];
}

interface Possession {
  readonly thing: string;
  /** Statements in which its owner took, dropped, gave or received it. */
  readonly handled: number[];
}

interface Gift {
  readonly id: number;
  readonly from: string;
  readonly thing: string;
  readonly to: string;
}

/** What everybody carries, and the history of every thing. */
export class Belongings {
  private readonly tracks = new Map<string, Track>();
  private readonly gifts: Gift[] = [];
  /** What each person has ever had, in the order they first had it. */
  private readonly had = new Map<string, Possession[]>();
  private readonly rooms: Rooms;

  constructor(rooms: Rooms) {
    this.rooms = rooms;
  }

  /** Follow `who` to another place with all they carry. */
  follow(who: string): void {
    for (const { thing } of this.carriedBy(who)) this.arrive(thing, who);
  }

  take(who: string, thing: string, id: number): void {
    const track = this.tracks.get(thing);
    if (track?.holder != null)
      throw new NotUnderstood(`${who} cannot take the ${thing}: ${track.holder} has it`);
    const lies = track?.stays.at(-1)?.place ?? null;
    const here = this.rooms.placeOf(who);
    if (lies !== null && here !== null && lies !== here) {
      throw new NotUnderstood(`${who} is in the ${here} and cannot take the ${thing} in the ${lies}`);
    }
    // Whoever takes a thing is where it lies.
    if (lies !== null && here === null) this.rooms.put(who, [lies], track!.stays.at(-1)!.ids);
    this.receive(who, thing, id);
  }

  drop(who: string, thing: string, id: number): void {
    this.release(who, thing, id, "drop").holder = null;
  }

  give(who: string, thing: string, to: string, id: number): void {
    const here = this.rooms.placeOf(who);
    const there = this.rooms.placeOf(to);
    if (who === to) throw new NotUnderstood(`${who} cannot give the ${thing} to themselves`);
    if (here !== null && there !== null && here !== there) {
      throw new NotUnderstood(
        `${who} is in the ${here} and cannot give the ${thing} to ${to} in the ${there}`,
      );
    }
    this.release(who, thing, id, "give");
    if (here === null && there !== null) this.rooms.put(who, [there], this.rooms.idsOf(to));
    if (here !== null && there === null) this.rooms.put(to, [here], this.rooms.idsOf(who));
    this.receive(to, thing, id);
    this.gifts.push({ id, from: who, thing, to });
  }

  private release(who: string, thing: string, id: number, verb: string): Track {
    const track = this.tracks.get(thing);
    if (track?.holder !== who)
      throw new NotUnderstood(`${who} cannot ${verb} the ${thing}: ${who} does not have it`);
    this.note(who, thing, id);
    track.handled = id;
    return track;
  }

  private receive(who: string, thing: string, id: number): void {
    const track = this.tracks.get(thing) ?? { holder: null, handled: id, stays: [] };
    this.tracks.set(thing, track);
    track.holder = who;
    track.handled = id;
    this.note(who, thing, id);
    this.arrive(thing, who);
  }

  private arrive(thing: string, who: string): void {
    const stays = this.tracks.get(thing)!.stays;
    const place = this.rooms.placeOf(who);
    if (stays.length > 0 && stays.at(-1)!.place === place) stays.pop();
    stays.push({ place, ids: this.rooms.idsOf(who) });
  }

  private note(who: string, thing: string, id: number): void {
    const had = this.had.get(who) ?? [];
    this.had.set(who, had);
    const possession = had.find((candidate) => candidate.thing === thing);
    if (possession === undefined) had.push({ thing, handled: [id] });
    else possession.handled.push(id);
  }

  private carriedBy(who: string): Possession[] {
    return (this.had.get(who) ?? []).filter(({ thing }) => this.tracks.get(thing)?.holder === who);
  }

  /** Where is `thing`? */
  where(thing: string): Answer {
    const track = this.tracks.get(thing);
    const last = track?.stays.at(-1);
    if (last?.place == null) throw new NotUnderstood(`the story does not say where the ${thing} is`);
    return { answer: last.place, supports: [track!.handled, ...last.ids] };
  }

  /** Where was `thing` before it was last in `place`? */
  whereBefore(thing: string, place: string): Answer {
    const track = this.tracks.get(thing);
    const index = track?.stays.findLastIndex((stay) => stay.place === place) ?? -1;
    if (index < 1 || track!.stays[index - 1]!.place === null) {
      throw new NotUnderstood(`the story does not say where the ${thing} was before the ${place}`);
    }
    const [before, then] = [track!.stays[index - 1]!, track!.stays[index]!];
    return { answer: before.place!, supports: [track!.handled, ...then.ids, ...before.ids] };
  }

  /** How many objects is `who` carrying? */
  count(who: string): Answer {
    const count = numerals[this.carriedBy(who).length];
    if (count === undefined) throw new NotUnderstood(`${who} carries more than there are words for`);
    return { answer: count, supports: this.handlingsOf(who).sort((a, b) => a - b) };
  }

  /** What is `who` carrying? Several things in the order `who` first had them. */
  list(who: string): Answer {
    const carried = this.carriedBy(who).map(({ thing }) => thing);
    return {
      answer: carried.length === 0 ? "nothing" : carried.join(","),
      supports: this.handlingsOf(who),
    };
  }

  private handlingsOf(who: string): number[] {
    return (this.had.get(who) ?? []).flatMap(({ handled }) => handled);
  }

  /**
   * The latest gift with the given giver, thing and receiver, where they are given. "What did Bill give to
   * Jeff?" is about the last gift, though Bill may have given Jeff another thing before: `alternatives`.
   */
  gift(part: "from" | "thing" | "to", known: { from?: string; thing?: string; to?: string }): Answer {
    const gifts = this.gifts.filter(
      (gift) =>
        (known.from === undefined || known.from === gift.from) &&
        (known.thing === undefined || known.thing === gift.thing) &&
        (known.to === undefined || known.to === gift.to),
    );
    const gift = gifts.at(-1);
    if (gift === undefined) throw new NotUnderstood("the story has no such gift");
    const others = new Set(gifts.map((candidate) => candidate[part]));
    others.delete(gift[part]);
    const answer = { answer: gift[part], supports: [gift.id] };
    return others.size === 0 ? answer : { ...answer, alternatives: [...others] };
  }
}
