/** What every system that reads a stream of tokens looks like from outside. */
import type { Tensor } from "../graph/index.ts";

/** Sizes of the input and output every such system shares. */
export interface TokenSizes {
  /** Entries of the vocabulary, `<pad>` and `<eos>` included. */
  readonly vocabulary: number;
  /** Width of the embedding. */
  readonly embedding: number;
}

/** One part of the recurrent state, declared for a batch. */
export interface RecurrentPart {
  readonly name: string;
  readonly shape: (batch: number) => readonly number[];
}

/** A window of tokens for a system. */
export interface WindowInput {
  /** i32 [T, B] */
  readonly tokens: Tensor;
  /** State before the window, in the order of `recurrent`. */
  readonly state: readonly Tensor[];
  /** f32 [T, B]: 0 at padding, where the state passes through. Absent when the window has none. */
  readonly mask?: Tensor;
  /** i32 [B, Q]: positions t · B + b to answer at. Absent: everywhere. */
  readonly positions?: Tensor;
}

/** A system: weights, recurrent state, a window at once for training, a step for streaming. */
export interface SequenceModel {
  /** The slow weights, in the order in which they are saved. */
  readonly parameters: readonly Tensor[];
  readonly recurrent: readonly RecurrentPart[];
  /** Logits [T, B, V], or [B, Q, V] at the positions, and the state after the window. */
  window(input: WindowInput): { logits: Tensor; state: Tensor[] };
  /** One token per row, i32 [B]: logits [B, V], the state after it, and named insights for traces. */
  step(
    tokens: Tensor,
    state: readonly Tensor[],
  ): { logits: Tensor; state: Tensor[]; trace: Record<string, Tensor> };
}
