/**
 * Random numbers by address: every draw is a function of (seed, purpose, episode, step, agent) alone.
 *
 * Nothing is remembered between draws, so an episode can be played again, skipped or resumed at, and gives
 * the same numbers. The mixing function is Threefry-2x32 with 20 rounds (Salmon et al., "Parallel random
 * numbers: as easy as 1, 2, 3", 2011): additions, rotations and exclusive-ors only, which 32-bit integer
 * arithmetic in JavaScript does exactly.
 */

/** What a draw is for: draws with the same address but different purposes are independent. */
export const purpose = {
  /** Edges of a candidate graph: episode = candidate, step = edge, agent = part of the edge. */
  graph: 1,
  /** Where reward and agent are placed, on the training and on the test graphs. */
  trainPlaces: 2,
  testPlaces: 3,
  /** The action an agent samples, while training and while being tested. */
  trainAction: 4,
  testAction: 5,
  /** The same on the validation graphs. */
  validPlaces: 6,
  validAction: 7,
} as const;

/** One of the values of {@link purpose}. */
export type Purpose = (typeof purpose)[keyof typeof purpose];

/** The number of steps an address has room for: the purpose takes the upper 8 of 32 bits. */
export const mostSteps = 1 << 24;

/** 32 random bits, as an unsigned integer, for one address. Each part is an unsigned 32-bit integer. */
export function word(seed: number, use: Purpose, episode: number, step: number, agent: number): number {
  return threefry(seed, (use << 24) | step, episode, agent);
}

/** A whole number from 0 to n - 1 for one address; the bias, at most n / 2^32, is below anything measured. */
export function below(
  n: number,
  seed: number,
  use: Purpose,
  episode: number,
  step: number,
  agent: number,
): number {
  return Math.floor(word(seed, use, episode, step, agent) * n * 2 ** -32);
}

/**
 * Fills `into` with one uniform number in [0, 1) per agent: what the agents sample their actions with at
 * `step` of `episode`. Each has 24 random bits, so that it stays below 1 as a float32.
 */
export function fillUniform(
  into: Float32Array,
  seed: number,
  use: Purpose,
  episode: number,
  step: number,
): void {
  for (let agent = 0; agent < into.length; agent++) {
    into[agent] = (word(seed, use, episode, step, agent) >>> 8) * 2 ** -24;
  }
}

/** The first output word of Threefry-2x32-20 for a key and a counter of two 32-bit words each. */
export function threefry(key0: number, key1: number, counter0: number, counter1: number): number {
  const key2 = 0x1bd11bda ^ key0 ^ key1;
  let a = (counter0 + key0) | 0;
  let b = (counter1 + key1) | 0;
  for (let group = 0; group < 5; group++) {
    if (group & 1) {
      a = (a + b) | 0;
      b = ((b << 17) | (b >>> 15)) ^ a;
      a = (a + b) | 0;
      b = ((b << 29) | (b >>> 3)) ^ a;
      a = (a + b) | 0;
      b = ((b << 16) | (b >>> 16)) ^ a;
      a = (a + b) | 0;
      b = ((b << 24) | (b >>> 8)) ^ a;
    } else {
      a = (a + b) | 0;
      b = ((b << 13) | (b >>> 19)) ^ a;
      a = (a + b) | 0;
      b = ((b << 15) | (b >>> 17)) ^ a;
      a = (a + b) | 0;
      b = ((b << 26) | (b >>> 6)) ^ a;
      a = (a + b) | 0;
      b = ((b << 6) | (b >>> 26)) ^ a;
    }
    // After every fourth round the three key words are added in turn: (1,2), (2,0), (0,1), (1,2), (2,0).
    const turn = group % 3;
    a = (a + (turn === 0 ? key1 : turn === 1 ? key2 : key0)) | 0;
    b = (b + (turn === 0 ? key2 : turn === 1 ? key0 : key1) + group + 1) | 0;
  }
  return a >>> 0;
}
