/** The four kinds of dropout: what they erase, how much, and that a run draws the same under the same key. */
import { expect, test } from "vitest";
import { gradients } from "../../src/compile/grad.ts";
import {
  constant,
  elementDropout,
  input,
  lockedDropout,
  sizeOf,
  type Tensor,
  weightDropout,
  wordDropout,
} from "../../src/graph/index.ts";
import { nodeRuntime } from "../../src/runtime/node.ts";
import { compile } from "../../src/runtime/program.ts";

const shape = [5, 40, 30] as const;
const ones = new Float32Array(sizeOf(shape)).fill(1);

async function run(make: (x: Tensor) => Tensor, size: readonly number[], steps: readonly number[]) {
  const x = input("x", size);
  const y = make(x);
  const [dx] = gradients([y], [constant(new Float32Array(sizeOf(size)).fill(1), size)], [x]);
  const program = await compile({ outputs: { y, dx: dx! } }, { runtime: nodeRuntime, threads: 1 });
  try {
    const all: { y: Float32Array; dx: Float32Array }[] = [];
    for (const step of steps) {
      const out = await program.run({ x: ones.subarray(0, sizeOf(size)) }, { seed: 3, step });
      all.push({ y: out.y!.slice() as Float32Array, dx: out.dx!.slice() as Float32Array });
    }
    return all;
  } finally {
    await program.release();
  }
}

const mean = (values: Float32Array): number => values.reduce((a, b) => a + b, 0) / values.length;

test.each([
  ["element", (x: Tensor) => elementDropout(x, 0.3, "m"), 6000],
  ["locked", (x: Tensor) => lockedDropout(x, 0.3, "m"), 1200],
  ["weight", (x: Tensor) => weightDropout(x, 0.3, "m"), 6000],
] as const)(
  "%s: keeps its share, scaled up, and passes the gradient of what it keeps",
  async (_, make, draws) => {
    const [first, again, other] = (await run(make, shape, [7, 7, 8])) as [
      { y: Float32Array; dx: Float32Array },
      { y: Float32Array; dx: Float32Array },
      { y: Float32Array; dx: Float32Array },
    ];
    expect([...new Set(first.y)].sort()).toEqual([0, Math.fround(1 / 0.7)]);
    // Four standard deviations of the mean of so many draws.
    expect(Math.abs(mean(first.y) - 1)).toBeLessThan(4 * Math.sqrt(0.3 / 0.7 / draws));
    expect(again.y).toEqual(first.y);
    expect(other.y).not.toEqual(first.y);
    expect(first.dx).toEqual(first.y);
  },
);

test("locked: one mask for all times", async () => {
  const { y } = (await run((x) => lockedDropout(x, 0.5, "m"), shape, [1]))[0]!;
  const [T, B, F] = shape;
  for (let t = 1; t < T; t++) expect(y.slice(t * B * F, (t + 1) * B * F)).toEqual(y.slice(0, B * F));
});

test("word: whole rows of a table", async () => {
  const { y } = (await run((x) => wordDropout(x, 0.5, "m"), [200, 30], [1]))[0]!;
  const rows = Array.from({ length: 200 }, (_, r) => [...new Set(y.slice(r * 30, (r + 1) * 30))]);
  expect(rows.every((values) => values.length === 1)).toBe(true);
  const kept = rows.filter(([value]) => value !== 0).length;
  expect(kept).toBeGreaterThan(70);
  expect(kept).toBeLessThan(130);
});

test("a rate of 0 is no operation; others must lie in [0, 1)", () => {
  const x = input("x", [2, 3]);
  expect(elementDropout(x, 0, "m")).toBe(x);
  expect(() => elementDropout(x, 1, "m")).toThrow("rate");
  expect(() => lockedDropout(input("y", [3]), 0.5, "m")).toThrow("[T, B, …]");
});
