/** What holds for every system of the registry, tested at small sizes: a new one needs a line in support/systems.ts. */
import { describe, expect, test } from "vitest";
import { grad } from "../../src/compile/grad.ts";
import {
  add,
  crossEntropy,
  input,
  slice,
  stateAttrs,
  type Tensor,
  topological,
} from "../../src/graph/index.ts";
import type { Value } from "../../src/graph/op.ts";
import type { MaskAttrs } from "../../src/graph/ops/source.ts";
import { chunkOf } from "../../src/model/chunk.ts";
import { systemFlops, systemNames, systemSchema } from "../../src/model/registry.ts";
import { countWeights, type WindowOutput } from "../../src/model/sequence.ts";
import { fillMask, keyOf } from "../../src/random.ts";
import { nodeRuntime } from "../../src/runtime/node.ts";
import { interpret } from "../../src/runtime/oracle.ts";
import { compile } from "../../src/runtime/program.ts";
import { flatten } from "../../src/store/flatten.ts";
import { expectClose, normals, runOrtWithState, type Tolerance } from "../support/check.ts";
import {
  drawnModel,
  drawTokens,
  freshState,
  reachingBack,
  smallSystems,
  stepwise,
} from "../support/systems.ts";

// Both sides in float64, by different orders of summation.
const exact: Tolerance = { rtol: 1e-9, atol: 1e-11 };
// Float32: against the largest entry of the tensor, as in fixtures.test.ts.
const single = (want: Float64Array): Tolerance => ({
  rtol: 0,
  atol: 1e-4 * want.reduce((largest, x) => Math.max(largest, Math.abs(x)), 1e-3),
});

test("every system of the registry is here", () => {
  expect(Object.keys(smallSystems).sort()).toEqual(systemNames().sort());
});

/** Row b of [T, B, N] at time t. */
function row({ shape, data }: Value, t: number, b: number): Float64Array {
  const [, B, N] = shape as [number, number, number];
  return data.subarray((t * B + b) * N, (t * B + b + 1) * N);
}

/** Row b of a state part. */
function rowOf({ shape, data }: Value, b: number): Float64Array {
  const size = data.length / shape[0]!;
  return data.subarray(b * size, (b + 1) * size);
}

/** The masks a graph draws, as a program draws them under a seed and step. */
function drawnMasks(outputs: readonly Tensor[], seed: number, step: number): Map<Tensor, Value> {
  const masks = topological(outputs).filter(({ op }) => op.name === "randomMask");
  return new Map(
    masks.map(({ attrs, outputs: [tensor] }) => {
      const { name, shape, keep } = attrs as MaskAttrs;
      const drawn = new Uint8Array(shape.reduce((a, b) => a * b, 1));
      fillMask(drawn, keep, keyOf(seed, "mask", name, step));
      return [tensor!, { shape, data: Float64Array.from(drawn) }];
    }),
  );
}

describe.each(Object.entries(smallSystems))("%s", (_, settings) => {
  const V = settings.vocabulary;
  const { model, weights } = drawnModel(settings);

  /** Values of a state that a few tokens have been read into. */
  function warmState(B: number, seed: number): Value[] {
    const before = freshState(model, B, "cold.");
    const tokens = input("prefix", [3, B], "i32");
    const { state } = model.window({ tokens, state: before.tensors, training: false });
    return interpret(state, new Map([...weights, ...before.values, [tokens, drawTokens([3, B], V, seed)]]));
  }

  /** A window's graph with the values it is run at. */
  function window(T: number, B: number, alive: (t: number, b: number) => boolean, training = false) {
    const tokens = input("tokens", [T, B], "i32");
    const mask = input("mask", [T, B]);
    const before = freshState(model, B).tensors;
    const start = warmState(B, 5);
    const values = new Map<Tensor, Value>([
      ...weights,
      ...before.map((tensor, i) => [tensor, start[i]!] as const),
      [tokens, drawTokens([T, B], V, 6)],
      [
        mask,
        {
          shape: [T, B],
          data: Float64Array.from({ length: T * B }, (__, i) => Number(alive(Math.floor(i / B), i % B))),
        },
      ],
    ]);
    const made = model.window({ tokens, state: before, mask, training });
    return { tokens, mask, before, start, values, made };
  }

  test("its settings are what the schema takes, and cost something", () => {
    expect(systemSchema.parse(settings)).toEqual(settings);
    const cost = (tokens: number): number => systemFlops(settings, { tokens, positions: tokens, window: 10 });
    // At least one product and one sum for every weight that is not merely looked up.
    expect(cost(20)).toBeGreaterThan(20 * 1.5 * (countWeights(model) - V * settings.embedding));
    // Positions are projected once for all rows.
    expect(cost(40) / cost(20)).toBeGreaterThan(1.5);
    expect(cost(40) / cost(20)).toBeLessThanOrEqual(2);
  });

  test("parameters have names of their own; state is one row per row of the batch", () => {
    const names = model.parameters.map((parameter) => stateAttrs(parameter)!.name);
    expect(new Set(names).size).toBe(names.length);
    for (const { shape } of model.recurrent) {
      expect(shape(5)).toEqual([5, ...shape(1).slice(1)]);
    }
  });

  // Padding at the start, in the middle, at the end, nowhere, everywhere.
  const T = 9;
  // Text has no padding but at the end of a window, and AWD-TXL counts on it.
  const padded = (t: number, b: number): boolean =>
    (settings.name === "awd-txl"
      ? [t < 7, t < 1, t < 6, true, false]
      : [t >= 2, t < 3 || t > 5, t < 6, true, false])[b]!;

  test("a window gives what steps give, wherever the padding is", async () => {
    const { tokens, mask, before, start, values, made } = window(T, 5, padded);
    const stepped = stepwise(model, tokens, before, mask);
    const outputs = [made.logits, ...made.state];
    const got = interpret(outputs, values);
    const want = interpret([stepped.logits, ...stepped.state], values);
    const inFloat = await runOrtWithState(outputs, values);
    for (let b = 0; b < 5; b++) {
      for (let t = 0; t < T; t++) {
        if (!padded(t, b)) continue;
        expectClose(row(got[0]!, t, b), row(want[0]!, t, b), {
          ...exact,
          label: `logits at ${t} of row ${b}`,
        });
        const float = { shape: got[0]!.shape, data: Float64Array.from(inFloat[0] as Float32Array) };
        expectClose(row(float, t, b), row(want[0]!, t, b), {
          ...single(want[0]!.data),
          label: `logits at ${t} of row ${b} in float32`,
        });
      }
    }
    model.recurrent.forEach(({ name }, i) => {
      expectClose(got[i + 1]!.data, want[i + 1]!.data, { ...exact, label: `state ${name}` });
      expectClose(inFloat[i + 1]!, want[i + 1]!.data, {
        ...single(want[i + 1]!.data),
        label: `${name} in float32`,
      });
      expectClose(rowOf(got[i + 1]!, 4), rowOf(start[i]!, 4), { ...exact, label: `${name} of a padded row` });
    });
  });

  test("a chunk gives what steps give at its positions, wherever the padding is", () => {
    const alive = (t: number, b: number): boolean => [t >= 2, t < 3 || t > 5, t < 6, true, false][b]!;
    const { tokens, mask, before, values } = window(T, 5, alive);
    const last = [8, 8, 5, 0, 3];
    const positions = input("positions", [5, 1], "i32");
    const made = chunkOf(model, { tokens, mask, positions, state: before });
    const stepped = stepwise(model, tokens, before, mask);
    const at = { shape: [5, 1], data: Float64Array.from(last, (t, b) => t * 5 + b) };
    const [logits, ...state] = interpret([made.logits, ...made.state], new Map([...values, [positions, at]]));
    const want = interpret([stepped.logits, ...stepped.state], values);
    // Row 4 is nothing but padding.
    for (let b = 0; b < 4; b++) {
      const got = logits!.data.subarray(b * V, (b + 1) * V);
      expectClose(got, row(want[0]!, last[b]!, b), { ...exact, label: `logits of row ${b}` });
    }
    state.forEach((part, i) => {
      expectClose(part.data, want[i + 1]!.data, { ...exact, label: model.recurrent[i]!.name });
    });
  });

  test("padding changes nothing: each row as if its tokens stood alone", () => {
    const { values, made, tokens, start } = window(T, 5, padded);
    const together = interpret([made.logits, ...made.state], values);
    for (let b = 0; b < 4; b++) {
      const times = [...Array(T).keys()].filter((t) => padded(t, b));
      const alone = input("alone", [times.length, 1], "i32");
      const before = freshState(model, 1).tensors;
      const own = model.window({ tokens: alone, state: before, training: false });
      const [logits, ...state] = interpret(
        [own.logits, ...own.state],
        new Map<Tensor, Value>([
          ...weights,
          ...before.map((t, i) => [t, { shape: t.shape, data: rowOf(start[i]!, b) }] as const),
          [
            alone,
            {
              shape: alone.shape,
              data: Float64Array.from(times, (t) => values.get(tokens)!.data[t * 5 + b]!),
            },
          ],
        ]),
      );
      times.forEach((t, n) => {
        expectClose(row(together[0]!, t, b), row(logits!, n, 0), {
          ...exact,
          label: `logits at ${t} of row ${b}`,
        });
      });
      state.forEach((part, i) => {
        expectClose(rowOf(together[i + 1]!, b), part.data, { ...exact, label: model.recurrent[i]!.name });
      });
    }
  });

  test("windows of 1, 7 and 200 tokens one after the other are one long window", () => {
    const lengths = [1, 7, 200];
    const [total, B] = [208, 1];
    const { model: long, weights: drawn } = drawnModel(reachingBack(settings, total));
    const tokens = input("tokens", [total, B], "i32");
    const before = freshState(long, B);
    const values = new Map<Tensor, Value>([
      ...drawn,
      ...before.values,
      [tokens, drawTokens([total, B], V, 7)],
    ]);
    const whole = long.window({ tokens, state: before.tensors, training: false });
    let [start, state] = [0, before.tensors as readonly Tensor[]];
    const parts = lengths.map((length) => {
      const part = slice(tokens, 0, start, start + length);
      const made = long.window({ tokens: part, state, training: false });
      [start, state] = [start + length, made.state];
      return made.logits;
    });
    const want = interpret([whole.logits, ...whole.state], values);
    const got = interpret([...parts, ...state], values);
    const logits = Float64Array.from(got.slice(0, 3).flatMap(({ data }) => Array.from(data)));
    expectClose(logits, want[0]!.data, { ...exact, label: "logits" });
    long.recurrent.forEach(({ name }, i) => {
      expectClose(got[i + 3]!.data, want[i + 1]!.data, { ...exact, label: name });
    });
  });

  test("logits at positions are those of the whole window", () => {
    const { values, made, tokens, mask, before } = window(T, 5, padded);
    const times = [
      [2, 8, 5],
      [0, 2, 6],
      [5, 0, 3],
      [8, 8, 1],
      [0, 0, 0],
    ];
    const positions = input("positions", [5, 3], "i32");
    values.set(positions, {
      shape: [5, 3],
      data: Float64Array.from(times.flatMap((ts, b) => ts.map((t) => t * 5 + b))),
    });
    const some = model.window({ tokens, state: before, mask, positions, training: false });
    const [all, got] = interpret([made.logits, some.logits], values);
    expect(got!.shape).toEqual([5, 3, V]);
    times.slice(0, 4).forEach((ts, b) => {
      ts.forEach((t, n) => {
        if (!padded(t, b)) return;
        expectClose(got!.data.subarray((b * 3 + n) * V, (b * 3 + n + 1) * V), row(all!, t, b), exact);
      });
    });
  });

  function lossOf({ logits, penalty }: WindowOutput, targets: Tensor, counted: Tensor): Tensor {
    const loss = crossEntropy(logits, targets, counted);
    return penalty ? add(loss, penalty) : loss;
  }

  test("every gradient is that of differences, with padding and dropout", async () => {
    const { values, made, mask } = window(T, 5, padded, true);
    const targets = input("targets", [T, 5], "i32");
    values.set(targets, drawTokens([T, 5], V, 8));
    const loss = lossOf(made, targets, mask);
    const drawn = drawnMasks([loss], 2, 4);
    for (const [tensor, value] of drawn) values.set(tensor, value);
    const grads = grad(loss, model.parameters);
    const inOracle = interpret(grads, values);
    const step = 1e-6;
    model.parameters.forEach((parameter, i) => {
      const { name } = stateAttrs(parameter)!;
      const at = values.get(parameter)!;
      const direction = normals(parameter.shape, 20 + i).data;
      const moved = (by: number): number => {
        const data = at.data.map((x, n) => x + by * direction[n]!);
        return interpret([loss], new Map([...values, [parameter, { shape: at.shape, data }]]))[0]!.data[0]!;
      };
      const along = inOracle[i]!.data.reduce((total, x, n) => total + x * direction[n]!, 0);
      const numeric = (moved(step) - moved(-step)) / (2 * step);
      expectClose([along], [numeric], { rtol: 1e-5, atol: 1e-8, label: `gradient of ${name}` });
      expect(
        inOracle[i]!.data.some((x) => x !== 0),
        `${name} has a gradient`,
      ).toBe(true);
    });

    const program = await compile(
      { outputs: Object.fromEntries(grads.map((g, i) => [`g${i}`, g])) },
      { runtime: nodeRuntime, threads: 1 },
    );
    const inputs: Record<string, number[]> = {};
    for (const [tensor, { data }] of values) {
      const { name } = tensor.node.attrs as { name: string };
      if (program.state.has(name)) program.state.set(name, data);
      else if (program.plan.inputs.has(name)) inputs[name] = Array.from(data);
    }
    const inFloat = await program.run(inputs, { seed: 2, step: 4 });
    inOracle.forEach(({ data }, i) => {
      const label = `gradient of ${stateAttrs(model.parameters[i]!)!.name} in float32`;
      expectClose(inFloat[`g${i}`]!, data, { ...single(data), label });
    });
    await program.release();
  });

  test("dropout acts in training only, and a step's masks are known from seed and step", async () => {
    const evaluated = window(T, 2, () => true);
    const trained = window(T, 2, () => true, true);
    const masksOf = ({ made }: typeof trained): number => drawnMasks([made.logits], 1, 1).size;
    expect(masksOf(evaluated)).toBe(0);
    const rates = Object.entries(flatten(settings)).filter(([name]) => /dropout/i.test(name));
    expect(masksOf(trained) > 0).toBe(rates.some(([, rate]) => Number(rate) > 0));
    if (masksOf(trained) === 0) return;
    const program = await compile(
      { outputs: { logits: trained.made.logits } },
      { runtime: nodeRuntime, threads: 1 },
    );
    const inputs: Record<string, number[]> = {};
    for (const [tensor, { data }] of trained.values) {
      const { name } = tensor.node.attrs as { name: string };
      if (program.state.has(name)) program.state.set(name, data);
      else if (program.plan.inputs.has(name)) inputs[name] = Array.from(data);
    }
    const at = async (seed: number, step: number): Promise<Float32Array> =>
      (await program.run(inputs, { seed, step })).logits!.slice() as Float32Array;
    const first = await at(1, 7);
    const [nextStep, nextSeed] = [await at(1, 8), await at(2, 7)];
    expect(nextStep).not.toEqual(first);
    expect(nextSeed).not.toEqual(first);
    expect(await at(1, 7)).toEqual(first);
    await program.release();
  });
});
