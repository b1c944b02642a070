/**
 * Random numbers by address: every draw is a function of (seed, purpose, episode, step, agent) alone.
 *
 * Nothing is remembered between draws, so an episode can be repeated, skipped or resumed at and gives the same
 * numbers. An address is the key and the counter of one call of the generator in random.ts.
 */
import { threefry } from "../random.ts";

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
  /** What is shown and asked in lessons. */
  lesson: 8,
  /** The same as above on the fresh graphs. */
  freshPlaces: 9,
  freshAction: 10,
  /** Which names a graph has in an episode. */
  rename: 11,
  /** Which of more names than a graph has locations its locations have in an episode: step = location. */
  names: 12,
} as const;

/** One of the values of {@link purpose}. */
export type Purpose = (typeof purpose)[keyof typeof purpose];

/** The number of steps an address has room for: the purpose takes the upper 8 of 32 bits. */
export const mostSteps = 1 << 24;

/** The two output words of a draw, of which the first is used. */
const words = new Int32Array(2);

/** 32 random bits, as an unsigned integer, for one address. Each part is an unsigned 32-bit integer. */
export function word(seed: number, use: Purpose, episode: number, step: number, agent: number): number {
  threefry(words, seed, (use << 24) | step, episode, agent);
  return words[0]! >>> 0;
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
 * `step` of `episode`; they may be some of many, from `firstAgent` on. Each has 24 random bits, so that it stays below 1 as a float32.
 */
export function fillUniform(
  into: Float32Array,
  seed: number,
  use: Purpose,
  episode: number,
  step: number,
  firstAgent = 0,
): void {
  for (let agent = 0; agent < into.length; agent++) {
    into[agent] = (word(seed, use, episode, step, firstAgent + agent) >>> 8) * 2 ** -24;
  }
}
