/** The memory alone: tasks with a known answer, and the trained system's equations in the oracle. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { UsageError } from "../../src/errors.ts";
import { constant, layerNorm as graphLayerNorm, type Tensor } from "../../src/graph/index.ts";
import { AssociativeMemory } from "../../src/inference/memory.ts";
import {
  type KeyCombination,
  keySize,
  readStep,
  readVectors,
  releasedCatbabi,
  writeStep,
} from "../../src/model/fwm.ts";
import { interpret } from "../../src/runtime/oracle.ts";
import { expectClose, normals } from "../support/check.ts";

/** A row of a Hadamard matrix: entries ±1, mean 0 for rows above 0, any two rows at right angles. */
function pattern(row: number, size = 8): Float64Array {
  return Float64Array.from({ length: size }, (_, column) => (popcount(row & column) % 2 === 0 ? 1 : -1));
}

function popcount(n: number): number {
  return n === 0 ? 0 : (n & 1) + popcount(n >> 1);
}

/** The same direction with length 1. */
function unit(vector: Float64Array): Float64Array {
  const length = Math.hypot(...vector);
  return vector.map((x) => x / length);
}

describe("a memory with a known content", () => {
  const [mary, kitchen, garden] = [pattern(1), pattern(2), pattern(3)];
  const [where, color] = [unit(pattern(4)), unit(pattern(5))];

  test("gives back the pair it stored, and nothing for another key", () => {
    const memory = new AssociativeMemory({ size: 8, precision: "f64" });
    expect(Array.from(memory.write(unit(mary), where, unit(kitchen)))).toEqual(new Array(8).fill(0));
    expectClose(memory.read(unit(mary), [where], { raw: true }), unit(kitchen), { rtol: 0, atol: 1e-15 });
    // The pattern has mean 0 and variance 1, so the layer norm restores it up to its own eps of 1e-5 beside
    // the variance 1/8 of the stored unit vector.
    expectClose(memory.read(unit(mary), [where]), kitchen, { rtol: 1e-4, atol: 0 });
    expectClose(memory.read(unit(mary), [color], { raw: true }), new Float64Array(8), {
      rtol: 0,
      atol: 1e-15,
    });
  });

  test("moves the old value towards the new one by β", () => {
    const memory = new AssociativeMemory({ size: 8, precision: "f64" });
    const half = (v: Float64Array) => v.map((x) => x / 2);
    memory.write(unit(mary), where, half(unit(kitchen)));
    const old = memory.write(unit(mary), where, half(unit(garden)), 0.25);
    expectClose(old, half(unit(kitchen)), { rtol: 0, atol: 1e-15 });
    const mixed = unit(kitchen).map((x, i) => 0.5 * (0.75 * x + 0.25 * unit(garden)[i]!));
    expectClose(memory.read(unit(mary), [where], { raw: true }), mixed, { rtol: 0, atol: 1e-15 });
    memory.write(unit(mary), where, half(unit(garden)), 1);
    expectClose(memory.read(unit(mary), [where], { raw: true }), half(unit(garden)), {
      rtol: 0,
      atol: 1e-15,
    });
  });

  test("chains a → b → c → d", () => {
    const memory = new AssociativeMemory({ size: 8 });
    const [a, b, c, d] = [pattern(1), pattern(2), pattern(3), pattern(6)];
    for (const [from, to] of [
      [a, b],
      [b, c],
      [c, d],
    ] as const) {
      memory.write(unit(from), where, unit(to));
    }
    const chain = memory.readChain(a, [where, where, where]);
    // float32 weights, and a layer norm whose eps is 1e-5 of a variance that the norm of F has made about 1/24.
    [b, c, d].forEach((want, i) => {
      expectClose(chain[i]!, want, { rtol: 2e-3, atol: 0, label: `read ${i + 1}` });
    });
    expect(memory.norm).toBeCloseTo(1, 6);
  });

  test("keeps its norm at 1 or below, whatever is written", () => {
    const numbers = fc.array(fc.double({ min: -3, max: 3, noNaN: true }), { minLength: 3, maxLength: 3 });
    fc.assert(
      fc.property(fc.array(fc.tuple(numbers, numbers, numbers), { maxLength: 8 }), (writes) => {
        const memory = new AssociativeMemory({ size: 3 });
        for (const [k1, k2, v] of writes) memory.write(k1, k2, v);
        return memory.norm <= 1 + 1e-6;
      }),
    );
  });

  test("a copy goes its own way, and JSON restores every bit", () => {
    const memory = new AssociativeMemory({ keySize: 8, valueSize: 3, scale: 1 / 3 });
    memory.write(unit(mary), where, [1, 2, 3], 0.7);
    const copy = memory.clone();
    const restored = AssociativeMemory.fromJSON(JSON.parse(JSON.stringify(memory)));
    copy.write(unit(mary), where, [0, 0, 0]);
    expect(restored.weights).toEqual(memory.weights);
    expect(restored.scale).toBe(1 / 3);
    expect(copy.weights).not.toEqual(memory.weights);
    copy.clear();
    expect(copy.norm).toBe(0);
  });
});

describe.each<KeyCombination>(["product", "concat"])("against the graph's equations, keys by %s", (keys) => {
  const D = 5;
  const asTensor = (data: ArrayLike<number>, shape: number[]): Tensor => constant(data, shape);

  // Keys of size about √D make norms over 1 in all but the first writes, so both branches are met.
  test.each([1, 1 / D])("writes at scale %d, with norms under and over 1", (scale) => {
    const memory = new AssociativeMemory({ size: D, keys, scale, precision: "f64" });
    const rows = memory.weights.length / D;
    let F = asTensor(new Float64Array(rows * D), [1, rows, D]);
    let over = 0;
    for (let t = 0; t < 7; t++) {
      const size = t < 2 ? 0.3 : 1;
      const [k1, k2, v] = [0, 1, 2].map((i) => normals([D], 10 * t + i, size).data);
      const beta = 0.3 + 0.1 * t;
      memory.write(k1!, k2!, v!, beta);
      const [after] = interpret(
        [
          writeStep(keys, F, {
            k1: asTensor(k1!, [1, D]),
            k2: asTensor(k2!, [1, D]),
            v: asTensor(v!, [1, D]),
            beta: asTensor([beta * scale], [1, 1]),
          }),
        ],
        new Map(),
      );
      // Both compute in float64; the order of the sums differs.
      expectClose(memory.weights, after!.data, { rtol: 0, atol: 1e-13, label: `write ${t}` });
      F = asTensor(after!.data, [1, rows, D]);
      if (Math.abs(memory.norm - 1) < 1e-9) over++;
    }
    expect(over).toBeGreaterThan(0);
    expect(over).toBeLessThan(7);
  });

  test("reads as the model reads", () => {
    const memory = new AssociativeMemory({ size: D, keys, precision: "f64" });
    for (let t = 0; t < 4; t++) {
      const [k1, k2, v] = [0, 1, 2].map((i) => normals([D], 100 + 10 * t + i, 0.5).data);
      memory.write(k1!, k2!, v!);
    }
    // An identity for the read map hands the model the query and keys of our choice.
    const vectors = normals([4 * D], 7).data;
    const identity = Float64Array.from({ length: 16 * D * D }, (_, i) => (i % (4 * D + 1) === 0 ? 1 : 0));
    const map = { W: asTensor(identity, [4 * D, 4 * D]) };
    const weights = {
      hidden: 4 * D,
      memory: D,
      reads: 3,
      variant: { ...releasedCatbabi, keys, tanhKeys: false, tanhQuery: false },
      write: map,
      read: map,
      out: map,
    };
    const F = asTensor(memory.weights, [1, keySize(weights), D]);
    const [want] = interpret(
      [readStep(weights.variant.keys, F, readVectors(weights, asTensor(vectors, [1, 4 * D])))],
      new Map(),
    );
    const [n, ...e] = [0, 1, 2, 3].map((i) => vectors.slice(i * D, (i + 1) * D));
    expectClose(memory.read(n!, e), want!.data, { rtol: 0, atol: 1e-12 });
    // Without the norm between, one read is the same up to that norm.
    const raw = memory.read(n!, e.slice(0, 1), { raw: true });
    const [normed] = interpret([graphLayerNorm(asTensor(raw, [D]))], new Map());
    expectClose(memory.read(n!, e.slice(0, 1)), normed!.data, { rtol: 0, atol: 1e-12 });
  });
});

describe.each(["f32", "f64"] as const)("numbers too large to compute with, in %s", (precision) => {
  const filled = () => {
    const memory = new AssociativeMemory({ keySize: 2, valueSize: 3, precision });
    memory.write([1, 0], [0, 1], [0.1, 0.2, 0.3]);
    return memory;
  };

  test.each<[string, (memory: AssociativeMemory) => unknown]>([
    ["a value", (memory) => memory.write([1, 0], [0, 1], [1e300, 0, 0])],
    ["keys", (memory) => memory.write([1e200, 0], [0, 1e200], [1, 0, 0])],
    ["a strength", (memory) => memory.write([1, 0], [0, 1], [1, 0, 0], 1e308)],
    ["a query", (memory) => memory.read([1e300, 0], [[0, 1e300]])],
    ["a query whose square is", (memory) => memory.read([1e180, 0], [[0, 1]])],
  ])("%s is refused, and the memory is as it was", (_, act) => {
    const [memory, untouched] = [filled(), filled()];
    expect(() => act(memory)).toThrow(UsageError);
    expect(() => act(memory)).toThrow(/too large to compute with; the memory is as it was/);
    expect(memory.weights).toEqual(untouched.weights);
  });

  test("begin beyond float32: a large value is stored, as far as the norm allows", () => {
    const memory = filled();
    memory.write([1, 0], [0, 1], [1e100, 0, 0]);
    expectClose(memory.read([1, 0], [[0, 1]], { raw: true }), [1, 0, 0], { rtol: 1e-6, atol: 1e-30 });
    expect(memory.norm).toBeCloseTo(1, 6);
  });
});

describe("misuse is named", () => {
  const memory = new AssociativeMemory({ keySize: 2, valueSize: 3 });
  test.each([
    [() => memory.write([1, 2, 3], [1, 2], [1, 2, 3]), "write: k1 has 3 numbers, 2 are needed"],
    [() => memory.write([1, 2], [1, 2], [1, 2, Number.NaN]), "write: v[2] is NaN"],
    [() => memory.write([1, 2], [1, 2], [1, 2, 3], Number.NaN), "write: beta must be a number"],
    [() => memory.read([1, 2], []), "read: at least one key is needed"],
    [
      () =>
        memory.read(
          [1, 2],
          [
            [1, 2],
            [1, 2],
          ],
        ),
      "read: a chain of reads needs values that fit as keys",
    ],
    [() => new AssociativeMemory({}), "keySize must be a whole number"],
    [() => new AssociativeMemory({ size: 4, scale: 0 }), "scale must be a positive number"],
    [() => new AssociativeMemory({ size: 60_000 }), "fast weights are too many"],
    [() => AssociativeMemory.fromJSON({ format: "other" }), "not the JSON of a memory"],
    [() => AssociativeMemory.fromJSON({ ...memory.toJSON(), weights: [1] }), "do not fit its sizes"],
    [() => AssociativeMemory.fromJSON({ ...memory.toJSON(), keys: "sum" }), "unknown keys"],
  ])("%#", (act, message) => {
    expect(act).toThrow(message);
  });
});
