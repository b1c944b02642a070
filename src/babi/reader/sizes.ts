/**
 * Sizes: what fits inside what. Being bigger is transitive (task 18).
 */
import type { Answer } from "./answer.ts";
import { NotUnderstood } from "./phrases.ts";

/** The stated "bigger than" pairs. */
export class Sizes {
  private readonly smaller = new Map<string, { name: string; id: number }[]>();

  /** `bigger` is bigger than `smaller`. */
  compare(bigger: string, smaller: string, id: number): void {
    if (bigger === smaller || this.chain(smaller, bigger) !== null) {
      throw new NotUnderstood(`the ${bigger} cannot be bigger than the ${smaller}`);
    }
    this.smaller.set(bigger, [...(this.smaller.get(bigger) ?? []), { name: smaller, id }]);
  }

  /** Is `bigger` bigger than `smaller`, or does `smaller` fit in it? */
  isBigger(bigger: string, smaller: string): Answer {
    const yes = this.chain(bigger, smaller);
    if (yes !== null) return { answer: "yes", supports: yes };
    const no = this.chain(smaller, bigger);
    if (no !== null) return { answer: "no", supports: no.toReversed() };
    throw new NotUnderstood(`the story does not compare the ${bigger} and the ${smaller}`);
  }

  /** A shortest chain of statements from `bigger` down to `smaller`. */
  private chain(bigger: string, smaller: string): number[] | null {
    const seen = new Map<string, number[]>([[bigger, []]]);
    const front = [bigger];
    for (let next = front.shift(); next !== undefined; next = front.shift()) {
      for (const { name, id } of this.smaller.get(next) ?? []) {
        if (seen.has(name)) continue;
        seen.set(name, [...seen.get(next)!, id]);
        front.push(name);
      }
    }
    return bigger === smaller ? null : (seen.get(smaller) ?? null);
  }
}
