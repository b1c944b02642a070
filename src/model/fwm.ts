/**
 * Fast Weight Memory (Schlag, Munkhdalai and Schmidhuber, ICLR 2021): the equations, one time step.
 *
 *   code      paper              shape            meaning
 *   h         h_t                [B, H]           output of the LSTM that drives the memory
 *   F         F_t                [B, D·D, D]      fast weights: key 1 and key 2 together, value
 *   k1, k2    k_1, k_2           [B, D]           the two parts of the write key
 *   v, beta   v, β               [B, D], [B, 1]   value to store, strength of the write
 *   vOld      v_old              [B, D]           what the key retrieves before the write
 *   n, e      n_t^(i), e_t^(i)   [B, D]           query, and the key it is paired with; n is also what a read returns
 *
 *   B batch, H hidden, D memory, N_r reads. Equation numbers are the paper's.
 *
 * Departures from the paper are settings (`FwmVariant`), because the paper and the three programs its authors
 * released differ from each other; `paper`, `releasedCatbabi`, `releasedLanguageModel` and `releasedMetaRl` are
 * the four. `fwmWindow.ts` computes the same over a whole window at once, `fwmEpisode.ts` over an episode.
 */
import {
  add,
  concat,
  div,
  type Initial,
  layerNorm,
  matmul,
  max,
  mul,
  reshape,
  scoped,
  sigmoid,
  split,
  sqrt,
  squeeze,
  sub,
  sum,
  type Tensor,
  tanh,
  unsqueeze,
} from "../graph/index.ts";
import { type LinearWeights, linear, linearWeights, symmetric } from "./linear.ts";
import type { LstmCell } from "./lstm.ts";

/** How the two halves of a key are joined: the paper's outer product, or its ablation. */
export type KeyCombination = "product" | "concat";

/** Where the paper and the authors' programs differ. */
export interface FwmVariant {
  /** Cell of the LSTM below. */
  readonly cell: LstmCell;
  /** Constant inside β's sigmoid. */
  readonly betaOffset: number;
  /** Biases in the write, read and output maps. */
  readonly biases: boolean;
  /** Factor on every write: 1, or 1/D. */
  readonly writeScale: "one" | "1/d";
  /** tanh on the first query n^(0). */
  readonly tanhQuery: boolean;
  /** tanh on the keys e^(i). */
  readonly tanhKeys: boolean;
  /** Add the LSTM's output to what the memory returns. */
  readonly residual: boolean;
  readonly keys: KeyCombination;
}

/** The paper's text; of the LSTM it says no more than that it is one. */
const paper: FwmVariant = {
  cell: "pytorch",
  betaOffset: 0,
  biases: false,
  writeScale: "one",
  tanhQuery: true,
  tanhKeys: true,
  residual: true,
  keys: "product",
};

/** The authors' catbAbI program. */
export const releasedCatbabi: FwmVariant = {
  ...paper,
  cell: "forgetBias1",
  betaOffset: 1,
  biases: true,
  writeScale: "1/d",
  tanhQuery: false,
  residual: false,
};

/** The authors' language-model program (Penn Treebank, WikiText-2). */
export const releasedLanguageModel: FwmVariant = { ...paper, betaOffset: 1, biases: true };

/** The authors' meta-reinforcement-learning program. */
export const releasedMetaRl: FwmVariant = {
  ...paper,
  betaOffset: 1,
  biases: true,
  writeScale: "1/d",
  tanhQuery: false,
  tanhKeys: false,
};

/** The variants by name. */
export const fwmVariants = { paper, releasedCatbabi, releasedLanguageModel, releasedMetaRl } as const;

/** The keys of an object, for a schema that allows just these. */
export function keysOf<K extends string>(object: Readonly<Record<K, unknown>>): [K, ...K[]] {
  return Object.keys(object) as [K, ...K[]];
}

/** Sizes of a memory. */
export interface FwmSizes {
  /** H: width of the LSTM that drives it. */
  readonly hidden: number;
  /** D: width of keys and values. */
  readonly memory: number;
  /** N_r: reads in a row at each step. */
  readonly reads: number;
}

/** What the output map W_o, b_o starts from: PyTorch's numbers, or zeros, so that the memory says nothing at first. */
export type OutInit = "pytorch" | "zeros";

/** The slow weights of a memory. */
export interface FwmWeights extends FwmSizes {
  readonly variant: FwmVariant;
  /** Columns k1, k2, v, β. */
  readonly write: LinearWeights;
  /** Columns n^(0), e^(1) … e^(N_r). */
  readonly read: LinearWeights;
  readonly out: LinearWeights;
}

/** Declares the slow weights. */
export function fwmWeights(
  name: string,
  sizes: FwmSizes,
  variant: FwmVariant,
  outInit: OutInit = "pytorch",
): FwmWeights {
  const { hidden: H, memory: D, reads } = sizes;
  const zeros: Initial = { kind: "zeros" };
  // Glorot's uniform rule with the fan-out of one part, as in all three released programs.
  const weight = symmetric(Math.sqrt(6 / (H + D)));
  const { biases: bias } = variant;
  return {
    ...sizes,
    variant,
    write: linearWeights(`${name}.write`, { in: H, out: 3 * D + 1 }, { bias, weight }),
    read: linearWeights(`${name}.read`, { in: H, out: (1 + reads) * D }, { bias, weight }),
    out: linearWeights(
      `${name}.out`,
      { in: D, out: H },
      outInit === "zeros" ? { bias, weight: zeros, biasInit: zeros } : { bias },
    ),
  };
}

/** Rows of F: D² for the product of two keys, 2D for their concatenation. */
export function keySize({ memory: D, variant }: FwmWeights): number {
  return variant.keys === "product" ? D * D : 2 * D;
}

/** vec(a ⊗ b), or [a; b] in the ablation: [..., D] and [..., D] → [..., K]. */
export function combine(keys: KeyCombination, a: Tensor, b: Tensor): Tensor {
  if (keys === "concat") return concat([a, b]);
  // A product of matrices: its gradient does not write D² numbers for each of the two sums it is made of.
  const outer = matmul(unsqueeze(a, -1), unsqueeze(b, -2));
  return reshape(outer, [...outer.shape.slice(0, -2), -1]);
}

/** κ · κ' for keys given by their halves: [..., Q, D] and [..., N, D] → [..., Q, N]. */
export function similarity(keys: KeyCombination, a: Tensor, b: Tensor, k1: Tensor, k2: Tensor): Tensor {
  const join = keys === "product" ? mul : add;
  return join(matmul(a, k1, { transB: true }), matmul(b, k2, { transB: true }));
}

/** |κ|² of keys given by their halves: [..., D] → [..., 1]. */
export function squaredKey(keys: KeyCombination, k1: Tensor, k2: Tensor): Tensor {
  const [a, b] = [k1, k2].map((k) => sum(mul(k, k), { axes: -1, keep: true })) as [Tensor, Tensor];
  return keys === "product" ? mul(a, b) : add(a, b);
}

/** What a step writes: keys, value and strength, the write scale included in the strength. */
export interface WriteVectors {
  readonly k1: Tensor;
  readonly k2: Tensor;
  readonly v: Tensor;
  readonly beta: Tensor;
}

/** Equations 1 and 2: h [..., H] → k1, k2, v [..., D] and β [..., 1]. */
export function writeVectors(w: FwmWeights, h: Tensor): WriteVectors {
  const { memory: D, variant } = w;
  const [z, b] = split(linear(w.write, h), [3 * D, 1]) as [Tensor, Tensor];
  const [k1, k2, v] = split(tanh(z), 3) as [Tensor, Tensor, Tensor]; //                                     (1)
  const beta = sigmoid(variant.betaOffset === 0 ? b : add(b, variant.betaOffset)); //                        (2)
  return { k1, k2, v, beta: variant.writeScale === "one" ? beta : mul(beta, 1 / D) };
}

/** What a step reads with: n^(0) and e^(1) … e^(N_r), each [..., D]. */
export interface ReadVectors {
  readonly n: Tensor;
  readonly e: readonly Tensor[];
}

/** Equations 5 and 6: h [..., H] → n^(0) and e^(1) … e^(N_r), each [..., D]. */
export function readVectors(w: FwmWeights, h: Tensor): ReadVectors {
  const { tanhQuery, tanhKeys } = w.variant;
  const z = linear(w.read, h);
  const [n, ...e] = split(tanhQuery && tanhKeys ? tanh(z) : z, 1 + w.reads) as [Tensor, ...Tensor[]];
  if (tanhQuery === tanhKeys) return { n, e };
  return {
    n: tanhQuery ? tanh(n) : n, //                                                                           (5)
    e: tanhKeys ? e.map(tanh) : e, //                                                                        (6)
  };
}

/** F vec(a ⊗ b): a, b [B, D], F [B, K, D] → [B, D]. */
function retrieve(keys: KeyCombination, F: Tensor, a: Tensor, b: Tensor): Tensor {
  return squeeze(matmul(unsqueeze(combine(keys, a, b), 1), F), 1);
}

/** Equations 3 and 4: the memory after a write. */
export function writeStep(keys: KeyCombination, F: Tensor, { k1, k2, v, beta }: WriteVectors): Tensor {
  const vOld = retrieve(keys, F, k1, k2);
  const update = mul(beta, sub(v, vOld));
  const written = add(F, mul(unsqueeze(combine(keys, k1, k2), -1), unsqueeze(update, 1))); //               (3)
  // The root is taken of a number that is at least 1: a nearly empty memory is not inflated, and an empty one
  // has a gradient.
  const squares = sum(mul(written, written), { axes: [1, 2], keep: true });
  return div(written, sqrt(max(squares, 1))); //                                                             (4)
}

/** Equation 7, N_r times: each answer is half of the next question. */
export function readStep(keys: KeyCombination, F: Tensor, { n: first, e }: ReadVectors): Tensor {
  return e.reduce((n, key) => layerNorm(retrieve(keys, F, n, key)), first); //                               (7)
}

/** Equation 8 and the residual around it: what the layer adds to, or makes of, the LSTM's output. */
export function fwmOutput(w: FwmWeights, h: Tensor, n: Tensor): Tensor {
  const y = linear(w.out, n); //                                                                             (8)
  return w.variant.residual ? add(h, y) : y;
}

/** What one step of the layer gives: output [B, H], memory, and the vectors it wrote and read with. */
export interface FwmStep {
  readonly y: Tensor;
  readonly F: Tensor;
  readonly written: WriteVectors;
  readonly read: ReadVectors;
}

/** One step of the layer: write, then read what is there now. */
export function fwmStep(w: FwmWeights, h: Tensor, F: Tensor): FwmStep {
  return scoped("fwm", () => {
    const { keys } = w.variant;
    const written = writeVectors(w, h);
    const next = writeStep(keys, F, written);
    const read = readVectors(w, h);
    return { y: fwmOutput(w, h, readStep(keys, next, read)), F: next, written, read };
  });
}

/** The vectors of a step by the names that a trace has: k1, k2, v, beta, n0, e1 …, [B, ·] each. */
export function traceOf({ written, read }: Pick<FwmStep, "written" | "read">): Record<string, Tensor> {
  const { k1, k2, v, beta } = written;
  return { k1, k2, v, beta: reshape(beta, [-1]), ...readTrace(read) };
}

/** The vectors of a read by the names that a trace has: n0, e1 … */
export function readTrace({ n, e }: ReadVectors): Record<string, Tensor> {
  return { n0: n, ...Object.fromEntries(e.map((key, i) => [`e${i + 1}`, key])) };
}

/** Shape of the fast weights for a batch. */
export function fastWeightShape(w: FwmWeights, batch: number): readonly [number, number, number] {
  return [batch, keySize(w), w.memory];
}
