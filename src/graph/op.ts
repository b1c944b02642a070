/**
 * An op in one block: its type rule, its value in float64, its gradient, its ONNX form and sample shapes.
 *
 * `defineOp` enters the block in `opTable`. The table drives the shared tests, so a new op is checked
 * (ONNX Runtime against the oracle, gradient against finite differences) without writing a test.
 */
import { ShapeError } from "../errors.ts";
import {
  currentScope,
  type DType,
  Node,
  type Operand,
  type Shape,
  showType,
  type Tensor,
  type TensorType,
} from "./tensor.ts";

/** A value in the oracle: every dtype is kept in float64, which holds all of ours exactly. */
export interface Value {
  readonly shape: Shape;
  readonly data: Float64Array;
}

/** A closed function over tensors: the body of a loop. */
export interface GraphFunction {
  readonly params: readonly Tensor[];
  /** Grows when the gradient asks for more values of every step. */
  readonly results: Tensor[];
}

/** Arguments of `evaluate`: the oracle's values, and a way to run the body of a loop. */
export interface Evaluation<A> {
  readonly inputs: readonly Value[];
  readonly attrs: A;
  readonly types: readonly TensorType[];
  run(body: GraphFunction, args: readonly Value[]): Value[];
}

/** Arguments of `grad`. A missing entry of `dys` means that output does not reach the loss. */
export interface Backward<A> {
  readonly node: Node;
  readonly inputs: readonly Tensor[];
  readonly outputs: readonly Tensor[];
  readonly attrs: A;
  readonly dys: readonly (Tensor | undefined)[];
  /** The gradient of the first output, for the many ops that have one. */
  readonly dy: Tensor;
  /** Whether input `i` leads to something a gradient was asked for; the others may be skipped. */
  needs(i: number): boolean;
  /** Gradients inside a loop body: sum of `seeds[i] · outputs[i]` with respect to `wrt`. */
  differentiate(
    outputs: readonly Tensor[],
    seeds: readonly (Tensor | undefined)[],
    wrt: readonly Tensor[],
  ): (Tensor | undefined)[];
}

/** Values of ONNX attributes that our lowerings use. */
export type OnnxAttribute = number | string | readonly number[] | { readonly float: number } | OnnxBody;

/** A lowered subgraph. */
export interface OnnxBody {
  readonly body: GraphFunction;
  /** How many of the leading params are inputs of the subgraph; the rest are captured by name. */
  readonly inputs: number;
  readonly captures: readonly string[];
  readonly resultOrder: readonly number[];
}

/** Arguments of `onnx`: names of the inputs, and a way to append nodes. */
export interface Lowering<A> {
  readonly inputs: readonly string[];
  readonly inputTypes: readonly TensorType[];
  readonly types: readonly TensorType[];
  readonly attrs: A;
  readonly node: Node;
  /** Appends an ONNX node with one output and gives that output's name. */
  emit(opType: string, inputs: readonly string[], attributes?: Record<string, OnnxAttribute>): string;
  /** Appends an ONNX node with several outputs; an empty name marks one that is left out. */
  emitMany(
    opType: string,
    inputs: readonly string[],
    outputs: number,
    attributes?: Record<string, OnnxAttribute>,
  ): string[];
  /** Name of a shared constant. */
  constant(data: readonly number[], shape: Shape, dtype: DType): string;
}

/** One operand of a sample: a shape of floats, or integers below the size `below`, or floats in a range. */
export type SampleInput =
  | Shape
  | { readonly shape: Shape; readonly below: number }
  | { readonly shape: Shape; readonly range: readonly [number, number] }
  | { readonly shape: Shape; readonly dtype: "bool" };

/**
 * A point at which the shared tests check an op. Sizes are names: equal sizes are the same axis, and the
 * random-shape test renames them, so `attrs` that depend on a size are a function of the renamed shapes.
 * Sizes 0 and 1 keep their meaning.
 */
export interface Sample<A> {
  readonly inputs: readonly SampleInput[];
  readonly attrs?: A | ((size: (name: number) => number) => A);
}

/** What has to be said of an op. */
export interface OpRule<A> {
  /** The type of every output, or a `ShapeError` that says what does not fit. */
  infer(inputs: readonly TensorType[], attrs: A): TensorType | readonly TensorType[];
  /** The outputs in float64, in plain loops. */
  evaluate(args: Evaluation<A>): Float64Array | readonly Float64Array[];
  /** Gradients with respect to the inputs, as graph; or the reason why there is none. */
  readonly grad: ((args: Backward<A>) => readonly (Tensor | undefined)[]) | NoGradient;
  /** The same in ONNX: names of the outputs. */
  onnx(args: Lowering<A>): string | readonly string[];
  readonly samples: readonly Sample<A>[];
  /** Set for ops that only move or relabel elements: a loop's gradient redoes them instead of keeping them. */
  readonly cheap?: boolean;
}

/** A named op rule. */
export interface Op<A = unknown> extends OpRule<A> {
  readonly name: string;
}

/** Marks an op without a gradient and says why. */
export interface NoGradient {
  readonly reason: string;
}

/** `grad: noGradient("the output is an index")` */
export function noGradient(reason: string): NoGradient {
  return { reason };
}

/** Every op by name. */
export const opTable = new Map<string, Op>();

/** Enters an op in the table and gives the function that applies it and returns all its outputs. */
export function defineOp<A>(
  name: string,
  rule: OpRule<A>,
): { readonly op: Op<A>; apply(inputs: readonly Tensor[], attrs: A): Tensor[] } {
  const op: Op<A> = { name, ...rule };
  opTable.set(name, op as Op);
  return {
    op,
    apply(inputs, attrs) {
      const types = op.infer(inputs, attrs);
      return new Node(op as Op, inputs, attrs, Array.isArray(types) ? types : [types as TensorType]).outputs;
    },
  };
}

/** An error about the types an op was given, with the operands listed. */
export function typeError(
  op: string,
  what: string,
  inputs: readonly TensorType[],
  hint?: string,
  names = "abcdefgh",
): ShapeError {
  const operands = Object.fromEntries(inputs.map((type, i) => [names[i] ?? `input ${i}`, showType(type)]));
  return new ShapeError(`${op}: ${what}`, { ...operands, scope: currentScope(), hint });
}

/** Demands that an operand is a float tensor. */
export function needFloat(op: string, inputs: readonly TensorType[]): void {
  if (inputs.some((type) => type.dtype !== "f32")) {
    throw typeError(op, "operands must be f32", inputs, "use cast(x, 'f32')");
  }
}

/** The operand as a tensor: numbers become scalar constants (set by ops/source.ts, which defines constants). */
export function toTensor(operand: Operand, dtype: DType): Tensor {
  return typeof operand === "number" ? constants.scalar(operand, dtype) : operand;
}

/** How numbers become constants; `ops/source.ts` fills it in. */
export const constants: { scalar(value: number, dtype: DType): Tensor } = {
  scalar: () => {
    throw new Error("internal: ops/source.ts is not loaded");
  },
};
