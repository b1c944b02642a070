/** The agents: their sizes, and that acting, learning and the plain equations say the same. */
import { describe, expect, test } from "vitest";
import { grad } from "../../src/compile/grad.ts";
import { input, mul, scan, sizeOf, sum, type Tensor, zeros } from "../../src/graph/index.ts";
import type { Value } from "../../src/graph/op.ts";
import { type Agent, fwmAgent, lstmAgent } from "../../src/model/agents.ts";
import {
  fastWeightShape,
  fwmStep,
  fwmVariants,
  fwmWeights,
  readVectors,
  writeVectors,
} from "../../src/model/fwm.ts";
import { fwmEpisode } from "../../src/model/fwmEpisode.ts";
import { interpret } from "../../src/runtime/oracle.ts";
import { expectClose, normals } from "../support/check.ts";

const task = { observation: 17, actions: 3 };

function countWeights({ parameters }: Agent): number {
  return parameters.reduce((total, { shape }) => total + sizeOf(shape), 0);
}

describe("sizes", () => {
  test("the FWM agent has 10,933 weights", () => {
    expect(countWeights(fwmAgent({ ...task, hidden: 32, memory: 16, reads: 3 }))).toBe(10_933);
  });

  test.each([
    [512, 1_089_540],
    [1024, 4_276_228],
    [2048, 16_941_060],
    [4096, 67_436_548],
  ])("the LSTM agent of width %d has %d weights", (hidden, weights) => {
    expect(countWeights(lstmAgent({ ...task, hidden }))).toBe(weights);
  });
});

/** Drawn values; the scale decides whether the memory outgrows norm 1. */
function drawn(tensors: readonly Tensor[], scale: number): Map<Tensor, Value> {
  return new Map(tensors.map((tensor, i) => [tensor, normals(tensor.shape, 100 + i, scale)]));
}

const variants = {
  ...fwmVariants,
  "concatenated keys": { ...fwmVariants.releasedMetaRl, keys: "concat" as const },
};
const memories = Object.entries(variants).flatMap(([name, variant]) => [
  { name: `${name}, below norm 1`, variant, scale: 0.2 },
  { name: `${name}, above norm 1`, variant, scale: 2 },
]);

// Both sides are float64; the two forms add up in different orders.
const same = { rtol: 1e-8, atol: 1e-9 };

describe.each([
  { T: 7, B: 3, H: 5, D: 4 },
  { T: 1, B: 1, H: 3, D: 2 },
])("an episode of $T steps from an empty memory", ({ T, B, H, D }) => {
  test.each(memories)("$name: the plain equations' outputs and gradients", ({ variant, scale }) => {
    const w = fwmWeights("fwm", { hidden: H, memory: D, reads: 3 }, variant);
    const h = input("h", [T, B, H]);
    const plain = scan({ carry: [zeros(fastWeightShape(w, B))], xs: [h] }, ([F], [ht]) => {
      const next = fwmStep(w, ht!, F!);
      return { carry: [next.F], ys: [next.y] };
    });
    const weights = [w.write, w.read, w.out].flatMap(({ W, b }) => (b ? [W, b] : [W]));
    const given = drawn([h, ...weights], scale);
    const coefficients = input("coefficients", [T, B, H]);
    given.set(coefficients, normals([T, B, H], 7));
    const results = (y: Tensor): Tensor[] => [y, ...grad(sum(mul(y, coefficients)), [h, ...weights])];
    const got = interpret(results(fwmEpisode(w, h).y), given);
    const want = interpret(results(plain.ys[0]!), given);
    got.forEach(({ data }, i) => {
      expectClose(data, want[i]!.data, { ...same, label: i === 0 ? "y" : `gradient ${i}` });
    });
    if (T === 1) return;
    // The norm rule was at work in the one case and not in the other.
    const [F] = interpret([plain.carry[0]!], given);
    const row = F!.data.length / B;
    const squares = Array.from({ length: B }, (_, b) =>
      F!.data.subarray(b * row, (b + 1) * row).reduce((total, x) => total + x * x, 0),
    );
    if (scale > 1) expect(Math.max(...squares)).toBeCloseTo(1, 9);
    else expect(Math.max(...squares)).toBeLessThan(0.9);
  });
});

test("what each read of an episode matched, in plain loops over the writes", () => {
  const [T, B, H, D] = [6, 2, 4, 3];
  for (const { variant, scale } of memories) {
    const w = fwmWeights("fwm", { hidden: H, memory: D, reads: 2 }, variant);
    const h = input("h", [T, B, H]);
    const weights = [w.write, w.read, w.out].flatMap(({ W, b }) => (b ? [W, b] : [W]));
    const given = drawn([h, ...weights], scale);
    const { k1, k2, v, beta } = writeVectors(w, h);
    const { n, e } = readVectors(w, h);
    const vectors = interpret([k1, k2, v, beta, n, ...e], given).map(({ data }) => data);
    const at = (i: number, t: number, b: number, size = D): number[] =>
      Array.from(vectors[i]!.subarray((t * B + b) * size, (t * B + b + 1) * size));
    const dot = (x: readonly number[], y: readonly number[]): number =>
      x.reduce((sum, value, i) => sum + value * y[i]!, 0);
    const join = (x: number, y: number): number => (variant.keys === "product" ? x * y : x + y);
    const got = interpret(fwmEpisode(w, h).matches(), given);
    for (let b = 0; b < B; b++) {
      const writes: { k1: number[]; k2: number[]; u: number[]; left: number }[] = [];
      const similar = (x: readonly number[], y: readonly number[], write: (typeof writes)[0]): number =>
        join(dot(x, write.k1), dot(y, write.k2));
      for (let t = 0; t < T; t++) {
        const [key1, key2] = [at(0, t, b), at(1, t, b)];
        const given = (x: number[], y: number[]): number[] =>
          Array.from({ length: D }, (_, d) =>
            writes.reduce((sum, write) => sum + write.left * similar(x, y, write) * write.u[d]!, 0),
          );
        const old = given(key1, key2);
        const u = at(2, t, b).map((value, d) => at(3, t, b, 1)[0]! * (value - old[d]!));
        writes.push({ k1: key1, k2: key2, u, left: 1 });
        const squares = writes.reduce(
          (sum, p) =>
            sum + writes.reduce((s, q) => s + p.left * q.left * similar(p.k1, p.k2, q) * dot(p.u, q.u), 0),
          0,
        );
        for (const write of writes) write.left /= Math.sqrt(Math.max(1, squares));
        let query = at(4, t, b);
        for (let read = 0; read < 2; read++) {
          const key = at(5 + read, t, b);
          const sizes = writes.map(
            (write) => Math.abs(write.left * similar(query, key, write)) * Math.sqrt(dot(write.u, write.u)),
          );
          const total = sizes.reduce((a, c) => a + c, 0);
          const row = got[read]!.data.subarray((b * T + t) * T, (b * T + t + 1) * T);
          const want = Array.from({ length: T }, (_, i) => (i <= t ? sizes[i]! / total : 0));
          expectClose(row, want, { ...same, label: `read ${read + 1}, step ${t}` });
          const answer = given(query, key);
          const mean = answer.reduce((a, c) => a + c, 0) / D;
          const spread = answer.reduce((a, c) => a + (c - mean) ** 2, 0) / D;
          query = answer.map((x) => (x - mean) / Math.sqrt(spread + 1e-5));
        }
      }
    }
  }
});

/** Acts in the oracle through an episode; gives logits [T, B, A] and values [T, B]. */
function actThrough(agent: Agent, weights: ReadonlyMap<Tensor, Value>, x: Value) {
  const [T, B, O] = x.shape as [number, number, number];
  const empty = (shape: readonly number[]): Value => ({ shape, data: new Float64Array(sizeOf(shape)) });
  let carried = agent.state.map(({ shape }) => empty(shape(B, T)));
  const recorded = agent.history.map(({ shape }) => empty(shape(B, T)));
  const logits: number[] = [];
  const values: number[] = [];
  for (let t = 0; t < T; t++) {
    const seen = input("x", [B, O]);
    const here = input("here", [T]);
    const before = carried.map(({ shape }, i) => input(`carried${i}`, shape));
    const records = recorded.map(({ shape }, i) => input(`recorded${i}`, shape));
    const step = agent.act({ x: seen, here, state: before, history: records });
    const given = new Map<Tensor, Value>([
      ...weights,
      [seen, { shape: [B, O], data: x.data.slice(t * B * O, (t + 1) * B * O) }],
      [here, { shape: [T], data: Float64Array.from({ length: T }, (_, i) => (i === t ? 1 : 0)) }],
      ...before.map((tensor, i) => [tensor, carried[i]!] as const),
      ...records.map((tensor, i) => [tensor, recorded[i]!] as const),
    ]);
    const out = interpret([step.logits, step.value, ...step.state, ...step.rows], given);
    logits.push(...out[0]!.data);
    values.push(...out[1]!.data);
    carried = out.slice(2, 2 + carried.length);
    out.slice(2 + carried.length).forEach(({ data }, i) => {
      const width = data.length / B;
      for (let b = 0; b < B; b++) {
        recorded[i]!.data.set(data.subarray(b * width, (b + 1) * width), (b * T + t) * width);
      }
    });
  }
  return { logits, values };
}

describe("acting step by step gives the policy and values of the whole episode", () => {
  const sizes = { observation: 4, actions: 3, hidden: 5, memory: 3, reads: 3 };
  const agents: [name: string, agent: Agent, scale: number][] = [
    ["LSTM", lstmAgent(sizes), 0.7],
    ...memories.map(({ name, variant, scale }): [string, Agent, number] => [
      `FWM, ${name}`,
      fwmAgent({ ...sizes, variant }),
      scale,
    ]),
  ];

  test.each(agents)("%s", (_, agent, scale) => {
    const x = input("x", [6, 2, 4]);
    const weights = drawn(agent.parameters, scale);
    const seen = normals([6, 2, 4], 3);
    const { logits, value } = agent.episode(x);
    const [wantLogits, wantValues] = interpret([logits, value], new Map([...weights, [x, seen]]));
    const got = actThrough(agent, weights, seen);
    expectClose(got.logits, wantLogits!.data, { ...same, label: "logits" });
    expectClose(got.values, wantValues!.data, { ...same, label: "values" });
  });
});
