/** Shared by tests: comparing arrays, drawing operands, running a graph on ONNX Runtime and in the oracle. */
import { expect } from "vitest";
import { input, type Shape, sizeOf, type Tensor, type TensorType } from "../../src/graph/index.ts";
import type { Sample, SampleInput, Value } from "../../src/graph/op.ts";
import { keyOf, normal, uniform } from "../../src/random.ts";
import type { HostData } from "../../src/runtime/host.ts";
import { nodeRuntime } from "../../src/runtime/node.ts";
import { interpret } from "../../src/runtime/oracle.ts";
import { compile } from "../../src/runtime/program.ts";
import { State } from "../../src/runtime/state.ts";

/** How close two arrays have to be: |got - want| ≤ atol + rtol |want|. */
export interface Tolerance {
  readonly rtol: number;
  readonly atol: number;
  readonly label?: string;
}

/** Demands that two arrays agree, and says where they differ most if they do not. */
export function expectClose(
  got: ArrayLike<number | bigint>,
  want: ArrayLike<number>,
  tolerance: Tolerance,
): void {
  expect(got.length, `${tolerance.label ?? ""} length`).toBe(want.length);
  let worst = { at: -1, excess: 0, got: 0, want: 0 };
  for (let i = 0; i < want.length; i++) {
    const [g, w] = [Number(got[i]), want[i]!];
    if (Object.is(g, w) || g === w) continue;
    const excess = Math.abs(g - w) / (tolerance.atol + tolerance.rtol * Math.abs(w));
    if (!(excess <= worst.excess)) worst = { at: i, excess, got: g, want: w };
  }
  expect(
    worst.excess <= 1,
    `${tolerance.label ?? "values"}: at ${worst.at} got ${worst.got}, want ${worst.want} (${worst.excess.toFixed(2)}x the tolerance)`,
  ).toBe(true);
}

/** Standard-normal values under a seed. */
export function normals(shape: Shape, seed: number, scale = 1): Value {
  const key = keyOf(seed, "test");
  return { shape, data: Float64Array.from({ length: sizeOf(shape) }, (_, i) => scale * normal(key, i)) };
}

/** An operand of a sample with values drawn as it asks. */
export function drawOperand(spec: SampleInput, seed: number): { type: TensorType; value: Value } {
  const key = keyOf(seed, "operand");
  const shape = Array.isArray(spec) ? (spec as Shape) : (spec as { shape: Shape }).shape;
  const draw = (f: (i: number) => number): Value => ({
    shape,
    data: Float64Array.from({ length: sizeOf(shape) }, (_, i) => f(i)),
  });
  if ("below" in spec) {
    return { type: { shape, dtype: "i32" }, value: draw((i) => Math.floor(uniform(key, i) * spec.below)) };
  }
  if ("dtype" in spec) {
    return { type: { shape, dtype: "bool" }, value: draw((i) => (uniform(key, i) < 0.5 ? 1 : 0)) };
  }
  if ("range" in spec) {
    const [low, high] = spec.range;
    return { type: { shape, dtype: "f32" }, value: draw((i) => low + (high - low) * uniform(key, i)) };
  }
  // float32 values, so that both sides start from the same numbers
  return { type: { shape, dtype: "f32" }, value: draw((i) => Math.fround(normal(key, i))) };
}

/** A sample with its sizes renamed; 0 and 1 keep their meaning. */
export function renamed<A>(
  sample: Sample<A>,
  size: (name: number) => number,
): { inputs: readonly SampleInput[]; attrs: A } {
  const shape = (old: Shape): Shape => old.map((n) => (n <= 1 ? n : size(n)));
  const inputs = sample.inputs.map((spec): SampleInput => {
    if (Array.isArray(spec)) return shape(spec as Shape);
    const named = spec as Exclude<SampleInput, Shape>;
    const bound = "below" in named ? { below: named.below <= 1 ? named.below : size(named.below) } : {};
    return { ...named, ...bound, shape: shape(named.shape) };
  });
  const attrs =
    typeof sample.attrs === "function"
      ? (sample.attrs as (s: typeof size) => A)(size)
      : (sample.attrs ?? null);
  return { inputs, attrs: attrs as A };
}

/** Runs a graph of inputs on ONNX Runtime: `feeds` by tensor. */
export async function runOrt(
  outputs: readonly Tensor[],
  feeds: ReadonlyMap<Tensor, Value>,
): Promise<HostData[]> {
  const program = await compile(
    { outputs: Object.fromEntries(outputs.map((output, i) => [`out${i}`, output])) },
    { runtime: nodeRuntime, threads: 1 },
  );
  try {
    const inputs = Object.fromEntries(
      [...program.plan.inputs].map(([name, tensor]) => [name, Array.from(feeds.get(tensor)!.data)]),
    );
    const results = await program.run(inputs);
    return outputs.map((_, i) => results[`out${i}`]!.slice());
  } finally {
    await program.release();
  }
}

/** Inputs for drawn operands. */
export function inputsFor(types: readonly TensorType[]): Tensor[] {
  return types.map(({ shape, dtype }, i) => input(`in${i}`, shape, dtype));
}

/** Σ outputs · coefficients in the oracle, as a function of the values of some tensors. */
export function weightedSum(
  outputs: readonly Tensor[],
  coefficients: readonly Float64Array[],
  values: ReadonlyMap<Tensor, Value>,
): number {
  return interpret(outputs, values).reduce(
    (total, { data }, k) => total + data.reduce((part, x, i) => part + x * coefficients[k]![i]!, 0),
    0,
  );
}

/** Gradient of a scalar function by central differences in float64. */
export function centralDifferences(
  f: (data: Float64Array) => number,
  at: Float64Array,
  step = 1e-5,
): Float64Array {
  return at.map((x, i) => {
    const moved = at.slice();
    moved[i] = x + step;
    const up = f(moved);
    moved[i] = x - step;
    return (up - f(moved)) / (2 * step);
  });
}

/** Like `runOrt`, with states given too. */
export async function runOrtWithState(
  outputs: readonly Tensor[],
  given: ReadonlyMap<Tensor, Value>,
): Promise<HostData[]> {
  const state = new State();
  const program = await compile(
    { outputs: Object.fromEntries(outputs.map((output, i) => [`out${i}`, output])) },
    { runtime: nodeRuntime, threads: 1, state },
  );
  try {
    const inputs: Record<string, number[]> = {};
    for (const [tensor, { data }] of given) {
      const { name } = tensor.node.attrs as { name: string };
      if (state.has(name)) state.set(name, data);
      else if (program.plan.inputs.has(name)) inputs[name] = Array.from(data);
    }
    const results = await program.run(inputs);
    return outputs.map((_, i) => results[`out${i}`]!.slice());
  } finally {
    await program.release();
  }
}
