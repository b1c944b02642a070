/** Where values come from: constants, inputs of a run, state that stays between runs, and random masks. */
import { ShapeError } from "../../errors.ts";
import { constants, defineOp, noGradient } from "../op.ts";
import type { DType, Shape, Tensor } from "../tensor.ts";
import { sizeOf } from "../tensor.ts";

const isSource = noGradient("a source has no inputs");

function mustBeGiven(name: string): never {
  throw new Error(`internal: the value of ${name} has to be given, not computed`);
}

/** Refuses sizes that no tensor has. */
function checkShape(what: string, shape: Shape): void {
  const bad = shape.find((size) => !Number.isSafeInteger(size) || size < 0);
  if (bad === undefined) return;
  throw new ShapeError(`${what}: ${bad} is not a size`, {
    shape,
    hint: "shapes are fixed when the graph is built: whole numbers, none of them below 0",
  });
}

/** Settings of a constant. */
export interface ConstantAttrs {
  readonly data: ArrayLike<number>;
  readonly shape: Shape;
  readonly dtype: DType;
}

const constantOp = defineOp<ConstantAttrs>("constant", {
  infer: (_, { shape, dtype, data }) => {
    checkShape("constant", shape);
    if (data.length !== sizeOf(shape)) {
      throw new ShapeError(`constant: ${data.length} values do not fill the shape`, { shape });
    }
    if ((dtype === "i32" || dtype === "i64") && !Array.from(data).every(Number.isSafeInteger)) {
      throw new ShapeError(`constant: ${dtype} takes whole numbers`, {
        given: Array.from(data).find((value) => !Number.isSafeInteger(value)),
        hint: "cast the other operand to f32 first",
      });
    }
    return { shape, dtype };
  },
  evaluate: ({ attrs }) => Float64Array.from(attrs.data),
  grad: isSource,
  onnx: ({ attrs, constant: share }) => share(Array.from(attrs.data), attrs.shape, attrs.dtype),
  samples: [{ inputs: [], attrs: { data: [1, 2, 3], shape: [3], dtype: "f32" } }],
});

/** A tensor whose values are known when the graph is built. */
export function constant(data: ArrayLike<number>, shape: Shape, dtype: DType = "f32"): Tensor {
  return constantOp.apply([], { data, shape, dtype })[0]!;
}

/** A scalar. */
export function scalar(value: number, dtype: DType = "f32"): Tensor {
  return constant([value], [], dtype);
}
constants.scalar = scalar;

/** All zeros. */
export function zeros(shape: Shape, dtype: DType = "f32"): Tensor {
  checkShape("zeros", shape);
  return constant(new Float32Array(sizeOf(shape)), shape, dtype);
}

/** 0, 1, …, size - 1. */
export function iota(size: number, dtype: DType = "i32"): Tensor {
  return constant(
    Array.from({ length: size }, (_, i) => i),
    [size],
    dtype,
  );
}

/** The values of a constant, or undefined for anything else. */
export function constantValue(tensor: Tensor): ConstantAttrs | undefined {
  return tensor.node.op.name === "constant" ? (tensor.node.attrs as ConstantAttrs) : undefined;
}

/** Settings of a named source. */
export interface SourceAttrs {
  readonly name: string;
  readonly shape: Shape;
  readonly dtype: DType;
}

const inputOp = defineOp<SourceAttrs>("input", {
  infer: (_, { shape, dtype }) => ({ shape, dtype }),
  evaluate: ({ attrs }) => mustBeGiven(attrs.name),
  grad: isSource,
  onnx: ({ attrs }) => mustBeGiven(attrs.name),
  samples: [],
});

/** A value given at every run. */
export function input(name: string, shape: Shape, dtype: DType = "f32"): Tensor {
  checkShape(`input ${name}`, shape);
  return inputOp.apply([], { name, shape, dtype })[0]!;
}

/** How the values of a state begin. Random ones are drawn under the program's seed and the state's name. */
export type Initial =
  | { readonly kind: "zeros" }
  | { readonly kind: "constant"; readonly value: number }
  | { readonly kind: "values"; readonly data: ArrayLike<number> }
  | { readonly kind: "uniform"; readonly low: number; readonly high: number }
  | { readonly kind: "normal"; readonly mean: number; readonly std: number };

/** Settings of a state: a parameter, an optimizer's moment, a recurrent state. */
export interface StateAttrs extends SourceAttrs {
  readonly initial: Initial;
}

const stateOp = defineOp<StateAttrs>("state", {
  infer: (_, { name, shape, dtype, initial }) => {
    checkShape(`state ${name}`, shape);
    if (initial.kind === "values" && initial.data.length !== sizeOf(shape)) {
      throw new ShapeError(`state ${name}: ${initial.data.length} values do not fill the shape`, { shape });
    }
    return { shape, dtype };
  },
  evaluate: ({ attrs }) => mustBeGiven(attrs.name),
  grad: isSource,
  onnx: ({ attrs }) => mustBeGiven(attrs.name),
  samples: [],
});

/** A value that stays resident between runs, under a unique name; a program may replace it at the end of a run. */
export function state(
  name: string,
  shape: Shape,
  initial: Initial = { kind: "zeros" },
  dtype: DType = "f32",
): Tensor {
  return stateOp.apply([], { name, shape, dtype, initial })[0]!;
}

/** The settings of a state tensor, or undefined for anything else. */
export function stateAttrs(tensor: Tensor): StateAttrs | undefined {
  return tensor.node.op.name === "state" ? (tensor.node.attrs as StateAttrs) : undefined;
}

/** Settings of a random mask. */
export interface MaskAttrs {
  /** Tells the masks of a program apart; part of the random key. */
  readonly name: string;
  readonly shape: Shape;
  /** Probability of a one. */
  readonly keep: number;
}

const maskOp = defineOp<MaskAttrs>("randomMask", {
  infer: (_, { shape }) => ({ shape, dtype: "bool" }),
  evaluate: ({ attrs }) => mustBeGiven(attrs.name),
  grad: isSource,
  onnx: ({ attrs }) => mustBeGiven(attrs.name),
  samples: [],
});

/** A mask of ones (probability `keep`) and zeros, drawn anew at each run under the run's key and `name`. */
export function randomMask(name: string, shape: Shape, keep: number): Tensor {
  if (!(keep > 0 && keep <= 1)) {
    throw new ShapeError(`randomMask: keep must be in (0, 1], got ${keep}`, { name });
  }
  checkShape(`randomMask ${name}`, shape);
  return maskOp.apply([], { name, shape, keep })[0]!;
}

const paramOp = defineOp<SourceAttrs>("param", {
  infer: (_, { shape, dtype }) => ({ shape, dtype }),
  evaluate: ({ attrs }) => mustBeGiven(attrs.name),
  grad: isSource,
  onnx: ({ attrs }) => mustBeGiven(attrs.name),
  samples: [],
});

/** An argument of a loop body. */
export function param(name: string, shape: Shape, dtype: DType = "f32"): Tensor {
  return paramOp.apply([], { name, shape, dtype })[0]!;
}
