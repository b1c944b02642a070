/** Arithmetic and functions applied element by element; operands broadcast. */
import { broadcastOffsets, broadcastShapes } from "../broadcast.ts";
import { defineOp, needFloat, type Sample, toTensor, typeError } from "../op.ts";
import { type Operand, sameShape, type Tensor, type TensorType } from "../tensor.ts";
import { cast, greater, greaterEqual } from "./compare.ts";
import { sumTo } from "./reduce.ts";

interface BinaryRule {
  readonly value: (a: number, b: number) => number;
  readonly onnx: string;
  /** Gradients before the axes that were broadcast are summed away. */
  readonly grad: (args: { a: Tensor; b: Tensor; y: Tensor; dy: Tensor }) => readonly [Operand, Operand];
  readonly samples?: readonly Sample<null>[];
}

const pairs: Sample<null>[] = [
  { inputs: [[3], [3]] },
  { inputs: [[1], [7]] },
  { inputs: [[2, 3], [3]] },
  {
    inputs: [
      [2, 1, 5],
      [3, 1],
    ],
  },
  { inputs: [[], [2, 3]] },
];

function binary(name: string, rule: BinaryRule): (a: Operand, b: Operand) => Tensor {
  const { apply } = defineOp<null>(name, {
    infer(inputs) {
      const [a, b] = inputs;
      if (a!.dtype !== b!.dtype || a!.dtype === "bool") {
        throw typeError(name, "operands must have the same number type", inputs, "use cast(x, dtype)");
      }
      return { shape: broadcastShapes(name, a!.shape, b!.shape, inputs), dtype: a!.dtype };
    },
    evaluate({ inputs: [a, b], types }) {
      const offsetsA = broadcastOffsets(a!.shape, types[0]!.shape);
      const offsetsB = broadcastOffsets(b!.shape, types[0]!.shape);
      const y = Float64Array.from(offsetsA, (at, i) => rule.value(a!.data[at]!, b!.data[offsetsB[i]!]!));
      // A quotient of integers is cut off towards 0; adding 0 turns -0 into it.
      return types[0]!.dtype === "f32" ? y : y.map((value) => Math.trunc(value) + 0);
    },
    grad({ inputs: [a, b], outputs: [y], dy, needs }) {
      const [da, db] = rule.grad({ a: a!, b: b!, y: y!, dy });
      return [
        needs(0) ? sumTo(toTensor(da, "f32"), a!.shape) : undefined,
        needs(1) ? sumTo(toTensor(db, "f32"), b!.shape) : undefined,
      ];
    },
    onnx: ({ inputs, emit }) => emit(rule.onnx, inputs),
    samples: rule.samples ?? pairs,
  });
  return (a, b) => {
    const dtype = typeof a === "number" ? (typeof b === "number" ? "f32" : b.dtype) : a.dtype;
    return apply([toTensor(a, dtype), toTensor(b, dtype)], null)[0]!;
  };
}

/** a + b */
export const add = binary("add", {
  value: (a, b) => a + b,
  onnx: "Add",
  grad: ({ dy }) => [dy, dy],
});

/** a - b */
export const sub = binary("sub", {
  value: (a, b) => a - b,
  onnx: "Sub",
  grad: ({ dy }) => [dy, neg(dy)],
});

/** a · b, element by element */
export const mul = binary("mul", {
  value: (a, b) => a * b,
  onnx: "Mul",
  grad: ({ a, b, dy }) => [mul(dy, b), mul(dy, a)],
});

/** a / b; of integers the whole part */
export const div = binary("div", {
  value: (a, b) => a / b,
  onnx: "Div",
  // d(a/b)/db = -y / b
  grad: ({ b, y, dy }) => [div(dy, b), neg(mul(dy, div(y, b)))],
  samples: pairs.map(({ inputs: [a, b] }) => ({
    inputs: [a!, { shape: b as readonly number[], range: [0.5, 2] }],
  })),
});

/** The smaller of the two; where they are equal the gradient goes to a. */
export const min = binary("min", {
  value: Math.min,
  onnx: "Min",
  grad: ({ a, b, dy }) => [mul(dy, cast(greaterEqual(b, a), "f32")), mul(dy, cast(greater(a, b), "f32"))],
});

/** The larger of the two; where they are equal the gradient goes to a. */
export const max = binary("max", {
  value: Math.max,
  onnx: "Max",
  grad: ({ a, b, dy }) => [mul(dy, cast(greaterEqual(a, b), "f32")), mul(dy, cast(greater(b, a), "f32"))],
});

/** x limited to [low, high] */
export function clip(x: Tensor, low: Operand, high: Operand): Tensor {
  return min(max(x, low), high);
}

interface UnaryRule {
  readonly value: (x: number) => number;
  readonly onnx: string;
  readonly grad: (args: { x: Tensor; y: Tensor; dy: Tensor }) => Tensor;
  readonly range?: readonly [number, number];
}

function unary(name: string, rule: UnaryRule): (x: Tensor) => Tensor {
  const shapes = [[3], [1], [2, 3], [2, 3, 5], []];
  const { apply } = defineOp<null>(name, {
    infer(inputs) {
      needFloat(name, inputs);
      return { shape: inputs[0]!.shape, dtype: "f32" };
    },
    evaluate: ({ inputs }) => inputs[0]!.data.map(rule.value),
    grad: ({ inputs: [x], outputs: [y], dy }) => [rule.grad({ x: x!, y: y!, dy })],
    onnx: ({ inputs, emit }) => emit(rule.onnx, inputs),
    samples: shapes.map((shape) => ({ inputs: [rule.range ? { shape, range: rule.range } : shape] })),
  });
  return (x) => apply([x], null)[0]!;
}

/** -x */
export const neg = unary("neg", { value: (x) => -x, onnx: "Neg", grad: ({ dy }) => neg(dy) });

/** e^x */
export const exp = unary("exp", { value: Math.exp, onnx: "Exp", grad: ({ y, dy }) => mul(dy, y) });

/** Natural logarithm */
export const log = unary("log", {
  value: Math.log,
  onnx: "Log",
  grad: ({ x, dy }) => div(dy, x),
  range: [0.3, 3],
});

/** Square root. At 0 its gradient is infinite: add an epsilon or clip first. */
export const sqrt = unary("sqrt", {
  value: Math.sqrt,
  onnx: "Sqrt",
  grad: ({ y, dy }) => div(mul(dy, 0.5), y),
  range: [0.3, 3],
});

/** Hyperbolic tangent */
export const tanh = unary("tanh", {
  value: Math.tanh,
  onnx: "Tanh",
  grad: ({ y, dy }) => mul(dy, sub(1, mul(y, y))),
});

/** Logistic function 1 / (1 + e^-x) */
export const sigmoid = unary("sigmoid", {
  value: (x) => 1 / (1 + Math.exp(-x)),
  onnx: "Sigmoid",
  grad: ({ y, dy }) => mul(dy, mul(y, sub(1, y))),
});

/** max(x, 0) */
export const relu = unary("relu", {
  value: (x) => Math.max(x, 0),
  onnx: "Relu",
  // y is positive where x is, and what follows mostly needs y anyway: x need not be kept.
  grad: ({ y, dy }) => mul(dy, cast(greater(y, 0), "f32")),
});

const stop = defineOp<null>("stopGradient", {
  infer: ([x]) => ({ shape: x!.shape, dtype: x!.dtype }),
  evaluate: ({ inputs }) => inputs[0]!.data.slice(),
  grad: () => [undefined],
  onnx: ({ inputs, emit }) => emit("Identity", inputs),
  samples: [],
});

/** x, through which no gradient flows. */
export function stopGradient(x: Tensor): Tensor {
  return stop.apply([x], null)[0]!;
}

const withValueOp = defineOp<null>("withValue", {
  infer(inputs) {
    const [x, value] = inputs as [TensorType, TensorType];
    if (x.dtype !== value.dtype || !sameShape(x.shape, value.shape)) {
      throw typeError("withValue", "a tensor and its value need one type", inputs);
    }
    return { shape: x.shape, dtype: x.dtype };
  },
  evaluate: ({ inputs }) => inputs[1]!.data.slice(),
  grad: ({ dy }) => [dy, undefined],
  onnx: ({ inputs, emit }) => emit("Identity", [inputs[1]!]),
  samples: [],
});

/** x, whose value was computed before: `value` stands for it, gradients flow to x, and x is not computed again. */
export function withValue(x: Tensor, value: Tensor): Tensor {
  return withValueOp.apply([x, value], null)[0]!;
}
