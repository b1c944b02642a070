/**
 * Keyed, counter-based random numbers: draw `i` under a key is a function of both and of nothing else.
 *
 * A resumed run therefore draws what an uninterrupted one would, whatever was drawn before. The mixer is
 * two rounds of a 32-bit multiply-xorshift hash with a key word added before each; fast in JavaScript,
 * good enough for weights, shuffles and dropout, not for secrets.
 */

/** Two key words. Make one with `keyOf`. */
export interface RandomKey {
  readonly a: number;
  readonly b: number;
}

/** A 32-bit bijective mixer with low bias. */
function mix(x: number): number {
  x ^= x >>> 16;
  x = Math.imul(x, 0x21f0aaad);
  x ^= x >>> 15;
  x = Math.imul(x, 0x735a2d97);
  return x ^ (x >>> 15);
}

/** The key of a path such as `keyOf(seed, "dropout", step)`. Different paths give unrelated streams. */
export function keyOf(...path: readonly (number | string)[]): RandomKey {
  let a = 0x243f6a88;
  let b = 0x85a308d3;
  const absorb = (word: number): void => {
    a = mix((a ^ word) + 0x9e3779b9);
    b = mix((b + Math.imul(word, 0x85ebca6b)) ^ a);
  };
  for (const part of path) {
    if (typeof part === "number") {
      absorb(part | 0);
      absorb(Math.floor(part / 0x1_0000_0000) | 0);
    } else {
      absorb(0x5bd1e995 ^ part.length);
      for (let i = 0; i < part.length; i++) absorb(part.charCodeAt(i));
    }
  }
  return { a, b };
}

/** Draw number `counter` under `key`: 32 uniform bits as an unsigned integer. */
export function bits(key: RandomKey, counter: number): number {
  return mix((mix((Math.imul(counter, 0x9e3779b1) + key.a) | 0) + key.b) | 0) >>> 0;
}

/** Draw number `counter` under `key`, uniform in [0, 1). */
export function uniform(key: RandomKey, counter: number): number {
  return bits(key, counter) / 0x1_0000_0000;
}

/** An integer in [0, below). */
export function integer(key: RandomKey, counter: number, below: number): number {
  return Math.floor(uniform(key, counter) * below);
}

/** Draw number `counter` under `key` from N(0, 1), by Box and Muller's transform. */
export function normal(key: RandomKey, counter: number): number {
  const radius = Math.sqrt(-2 * Math.log((bits(key, 2 * counter) + 1) / 0x1_0000_0001));
  return radius * Math.cos(2 * Math.PI * uniform(key, 2 * counter + 1));
}

/**
 * Writes 1 with probability `keep` and 0 otherwise: the dropout mask.
 *
 * One 32-bit draw serves two elements, so the probability is a multiple of 2^-16.
 */
export function fillMask(into: Uint8Array, keep: number, key: RandomKey): void {
  const threshold = Math.round(keep * 0x10000);
  const pairs = into.length >> 1;
  for (let i = 0; i < pairs; i++) {
    const word = bits(key, i);
    into[2 * i] = (word & 0xffff) < threshold ? 1 : 0;
    into[2 * i + 1] = word >>> 16 < threshold ? 1 : 0;
  }
  if (into.length & 1) into[into.length - 1] = (bits(key, pairs) & 0xffff) < threshold ? 1 : 0;
}
