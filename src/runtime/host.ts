/** Tensors with values, as they pass between JavaScript and a runtime. */
import { ShapeError } from "../errors.ts";
import { type DType, type Shape, showType, sizeOf, type TensorType } from "../graph/tensor.ts";

/** The array type of each dtype. */
export type HostData = Float32Array | Int32Array | BigInt64Array | Uint8Array;

/** A tensor in JavaScript's memory. */
export interface HostTensor extends TensorType {
  readonly data: HostData;
}

/** What may be given for a tensor: an array of its size, or a number for a scalar. */
export type HostValue = ArrayLike<number> | BigInt64Array | number;

/** ONNX Runtime and the files of a run take tensors of up to 2 GB. */
const mostElements = 2 ** 29;

/** Storage for a shape, filled with zeros. */
export function allocate(shape: Shape, dtype: DType): HostTensor {
  const size = sizeOf(shape);
  if (size > mostElements) {
    throw new ShapeError(`a tensor of ${size} elements cannot be held`, { shape, most: mostElements });
  }
  switch (dtype) {
    case "f32":
      return { shape, dtype, data: new Float32Array(size) };
    case "i32":
      return { shape, dtype, data: new Int32Array(size) };
    case "i64":
      return { shape, dtype, data: new BigInt64Array(size) };
    case "bool":
      return { shape, dtype, data: new Uint8Array(size) };
  }
}

const arrayTypes = { f32: Float32Array, i32: Int32Array, i64: BigInt64Array, bool: Uint8Array } as const;

/** A value as a tensor of the given type: without a copy when the array already has the right type. */
export function toHost(name: string, value: HostValue, type: TensorType): HostTensor {
  const { shape, dtype } = type;
  const array = typeof value === "number" ? [value] : value;
  if (array.length !== sizeOf(shape)) {
    throw new ShapeError(`${name}: ${array.length} values given, ${sizeOf(shape)} needed`, {
      expected: showType(type),
    });
  }
  if (array instanceof arrayTypes[dtype]) return { shape, dtype, data: array };
  if (ArrayBuffer.isView(array) && !(array instanceof Float64Array)) {
    throw new ShapeError(`${name}: ${array.constructor.name} given for ${showType(type)}`, {
      hint: `use ${arrayTypes[dtype].name}`,
    });
  }
  const host = allocate(shape, dtype);
  fillFrom(name, host, array as ArrayLike<number>);
  return host;
}

/** Copies numbers into a tensor; one that its dtype would change silently, such as 1.7 for i32, is refused. */
export function fillFrom(name: string, { data, dtype }: HostTensor, values: ArrayLike<number>): void {
  for (let i = 0; i < values.length; i++) {
    if (dtype === "f32" || isHeldBy(dtype, values[i]!)) continue;
    throw new ShapeError(`${name}[${i}]: ${values[i]} given for ${dtype}`, {
      expected: dtype === "bool" ? "0 or 1" : "a whole number in its range",
    });
  }
  if (data instanceof BigInt64Array) data.set(Array.from(values, BigInt));
  else data.set(values);
}

function isHeldBy(dtype: Exclude<DType, "f32">, value: number): boolean {
  if (dtype === "bool") return value === 0 || value === 1;
  return dtype === "i32" ? (value | 0) === value : Number.isSafeInteger(value);
}
