/**
 * People in rooms: who is where, or may be, or is not (tasks 1 to 3, 5 to 13).
 *
 * The latest statement about a person counts; a denial takes away only what it contradicts.
 */
import type { Answer } from "./answer.ts";
import { NotUnderstood } from "./phrases.ts";

interface Whereabouts {
  /** The one place a person is in, or two places they may be in; none when only a denial is known. */
  readonly places: readonly string[];
  /** The place they were last said not to be in. */
  readonly denied: string | null;
  /** IDs of the statements this was learned from. */
  readonly ids: readonly number[];
}

/** Where everybody is, as far as the story has said. */
export class Rooms {
  private readonly known = new Map<string, Whereabouts>();

  /** `who` is in the one place, or in one of the two. */
  put(who: string, places: readonly string[], ids: readonly number[]): void {
    this.known.set(who, { places, denied: null, ids });
  }

  /** `who` is not in `place`: what is left of what was known still holds. */
  deny(who: string, place: string, id: number): void {
    const known = this.known.get(who);
    const left = known?.places.filter((other) => other !== place) ?? [];
    if (known === undefined || left.length === 0) {
      this.known.set(who, { places: [], denied: place, ids: [id] });
    } else if (left.length < known.places.length) {
      this.put(who, left, [...known.ids, id]);
    }
  }

  /** The place `who` certainly is in, or `null`. */
  placeOf(who: string): string | null {
    const { places } = this.known.get(who) ?? { places: [] };
    return places.length === 1 ? places[0]! : null;
  }

  /** IDs of the statements that say where `who` is. */
  idsOf(who: string): readonly number[] {
    return this.known.get(who)?.ids ?? [];
  }

  /** Where is `who`? */
  where(who: string): Answer {
    const place = this.placeOf(who);
    if (place === null) throw new NotUnderstood(`the story does not say where ${who} is`);
    return { answer: place, supports: this.idsOf(who) };
  }

  /** Is `who` in `place`? */
  isIn(who: string, place: string): Answer {
    const known = this.known.get(who);
    if (known === undefined) throw new NotUnderstood(`the story does not say where ${who} is`);
    const supports = known.ids;
    if (known.denied !== null) {
      if (known.denied === place) return { answer: "no", supports };
      throw new NotUnderstood(`the story only says that ${who} is not in the ${known.denied}`);
    }
    if (!known.places.includes(place)) return { answer: "no", supports };
    return { answer: known.places.length === 1 ? "yes" : "maybe", supports };
  }
}
