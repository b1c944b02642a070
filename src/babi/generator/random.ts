/**
 * Random choices for one story: a counter-based generator keyed by (seed, task, index).
 *
 * Draw number n is a hash of the key and n, so a story depends on its key alone and never on what was drawn
 * for other stories before it.
 */

/** Draws for one story. */
export class StoryRandom {
  private readonly low: number;
  private readonly high: number;
  private counter = 0;

  /** `stream` separates uses of one seed (the task, or the choice of tasks); `index` counts stories. */
  constructor(seed: number, stream: number, index: number) {
    const low = mix(mix(seed | 0, stream | 0), index | 0);
    // Seeds and indices beyond 2^32 still give different keys.
    const high = mix(mix(low ^ 0x5bd1e995, Math.floor(seed / 2 ** 32)), Math.floor(index / 2 ** 32));
    this.low = low;
    this.high = high;
  }

  /** A whole number from 0 up to, not including, `bound`. */
  below(bound: number): number {
    const word = mix(mix(this.low, this.counter++), this.high) >>> 0;
    // The high bits of word × bound; for the small bounds used here the bias is below 1e-8.
    return Math.floor(word * 2 ** -32 * bound);
  }

  /** True half of the time. */
  coin(): boolean {
    return this.below(2) === 1;
  }

  /** One of the items. */
  pick<Item>(items: readonly Item[]): Item {
    return items[this.below(items.length)]!;
  }

  /** A whole number from 0 up to `bound`, but not `taken`. */
  other(bound: number, taken: number): number {
    const draw = this.below(bound - 1);
    return draw < taken ? draw : draw + 1;
  }

  /** The items in random order (every order equally likely). */
  shuffled<Item>(items: readonly Item[]): Item[] {
    const order = [...items];
    for (let last = order.length - 1; last > 0; last--) swap(order, last, this.below(last + 1));
    return order;
  }

  /** The items in random order, none of the orders leaving an item in its place (one cycle). */
  cycled<Item>(items: readonly Item[]): Item[] {
    const order = [...items];
    for (let last = order.length - 1; last > 0; last--) swap(order, last, this.below(last));
    return order;
  }
}

function swap<Item>(items: Item[], a: number, b: number): void {
  [items[a], items[b]] = [items[b]!, items[a]!];
}

/** A 32-bit hash of two 32-bit numbers with full avalanche (the finaliser of MurmurHash3 on their blend). */
function mix(key: number, value: number): number {
  let x = (key ^ Math.imul(value + 0x9e3779b9, 0x85ebca6b)) | 0;
  x = Math.imul(x ^ (x >>> 16), 0x85ebca6b);
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
  return x ^ (x >>> 16);
}
