/** Comparisons, logic, choice and conversion. */
import { broadcastOffsets, broadcastShapes } from "../broadcast.ts";
import { defineOp, noGradient, type Sample, toTensor, typeError } from "../op.ts";
import type { DType, Operand, Tensor } from "../tensor.ts";
import { sumTo } from "./reduce.ts";
import { zeros } from "./source.ts";

const comparisonSamples: Sample<null>[] = [
  { inputs: [[3], [3]] },
  { inputs: [[2, 3], [1]] },
  {
    inputs: [
      [2, 1, 5],
      [3, 1],
    ],
  },
  {
    inputs: [
      { shape: [7], below: 3 },
      { shape: [7], below: 3 },
    ],
  },
];

function comparison(
  name: string,
  value: (a: number, b: number) => boolean,
  onnx: string,
  samples = comparisonSamples,
): (a: Operand, b: Operand) => Tensor {
  const logic = onnx === "And" || onnx === "Or";
  const { apply } = defineOp<null>(name, {
    infer(inputs) {
      const [a, b] = inputs;
      if (a!.dtype !== b!.dtype || (a!.dtype === "bool") !== logic) {
        throw typeError(
          name,
          logic ? "operands must be bool" : "operands must have the same number type",
          inputs,
        );
      }
      return { shape: broadcastShapes(name, a!.shape, b!.shape, inputs), dtype: "bool" };
    },
    evaluate({ inputs: [a, b], types }) {
      const offsetsA = broadcastOffsets(a!.shape, types[0]!.shape);
      const offsetsB = broadcastOffsets(b!.shape, types[0]!.shape);
      return Float64Array.from(offsetsA, (at, i) => (value(a!.data[at]!, b!.data[offsetsB[i]!]!) ? 1 : 0));
    },
    grad: noGradient("the output is a truth value"),
    onnx: ({ inputs, emit }) => emit(onnx, inputs),
    samples,
  });
  return (a, b) => {
    const dtype = typeof a === "number" ? (typeof b === "number" ? "f32" : b.dtype) : a.dtype;
    return apply([toTensor(a, dtype), toTensor(b, dtype)], null)[0]!;
  };
}

const bools: Sample<null>[] = [
  {
    inputs: [
      { shape: [2, 3], dtype: "bool" },
      { shape: [3], dtype: "bool" },
    ],
  },
];

/** a < b */
export const less = comparison("less", (a, b) => a < b, "Less");
/** a ≤ b */
export const lessEqual = comparison("lessEqual", (a, b) => a <= b, "LessOrEqual");
/** a > b */
export const greater = comparison("greater", (a, b) => a > b, "Greater");
/** a ≥ b */
export const greaterEqual = comparison("greaterEqual", (a, b) => a >= b, "GreaterOrEqual");
/** a = b */
export const equal = comparison("equal", (a, b) => a === b, "Equal");
/** Both */
export const and = comparison("and", (a, b) => a !== 0 && b !== 0, "And", bools);
/** Either */
export const or = comparison("or", (a, b) => a !== 0 || b !== 0, "Or", bools);

const notOp = defineOp<null>("not", {
  infer(inputs) {
    if (inputs[0]!.dtype !== "bool") throw typeError("not", "the operand must be bool", inputs);
    return { shape: inputs[0]!.shape, dtype: "bool" };
  },
  evaluate: ({ inputs }) => inputs[0]!.data.map((x) => (x ? 0 : 1)),
  grad: noGradient("the output is a truth value"),
  onnx: ({ inputs, emit }) => emit("Not", inputs),
  samples: [{ inputs: [{ shape: [2, 3], dtype: "bool" }] }],
});

/** The opposite truth value. */
export function not(x: Tensor): Tensor {
  return notOp.apply([x], null)[0]!;
}

const whereOp = defineOp<null>("where", {
  infer(inputs) {
    const [condition, a, b] = inputs;
    if (condition!.dtype !== "bool" || a!.dtype !== b!.dtype) {
      throw typeError("where", "needs a bool condition and two operands of one dtype", inputs);
    }
    const both = broadcastShapes("where", a!.shape, b!.shape, inputs);
    return { shape: broadcastShapes("where", condition!.shape, both, inputs), dtype: a!.dtype };
  },
  evaluate({ inputs: [condition, a, b], types }) {
    const { shape } = types[0]!;
    const [offsetsC, offsetsA, offsetsB] = [condition!, a!, b!].map((x) => broadcastOffsets(x.shape, shape));
    return Float64Array.from(offsetsC!, (at, i) =>
      condition!.data[at] ? a!.data[offsetsA![i]!]! : b!.data[offsetsB![i]!]!,
    );
  },
  grad({ inputs: [condition, a, b], dy, needs }) {
    const nothing = zeros([]);
    return [
      undefined,
      needs(1) ? sumTo(where(condition!, dy, nothing), a!.shape) : undefined,
      needs(2) ? sumTo(where(condition!, nothing, dy), b!.shape) : undefined,
    ];
  },
  onnx({ inputs, types, emit }) {
    if (types[0]!.dtype !== "bool") return emit("Where", inputs);
    // ONNX Runtime chooses between numbers only.
    const [condition, a, b] = inputs as [string, string, string];
    return emit("Or", [emit("And", [condition, a]), emit("And", [emit("Not", [condition]), b])]);
  },
  samples: [
    { inputs: [{ shape: [3], dtype: "bool" }, [3], [3]] },
    { inputs: [{ shape: [2, 1], dtype: "bool" }, [3], [2, 3]] },
    { inputs: [{ shape: [2, 3], dtype: "bool" }, [], [2, 3]] },
  ],
});

/**
 * a where the condition holds, else b. The side not taken gets a gradient of exactly 0; what is computed from it can
 * still make a NaN of that (0 · ∞), so keep log and sqrt away from 0 before choosing.
 */
export function where(condition: Tensor, a: Operand, b: Operand): Tensor {
  const dtype = typeof a === "number" ? (typeof b === "number" ? "f32" : b.dtype) : a.dtype;
  return whereOp.apply([condition, toTensor(a, dtype), toTensor(b, dtype)], null)[0]!;
}

const castOp = defineOp<DType>("cast", {
  infer: ([x], dtype) => ({ shape: x!.shape, dtype }),
  evaluate({ inputs: [x], attrs: dtype }) {
    if (dtype === "bool") return x!.data.map((value) => (value !== 0 ? 1 : 0));
    return dtype === "f32" ? x!.data.slice() : x!.data.map(Math.trunc);
  },
  // Only f32 carries a gradient, and a cast from f32 to f32 is not made.
  grad: () => [undefined],
  onnx: ({ inputs, attrs: dtype, emit }) => emit("Cast", inputs, { to: onnxType[dtype] }),
  samples: [
    { inputs: [{ shape: [2, 3], dtype: "bool" }], attrs: "f32" },
    { inputs: [{ shape: [5], below: 9 }], attrs: "f32" },
  ],
});

/** ONNX numbers of our dtypes. */
export const onnxType: Readonly<Record<DType, number>> = { f32: 1, i32: 6, i64: 7, bool: 9 };

/** x as another dtype; bool becomes 0 and 1. */
export function cast(x: Tensor, dtype: DType): Tensor {
  return x.dtype === dtype ? x : castOp.apply([x], dtype)[0]!;
}
