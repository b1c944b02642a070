/**
 * Weights as half-precision numbers (IEEE 754 binary16): half the bytes of a model that is shipped. They are stored so and
 * nowhere computed with: whoever loads a model gets float32 again.
 *
 *   1 bit sign, 5 bits exponent (bias 15), 10 bits fraction; from 2^-24 to 65504
 */
import { UsageError } from "../errors.ts";
import type { TensorData, Tensors } from "./safetensors.ts";

/** Tensors of float32 rounded to float16, the others as they are; a number that is too large is a `UsageError`. */
export function narrowWeights(tensors: Tensors): Tensors {
  return mapTensors(tensors, (tensor, name) => {
    if (tensor.dtype !== "f32") return tensor;
    const data = toFloat16(tensor.data);
    const at = data.findIndex((bits) => !isFinite16(bits));
    if (at < 0) return { dtype: "f16", shape: tensor.shape, data };
    throw new UsageError(`${name}[${at}] is ${tensor.data[at]}, too large for float16`, {
      most: largest,
      hint: "keep the weights in float32",
    });
  });
}

/** Tensors of float16 as float32, the others as they are. */
export function widenWeights(tensors: Tensors): Tensors {
  return mapTensors(tensors, (tensor) =>
    tensor.dtype === "f16" ? { dtype: "f32", shape: tensor.shape, data: fromFloat16(tensor.data) } : tensor,
  );
}

const largest = 65_504;

/** Whether a float16 is neither infinite nor NaN. */
export function isFinite16(bits: number): boolean {
  return (bits & 0x7c00) !== 0x7c00;
}

/** The nearest float16 of each number, as its bits; ties go to the even one. */
export function toFloat16(values: Float32Array): Uint16Array {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  return Uint16Array.from(bits, (word, i) => {
    const sign = (word >>> 16) & 0x8000;
    const magnitude = word & 0x7fff_ffff;
    if (magnitude > 0x7f80_0000) return sign | 0x7e00; // NaN
    if (magnitude >= 0x477f_f000) return sign | 0x7c00; // from 65520 on it rounds to infinity
    if (magnitude < 0x3880_0000) return sign | roundToEven(Math.abs(values[i]!) * 2 ** 24); // below 2^-14
    // The exponent's bias is 127 - 15 less; 13 bits of the fraction go.
    return sign | ((magnitude - 0x3800_0000 + 0xfff + ((magnitude >>> 13) & 1)) >>> 13);
  });
}

/** The float32 of each float16. */
export function fromFloat16(halves: Uint16Array): Float32Array {
  return Float32Array.from(halves, (half) => {
    const sign = half & 0x8000 ? -1 : 1;
    const exponent = (half >>> 10) & 0x1f;
    const fraction = half & 0x3ff;
    if (exponent === 0x1f) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
    return sign * (exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25));
  });
}

function roundToEven(x: number): number {
  const below = Math.floor(x);
  const rest = x - below;
  return rest > 0.5 || (rest === 0.5 && below % 2 === 1) ? below + 1 : below;
}

function mapTensors(tensors: Tensors, change: (tensor: TensorData, name: string) => TensorData): Tensors {
  const changed: Record<string, TensorData> = Object.create(null) as Record<string, TensorData>;
  for (const [name, tensor] of Object.entries(tensors)) changed[name] = change(tensor, name);
  return changed;
}
