/**
 * Days: where people were at which time of the day, stated in any order (task 14).
 */
import { times } from "../lexicon.ts";
import type { Answer } from "./answer.ts";
import { NotUnderstood } from "./phrases.ts";

interface Visit {
  readonly time: number;
  readonly place: string;
  readonly id: number;
}

/** Each person's visits, in the order of the day. */
export class Days {
  private readonly visits = new Map<string, Visit[]>();

  /** `who` went to `place` at `time`. */
  visit(who: string, place: string, time: string, id: number): void {
    const visits = this.visits.get(who) ?? [];
    if (visits.some((visit) => visit.time === times.indexOf(time))) {
      throw new NotUnderstood(`${who} was already somewhere ${time}`);
    }
    visits.push({ time: times.indexOf(time), place, id });
    visits.sort((a, b) => a.time - b.time);
    this.visits.set(who, visits);
  }

  /** Where was `who` before they were last in `place`? */
  whereBefore(who: string, place: string): Answer {
    const visits = this.visits.get(who) ?? [];
    const index = visits.findLastIndex((visit) => visit.place === place);
    if (index < 1) throw new NotUnderstood(`the story does not say where ${who} was before the ${place}`);
    const [before, then] = [visits[index - 1]!, visits[index]!];
    return { answer: before.place, supports: [then.id, before.id] };
  }
}
