/** Ops that move or relabel elements: reshape, transpose, expand, split, slice, concat, pad. */
import { ShapeError } from "../../errors.ts";
import { broadcastOffsets, stridedOffsets, stridesOf } from "../broadcast.ts";
import { defineOp, type Lowering, typeError } from "../op.ts";
import { axisOf, currentScope, type Shape, sameShape, showType, sizeOf, type Tensor } from "../tensor.ts";
import { sumTo } from "./reduce.ts";
import { zeros } from "./source.ts";

function longs(lowering: Lowering<never>, values: readonly number[]): string {
  return lowering.constant(values, [values.length], "i64");
}

const reshapeOp = defineOp<Shape>("reshape", {
  infer([x], shape) {
    if (
      !shape.every((size) => Number.isSafeInteger(size) && size >= 0) ||
      sizeOf(shape) !== sizeOf(x!.shape)
    ) {
      throw typeError("reshape", `${sizeOf(x!.shape)} elements do not fill [${shape.join(", ")}]`, [x!]);
    }
    return { shape, dtype: x!.dtype };
  },
  evaluate: ({ inputs }) => inputs[0]!.data.slice(),
  grad: ({ inputs: [x], dy }) => [reshape(dy, x!.shape)],
  // A size of 0 is 0; without allowzero ONNX would copy the size it has in x.
  onnx: (l) =>
    l.emit(
      "Reshape",
      [l.inputs[0]!, longs(l as Lowering<never>, l.attrs)],
      l.attrs.includes(0) ? { allowzero: 1 } : {},
    ),
  samples: [
    { inputs: [[2, 3]], attrs: (size) => [size(3), size(2)] },
    { inputs: [[2, 3, 5]], attrs: (size) => [size(2), 1, size(3) * size(5)] },
    { inputs: [[1]], attrs: [] },
  ],
  cheap: true,
});

/** The same elements in row-major order under another shape; one size may be -1 and is worked out. */
export function reshape(x: Tensor, shape: Shape): Tensor {
  const known = sizeOf(shape.filter((size) => size !== -1));
  const full = shape.map((size) => (size === -1 ? sizeOf(x.shape) / known : size));
  return sameShape(full, x.shape) ? x : reshapeOp.apply([x], full)[0]!;
}

/** x with a new axis of size 1. */
export function unsqueeze(x: Tensor, axis: number): Tensor {
  const at = axisOf(axis, x.rank + 1, "unsqueeze");
  return reshape(x, [...x.shape.slice(0, at), 1, ...x.shape.slice(at)]);
}

/** x without an axis of size 1. */
export function squeeze(x: Tensor, axis: number): Tensor {
  const at = axisOf(axis, x.rank, "squeeze");
  if (x.shape[at] !== 1) throw typeError("squeeze", `axis ${axis} has size ${x.shape[at]}, not 1`, [x]);
  return reshape(
    x,
    x.shape.filter((_, i) => i !== at),
  );
}

const transposeOp = defineOp<readonly number[]>("transpose", {
  infer([x], order) {
    const sorted = [...order].sort((a, b) => a - b);
    if (!sameShape(sorted, [...x!.shape.keys()])) {
      throw typeError("transpose", `[${order.join(", ")}] is not an order of the axes`, [x!]);
    }
    return { shape: order.map((axis) => x!.shape[axis]!), dtype: x!.dtype };
  },
  evaluate({ inputs: [x], attrs: order, types }) {
    const strides = stridesOf(x!.shape);
    const offsets = stridedOffsets(
      types[0]!.shape,
      order.map((axis) => strides[axis]!),
    );
    return Float64Array.from(offsets, (at) => x!.data[at]!);
  },
  grad: ({ attrs: order, dy }) => [transpose(dy, inverse(order))],
  onnx: ({ inputs, attrs: order, emit }) => emit("Transpose", inputs, { perm: order }),
  samples: [
    { inputs: [[2, 3]], attrs: [1, 0] },
    { inputs: [[2, 3, 5]], attrs: [2, 0, 1] },
    { inputs: [[7, 1, 3]], attrs: [0, 2, 1] },
  ],
  cheap: true,
});

function inverse(order: readonly number[]): number[] {
  return order.map((_, axis) => order.indexOf(axis));
}

/** x with its axes in another order; by default the last two are exchanged. */
export function transpose(x: Tensor, order: readonly number[] = lastTwoExchanged(x.rank)): Tensor {
  return order.every((axis, i) => axis === i) ? x : transposeOp.apply([x], order)[0]!;
}

/** The order that `transpose` uses when none is given. */
export function lastTwoExchanged(rank: number): number[] {
  const order = [...Array(rank).keys()];
  return rank < 2 ? order : [...order.slice(0, -2), rank - 1, rank - 2];
}

const expandOp = defineOp<Shape>("expand", {
  infer: ([x], shape) => {
    const missing = shape.length - x!.shape.length;
    if (missing < 0 || x!.shape.some((size, i) => size !== 1 && size !== shape[i + missing])) {
      throw typeError("expand", `cannot be repeated to [${shape.join(", ")}]`, [x!]);
    }
    return { shape, dtype: x!.dtype };
  },
  evaluate: ({ inputs: [x], attrs: shape }) =>
    Float64Array.from(broadcastOffsets(x!.shape, shape), (at) => x!.data[at]!),
  grad: ({ inputs: [x], dy }) => [sumTo(dy, x!.shape)],
  onnx: (l) => l.emit("Expand", [l.inputs[0]!, longs(l as Lowering<never>, l.attrs)]),
  samples: [
    { inputs: [[1]], attrs: (size) => [size(3)] },
    { inputs: [[3, 1]], attrs: (size) => [size(2), size(3), size(5)] },
    { inputs: [[]], attrs: (size) => [size(2), size(3)] },
  ],
  cheap: true,
});

/** x repeated along axes of size 1 and missing leading axes until it has `shape`. */
export function expand(x: Tensor, shape: Shape): Tensor {
  return sameShape(x.shape, shape) ? x : expandOp.apply([x], shape)[0]!;
}

/** Settings of `split`. */
interface SplitAttrs {
  readonly axis: number;
  readonly sizes: readonly number[];
}

const splitOp = defineOp<SplitAttrs>("split", {
  infer([x], { axis, sizes }) {
    const total = sizes.reduce((sum, size) => sum + size, 0);
    if (total !== x!.shape[axis]) {
      throw typeError("split", `parts [${sizes.join(", ")}] add up to ${total}, not to axis ${axis}`, [x!]);
    }
    return sizes.map((size) => ({ shape: replaced(x!.shape, axis, size), dtype: x!.dtype }));
  },
  evaluate({ inputs: [x], attrs: { axis, sizes } }) {
    let start = 0;
    return sizes.map((size) => {
      const part = copySlice(x!, axis, start, start + size);
      start += size;
      return part;
    });
  },
  grad: ({ outputs, attrs: { axis }, dys }) => [
    concat(
      outputs.map((part, i) => dys[i] ?? zeros(part.shape)),
      axis,
    ),
  ],
  onnx: (l) =>
    l.emitMany(
      "Split",
      [l.inputs[0]!, longs(l as unknown as Lowering<never>, l.attrs.sizes)],
      l.types.length,
      {
        axis: l.attrs.axis,
      },
    ),
  samples: [
    { inputs: [[5]], attrs: (size) => ({ axis: 0, sizes: [1, size(5) - 1] }) },
    { inputs: [[2, 5]], attrs: (size) => ({ axis: 1, sizes: [size(5) - 1, 1] }) },
    { inputs: [[5, 2, 3]], attrs: (size) => ({ axis: 0, sizes: [1, size(5) - 1] }) },
  ],
  cheap: true,
});

/** x cut along an axis into parts of the given sizes, or into so many equal parts. */
export function split(x: Tensor, parts: number | readonly number[], axis = -1): Tensor[] {
  const at = axisOf(axis, x.rank, "split");
  const sizes = typeof parts === "number" ? new Array<number>(parts).fill(x.shape[at]! / parts) : parts;
  if (!sizes.every((size) => Number.isInteger(size) && size > 0)) {
    throw typeError("split", `axis ${axis} of size ${x.shape[at]} cannot be cut into ${String(parts)}`, [x]);
  }
  return sizes.length === 1 && sizes[0] === x.shape[at] ? [x] : splitOp.apply([x], { axis: at, sizes });
}

/** Settings of `slice`. */
interface SliceAttrs {
  readonly axis: number;
  readonly start: number;
  readonly end: number;
}

const sliceOp = defineOp<SliceAttrs>("slice", {
  infer([x], { axis, start, end }) {
    if (!(start >= 0 && start < end && end <= x!.shape[axis]!)) {
      throw typeError("slice", `[${start}, ${end}) does not lie within axis ${axis}`, [x!]);
    }
    return { shape: replaced(x!.shape, axis, end - start), dtype: x!.dtype };
  },
  evaluate: ({ inputs: [x], attrs: { axis, start, end } }) => copySlice(x!, axis, start, end),
  grad: ({ inputs: [x], attrs: { axis, start, end }, dy }) => [pad(dy, axis, start, x!.shape[axis]! - end)],
  onnx(l) {
    const { axis, start, end } = l.attrs;
    const list = (value: number): string => longs(l as unknown as Lowering<never>, [value]);
    return l.emit("Slice", [l.inputs[0]!, list(start), list(end), list(axis)]);
  },
  samples: [
    { inputs: [[5]], attrs: (size) => ({ axis: 0, start: 1, end: size(5) }) },
    { inputs: [[2, 5]], attrs: (size) => ({ axis: 1, start: 0, end: size(5) - 1 }) },
    { inputs: [[5, 1, 3]], attrs: { axis: 0, start: 1, end: 2 } },
  ],
  cheap: true,
});

/** Elements start … end - 1 along an axis; negative bounds count from the end. */
export function slice(x: Tensor, axis: number, start: number, end?: number): Tensor {
  const at = axisOf(axis, x.rank, "slice");
  const size = x.shape[at]!;
  const from = start < 0 ? start + size : start;
  const to = end === undefined ? size : end < 0 ? end + size : end;
  return from === 0 && to === size ? x : sliceOp.apply([x], { axis: at, start: from, end: to })[0]!;
}

const concatOp = defineOp<number>("concat", {
  infer(inputs, axis) {
    const first = inputs[0]!;
    for (const other of inputs) {
      const fits = sameShape(replaced(other.shape, axis, 0), replaced(first.shape, axis, 0));
      if (!fits || other.dtype !== first.dtype) {
        throw typeError("concat", `operands differ in more than axis ${axis}`, inputs);
      }
    }
    const total = inputs.reduce((sum, { shape }) => sum + shape[axis]!, 0);
    return { shape: replaced(first.shape, axis, total), dtype: first.dtype };
  },
  evaluate({ inputs, attrs: axis, types }) {
    const out = new Float64Array(sizeOf(types[0]!.shape));
    const strides = stridesOf(types[0]!.shape);
    let start = 0;
    for (const { shape, data } of inputs) {
      stridedOffsets(shape, strides, start * strides[axis]!).forEach((at, i) => {
        out[at] = data[i]!;
      });
      start += shape[axis]!;
    }
    return out;
  },
  grad: ({ inputs, attrs: axis, dy }) =>
    split(
      dy,
      inputs.map(({ shape }) => shape[axis]!),
      axis,
    ),
  onnx: ({ inputs, attrs: axis, emit }) => emit("Concat", inputs, { axis }),
  samples: [
    { inputs: [[2], [3], [1]], attrs: 0 },
    {
      inputs: [
        [2, 3],
        [2, 5],
      ],
      attrs: 1,
    },
    {
      inputs: [
        [2, 3, 5],
        [2, 1, 5],
      ],
      attrs: 1,
    },
  ],
  cheap: true,
});

/** The operands one after the other along an axis. */
export function concat(parts: readonly Tensor[], axis = -1): Tensor {
  const at = axisOf(axis, parts[0]?.rank ?? 0, "concat");
  for (const part of parts) {
    if (part.rank !== parts[0]!.rank) {
      throw new ShapeError("concat: operands have different numbers of axes", {
        operands: parts.map(showType),
        scope: currentScope(),
      });
    }
  }
  return parts.length === 1 ? parts[0]! : concatOp.apply(parts, at)[0]!;
}

/** Operands of one shape along a new axis. */
export function stack(parts: readonly Tensor[], axis = 0): Tensor {
  return concat(
    parts.map((part) => unsqueeze(part, axis)),
    axis,
  );
}

/** Settings of `pad`. */
interface PadAttrs {
  readonly axis: number;
  readonly before: number;
  readonly after: number;
}

const padOp = defineOp<PadAttrs>("pad", {
  infer([x], { axis, before, after }) {
    if (before < 0 || after < 0) throw typeError("pad", "amounts must not be negative", [x!]);
    return { shape: replaced(x!.shape, axis, before + x!.shape[axis]! + after), dtype: x!.dtype };
  },
  evaluate({ inputs: [x], attrs: { axis, before }, types }) {
    const out = new Float64Array(sizeOf(types[0]!.shape));
    const strides = stridesOf(types[0]!.shape);
    stridedOffsets(x!.shape, strides, before * strides[axis]!).forEach((at, i) => {
      out[at] = x!.data[i]!;
    });
    return out;
  },
  grad: ({ inputs: [x], attrs: { axis, before }, dy }) => [slice(dy, axis, before, before + x!.shape[axis]!)],
  onnx(l) {
    const { axis, before, after } = l.attrs;
    const rank = l.types[0]!.shape.length;
    const amounts = new Array<number>(2 * rank).fill(0);
    amounts[axis] = before;
    amounts[rank + axis] = after;
    return l.emit("Pad", [l.inputs[0]!, longs(l as unknown as Lowering<never>, amounts)]);
  },
  samples: [
    { inputs: [[3]], attrs: { axis: 0, before: 2, after: 0 } },
    { inputs: [[2, 3]], attrs: { axis: 1, before: 1, after: 2 } },
    { inputs: [[2, 1, 3]], attrs: { axis: 0, before: 0, after: 1 } },
  ],
});

/** x with zeros before and after it along an axis. */
export function pad(x: Tensor, axis: number, before: number, after: number): Tensor {
  const at = axisOf(axis, x.rank, "pad");
  return before === 0 && after === 0 ? x : padOp.apply([x], { axis: at, before, after })[0]!;
}

/**
 * Transformer-XL's relative shift: row i of y is row i of x moved left by (q - 1 - i).
 *
 *   x [..., q, k], column c for distance k-1-c   →   y [..., q, k], column j for key j
 *
 * Entries right of j = k - q + i wrap around and mean nothing; attention masks them.
 */
export function relativeShift(x: Tensor): Tensor {
  return relativeShiftPadded(pad(x, -1, 1, 0));
}

/** `relativeShift` of x [..., q, 1 + k] that already has a column of zeros, or of anything, on its left. */
export function relativeShiftPadded(x: Tensor): Tensor {
  const [q, columns] = [x.shape.at(-2)!, x.shape.at(-1)!];
  const leading = x.shape.slice(0, -2);
  return reshape(slice(reshape(x, [...leading, columns, q]), -2, 1), [...leading, q, columns - 1]);
}

function replaced(shape: Shape, axis: number, size: number): number[] {
  return shape.map((old, i) => (i === axis ? size : old));
}

function copySlice(
  x: { shape: Shape; data: Float64Array },
  axis: number,
  start: number,
  end: number,
): Float64Array {
  const strides = stridesOf(x.shape);
  const offsets = stridedOffsets(replaced(x.shape, axis, end - start), strides, start * strides[axis]!);
  return Float64Array.from(offsets, (at) => x.data[at]!);
}
