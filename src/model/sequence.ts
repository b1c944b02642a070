/** What every system that reads a stream of tokens looks like from outside. */
import { z } from "zod";
import type { Initial, Tensor } from "../graph/index.ts";

/** A size in settings. */
export const size = z.int().min(1).max(65_536);

/** A rate of dropout in settings; 0 unless given. */
export const dropoutRate = z.number().min(0).lt(1).default(0);

/** A schema with heads and a hidden width, checked to fit together. */
export function headsDivide<S extends z.ZodType<{ heads: number; hidden: number }>>(schema: S): S {
  return schema.refine(({ heads, hidden }) => hidden % heads === 0, {
    path: ["heads"],
    error: ({ input }) => {
      const { heads, hidden } = input as { heads: number; hidden: number };
      return `${heads} heads do not divide a hidden width of ${hidden}`;
    },
  });
}

/** Settings of the input and output that every such system shares. */
export const tokenSizes = {
  /** Entries of the vocabulary, `<pad>` and `<eos>` included. */
  vocabulary: size,
  /** Width of the embedding. */
  embedding: size,
};

/** One part of the recurrent state, declared for a batch. */
export interface RecurrentPart {
  readonly name: string;
  readonly shape: (batch: number) => readonly number[];
  /** Value at the start of a stream; zeros unless given. */
  readonly initial?: Initial;
}

/** A window of tokens for a system. */
export interface WindowInput {
  /** i32 [T, B] */
  readonly tokens: Tensor;
  /** State before the window, in the order of `recurrent`. */
  readonly state: readonly Tensor[];
  /** Whether this is a training step: dropout acts only then. */
  readonly training: boolean;
  /** f32 [T, B]: 0 at padding, where the state passes through. Absent when the window has none. */
  readonly mask?: Tensor;
  /** i32 [B, Q]: positions t · B + b to compute logits at. Absent: everywhere. */
  readonly positions?: Tensor;
  /** i32 [B, Q]: positions that `matches` is about, where logits are wanted everywhere. */
  readonly matchesAt?: Tensor;
  /** Set where no `residual` can be looked at: nothing may be found by iteration. */
  readonly exact?: boolean;
  /** Scalar that the output is softened by; where it acts (hidden vector, logits) is the system's. */
  readonly temperature?: Tensor;
}

/** What a system makes of a window. */
export interface WindowOutput {
  /** [T, B, V], or [B, Q, V] at the positions. */
  readonly logits: Tensor;
  /**
   * Negative log probabilities of targets, i32 [T, B] or [B, Q], where they are not those of softmax(logits), or are
   * better had without all logits at once. Whoever scores uses them if they are there.
   */
  readonly losses?: (targets: Tensor) => Tensor;
  /** Mean of these losses over a mask, f32 like the targets, with its gradient. Whoever trains uses it if it is there. */
  readonly loss?: (targets: Tensor, mask: Tensor) => Tensor;
  /** [T, B, E], or [B, Q, E]: what the output layer reads, where it is one: a cache of past words compares these. */
  readonly hidden?: Tensor;
  /**
   * What each read finds at the positions, or where these are absent at `matchesAt`: the share of every token's write in
   * what it gives, [B, Q, T].
   */
  readonly matches?: () => readonly Tensor[];
  /** State after the window, in the order of `recurrent`. */
  readonly state: readonly Tensor[];
  /** Scalar added to the training loss: a meta-objective, activation regularisation. */
  readonly penalty?: Tensor;
  /**
   * Scalar, where something was found by iteration: the error that is left, over the error that is allowed. Unless it
   * is at most 1 (NaN is not), the window counts for nothing and is to be computed again with `exact`.
   */
  readonly residual?: Tensor;
}

/** What a system makes of one token per row. */
export interface StepOutput {
  /** [B, V] */
  readonly logits: Tensor;
  readonly state: readonly Tensor[];
  /** [B]: what the window's penalty is the mean of, where it has one. */
  readonly penalty?: Tensor;
  /** Named vectors, [B, ·] each, that explain the step; see `Tracer`. */
  readonly trace: Readonly<Record<string, Tensor>>;
}

/** Some tokens of a stream per row, with padding behind them; see `WindowInput`. */
export type ChunkInput = Required<Pick<WindowInput, "tokens" | "state" | "mask" | "positions">>;

/** What a system makes of them. */
export interface ChunkOutput {
  /** [B, Q, V] at the positions. */
  readonly logits: Tensor;
  readonly state: readonly Tensor[];
  /** As of a step: vectors that the tracer keeps are [T, B, ·], the others are those of the positions, [B, Q, ·]. */
  readonly trace: Readonly<Record<string, Tensor>>;
}

/** A system: weights, recurrent state, a window at once for training, a step for streaming. */
export interface SequenceModel {
  /** The slow weights, in the order in which they are saved. */
  readonly parameters: readonly Tensor[];
  readonly recurrent: readonly RecurrentPart[];
  window(input: WindowInput): WindowOutput;
  /** One token per row, i32 [B]. */
  step(tokens: Tensor, state: readonly Tensor[]): StepOutput;
  /** A window works through few, large tensors: memory matters more than the time to allocate it. */
  readonly largeTensors?: boolean;
  /**
   * Some tokens per row at once: what that many steps give, up to rounding. Absent where the window is no such form, as
   * where its tokens see more than steps do; then steps are taken in a loop (`chunkOf`).
   */
  chunk?(input: ChunkInput): ChunkOutput;
  /** How an answer can be traced to the tokens before it, where the system has something to show. */
  readonly tracer?: Tracer;
}

/** Vectors of one row, by name. */
export type NamedVectors = Readonly<Record<string, Float32Array>>;

/** One read or attention head at a position: a number for every token so far, oldest first. */
export interface TraceRow {
  readonly name: string;
  readonly values: Float32Array;
}

/** Traces the answer at a position to the tokens before it. */
export interface Tracer {
  /** Names of `StepOutput.trace` to keep for every token. */
  readonly keep: readonly string[];
  /**
   * One row per read: `history` has the kept vectors of every token, the last one's too; `now` all of the last
   * token's trace; `state` the recurrent state after it.
   */
  rows(history: readonly NamedVectors[], now: NamedVectors, state: NamedVectors): TraceRow[];
}

/** Inner product of two vectors of a trace. */
export function dot(a: Float32Array, b: Float32Array): number {
  let total = 0;
  for (let n = 0; n < a.length; n++) total += a[n]! * b[n]!;
  return total;
}

/** How much work a window is, for the analytic count of operations. */
export interface Work {
  /** Tokens in all: window times rows. */
  readonly tokens: number;
  /** Positions that logits are computed at. */
  readonly positions: number;
  /** Tokens per row. */
  readonly window: number;
}

/** A system as the registry lists it: its settings, how it is built, what it costs. */
export interface System<C extends { readonly name: string } = { readonly name: string }> {
  /** A strict object with the system's name as the literal `name`. */
  readonly schema: z.ZodType<C>;
  build(settings: C): SequenceModel;
  /** Floating-point operations that the equations need forward; a training step needs three times as many. */
  flops(settings: C, work: Work): number;
}

/** Number of trained weights. */
export function countWeights({ parameters }: Pick<SequenceModel, "parameters">): number {
  return parameters.reduce((total, { shape }) => total + shape.reduce((a, b) => a * b, 1), 0);
}

/** Numbers in the recurrent state of a batch. */
export function countState({ recurrent }: Pick<SequenceModel, "recurrent">, batch: number): number {
  return recurrent.reduce((total, { shape }) => total + shape(batch).reduce((a, b) => a * b, 1), 0);
}
