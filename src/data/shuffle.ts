/**
 * A shuffle that is a function of its key: no state is carried, so any epoch's order can be had at any time.
 */

/** The order of `count` things under `key`: a Fisher-Yates shuffle whose i-th draw is hashed from (key, i). */
export function keyedOrder(count: number, key: readonly number[]): Uint32Array {
  const order = Uint32Array.from({ length: count }, (_, i) => i);
  const seed = key.reduce((state, word) => mix(state, word), key.length);
  for (let i = count - 1; i > 0; i--) {
    const j = Math.floor((mix(seed, i) / 2 ** 32) * (i + 1));
    const moved = order[i]!;
    order[i] = order[j]!;
    order[j] = moved;
  }
  return order;
}

/** One word hashed into a 32-bit state: MurmurHash3's block step followed by its finaliser. */
function mix(state: number, word: number): number {
  let k = Math.imul(word, 0xcc9e2d51);
  k = Math.imul((k << 15) | (k >>> 17), 0x1b873593);
  let h = state ^ k;
  h = (Math.imul((h << 13) | (h >>> 19), 5) + 0xe6546b64) | 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}
