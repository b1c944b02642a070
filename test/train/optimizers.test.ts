/** Optimizers, clipping, layer norm and cross entropy against PyTorch's own numbers. */
import { describe, expect, test } from "vitest";
import { grad } from "../../src/compile/grad.ts";
import {
  add,
  classLosses,
  concat,
  crossEntropy,
  input,
  layerNorm,
  mul,
  type Shape,
  sizeOf,
  state,
  stateAttrs,
  sum,
  type Tensor,
} from "../../src/graph/index.ts";
import type { Value } from "../../src/graph/op.ts";
import { nodeRuntime } from "../../src/runtime/node.ts";
import { interpret } from "../../src/runtime/oracle.ts";
import { compile } from "../../src/runtime/program.ts";
import { State } from "../../src/runtime/state.ts";
import {
  adam,
  asgd,
  averaged,
  clipByNorm,
  globalNorm,
  movingAverage,
  muon,
  type Optimizer,
  sgd,
  type Update,
} from "../../src/train/optimizers.ts";
import { expectClose, normals, runOrt } from "../support/check.ts";
import { asValue, fixture, type StoredTensor } from "../support/fixtures.ts";

interface Trajectory {
  initial: StoredTensor;
  gradients: StoredTensor;
  parameters: number[][];
  averaged?: number[][];
}

const trajectories = fixture<Record<string, Trajectory>>("torch-optimizers");

const optimizers: Record<string, { rate: number; make: () => Optimizer }> = {
  "sgd lr=0.1 weight_decay=0.01": { rate: 0.1, make: () => sgd({ weightDecay: 0.01 }) },
  "adam lr=0.01": { rate: 0.01, make: () => adam() },
  "adam lr=0.001 eps=1e-4": { rate: 0.001, make: () => adam({ eps: 1e-4 }) },
  "adam lr=0.001 weight_decay=1.2e-6": { rate: 0.001, make: () => adam({ weightDecay: 1.2e-6 }) },
  "asgd lr=0.5 t0=0 lambd=0 weight_decay=1.2e-6": { rate: 0.5, make: () => asgd({ weightDecay: 1.2e-6 }) },
};

/** One parameter under an optimizer; the gradient and the rate are given at every step. */
function oneParameter(make: () => Optimizer, shape: Shape) {
  const p = state("p", shape);
  const g = input("g", shape);
  const rate = input("rate", []);
  return { p, g, rate, updates: make()([p], [g], rate) };
}

/** Applies updates in the oracle: values of all states after a step. */
function stepInOracle(
  updates: readonly Update[],
  states: ReadonlyMap<Tensor, Value>,
  inputs: ReadonlyMap<Tensor, Value>,
): Map<Tensor, Value> {
  const next = interpret(
    updates.map(([, tensor]) => tensor),
    new Map([...states, ...inputs]),
  );
  return new Map(updates.map(([tensor], i) => [tensor, next[i]!]));
}

function zeroStates(updates: readonly Update[]): Map<Tensor, Value> {
  return new Map(updates.map(([tensor]) => [tensor, zeroValue(tensor)]));
}

function zeroValue({ shape }: Tensor): Value {
  return { shape, data: new Float64Array(sizeOf(shape)) };
}

const scalarValue = (x: number): Value => ({ shape: [], data: Float64Array.of(x) });

test("every trajectory of the fixture has its optimizer", () => {
  expect(Object.keys(optimizers).sort()).toEqual(
    Object.keys(trajectories)
      .filter((key) => key !== "about")
      .sort(),
  );
});

for (const [name, { rate: lr, make }] of Object.entries(optimizers)) {
  describe(`${name}: PyTorch's trajectory`, () => {
    const { initial, gradients, parameters, averaged: averages } = trajectories[name]!;
    const [steps, size] = gradients.shape as [number, number];
    const gradientAt = (t: number): Float64Array =>
      Float64Array.from(gradients.data.slice(t * size, (t + 1) * size));

    test("in the oracle", () => {
      const { p, g, rate, updates } = oneParameter(make, [size]);
      let states = zeroStates(updates).set(p, asValue(initial));
      const average = updates.find(([tensor]) => stateAttrs(tensor)!.name === "asgd.average.p")?.[0];
      for (let t = 0; t < steps; t++) {
        const inputs = new Map([
          [g, { shape: [size], data: gradientAt(t) }],
          [rate, scalarValue(lr)],
        ]);
        states = stepInOracle(updates, states, inputs);
        const exact = { rtol: 1e-9, atol: 1e-11 };
        expectClose(states.get(p)!.data, parameters[t]!, { ...exact, label: `p after step ${t + 1}` });
        if (averages) {
          expectClose(states.get(average!)!.data, averages[t]!, {
            ...exact,
            label: `average after ${t + 1}`,
          });
        }
      }
    });

    test("on ONNX Runtime", async () => {
      const { updates } = oneParameter(make, [size]);
      const memory = new State();
      const program = await compile(
        { outputs: {}, updates },
        { runtime: nodeRuntime, threads: 1, state: memory },
      );
      memory.set("p", initial.data);
      for (let t = 0; t < steps; t++) {
        await program.run({ g: gradientAt(t), rate: lr });
        // float32: 6e-8 per operation; m and v are quotients of sums of eight terms.
        const single = { rtol: 1e-4, atol: 1e-5 };
        expectClose(memory.get("p").data, parameters[t]!, { ...single, label: `p after step ${t + 1}` });
        if (averages) expectClose(memory.get("asgd.average.p").data, averages[t]!, single);
      }
      await program.release();
    });
  });
}

describe("rates that change", () => {
  test("Adam is linear in the rate: a step at rate 0 moves nothing but the moments", () => {
    const { p, g, rate, updates } = oneParameter(() => adam(), [2]);
    const before = zeroStates(updates).set(p, { shape: [2], data: Float64Array.of(1, -1) });
    const inputs = new Map([
      [g, { shape: [2], data: Float64Array.of(3, 4) }],
      [rate, scalarValue(0)],
    ]);
    const after = stepInOracle(updates, before, inputs);
    expect(Array.from(after.get(p)!.data)).toEqual([1, -1]);
    const m = updates.find(([tensor]) => stateAttrs(tensor)!.name === "adam.m.p")![0];
    expectClose(after.get(m)!.data, [0.3, 0.4], { rtol: 1e-12, atol: 0 });
  });

  test("ASGD uses the rate given at the step before, as PyTorch stores it at the end of a step", () => {
    const { p, g, rate, updates } = oneParameter(() => asgd(), [1]);
    let states = zeroStates(updates);
    const moved: number[] = [];
    for (const lr of [1, 0.5, 0.25]) {
      const before = states.get(p)!.data[0]!;
      const inputs = new Map([
        [g, { shape: [1], data: Float64Array.of(1) }],
        [rate, scalarValue(lr)],
      ]);
      states = stepInOracle(updates, states, inputs);
      moved.push(before - states.get(p)!.data[0]!);
    }
    expect(moved).toEqual([1, 1, 0.5]);
  });

  test("single parameters have a rate of their own, and a name that does not exist is refused", () => {
    const [p, q] = [state("p", [1]), state("q", [1])];
    const [g, rate] = [input("g", [1]), input("rate", [])];
    const updates = adam({ lrRatios: { q: 2 } })([p, q], [g, g], rate);
    const inputs = new Map([
      [g, { shape: [1], data: Float64Array.of(3) }],
      [rate, scalarValue(0.1)],
    ]);
    const after = stepInOracle(updates, zeroStates(updates), inputs);
    // Adam's first step is the rate itself.
    expectClose([after.get(p)!.data[0]!, after.get(q)!.data[0]!], [-0.1, -0.2], { rtol: 1e-7, atol: 0 });
    expect(() => adam({ lrRatios: { r: 2 } })([p, q], [g, g], rate)).toThrow("no parameter r");
  });

  test("the mean of any optimizer's weights weighs every step alike and does not disturb it", () => {
    const plain = oneParameter(() => adam(), [2]);
    const both = oneParameter(() => averaged(adam()), [2]);
    const average = both.updates.find(([tensor]) => stateAttrs(tensor)!.name === "asgd.average.p")![0];
    const start = { shape: [2], data: Float64Array.of(1, -1) };
    let alone = zeroStates(plain.updates).set(plain.p, start);
    let states = zeroStates(both.updates).set(both.p, start);
    const seen: number[][] = [];
    for (let t = 0; t < 4; t++) {
      const gradient = { shape: [2], data: Float64Array.of(t - 1.5, 2) };
      alone = stepInOracle(
        plain.updates,
        alone,
        new Map([
          [plain.g, gradient],
          [plain.rate, scalarValue(0.1)],
        ]),
      );
      states = stepInOracle(
        both.updates,
        states,
        new Map([
          [both.g, gradient],
          [both.rate, scalarValue(0.1)],
        ]),
      );
      seen.push(Array.from(states.get(both.p)!.data, Number));
      expect(seen.at(-1)).toEqual(Array.from(alone.get(plain.p)!.data, Number));
      const mean = [0, 1].map((i) => seen.reduce((total, p) => total + p[i]!, 0) / seen.length);
      expectClose(states.get(average)!.data, mean, { rtol: 1e-12, atol: 1e-15, label: `after ${t + 1}` });
    }
  });

  test("the moving average starts at the first update and forgets no faster than its decay", () => {
    const { p, g, rate, updates } = oneParameter(() => sgd(), [1]);
    const decay = 0.15;
    const both = [...updates, ...movingAverage(updates, [p], decay)];
    const average = both.find(([tensor]) => stateAttrs(tensor)!.name === "average.p")![0];
    const inputs = new Map([
      [g, { shape: [1], data: Float64Array.of(-1) }],
      [rate, scalarValue(1)],
    ]);
    let states = zeroStates(both);
    let want = 0;
    for (let t = 0; t < 5; t++) {
      states = stepInOracle(both, states, inputs);
      // p is t + 1 after step t; of the average so far a share t / (t + 9) stays, at most the decay.
      const share = Math.min(t / (t + 9), decay);
      want = (t + 1) * (1 - share) + want * share;
      expectClose(states.get(average)!.data, [want], { rtol: 1e-12, atol: 0, label: `after ${t + 1}` });
    }
  });
});

describe("Muon", () => {
  const iterations = 5;
  /** The definition in plain loops: momentum, Newton and Schulz on the rows or columns, the factor of the rate. */
  function reference(gradients: readonly number[][][], rate: number): number[][] {
    const [rows, columns] = [gradients[0]!.length, gradients[0]![0]!.length];
    const map = (a: number[][], f: (x: number, i: number, j: number) => number): number[][] =>
      a.map((row, i) => row.map((x, j) => f(x, i, j)));
    const times = (a: number[][], b: number[][]): number[][] =>
      a.map((row) => b[0]!.map((_, j) => row.reduce((total, x, k) => total + x * b[k]![j]!, 0)));
    const turned = (a: number[][]): number[][] => a[0]!.map((_, j) => a.map((row) => row[j]!));
    let p = map(gradients[0]!, () => 0);
    let m = p;
    for (const g of gradients) {
      m = map(m, (x, i, j) => 0.95 * x + 0.05 * g[i]![j]!);
      const direction = map(m, (x, i, j) => 0.05 * g[i]![j]! + 0.95 * x);
      let X = rows > columns ? turned(direction) : direction;
      const norm = Math.sqrt(X.flat().reduce((total, x) => total + x * x, 0));
      X = map(X, (x) => x / (norm + 1e-7));
      for (let i = 0; i < iterations; i++) {
        const A = times(X, turned(X));
        const AA = times(A, A);
        const BX = times(
          map(A, (x, i, j) => -4.775 * x + 2.0315 * AA[i]![j]!),
          X,
        );
        X = map(X, (x, i, j) => 3.4445 * x + BX[i]![j]!);
      }
      const step = rows > columns ? turned(X) : X;
      p = map(p, (x, i, j) => x - rate * 0.2 * Math.sqrt(Math.max(rows, columns)) * step[i]![j]!);
    }
    return p;
  }

  const nested = (data: ArrayLike<number>, [rows, columns]: readonly [number, number]): number[][] =>
    Array.from({ length: rows }, (_, i) =>
      Array.from({ length: columns }, (_, j) => Number(data[i * columns + j])),
    );

  for (const shape of [
    [3, 5],
    [6, 4],
    [4, 4],
  ] as const) {
    test(`plain loops give the same for ${shape.join(" x ")}, in the oracle and on ONNX Runtime`, async () => {
      const { p, g, rate, updates } = oneParameter(() => muon({ iterations }), shape);
      const drawn = [1, 2, 3].map((seed) => normals(shape, seed));
      const want = reference(
        drawn.map(({ data }) => nested(data as Float64Array, shape)),
        0.1,
      ).flat();
      let states = new Map(updates.map(([tensor]) => [tensor, zeroValue(tensor)]));
      const memory = new State();
      const program = await compile(
        { outputs: {}, updates },
        { runtime: nodeRuntime, threads: 1, state: memory },
      );
      for (const gradient of drawn) {
        const inputs = new Map([
          [g, gradient],
          [rate, scalarValue(0.1)],
        ]);
        states = stepInOracle(updates, states, inputs);
        await program.run({ g: gradient.data as Float64Array, rate: 0.1 });
      }
      expectClose(states.get(p)!.data, want, { rtol: 1e-9, atol: 1e-11, label: "oracle" });
      expectClose(memory.get("p").data, want, { rtol: 1e-4, atol: 1e-5, label: "ONNX Runtime" });
      await program.release();
    });
  }

  test("a step is as large in every direction, however small the gradient is there", () => {
    const { p, g, rate, updates } = oneParameter(() => muon(), [3, 3]);
    const states = new Map(updates.map(([tensor]) => [tensor, zeroValue(tensor)]));
    const gradient = { shape: [3, 3], data: Float64Array.of(100, 0, 0, 0, 10, 0, 0, 0, 5) };
    const after = stepInOracle(
      updates,
      states,
      new Map([
        [g, gradient],
        [rate, scalarValue(1)],
      ]),
    );
    const moved = Array.from(after.get(p)!.data, (x) => Math.abs(Number(x)) / (0.2 * Math.sqrt(3)));
    for (const i of [0, 4, 8]) {
      expect(moved[i]).toBeGreaterThan(0.6);
      expect(moved[i]).toBeLessThan(1.3);
    }
  });

  test("blocks are matrices of their own, and what Adam trains is trained as by Adam", () => {
    const rate = input("rate", []);
    const [whole, left, right] = [state("whole", [3, 4]), state("left", [3, 2]), state("right", [3, 2])];
    const [table, bias] = [state("table", [3, 2]), state("bias", [3])];
    const [gLeft, gRight, gBias] = [input("gLeft", [3, 2]), input("gRight", [3, 2]), input("gBias", [3])];
    const updates = [
      ...muon({ blocks: { whole: 2 }, byAdam: ["table"] })(
        [whole, table, bias],
        [concat([gLeft, gRight]), gLeft, gBias],
        rate,
      ),
      ...muon()([left, right], [gLeft, gRight], rate),
    ];
    const inputs = new Map([
      [gLeft, normals([3, 2], 1)],
      [gRight, normals([3, 2], 2, 50)],
      [gBias, normals([3], 3)],
      [rate, scalarValue(0.1)],
    ]);
    const zero = (list: readonly Update[]) => new Map(list.map(([tensor]) => [tensor, zeroValue(tensor)]));
    const after = stepInOracle(updates, zero(updates), inputs);
    const rows = nested(after.get(whole)!.data as Float64Array, [3, 4]);
    expectClose(
      rows.flatMap((row) => row.slice(0, 2)),
      Array.from(after.get(left)!.data, Number),
      {
        rtol: 1e-12,
        atol: 0,
      },
    );
    expectClose(
      rows.flatMap((row) => row.slice(2)),
      Array.from(after.get(right)!.data, Number),
      {
        rtol: 1e-12,
        atol: 0,
      },
    );
    const plain = adam()([table, bias], [gLeft, gBias], rate);
    const byAdam = stepInOracle(plain, zero(plain), inputs);
    for (const p of [table, bias]) expect(after.get(p)!.data).toEqual(byAdam.get(p)!.data);
  });

  test("single parameters have a rate of their own, matrices and others", () => {
    const [p, b, rate] = [state("p", [2, 3]), state("b", [3]), input("rate", [])];
    const [g, gb] = [input("g", [2, 3]), input("gb", [3])];
    const inputs = new Map([
      [g, normals([2, 3], 1)],
      [gb, normals([3], 2)],
      [rate, scalarValue(0.1)],
    ]);
    const movedBy = (ratios: Record<string, number>): number[] => {
      const updates = muon({ lrRatios: ratios })([p, b], [g, gb], rate);
      const zero = new Map(updates.map(([tensor]) => [tensor, zeroValue(tensor)]));
      const after = stepInOracle(updates, zero, inputs);
      return [...after.get(p)!.data, ...after.get(b)!.data].map(Number);
    };
    const plain = movedBy({});
    expectClose(
      movedBy({ p: 0.5, b: 3 }),
      plain.map((x, i) => x * (i < 6 ? 0.5 : 3)),
      { rtol: 1e-12, atol: 0 },
    );
  });

  test("names that the system does not have are refused", () => {
    const [p, g, rate] = [state("lstm.Wx", [2, 2]), input("g", [2, 2]), input("rate", [])];
    expect(() => muon({ byAdam: ["lstm.Wy"] })([p], [g], rate)).toThrow(
      "byAdam: the system has no parameter lstm.Wy",
    );
    expect(() => muon({ blocks: { "lstm.W": 2 } })([p], [g], rate)).toThrow(
      "blocks: the system has no parameter lstm.W",
    );
    expect(() => muon({ lrRatios: { bias: 2 } })([p], [g], rate)).toThrow(
      "lrRatios: the system has no parameter bias",
    );
  });
});

describe("clip_grad_norm", () => {
  interface Clipping {
    gradients: StoredTensor[];
    norm: number;
    clipped: StoredTensor[];
  }
  const clipping = fixture<Record<string, Clipping>>("torch-functions")["clip_grad_norm 0.25"]!;

  test("PyTorch's norm and clipped gradients", async () => {
    const gradients = clipping.gradients.map(({ shape }, i) => input(`g${i}`, shape));
    const values = new Map(gradients.map((g, i) => [g, asValue(clipping.gradients[i]!)]));
    const outputs = [globalNorm(gradients), ...clipByNorm(gradients, 0.25)];
    const want = [[clipping.norm], ...clipping.clipped.map(({ data }) => data)];
    const inOracle = interpret(outputs, values);
    const onOrt = await runOrt(outputs, values);
    want.forEach((data, i) => {
      expectClose(inOracle[i]!.data, data, { rtol: 1e-9, atol: 1e-11, label: `oracle ${i}` });
      expectClose(onOrt[i]!, data, { rtol: 1e-4, atol: 1e-6, label: `ONNX Runtime ${i}` });
    });
  });

  test("gradients below the limit stay as they are, and none at all give no NaN", () => {
    const g = input("g", [3]);
    const [clipped] = clipByNorm([g], 10);
    for (const data of [Float64Array.of(1, -2, 3), new Float64Array(3)]) {
      expect(interpret([clipped!], new Map([[g, { shape: [3], data }]]))[0]!.data).toEqual(data);
    }
  });
});

describe("functions", () => {
  const functions = fixture<Record<string, Record<string, StoredTensor>>>("torch-functions");

  test("layer norm: PyTorch's values and gradient", async () => {
    const stored = functions["layer_norm eps=1e-5, no affine"]!;
    const x = input("x", stored.x!.shape);
    const coef = input("coef", stored.coef!.shape);
    const y = layerNorm(x);
    const outputs = [y, ...grad(sum(mul(y, coef)), [x])];
    const values = new Map([
      [x, asValue(stored.x!)],
      [coef, asValue(stored.coef!)],
    ]);
    const want = [stored.y!.data, stored["dx of sum(y*coef)"]!.data];
    const inOracle = interpret(outputs, values);
    const onOrt = await runOrt(outputs, values);
    want.forEach((data, i) => {
      expectClose(inOracle[i]!.data, data, { rtol: 1e-9, atol: 1e-11, label: `oracle ${i}` });
      expectClose(onOrt[i]!, data, { rtol: 1e-4, atol: 1e-5, label: `ONNX Runtime ${i}` });
    });
  });

  test("cross entropy: PyTorch's mean loss and gradient, with no mask and with one of all positions", async () => {
    const stored = functions["cross_entropy mean"]!;
    const logits = input("logits", stored.logits!.shape);
    const targets = input("targets", stored.targets!.shape, "i32");
    const mask = input("mask", stored.targets!.shape);
    const losses = [crossEntropy(logits, targets), crossEntropy(logits, targets, mask)];
    const outputs = losses.flatMap((loss) => [loss, ...grad(loss, [logits])]);
    const values = new Map([
      [logits, asValue(stored.logits!)],
      [targets, asValue(stored.targets!)],
      [mask, { shape: mask.shape, data: new Float64Array(mask.shape[0]!).fill(1) }],
    ]);
    const inOracle = interpret(outputs, values);
    const onOrt = await runOrt(outputs, values);
    outputs.forEach((_, i) => {
      const want = i % 2 === 0 ? [stored.loss as unknown as number] : stored.dlogits!.data;
      expectClose(inOracle[i]!.data, want, { rtol: 1e-9, atol: 1e-11, label: `oracle ${i}` });
      expectClose(onOrt[i]!, want, { rtol: 1e-4, atol: 1e-6, label: `ONNX Runtime ${i}` });
    });
  });

  test("a mask takes the mean over its positions; an empty one gives 0, and so is every gradient", async () => {
    const [T, B, V] = [2, 3, 5];
    const logits = input("logits", [T, B, V]);
    const targets = input("targets", [T, B], "i32");
    const mask = input("mask", [T, B]);
    const loss = crossEntropy(logits, targets, mask);
    const outputs = [loss, ...grad(add(loss, 0), [logits]), classLosses(logits, targets)];
    // Logits far apart: a form that is not stable overflows here.
    const data = Float64Array.from({ length: T * B * V }, (_, i) => (i % 7 === 0 ? 400 : -0.5 * i));
    const classes = Float64Array.from({ length: T * B }, (_, i) => i % V);
    const given = (chosen: readonly number[]) =>
      new Map([
        [logits, { shape: logits.shape, data }],
        [targets, { shape: targets.shape, data: classes }],
        [mask, { shape: mask.shape, data: Float64Array.from(chosen) }],
      ]);
    const chosen = [0, 1, 0, 0, 1, 1];
    const [mean, , each] = interpret(outputs, given(chosen));
    const picked = each!.data.filter((_, i) => chosen[i]);
    expectClose(mean!.data, [picked.reduce((a, b) => a + b, 0) / 3], { rtol: 1e-12, atol: 0 });
    const none = given([0, 0, 0, 0, 0, 0]);
    const results = [interpret(outputs, none).map((value) => value.data), await runOrt(outputs, none)];
    for (const [empty, gradient] of results) {
      expectClose(empty!, [0], { rtol: 0, atol: 0, label: "loss" });
      expectClose(gradient!, new Float64Array(T * B * V), { rtol: 0, atol: 0, label: "gradient" });
    }
  });
});
