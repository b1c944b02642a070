/** The comparison systems one by one: plain loops, numbers of weights, traces, and settings that do not fit. */
import { describe, expect, test } from "vitest";
import { grad } from "../../src/compile/grad.ts";
import { add, constant, input, mul, stateAttrs, sum, type Tensor } from "../../src/graph/index.ts";
import type { Value } from "../../src/graph/op.ts";
import { deltaNetDefaults } from "../../src/model/deltaNetModel.ts";
import { fwmDefaults } from "../../src/model/fwmModel.ts";
import { jbfwDefaults, jbfwModel } from "../../src/model/jbfwModel.ts";
import { lstmBaseline, lstmDefaults } from "../../src/model/lstmModel.ts";
import { mnmDefaults, mnmModel } from "../../src/model/mnmModel.ts";
import { buildSystem, type SystemSettings, systemSchema } from "../../src/model/registry.ts";
import { countState, countWeights, type SequenceModel } from "../../src/model/sequence.ts";
import { transformerXlDefaults } from "../../src/model/transformerXlModel.ts";
import { interpret } from "../../src/runtime/oracle.ts";
import { expectClose, normals } from "../support/check.ts";
import { drawnModel, drawTokens, freshState, smallSystems } from "../support/systems.ts";
import { deltaNet, jbfw, lstmStack, mnm, type Reference, transformerXl } from "./systemReferences.ts";

const [E, H] = [3, 4];
const M0 = [1, 2, 3].map((l) => normals([3, 3], 70 + l, 0.5));

/** A reference per system, at the sizes of support/systems.ts. */
const references: [string, SequenceModel, Reference][] = [
  ["lstm", buildSystem(smallSystems.lstm), lstmStack({ E, H, L: 3 })],
  ["transformer-xl", buildSystem(smallSystems["transformer-xl"]), transformerXl({ E, D: H, L: 2, h: 2 })],
  [
    "mnm",
    mnmModel(
      smallSystems.mnm,
      M0.map(({ shape, data }) => constant(data, shape)),
    ),
    mnm(
      { E, H, m: 3, N: 2 },
      M0.map(({ data }) => data),
    ),
  ],
  [
    "jbfw",
    buildSystem(smallSystems.jbfw),
    jbfw({ E, n: H, S: 2 }, jbfwDefaults.decay, jbfwDefaults.fastRate),
  ],
  ["delta-net", buildSystem(smallSystems["delta-net"]), deltaNet({ E, D: H, L: 2, h: 2 })],
];

test.each(references)("%s: a window is what plain loops make of its tokens", (_, model, reference) => {
  const [T, B] = [11, 2];
  const tokens = input("tokens", [T, B], "i32");
  const before = freshState(model, B);
  const weights = new Map<string, Value>(
    model.parameters.map((parameter, i) => [
      stateAttrs(parameter)!.name,
      normals(parameter.shape, 30 + i, 0.6),
    ]),
  );
  const drawn = drawTokens([T, B], 11, 9);
  const values = new Map<Tensor, Value>([
    ...before.values,
    [tokens, drawn],
    ...model.parameters.map((parameter) => [parameter, weights.get(stateAttrs(parameter)!.name)!] as const),
  ]);
  const [logits] = interpret(
    [model.window({ tokens, state: before.tensors, training: false }).logits],
    values,
  );
  for (let b = 0; b < B; b++) {
    const row = Array.from({ length: T }, (__, t) => drawn.data[t * B + b]!);
    reference((name) => weights.get(name)!.data, row).forEach((want, t) => {
      const got = logits!.data.subarray((t * B + b) * want.length, (t * B + b + 1) * want.length);
      expectClose(got, want, { rtol: 1e-9, atol: 1e-11, label: `logits at ${t} of row ${b}` });
    });
  }
});

describe("numbers of weights (section 12 of the specification)", () => {
  const counts: [string, SystemSettings, number][] = [
    ["LSTM, four layers of 512", lstmBaseline, 8_026_112],
    ["LSTM, one layer of 256", lstmDefaults, 627_712],
    ["Transformer-XL, official head", transformerXlDefaults, 10_552_008],
    ["Transformer-XL, plain head", { ...transformerXlDefaults, head: "plain" }, 10_523_136],
    ["MNM-p", mnmDefaults, 1_109_929],
    ["fast weights of Ba et al.", jbfwDefaults, 548_352],
    ["delta network", deltaNetDefaults, 693_818],
  ];
  test.each(counts)("%s", (_, settings, count) => {
    expect(countWeights(buildSystem(settings))).toBe(count);
  });

  test("the delta network has the memory's number within a thousandth", () => {
    const [delta, fwm] = [deltaNetDefaults, fwmDefaults].map((settings) =>
      countWeights(buildSystem(settings)),
    );
    expect(Math.abs(delta! / fwm! - 1)).toBeLessThan(1e-3);
  });

  const states: [string, SystemSettings, number][] = [
    ["FWM", fwmDefaults, 33_280],
    ["LSTM, four layers of 512", lstmBaseline, 4096],
    ["Transformer-XL: three caches and their length", transformerXlDefaults, 3 * 1200 * 512 + 1],
    ["MNM-p: as the paper counts, and the last read", mnmDefaults, 30_512 + 100],
    ["fast weights of Ba et al.", jbfwDefaults, 262_656],
    ["delta network", deltaNetDefaults, 3 * 4 * 32 * 32],
  ];
  test.each(states)("state variables of a row: %s", (_, settings, count) => {
    expect(countState(buildSystem(settings), 1)).toBe(count);
  });
});

describe("traces", () => {
  /** The vectors of every token of one row, and the tracer's rows at the last. */
  function traced(settings: SystemSettings, length: number) {
    const { model, weights } = drawnModel(settings);
    const token = input("token", [1], "i32");
    const before = freshState(model, 1);
    const { state, trace } = model.step(token, before.tensors);
    const names = Object.keys(trace);
    let now = before.tensors.map((tensor) => before.values.get(tensor)!);
    const history: Record<string, Float32Array>[] = [];
    for (let t = 0; t < length; t++) {
      const values = interpret(
        [...state, ...names.map((name) => trace[name]!)],
        new Map<Tensor, Value>([
          ...weights,
          ...before.tensors.map((tensor, i) => [tensor, now[i]!] as const),
          [token, { shape: [1], data: Float64Array.of(1 + (t % 7)) }],
        ]),
      );
      now = values.slice(0, state.length);
      history.push(
        Object.fromEntries(names.map((name, i) => [name, Float32Array.from(values[state.length + i]!.data)])),
      );
    }
    const { keep, rows } = model.tracer!;
    const kept = history.map((vectors) => Object.fromEntries(keep.map((name) => [name, vectors[name]!])));
    return { rows: rows(kept, history.at(-1)!, {}), history };
  }

  test("attention of every layer and head of a Transformer-XL adds up to 1 over the tokens so far", () => {
    const { rows } = traced(smallSystems["transformer-xl"], 5);
    expect(rows.map(({ name }) => name)).toEqual([
      "layer 1 head 1",
      "layer 1 head 2",
      "layer 2 head 1",
      "layer 2 head 2",
    ]);
    for (const { values } of rows) {
      expect(values).toHaveLength(5);
      expectClose([values.reduce((a, b) => a + b, 0)], [1], { rtol: 1e-6, atol: 0 });
    }
  });

  test("tokens that have left the cache have no attention", () => {
    const { rows } = traced({ ...smallSystems["transformer-xl"], memory: 2 }, 5);
    for (const { values } of rows) {
      expect(Array.from(values.slice(0, 2))).toEqual([0, 0]);
      expectClose([values.slice(2).reduce((a, b) => a + b, 0)], [1], { rtol: 1e-6, atol: 0 });
    }
  });

  test("Ba's fast weights: what each state before the token adds to A g, as the last A has it", () => {
    const { innerSteps, decay, fastRate, hidden } = smallSystems.jbfw;
    const { rows, history } = traced(smallSystems.jbfw, 6);
    expect(rows.map(({ name }) => name)).toEqual(["inner step 1", "inner step 2"]);
    // A before the last token, built up write by write; g A g is the sum of what the rows weigh.
    let A = new Float64Array(hidden ** 2);
    for (const { state: h } of history.slice(0, -1)) {
      A = A.map((a, i) => decay * a + fastRate * h![Math.floor(i / hidden)]! * h![i % hidden]!);
    }
    const last = history.at(-1)!;
    for (let j = 0; j < innerSteps; j++) {
      const g = last.queries!.slice(j * hidden, (j + 1) * hidden);
      const want = A.reduce((total, a, i) => total + a * g[Math.floor(i / hidden)]! * g[i % hidden]!, 0);
      const got = history.reduce(
        (total, { state: h }, t) =>
          total + rows[j]!.values[t]! * h!.reduce((sum, x, n) => sum + x * g[n]!, 0),
        0,
      );
      expectClose([got], [want], { rtol: 1e-5, atol: 1e-7 });
      expect(rows[j]!.values.at(-1)).toBe(0);
    }
  });

  test("delta network: every layer's and head's query beside the keys so far", () => {
    const { rows, history } = traced(smallSystems["delta-net"], 4);
    expect(rows).toHaveLength(4);
    expect(rows[3]!.name).toBe("layer 2 head 2");
    const [d, i] = [smallSystems["delta-net"].hidden / 2, 3];
    const at = (x: Float32Array): number[] => Array.from(x.slice(i * d, (i + 1) * d));
    const query = at(history.at(-1)!.queries!);
    // Keys are positive and add up to 1.
    expectClose([query.reduce((a, b) => a + b, 0)], [1], { rtol: 1e-6, atol: 0 });
    const want = history.map(({ keys }) => at(keys!).reduce((total, x, n) => total + x * query[n]!, 0));
    expectClose(rows[i]!.values, want, { rtol: 1e-5, atol: 1e-7 });
  });

  test("reads of MNM-p: the best match of each read key among each token's write keys", () => {
    const { rows, history } = traced(smallSystems.mnm, 4);
    expect(rows.map(({ name }) => name)).toEqual(["read 1", "read 2"]);
    const at = (vectors: Float32Array, i: number): number[] => Array.from(vectors.slice(3 * i, 3 * i + 3));
    rows.forEach(({ values }, i) => {
      const read = at(history.at(-1)!.readKeys!, i);
      const want = history.map(({ writeKeys }) =>
        Math.max(...[0, 1].map((j) => at(writeKeys!, j).reduce((total, x, n) => total + x * read[n]!, 0))),
      );
      expectClose(values, want, { rtol: 1e-5, atol: 1e-7 });
    });
  });
});

describe("sizes that barely fit", () => {
  /** Logits of a window after a window, all finite. */
  function twoWindows(settings: SystemSettings, T: number): Value {
    const { model, weights } = drawnModel(settings);
    const [first, second] = ["first", "second"].map((name) => input(name, [T, 2], "i32")) as [Tensor, Tensor];
    const before = freshState(model, 2);
    const { state } = model.window({ tokens: first, state: before.tensors, training: false });
    const { logits } = model.window({ tokens: second, state, training: false });
    const values = new Map<Tensor, Value>([
      ...weights,
      ...before.values,
      [first, drawTokens([T, 2], 11, 1)],
      [second, drawTokens([T, 2], 11, 2)],
    ]);
    const [made] = interpret([logits], values);
    expect(made!.data.every(Number.isFinite)).toBe(true);
    return made!;
  }
  const txl = smallSystems["transformer-xl"];

  test("a window longer than the cache: the cache is the window's end", () => {
    const { model, weights } = drawnModel({ ...txl, memory: 3 });
    const tokens = input("tokens", [7, 1], "i32");
    const before = freshState(model, 1);
    const run = model.window({ tokens, state: before.tensors, training: false });
    const padded = input("mask", [7, 1]);
    const masked = model.window({ tokens, state: before.tensors, mask: padded, training: false });
    const values = new Map<Tensor, Value>([
      ...weights,
      ...before.values,
      [tokens, drawTokens([7, 1], 11, 1)],
      [padded, { shape: [7, 1], data: new Float64Array(7).fill(1) }],
    ]);
    // The two ways to fill the cache, with and without padding, agree; and it is full.
    const got = interpret([...run.state, ...masked.state], values);
    run.state.forEach((_, i) => {
      expectClose(got[i]!.data, got[i + run.state.length]!.data, { rtol: 1e-12, atol: 1e-14 });
    });
    expect(got[run.state.length - 1]!.data[0]).toBe(3);
    twoWindows({ ...txl, memory: 3 }, 7);
  });

  test("no cache at all: windows know nothing of each other", () => {
    const settings: SystemSettings = { ...txl, memory: 0 };
    expect(buildSystem(settings).recurrent).toEqual([]);
    const { shape } = twoWindows(settings, 4);
    expect(shape).toEqual([4, 2, 11]);
  });

  test.each<SystemSettings>([
    { ...txl, heads: 1 },
    { ...txl, heads: 4 },
    { ...txl, embedding: 4 },
    { ...smallSystems.mnm, heads: 1 },
    { ...smallSystems.mnm, memory: 1 },
    { ...smallSystems["delta-net"], heads: 1 },
    { ...smallSystems["delta-net"], embedding: 4, featureMap: "softmax" },
    { ...smallSystems.jbfw, decay: 1 },
    { ...smallSystems.lstm, layers: 1 },
  ])("%o", (settings) => {
    twoWindows(systemSchema.parse(settings), 3);
  });
});

describe("settings that do not fit", () => {
  test.each<[string, object, string]>([
    [
      "heads that do not divide the width",
      { ...transformerXlDefaults, heads: 7 },
      "7 heads do not divide a hidden width of 512",
    ],
    ["of a delta network", { ...deltaNetDefaults, heads: 3 }, "3 heads do not divide a hidden width of 128"],
    ["a negative cache", { ...transformerXlDefaults, memory: -1 }, "memory"],
    ["dropout of everything", { ...lstmBaseline, weightDropout: 1 }, "weightDropout"],
    ["a decay of 0", { ...jbfwDefaults, decay: 0 }, "decay"],
    ["a setting of another system", { ...mnmDefaults, layers: 2 }, "layers"],
  ])("%s", (_, settings, message) => {
    const { error } = systemSchema.safeParse(settings);
    expect(error?.issues).toHaveLength(1);
    expect(JSON.stringify(error!.issues)).toContain(message);
  });

  test("settings saved before there were more layers are those of one plain layer", () => {
    const saved = { name: "lstm", vocabulary: 200, embedding: 256, hidden: 256 };
    expect(systemSchema.parse(saved)).toEqual(lstmDefaults);
  });
});

test("jbfw: rows in groups are what they are together, values and gradients", () => {
  const { name: _, ...settings } = smallSystems.jbfw;
  const [T, B] = [7, 8];
  const N2 = settings.hidden ** 2;
  const results = [B * N2, 4 * N2].map((most) => {
    const model = jbfwModel(settings, most);
    const tokens = input("tokens", [T, B], "i32");
    const mask = input("mask", [T, B]);
    const before = model.recurrent.map(({ name, shape }) => input(name, shape(B)));
    const { logits, state: after } = model.window({ tokens, mask, state: before, training: false });
    const loss = [logits, ...after].map((x) => sum(mul(x, x))).reduce((total, term) => add(total, term));
    const grads = grad(loss, [...model.parameters, ...before]);
    const values = new Map<Tensor, Value>([
      [tokens, drawTokens([T, B], 11, 9)],
      [mask, { shape: [T, B], data: Float64Array.from({ length: T * B }, (__, i) => (i % 5 === 3 ? 0 : 1)) }],
      ...[...model.parameters, ...before].map((x, i) => [x, normals(x.shape, 30 + i, 0.6)] as const),
    ]);
    return interpret([logits, ...after, ...grads], values);
  });
  results[1]!.forEach(({ data }, i) => {
    expectClose(data, results[0]![i]!.data, { rtol: 1e-9, atol: 1e-11, label: `result ${i}` });
  });
});
