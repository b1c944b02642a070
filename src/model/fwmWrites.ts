/** What the writes of a window leave for its reads: what the two forms of writing share. */
import { mul, split, squeeze, sum, type Tensor } from "../graph/index.ts";

/** Everything a read of some positions needs of the memory they see. */
export interface WrittenMemory {
  /** Memory before the writes below, [B, K, D]. */
  readonly F: Tensor;
  /** Share of F left at each position, [B, Q, 1]. */
  readonly a: Tensor;
  /** Keys and updates of the writes, [B, N, D] each. */
  readonly k1: Tensor;
  readonly k2: Tensor;
  readonly U: Tensor;
  /** Share of each write left at each position, [B, Q, N]; 0 for later ones. */
  readonly w: Tensor;
}

/** A window after its writes. */
export interface WindowWrites {
  /** Memory after the window, [B, K, D]. */
  readonly after: Tensor;
  /** The memory as all tokens see it, chunk by chunk. */
  everywhere(): WrittenMemory[];
  /** The memory as the tokens at positions t · B + b, i32 [B, Q], see it. */
  at(positions: Tensor): WrittenMemory;
  /** Scalar: at most 1 where what was iterated converged; absent where nothing is. */
  readonly residual?: Tensor;
}

/** Tensors [T, …] cut into chunks of so many tokens and a shorter last one: chunk by chunk, tensor by tensor. */
export function inChunks(tensors: readonly Tensor[], chunk: number): Tensor[][] {
  const T = tensors[0]!.shape[0]!;
  const sizes = Array.from({ length: Math.ceil(T / chunk) }, (_, c) => Math.min(chunk, T - c * chunk));
  const parts = tensors.map((tensor) => split(tensor, sizes, 0));
  return sizes.map((_, c) => parts.map((part) => part[c]!));
}

/** |F|² of every row: [B, K, D] → [B, 1]. */
export function squaredNorm(F: Tensor): Tensor {
  return squeeze(sum(mul(F, F), { axes: [1, 2], keep: true }), 2);
}
