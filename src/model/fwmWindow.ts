/**
 * Fast Weight Memory over a window of tokens at once: the exact parallel form of `fwm.ts`.
 *
 *   code   meaning                                                    shape
 *   K      keys κ_t = vec(k1_t ⊗ k2_t)                                [B, C, K]
 *   G      κ_t · κ_i = (k1_t · k1_i)(k2_t · k2_i)                     [B, C, C]
 *   P      what the keys retrieve from the memory at the start, K F   [B, C, D]
 *   u      update β (v - vOld); row i of U                            [B, D], [B, C, D]
 *   s      1 / max(1, |F'|): how much the write scales memory down    [B, 1]
 *   a      product of the s so far: share of F left                   [B, 1]
 *   w      product of the s since write i: share of write i left      [B, C]
 *   m      |F|²                                                       [B, 1]
 *
 *   T tokens, in chunks of C; B batch, D memory, K = D² (or 2D for concatenated keys)
 *
 * F_t = a_t F + Σ_{i ≤ t} w_t[i] κ_i u_iᵀ. Inside a chunk only u, s, a, w and m go from token to token, and
 * these are small; the D³ weights are touched once per chunk. The norm needs no pass over F:
 * |F'_t|² = |F_{t-1}|² + u · (2 vOld + |κ_t|² u).
 *
 * The writes are computed in one of two forms: a loop over the tokens (`fwmScan.ts`), or a fixed point over blocks of
 * them (`fwmFixedPoint.ts`), which is faster and says in a residual whether it got there. The reads are the same.
 */
import {
  add,
  concat,
  gatherRows,
  layerNorm,
  matmul,
  mul,
  reshape,
  scoped,
  split,
  type Tensor,
  transpose,
  unsqueeze,
} from "../graph/index.ts";
import {
  combine,
  type FwmWeights,
  fwmOutput,
  type ReadVectors,
  readVectors,
  similarity,
  type WriteVectors,
  writeVectors,
} from "./fwm.ts";
import { type FixedPointOptions, writeByFixedPoint } from "./fwmFixedPoint.ts";
import { writeByScan } from "./fwmScan.ts";
import type { WrittenMemory } from "./fwmWrites.ts";

/** Tokens per chunk: the fastest of 10, 20, 40, 50 and 100 at the paper's size; see docs/decisions.md. */
const defaultChunk = 50;

/** Choices for a window. */
export interface FwmWindowOptions {
  /** [T, B] f32; where it is 0 nothing is written and the memory stays as it is. */
  readonly mask?: Tensor;
  /** Read only at these positions: i32 [B, Q], each t · B + b for a token t of row b. */
  readonly positions?: Tensor;
  /** Tokens per chunk of the loop. */
  readonly chunk?: number;
  /** Write by the fixed point, whose `residual` has to be looked at; by default token by token. */
  readonly fixedPoint?: FixedPointOptions;
}

/** What a window gives: the layer's output, [T, B, H] or [B, Q, H] at the positions, and the memory after it. */
export interface FwmWindow {
  readonly y: Tensor;
  readonly F: Tensor;
  /** What every token wrote with, [T, B, ·]. */
  readonly written: WriteVectors;
  /** What the positions read with, [B, Q, ·]; absent where everything is read. */
  readonly read?: ReadVectors;
  /** Scalar, with the fixed point: what was computed counts only where this is at most 1. */
  readonly residual?: Tensor;
}

/** A window from h [T, B, H] and the memory before it. */
export function fwmWindow(
  w: FwmWeights,
  h: Tensor,
  F: Tensor,
  { mask, positions, chunk = defaultChunk, fixedPoint }: FwmWindowOptions = {},
): FwmWindow {
  const [T, B, H] = h.shape as [number, number, number];
  const { keys } = w.variant;
  const written = scoped("fwm/write", () => writeVectors(w, h));
  const writes = scoped("fwm/write", () => {
    const { beta, ...vectors } = written;
    const masked = { ...vectors, beta: mask ? mul(beta, unsqueeze(mask, -1)) : beta };
    if (!fixedPoint) return writeByScan(keys, masked, F, mask, chunk);
    return writeByFixedPoint(keys, masked, F, mask, { ...fixedPoint, ...(positions ? { chunk: T } : {}) });
  });
  const after = { F: writes.after, written, ...(writes.residual ? { residual: writes.residual } : {}) };
  return scoped("fwm/read", () => {
    if (positions) {
      const hq = gatherRows(reshape(h, [T * B, H]), positions);
      const read = readVectors(w, hq);
      return { y: fwmOutput(w, hq, readAll(w, read, writes.at(positions))), read, ...after };
    }
    const chunks = writes.everywhere();
    const parts = split(
      transpose(h, [1, 0, 2]),
      chunks.map(({ U }) => U.shape[1]!),
      1,
    );
    const n = chunks.map((memory, i) => readAll(w, readVectors(w, parts[i]!), memory));
    return { y: fwmOutput(w, h, transpose(concat(n, 1), [1, 0, 2])), ...after };
  });
}

/** All reads of some positions: vectors [B, Q, D] → n^(N_r) [B, Q, D]. Equation 7 for every position at once. */
function readAll(w: FwmWeights, { n: first, e }: ReadVectors, memory: WrittenMemory): Tensor {
  const { keys } = w.variant;
  return e.reduce((n, key) => {
    const fromStart = mul(memory.a, matmul(combine(keys, n, key), memory.F));
    const scores = mul(similarity(keys, n, key, memory.k1, memory.k2), memory.w);
    return layerNorm(add(fromStart, matmul(scores, memory.U))); //                                            (7)
  }, first);
}
