/** Sums, means, maxima and running sums along axes. */
import { broadcastOffsets } from "../broadcast.ts";
import { defineOp, needFloat, noGradient, typeError } from "../op.ts";
import { axisOf, type Shape, sameShape, sizeOf, type Tensor } from "../tensor.ts";
import { cast, equal } from "./compare.ts";
import { div, mul } from "./elementwise.ts";
import { expand, reshape } from "./shape.ts";

/** Axes to reduce, in ascending order; reduced axes stay with size 1. */
type Axes = readonly number[];

function kept(shape: Shape, axes: Axes): number[] {
  return shape.map((size, axis) => (axes.includes(axis) ? 1 : size));
}

const sumOp = defineOp<Axes>("sum", {
  infer(inputs, axes) {
    needFloat("sum", inputs);
    return { shape: kept(inputs[0]!.shape, axes), dtype: "f32" };
  },
  evaluate({ inputs: [x], types }) {
    const out = new Float64Array(sizeOf(types[0]!.shape));
    broadcastOffsets(types[0]!.shape, x!.shape).forEach((at, i) => {
      out[at]! += x!.data[i]!;
    });
    return out;
  },
  grad: ({ inputs: [x], dy }) => [expand(dy, x!.shape)],
  onnx: ({ inputs, attrs: axes, emit, constant }) =>
    emit("ReduceSum", [inputs[0]!, constant(axes, [axes.length], "i64")], { keepdims: 1 }),
  samples: [
    { inputs: [[3]], attrs: [0] },
    { inputs: [[2, 3]], attrs: [0] },
    { inputs: [[2, 3, 5]], attrs: [0, 2] },
    { inputs: [[7, 1, 3]], attrs: [0, 1, 2] },
  ],
});

const maxOp = defineOp<Axes>("reduceMax", {
  infer(inputs, axes) {
    needFloat("reduceMax", inputs);
    return { shape: kept(inputs[0]!.shape, axes), dtype: "f32" };
  },
  evaluate({ inputs: [x], types }) {
    const out = new Float64Array(sizeOf(types[0]!.shape)).fill(Number.NEGATIVE_INFINITY);
    broadcastOffsets(types[0]!.shape, x!.shape).forEach((at, i) => {
      out[at] = Math.max(out[at]!, x!.data[i]!);
    });
    return out;
  },
  // Equal maxima share the gradient.
  grad({ inputs: [x], outputs: [y], attrs: axes, dy }) {
    const isMax = cast(equal(x!, y!), "f32");
    return [mul(isMax, div(dy, sumOp.apply([isMax], axes)[0]!))];
  },
  onnx: ({ inputs, attrs: axes, emit, constant }) =>
    emit("ReduceMax", [inputs[0]!, constant(axes, [axes.length], "i64")], { keepdims: 1 }),
  samples: [
    { inputs: [[3]], attrs: [0] },
    { inputs: [[2, 5]], attrs: [1] },
    { inputs: [[2, 3, 5]], attrs: [0, 2] },
  ],
});

/** Which axes a reduction runs over, and whether they stay with size 1. */
export interface Reduction {
  readonly axes?: number | readonly number[];
  readonly keep?: boolean;
}

function reduction(op: typeof sumOp, name: string): (x: Tensor, over?: Reduction) => Tensor {
  return (x, { axes, keep = false } = {}) => {
    const list = axes === undefined ? [...x.shape.keys()] : typeof axes === "number" ? [axes] : axes;
    const sorted = list.map((axis) => axisOf(axis, x.rank, name)).sort((a, b) => a - b);
    if (sorted.length === 0) return x;
    const y = op.apply([x], sorted)[0]!;
    return keep
      ? y
      : reshape(
          y,
          x.shape.filter((_, axis) => !sorted.includes(axis)),
        );
  };
}

/** Sum over axes (default: all). */
export const sum = reduction(sumOp, "sum");

/** Largest element over axes (default: all). */
export const reduceMax = reduction(maxOp, "reduceMax");

/** Mean over axes (default: all). */
export function mean(x: Tensor, over: Reduction = {}): Tensor {
  const total = sum(x, over);
  return mul(total, sizeOf(total.shape) / sizeOf(x.shape));
}

/** x summed down to a shape that broadcasts to x's: what the gradient of broadcasting does. */
export function sumTo(x: Tensor, shape: Shape): Tensor {
  if (sameShape(x.shape, shape)) return x;
  const missing = x.rank - shape.length;
  const axes = [...x.shape.keys()].filter(
    (axis) => axis < missing || (shape[axis - missing] === 1 && x.shape[axis] !== 1),
  );
  return reshape(sum(x, { axes, keep: true }), shape);
}

/** Settings of a running sum. */
interface CumsumAttrs {
  readonly axis: number;
  /** Leave the element itself out. */
  readonly exclusive: boolean;
  /** Run from the end. */
  readonly reverse: boolean;
}

const cumsumOp = defineOp<CumsumAttrs>("cumsum", {
  infer(inputs) {
    needFloat("cumsum", inputs);
    return { shape: inputs[0]!.shape, dtype: "f32" };
  },
  evaluate({ inputs: [x], attrs: { axis, exclusive, reverse } }) {
    const length = x!.shape[axis]!;
    const step = sizeOf(x!.shape.slice(axis + 1));
    const out = new Float64Array(x!.data.length);
    for (let start = 0; start < x!.data.length; start++) {
      if (Math.floor(start / step) % length !== 0) continue;
      let total = 0;
      for (let n = 0; n < length; n++) {
        const at = start + (reverse ? length - 1 - n : n) * step;
        const before = total;
        total += x!.data[at]!;
        out[at] = exclusive ? before : total;
      }
    }
    return out;
  },
  grad: ({ attrs: { axis, exclusive, reverse }, dy }) => [cumsum(dy, axis, { exclusive, reverse: !reverse })],
  onnx: ({ inputs, attrs: { axis, exclusive, reverse }, emit, constant }) =>
    emit("CumSum", [inputs[0]!, constant([axis], [], "i32")], {
      exclusive: exclusive ? 1 : 0,
      reverse: reverse ? 1 : 0,
    }),
  samples: [
    { inputs: [[5]], attrs: { axis: 0, exclusive: false, reverse: false } },
    { inputs: [[2, 3]], attrs: { axis: 0, exclusive: true, reverse: false } },
    { inputs: [[2, 3, 5]], attrs: { axis: 1, exclusive: false, reverse: true } },
  ],
});

/** Running sum along an axis. */
export function cumsum(x: Tensor, axis = -1, { exclusive = false, reverse = false } = {}): Tensor {
  return cumsumOp.apply([x], { axis: axisOf(axis, x.rank, "cumsum"), exclusive, reverse })[0]!;
}

/** Settings of a triangle: entries with column - row ≤ diagonal are kept (lower) or ≥ (upper). */
interface TriangleAttrs {
  readonly upper: boolean;
  readonly diagonal: number;
}

const triangleOp = defineOp<TriangleAttrs>("triangle", {
  infer(inputs) {
    if (inputs[0]!.shape.length < 2) throw typeError("triangle", "needs two axes", inputs);
    return { shape: inputs[0]!.shape, dtype: inputs[0]!.dtype };
  },
  evaluate({ inputs: [x], attrs: { upper, diagonal } }) {
    const [rows, columns] = x!.shape.slice(-2) as [number, number];
    return x!.data.map((value, i) => {
      const offset = (i % columns) - (Math.floor(i / columns) % rows);
      return (upper ? offset >= diagonal : offset <= diagonal) ? value : 0;
    });
  },
  grad: ({ attrs: { upper, diagonal }, dy }) => [(upper ? upperTriangle : lowerTriangle)(dy, diagonal)],
  onnx: ({ inputs, attrs: { upper, diagonal }, emit, constant }) =>
    emit("Trilu", [inputs[0]!, constant([diagonal], [], "i64")], { upper: upper ? 1 : 0 }),
  samples: [
    { inputs: [[3, 5]], attrs: { upper: false, diagonal: 0 } },
    { inputs: [[2, 3, 3]], attrs: { upper: true, diagonal: 1 } },
    { inputs: [[7, 1]], attrs: { upper: false, diagonal: -1 } },
  ],
});

/** The lower triangle of the last two axes, zeros elsewhere; `diagonal` -1 leaves the main diagonal out. */
export function lowerTriangle(x: Tensor, diagonal = 0): Tensor {
  return triangleOp.apply([x], { upper: false, diagonal })[0]!;
}

/** The upper triangle of the last two axes, zeros elsewhere. */
export function upperTriangle(x: Tensor, diagonal = 0): Tensor {
  return triangleOp.apply([x], { upper: true, diagonal })[0]!;
}

const argmaxOp = defineOp<number>("argmax", {
  infer(inputs, axis) {
    const { shape, dtype } = inputs[0]!;
    if (dtype === "bool") throw typeError("argmax", "needs numbers", inputs, "use cast(x, 'i32')");
    return { shape: shape.filter((_, i) => i !== axis), dtype: "i32" };
  },
  evaluate({ inputs: [x], attrs: axis, types }) {
    const length = x!.shape[axis]!;
    const step = sizeOf(x!.shape.slice(axis + 1));
    return Float64Array.from({ length: sizeOf(types[0]!.shape) }, (_, i) => {
      const start = Math.floor(i / step) * length * step + (i % step);
      let best = 0;
      for (let n = 1; n < length; n++) {
        if (x!.data[start + n * step]! > x!.data[start + best * step]!) best = n;
      }
      return best;
    });
  },
  grad: noGradient("the output is an index"),
  onnx: ({ inputs, attrs: axis, emit }) =>
    emit("Cast", [emit("ArgMax", inputs, { axis, keepdims: 0 })], { to: 6 }),
  samples: [
    { inputs: [[3]], attrs: 0 },
    { inputs: [[2, 5]], attrs: 1 },
    { inputs: [[2, 3, 5]], attrs: 1 },
  ],
});

/** Index of the largest element along an axis; the first of equals. */
export function argmax(x: Tensor, axis = -1): Tensor {
  return argmaxOp.apply([x], axisOf(axis, x.rank, "argmax"))[0]!;
}
