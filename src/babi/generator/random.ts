/**
 * Random choices for one story, drawn one after another from the program's keyed generator.
 *
 * The key is (seed, stream, index), so a story depends on these alone and never on what was drawn for other
 * stories before it.
 */
import { integer, keyOf, type RandomKey } from "../../random.ts";

/** Draws for one story. */
export class StoryRandom {
  private readonly key: RandomKey;
  private counter = 0;

  /** `stream` separates uses of one seed (the task, or the choice of tasks); `index` counts stories. */
  constructor(seed: number, stream: number, index: number) {
    this.key = keyOf(seed, "story", stream, index);
  }

  /** A whole number from 0 up to, not including, `bound`. */
  below(bound: number): number {
    return integer(this.key, this.counter++, bound);
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
