/** A window of tokens as a batch, and as a graph: the system over it, its state before and after, its loss. */
import {
  add,
  argmax,
  classLosses,
  crossEntropy,
  exp,
  input,
  mul,
  neg,
  type Shape,
  scoped,
  state,
  type Tensor,
} from "../graph/index.ts";
import type { SequenceModel, WindowInput, WindowOutput } from "../model/sequence.ts";
import type { HostData } from "../runtime/host.ts";
import type { CompileOptions } from "../runtime/program.ts";
import { factLoss } from "./facts.ts";

/** A window of B rows and T tokens each; arrays are time-major, entry (t, b) is at t · B + b. */
export interface TokenBatch {
  readonly batch: number;
  readonly window: number;
  /** [T, B] */
  readonly tokens: Int32Array;
  /** f32 [T, B]: 0 at padding. Absent when nothing is padded. */
  readonly mask?: Float32Array;
  /** i32 [B, Q]: where logits are wanted; absent: everywhere. With Q = 0 the window is only read. */
  readonly positions?: Int32Array;
  /** i32 [B, Q], or [T, B] */
  readonly targets: Int32Array;
  /** f32, as the targets: weight of each in the loss, which is the weighted mean. */
  readonly lossMask: Float32Array;
  /** f32 [B, Q, N, T]: 1 at the tokens of the N-th statement that a target follows from. Absent where none are told. */
  readonly facts?: Float32Array;
  /** i32 [B, Q]: positions that the facts belong to, where logits are wanted everywhere. */
  readonly factPositions?: Int32Array;
}

/** How a system's programs are compiled: with few large tensors, without an arena that keeps them. */
export function compileOptions(
  { largeTensors }: Pick<SequenceModel, "largeTensors">,
  options: Omit<CompileOptions, "state">,
): Omit<CompileOptions, "state"> {
  return largeTensors ? { ...options, arena: false } : options;
}

/** What a compiled program depends on. */
export function shapeName({ batch, window, mask, positions, facts }: TokenBatch): string {
  const wanted = positions ? positions.length / batch : "all";
  return `${batch}x${window} ${wanted} ${mask ? "padded" : "full"}${facts ? ` ${facts.length} facts` : ""}`;
}

/** What a program over such a window is given. */
export function inputsOf({
  tokens,
  mask,
  positions,
  targets,
  lossMask,
  facts,
  factPositions,
}: TokenBatch): Record<string, HostData> {
  const read = { tokens, ...(mask ? { mask } : {}) };
  if (positions?.length === 0) return read;
  return {
    ...{ ...read, ...(positions ? { positions } : {}), targets, lossMask },
    ...(facts ? { facts } : {}),
    ...(factPositions ? { factPositions } : {}),
  };
}

/** A window in a graph: what the system makes of it, and its state, before and after. */
interface BuiltWindow extends Omit<WindowOutput, "state"> {
  readonly updates: readonly (readonly [Tensor, Tensor])[];
}

/** A window that is read; the states' names begin with `prefix`. */
export function readWindow(
  model: SequenceModel,
  { batch: B, window: T, mask, positions, factPositions }: TokenBatch,
  prefix: string,
  how: Pick<WindowInput, "training" | "exact" | "temperature">,
): BuiltWindow {
  const before = model.recurrent.map(({ name, shape, initial }) => state(prefix + name, shape(B), initial));
  // A window that is only read still needs a place to look at; what it gives is left out of the program.
  const wanted: Shape | undefined = positions && [B, Math.max(1, positions.length / B)];
  const { state: after, ...made } = model.window({
    tokens: input("tokens", [T, B], "i32"),
    state: before,
    ...how,
    ...(mask ? { mask: input("mask", [T, B]) } : {}),
    ...(wanted ? { positions: input("positions", wanted, "i32") } : {}),
    ...(factPositions ? { matchesAt: input("factPositions", [B, factPositions.length / B], "i32") } : {}),
  });
  return { ...made, updates: before.map((tensor, i) => [tensor, after[i]!] as const) };
}

/** A window with its losses. */
export interface LossWindow extends Pick<BuiltWindow, "updates" | "residual" | "hidden"> {
  readonly loss: Tensor;
  /** The loss, the system's penalty, and what facts weigh. */
  readonly objective: Tensor;
  /** How far reads are from the facts, where these are told. */
  readonly factLoss?: Tensor;
  readonly losses: Tensor;
  /** Absent where the system gives losses without all logits at once. */
  readonly predicted?: Tensor;
  /** Probability of what is predicted. */
  readonly confidence?: Tensor;
}

/** The graph of a window: inputs as in a batch, recurrent state under a prefix, and the losses. */
export function lossWindow(
  model: SequenceModel,
  batch: TokenBatch,
  prefix: string,
  { factCoef = 0, ...how }: Pick<WindowInput, "training" | "exact" | "temperature"> & { factCoef?: number },
): LossWindow {
  const made = readWindow(model, batch, prefix, how);
  const { logits, loss: lossOf, losses: lossesOf, penalty, matches, ...built } = made;
  const { batch: B, window: T, positions, facts, factPositions = positions } = batch;
  const told =
    facts && factPositions && matches && factCoef > 0
      ? factLoss(
          matches(),
          input("facts", [B, factPositions.length / B, facts.length / factPositions.length / T, T]),
        )
      : undefined;
  return scoped("output", () => {
    const wanted = logits.shape.slice(0, -1);
    const targets = input("targets", wanted, "i32");
    const lossMask = input("lossMask", wanted);
    const loss = lossOf ? lossOf(targets, lossMask) : crossEntropy(logits, targets, lossMask);
    const predicted = lossesOf ? undefined : argmax(logits);
    const terms = [loss, ...(penalty ? [penalty] : []), ...(told ? [mul(told, factCoef)] : [])];
    return {
      ...built,
      loss,
      objective: terms.reduce(add),
      ...(told ? { factLoss: told } : {}),
      losses: lossesOf ? lossesOf(targets) : classLosses(logits, targets),
      ...(predicted ? { predicted, confidence: exp(neg(classLosses(logits, predicted))) } : {}),
    };
  });
}
