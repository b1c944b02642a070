/**
 * Keyed, counter-based random numbers: draw `i` under a key is a function of both and of nothing else.
 *
 * A resumed run therefore draws what an uninterrupted one would, whatever was drawn before. Every random number
 * of the program comes from one function, Threefry-2x32 with 20 rounds (Salmon et al., "Parallel random numbers:
 * as easy as 1, 2, 3", 2011): additions, rotations and exclusive-ors, which 32-bit integer arithmetic in
 * JavaScript does exactly. Its authors report that it passes BigCrush; it is not meant for secrets.
 *
 * A key serves one kind of draw: `bits`, `uniform` and `integer` read the same 32 bits of a counter, `normal` and
 * `fillMask` all 64.
 */

/** Two key words. Make one with `keyOf`. */
export interface RandomKey {
  readonly a: number;
  readonly b: number;
}

const rotate = (x: number, by: number): number => (x << by) | (x >>> (32 - by));

/**
 * Threefry-2x32-20: fills `into` with the two words that a key of two words gives for a counter of two words, then
 * with those of the following counters (`counter0` + 1 and so on). The length of `into` is even.
 *
 * Written out, one round per line with the key added after every fourth: as a loop it takes a quarter longer. Each
 * argument is made a 32-bit integer first, or the additions would be done in floating point.
 */
// biome-ignore format: one round per line
export function threefry(into: Int32Array, key0: number, key1: number, counter0: number, counter1: number): void {
  const k0 = key0 | 0;
  const k1 = key1 | 0;
  const k2 = 0x1bd11bda ^ k0 ^ k1;
  const c0 = counter0 | 0;
  const c1 = counter1 | 0;
  for (let i = 0; i < into.length; i += 2) {
    let a = (c0 + (i >>> 1) + k0) | 0;
    let b = (c1 + k1) | 0;
    a = (a + b) | 0; b = rotate(b, 13) ^ a;
    a = (a + b) | 0; b = rotate(b, 15) ^ a;
    a = (a + b) | 0; b = rotate(b, 26) ^ a;
    a = (a + b) | 0; b = rotate(b, 6) ^ a;
    a = (a + k1) | 0; b = (b + k2 + 1) | 0;
    a = (a + b) | 0; b = rotate(b, 17) ^ a;
    a = (a + b) | 0; b = rotate(b, 29) ^ a;
    a = (a + b) | 0; b = rotate(b, 16) ^ a;
    a = (a + b) | 0; b = rotate(b, 24) ^ a;
    a = (a + k2) | 0; b = (b + k0 + 2) | 0;
    a = (a + b) | 0; b = rotate(b, 13) ^ a;
    a = (a + b) | 0; b = rotate(b, 15) ^ a;
    a = (a + b) | 0; b = rotate(b, 26) ^ a;
    a = (a + b) | 0; b = rotate(b, 6) ^ a;
    a = (a + k0) | 0; b = (b + k1 + 3) | 0;
    a = (a + b) | 0; b = rotate(b, 17) ^ a;
    a = (a + b) | 0; b = rotate(b, 29) ^ a;
    a = (a + b) | 0; b = rotate(b, 16) ^ a;
    a = (a + b) | 0; b = rotate(b, 24) ^ a;
    a = (a + k1) | 0; b = (b + k2 + 4) | 0;
    a = (a + b) | 0; b = rotate(b, 13) ^ a;
    a = (a + b) | 0; b = rotate(b, 15) ^ a;
    a = (a + b) | 0; b = rotate(b, 26) ^ a;
    a = (a + b) | 0; b = rotate(b, 6) ^ a;
    a = (a + k2) | 0; b = (b + k0 + 5) | 0;
    into[i] = a;
    into[i + 1] = b;
  }
}

/** The two words of a single draw; every function here reads them before it returns. */
const words = new Int32Array(2);

/** Marks the block that begins a string: no whole number has this as its upper word. */
const stringMark = 0x7fff_ffff;

/**
 * The key of a path such as `keyOf(seed, "dropout", step)`: strings and whole numbers. Each part is encrypted
 * under the key of the path before it, so different paths give unrelated streams.
 */
export function keyOf(...path: readonly (number | string)[]): RandomKey {
  words.fill(0);
  const absorb = (low: number, high: number): void => threefry(words, words[0]!, words[1]!, low, high);
  for (const part of path) {
    if (typeof part === "number") absorb(part | 0, Math.floor(part / 0x1_0000_0000) | 0);
    else {
      absorb(part.length, stringMark);
      for (let i = 0; i < part.length; i += 2) absorb(part.charCodeAt(i), part.charCodeAt(i + 1) | 0);
    }
  }
  return { a: words[0]!, b: words[1]! };
}

/** Fills `words` with the 64 bits of draw number `counter` under `key`. */
function draw(key: RandomKey, counter: number): void {
  threefry(words, key.a, key.b, counter | 0, (counter / 0x1_0000_0000) | 0);
}

/** Draw number `counter` under `key`: 32 uniform bits as an unsigned integer. */
export function bits(key: RandomKey, counter: number): number {
  draw(key, counter);
  return words[0]! >>> 0;
}

/** Draw number `counter` under `key`, uniform in [0, 1). */
export function uniform(key: RandomKey, counter: number): number {
  return bits(key, counter) / 0x1_0000_0000;
}

/** An integer in [0, below). For the bounds in use the bias, below / 2^32, is far under anything measurable. */
export function integer(key: RandomKey, counter: number, below: number): number {
  return Math.floor(uniform(key, counter) * below);
}

/** Draw number `counter` under `key` from N(0, 1), by Box and Muller's transform. */
export function normal(key: RandomKey, counter: number): number {
  draw(key, counter);
  const radius = Math.sqrt(-2 * Math.log(((words[0]! >>> 0) + 1) / 0x1_0000_0001));
  return radius * Math.cos((2 * Math.PI * (words[1]! >>> 0)) / 0x1_0000_0000);
}

/** The numbers 0 to count - 1 in random order: a Fisher-Yates shuffle, every order equally likely. */
export function permutation(key: RandomKey, count: number): Uint32Array {
  const order = Uint32Array.from({ length: count }, (_, i) => i);
  for (let i = count - 1; i > 0; i--) {
    const j = integer(key, i, i + 1);
    const moved = order[i]!;
    order[i] = order[j]!;
    order[j] = moved;
  }
  return order;
}

/** Draws for a stretch of a mask: enough to make calls rare, few enough to stay in the processor's first cache. */
const stretch = new Int32Array(512);
const stretchBytes = new Uint8Array(stretch.buffer);
/** What they say of the elements, four in a word. */
const kept = new Int32Array(stretch.length);
const keptBytes = new Uint8Array(kept.buffer);

/**
 * Writes 1 with probability `keep` and 0 otherwise: the dropout mask.
 *
 * The probability is a multiple of 2^-16. An element has one byte of a draw, which is compared with the upper byte of
 * that multiple; where the two are equal, once in 256 elements, the lower byte is compared with one of a draw of its own.
 * Four bytes are compared at once: with `low7(x)` the lower seven bits of a byte, x < y where low7(x) < low7(y), unless
 * their uppermost bits differ and decide. (x | 128) - low7(y) keeps its uppermost bit where low7(x) ≥ low7(y), and never
 * borrows from the next byte.
 */
export function fillMask(into: Uint8Array, keep: number, key: RandomKey): void {
  const threshold = Math.round(keep * 0x10000);
  if (threshold >= 0x10000) {
    into.fill(1);
    return;
  }
  const upper = threshold >>> 8;
  const lower = threshold & 0xff;
  const low7 = (upper & 0x7f) * 0x01010101;
  for (let begin = 0; begin < into.length; begin += stretchBytes.length) {
    threefry(stretch, key.a, key.b, begin >>> 3, 0);
    if (upper < 0x80) {
      for (let i = 0; i < stretch.length; i++) {
        const x = stretch[i]!;
        kept[i] = (~(((x | 0x80808080) - low7) | x) >>> 7) & 0x01010101;
      }
    } else {
      for (let i = 0; i < stretch.length; i++) {
        const x = stretch[i]!;
        kept[i] = (~(((x | 0x80808080) - low7) & x) >>> 7) & 0x01010101;
      }
    }
    const count = Math.min(stretchBytes.length, into.length - begin);
    into.set(count < keptBytes.length ? keptBytes.subarray(0, count) : keptBytes, begin);
    if (lower === 0) continue;
    for (let i = stretchBytes.indexOf(upper); i >= 0 && i < count; i = stretchBytes.indexOf(upper, i + 1)) {
      threefry(words, key.a, key.b, begin + i, 1);
      into[begin + i] = ((words[0]! & 0xff) - lower) >>> 31;
    }
  }
}
