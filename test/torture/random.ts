/** Choices under a seed: the same seed makes the same case. */
import { integer, keyOf, uniform } from "../../src/random.ts";

/** Draws one choice after the other. */
export class Choices {
  readonly #key: ReturnType<typeof keyOf>;
  #drawn = 0;

  constructor(seed: number, campaign: string) {
    this.#key = keyOf(seed, "torture", campaign);
  }

  /** A whole number in [0, n). */
  below(n: number): number {
    return integer(this.#key, this.#drawn++, n);
  }

  /** Whether something of this probability happens. */
  chance(probability: number): boolean {
    return uniform(this.#key, this.#drawn++) < probability;
  }

  /** One of a list. */
  of<T>(list: readonly T[]): T {
    return list[this.below(list.length)]!;
  }
}
