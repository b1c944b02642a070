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
  div,
  gatherRows,
  layerNorm,
  matmul,
  max,
  mul,
  neg,
  reshape,
  scoped,
  split,
  sqrt,
  sum,
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
  /** Where everything is read: positions, i32 [B, Q], that `matches` is about. */
  readonly matchesAt?: Tensor;
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
  /** For each read of the positions, or of `matchesAt`, the share that every write of the window has in what it gives, [B, Q, T]. */
  readonly matches?: () => readonly Tensor[];
  /** Scalar, with the fixed point: what was computed counts only where this is at most 1. */
  readonly residual?: Tensor;
}

/** A window from h [T, B, H] and the memory before it. */
export function fwmWindow(
  w: FwmWeights,
  h: Tensor,
  F: Tensor,
  { mask, positions, matchesAt, chunk = defaultChunk, fixedPoint }: FwmWindowOptions = {},
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
    const readAt = (places: Tensor) => {
      const hq = gatherRows(reshape(h, [T * B, H]), places);
      const read = readVectors(w, hq);
      const memory = writes.at(places);
      const reads = readAll(w, read, memory);
      const matches = (): Tensor[] => scoped("fwm/read", () => sharesOf(reads, memory));
      return { hq, read, reads, matches };
    };
    if (positions) {
      const { hq, read, reads, matches } = readAt(positions);
      return { y: fwmOutput(w, hq, reads.at(-1)!.n), read, matches, ...after };
    }
    const chunks = writes.everywhere();
    const parts = split(
      transpose(h, [1, 0, 2]),
      chunks.map(({ U }) => U.shape[1]!),
      1,
    );
    const n = chunks.map((memory, i) => readAll(w, readVectors(w, parts[i]!), memory).at(-1)!.n);
    const y = fwmOutput(w, h, transpose(concat(n, 1), [1, 0, 2]));
    return { y, ...(matchesAt ? { matches: readAt(matchesAt).matches } : {}), ...after };
  });
}

/** A read of some positions. */
interface WindowRead {
  /** What comes from before the window, [B, Q, D]. */
  readonly fromStart: Tensor;
  /** Weight of every write of the window, [B, Q, N]. */
  readonly scores: Tensor;
  /** n^(i), [B, Q, D]. */
  readonly n: Tensor;
}

/** All reads of some positions: vectors [B, Q, D] → n^(1) … n^(N_r). Equation 7 for every position at once. */
function readAll(w: FwmWeights, { n: first, e }: ReadVectors, memory: WrittenMemory): WindowRead[] {
  const { keys } = w.variant;
  let n = first;
  return e.map((key) => {
    const fromStart = mul(memory.a, matmul(combine(keys, n, key), memory.F));
    const scores = mul(similarity(keys, n, key, memory.k1, memory.k2), memory.w);
    n = layerNorm(add(fromStart, matmul(scores, memory.U))); //                                               (7)
    return { fromStart, scores, n };
  });
}

/** |part of a write| / (|parts of all writes| + |part from before the window|), for every read. */
function sharesOf(reads: readonly WindowRead[], { U }: WrittenMemory): Tensor[] {
  const lengthOf = (x: Tensor): Tensor => sqrt(add(sum(mul(x, x), { axes: -1, keep: true }), 1e-20));
  const size = transpose(lengthOf(U));
  return reads.map(({ fromStart, scores }) => {
    const parts = mul(max(scores, neg(scores)), size);
    const all = add(sum(parts, { axes: -1, keep: true }), lengthOf(fromStart));
    return div(parts, max(all, 1e-10));
  });
}
