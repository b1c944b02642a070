/** Broadcasting: axes of size 1, and missing leading axes, are repeated to fit. */
import { typeError } from "./op.ts";
import { type Shape, sizeOf, type TensorType } from "./tensor.ts";

/** The shape two operands have together, or a `ShapeError`. */
export function broadcastShapes(op: string, a: Shape, b: Shape, operands: readonly TensorType[]): Shape {
  const rank = Math.max(a.length, b.length);
  return Array.from({ length: rank }, (_, axis) => {
    const sizeA = a[axis - rank + a.length] ?? 1;
    const sizeB = b[axis - rank + b.length] ?? 1;
    if (sizeA !== sizeB && sizeA !== 1 && sizeB !== 1) {
      throw typeError(op, `sizes ${sizeA} and ${sizeB} of axis ${axis - rank} do not broadcast`, operands);
    }
    return sizeA === 1 ? sizeB : sizeA;
  });
}

/** Steps through memory for each axis, row-major. */
export function stridesOf(shape: Shape): number[] {
  const strides = new Array<number>(shape.length);
  for (let axis = shape.length - 1, step = 1; axis >= 0; axis--) {
    strides[axis] = step;
    step *= shape[axis]!;
  }
  return strides;
}

/** For every element of `target`, the offset of the element of `shape` it repeats. For the oracle. */
export function broadcastOffsets(shape: Shape, target: Shape): Int32Array {
  const own = stridesOf(shape);
  const missing = target.length - shape.length;
  const strides = target.map((_, axis) =>
    axis < missing || shape[axis - missing] === 1 ? 0 : own[axis - missing]!,
  );
  return stridedOffsets(target, strides);
}

/** Offsets of all elements of a row-major walk over `shape`, with the given step per axis. */
export function stridedOffsets(shape: Shape, strides: readonly number[], start = 0): Int32Array {
  const offsets = new Int32Array(sizeOf(shape));
  const index = new Array<number>(shape.length).fill(0);
  let offset = start;
  for (let i = 0; i < offsets.length; i++) {
    offsets[i] = offset;
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      offset += strides[axis]!;
      if (++index[axis]! < shape[axis]!) break;
      offset -= strides[axis]! * shape[axis]!;
      index[axis] = 0;
    }
  }
  return offsets;
}
