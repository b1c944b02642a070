/** Half-precision numbers: every one of them, rounding to the nearest, and weights through a file. */
import { describe, expect, test } from "vitest";
import { keyOf, uniform } from "../../src/random.ts";
import { fromFloat16, isFinite16, narrowWeights, toFloat16, widenWeights } from "../../src/store/float16.ts";
import {
  decodeSafetensors,
  encodeSafetensors,
  firstNonFinite,
  type Tensors,
} from "../../src/store/safetensors.ts";

const all = Uint16Array.from({ length: 2 ** 16 }, (_, i) => i);

test("every float16 is itself again", () => {
  const values = fromFloat16(all);
  const back = toFloat16(values);
  const wrong = all.filter((bits) =>
    Number.isNaN(values[bits]) ? isFinite16(bits) || (back[bits]! & 0x7fff) !== 0x7e00 : back[bits] !== bits,
  );
  expect([...wrong]).toEqual([]);
});

test.each<[number, number]>([
  [0, 0x0000],
  [-0, 0x8000],
  [1, 0x3c00],
  [-2, 0xc000],
  [1 / 3, 0x3555],
  [65_504, 0x7bff],
  [65_519.996, 0x7bff],
  [65_520, 0x7c00],
  [1e30, 0x7c00],
  [Number.NEGATIVE_INFINITY, 0xfc00],
  [2 ** -14, 0x0400],
  [2 ** -24, 0x0001],
  // Half way: the even one.
  [2 ** -25, 0x0000],
  [3 * 2 ** -25, 0x0002],
  [1 + 2 ** -11, 0x3c00],
  [1 + 3 * 2 ** -11, 0x3c02],
  [2 ** -14 - 2 ** -25, 0x0400],
  [1e-30, 0x0000],
])("%d is %i", (value, bits) => {
  expect(toFloat16(Float32Array.of(value))[0]).toBe(bits);
});

test("rounding is to the nearest of all float16", () => {
  // The finite ones in ascending order: a number lies between two of them.
  const sorted = fromFloat16(all).filter(Number.isFinite).sort();
  const key = keyOf(1, "float16");
  const values = Float32Array.from({ length: 2000 }, (_, i) => {
    const scale = 2 ** Math.floor(uniform(key, 2 * i) * 44 - 28);
    return (2 * uniform(key, 2 * i + 1) - 1) * Math.min(scale, 65_000);
  });
  const got = fromFloat16(toFloat16(values));
  for (const [i, value] of values.entries()) {
    let [low, high] = [0, sorted.length - 1];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (sorted[middle]! <= value) low = middle;
      else high = middle;
    }
    const best = Math.min(Math.abs(sorted[low]! - value), Math.abs(sorted[high]! - value));
    expect(Math.abs(got[i]! - value)).toBe(best);
  }
});

describe("weights", () => {
  const tensors: Tensors = {
    W: { dtype: "f32", shape: [2, 2], data: Float32Array.of(0.1, -3, 1e-8, 40_000.5) },
    steps: { dtype: "i32", shape: [1], data: Int32Array.of(70_000) },
  };

  test("go through a file as F16 and come back as f32; other types stay", () => {
    const bytes = encodeSafetensors(narrowWeights(tensors));
    expect(new TextDecoder().decode(bytes)).toContain('"W":{"dtype":"F16","shape":[2,2]');
    const read = decodeSafetensors(bytes, { file: "m", finite: true }).tensors;
    expect(read.W!.dtype).toBe("f16");
    const { W, steps } = widenWeights(read);
    expect([W!.dtype, [...W!.data]]).toEqual(["f32", [0.0999755859375, -3, 0, 40_000]]);
    expect(steps).toEqual(tensors.steps);
  });

  test("that are too large are named", () => {
    const large: Tensors = { "lstm.W": { dtype: "f32", shape: [3], data: Float32Array.of(1, -7e4, 2) } };
    expect(() => narrowWeights(large)).toThrow(/lstm\.W\[1\] is -70000, too large for float16/);
  });

  test("that are not finite are found in a file", () => {
    const bad: Tensors = { W: { dtype: "f16", shape: [3], data: Uint16Array.of(0x3c00, 0xfc00, 0x7e00) } };
    expect(firstNonFinite(bad)).toEqual({ name: "W", index: 1, value: Number.NEGATIVE_INFINITY });
    expect(() => decodeSafetensors(encodeSafetensors(bad), { file: "m", finite: true })).toThrow(
      "m: W[1] is -Infinity",
    );
  });
});
