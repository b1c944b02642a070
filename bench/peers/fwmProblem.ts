/**
 * The work of the FWM benchmark: one training step on catbAbI in question mode, as numbers.
 *
 * Tokens are drawn at random with catbAbI's share of question marks (179,909 in about 5 million tokens); time
 * does not depend on which tokens they are. Weights have the released code's shapes and scales.
 */
import { fixedIntegers, fixedNumbers } from "./tfjsBackend.ts";

/** Sizes of the FWM benchmark. */
export interface FwmSizes {
  readonly batch: number;
  readonly steps: number;
  readonly embedding: number;
  readonly hidden: number;
  readonly memory: number;
  readonly reads: number;
  readonly vocabulary: number;
}

/** The sizes of the released catbAbI experiment. */
export const fwmBenchSizes: FwmSizes = {
  batch: 32,
  steps: 200,
  embedding: 256,
  hidden: 256,
  memory: 32,
  reads: 3,
  vocabulary: 200,
};

/** The names of the weights; matrices are [in, out]. */
export type FwmWeightName =
  | "embedding" // [V, E]
  | "Wx" // [E, 4 H], gates in the order i, f, g, o; 1 is added inside the forget gate
  | "Wh" // [H, 4 H]
  | "b" // [4 H]
  | "A" // [H, 3 d + 1]: s, r, u and the strength
  | "a0" // [3 d + 1]
  | "B" // [H, (N + 1) d]: n0, q1 .. qN
  | "b0" // [(N + 1) d]
  | "Wo" // [d, H]
  | "bo" // [H]
  | "Ws"; // [H, V]

/** A weight's shape and values. */
export interface FwmWeight {
  readonly shape: readonly number[];
  readonly values: Float32Array;
}

/** Everything a step is a function of. */
export interface FwmProblem {
  /** Token numbers, [steps, batch]. */
  readonly inputs: Int32Array;
  /** Answers, [steps, batch]; looked at where `questions` is 1. */
  readonly targets: Int32Array;
  /** 1 where the input is a question mark, [steps, batch]; at least one is. */
  readonly questions: Uint8Array;
  readonly weights: Readonly<Record<FwmWeightName, FwmWeight>>;
}

const questionShare = 179_909 / 5e6;

/** The same numbers for the same sizes, always. */
export function fwmProblem(sizes: FwmSizes): FwmProblem {
  const { batch, steps, embedding: E, hidden: H, memory: d, reads: N, vocabulary: V } = sizes;
  const places = steps * batch;
  const chance = fixedNumbers(places, 0.5, 3);
  const questions = Uint8Array.from(chance, (x) => (x + 0.5 < questionShare ? 1 : 0));
  questions[places - 1] = 1;
  let key = 10;
  const weight = (scale: number, ...shape: number[]): FwmWeight => ({
    shape,
    values: fixedNumbers(
      shape.reduce((a, b) => a * b, 1),
      scale,
      key++,
    ),
  });
  const inLstm = 1 / Math.sqrt(H);
  const inMaps = Math.sqrt(6 / (H + d));
  return {
    inputs: fixedIntegers(places, V, 1),
    targets: fixedIntegers(places, V, 2),
    questions,
    weights: {
      embedding: weight(Math.sqrt(3), V, E), // variance 1, as the normal embedding of the released code
      Wx: weight(inLstm, E, 4 * H),
      Wh: weight(inLstm, H, 4 * H),
      b: weight(0, 4 * H),
      A: weight(inMaps, H, 3 * d + 1),
      a0: weight(1 / Math.sqrt(H), 3 * d + 1),
      B: weight(inMaps, H, (N + 1) * d),
      b0: weight(1 / Math.sqrt(H), (N + 1) * d),
      Wo: weight(1 / Math.sqrt(d), d, H),
      bo: weight(1 / Math.sqrt(d), H),
      Ws: weight(Math.sqrt(6 / (H + V)), H, V),
    },
  };
}
