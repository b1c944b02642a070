/** The LSTM layer against the same equations in plain loops: both cells, padding, dropped weights, 200 steps. */
import { describe, expect, test } from "vitest";
import { grad } from "../../src/compile/grad.ts";
import { printGraph } from "../../src/compile/print.ts";
import { simplify } from "../../src/compile/simplify.ts";
import {
  add,
  gatherRows,
  input,
  mul,
  randomMask,
  reshape,
  split,
  sum,
  type Tensor,
  tanh,
  topological,
  where,
} from "../../src/graph/index.ts";
import type { Value } from "../../src/graph/op.ts";
import {
  embeddedLstm,
  type LstmCell,
  type LstmGates,
  lstm,
  lstmStep,
  lstmWeights,
} from "../../src/model/lstm.ts";
import { fillMask, keyOf } from "../../src/random.ts";
import { nodeRuntime } from "../../src/runtime/node.ts";
import { interpret } from "../../src/runtime/oracle.ts";
import { compile } from "../../src/runtime/program.ts";
import { State } from "../../src/runtime/state.ts";
import { centralDifferences, expectClose, normals, runOrtWithState } from "../support/check.ts";
import { type LstmSizes, lstmReference } from "./lstmReference.ts";

/** Both sides compute in float64; 200 steps of sums of a few dozen terms keep nine digits. */
const exact = { rtol: 1e-9, atol: 1e-11 };

/** float32, relative to the largest entry: rounding of 6e-8 grows over 200 steps to a few 1e-6. */
function single(want: Float64Array) {
  return { rtol: 0, atol: 5e-5 * want.reduce((most, x) => Math.max(most, Math.abs(x)), 1e-3) };
}

interface Choices extends LstmSizes {
  readonly cell: LstmCell;
  /** [T][B], 0 for padding. */
  readonly mask?: (t: number, row: number) => boolean;
  /** Drop entries of Wh. */
  readonly dropped?: boolean;
  readonly unroll?: boolean;
}

/** The layer as a graph with values for all its sources, and what the reference says of it. */
function problem({ cell, mask: padding, dropped = false, unroll = false, ...sizes }: Choices) {
  const { T, B, E, H } = sizes;
  const w = lstmWeights("l", { in: E, hidden: H }, cell);
  const x = input("x", [T, B, E]);
  const h0 = input("h0", [B, H]);
  const c0 = input("c0", [B, H]);
  const mask = input("mask", [T, B]);
  const kept = input("kept", [H, 4 * H]);
  const coef = input("coef", [T, B, H]);
  const coefC = input("coefC", [B, H]);
  const run = lstm(
    w,
    x,
    { h: h0, c: c0 },
    {
      unroll,
      ...(padding ? { mask } : {}),
      ...(dropped ? { droppedWh: mul(w.Wh, kept) } : {}),
    },
  );
  const loss = add(sum(mul(run.h, coef)), sum(mul(run.state.c, coefC)));
  const wrt = [w.Wx, w.Wh, w.biases[0]!, x, h0, c0];
  const drawn = [w.Wx, w.Wh, ...w.biases, x, h0, c0, coef, coefC];
  const values = new Map<Tensor, Value>(
    drawn.map((tensor, i) => {
      const { shape, data } = normals(tensor.shape, 20 + i, i < 2 ? 0.5 : 1);
      return [tensor, { shape, data: data.map(Math.fround) }];
    }),
  );
  const alive = Float64Array.from({ length: T * B }, (_, n) =>
    padding && !padding(Math.floor(n / B), n % B) ? 0 : 1,
  );
  values.set(mask, { shape: mask.shape, data: alive });
  // Inverted dropout with probability 1/3: two of three stay, times 1.5.
  const keep = Float64Array.from({ length: 4 * H * H }, (_, n) => (n % 3 === 1 ? 0 : 1.5));
  values.set(kept, { shape: kept.shape, data: keep });

  const data = (tensor: Tensor): Float64Array => values.get(tensor)!.data;
  const factor = (n: number): number => (dropped ? keep[n]! : 1);
  const reference = lstmReference(
    sizes,
    {
      x: data(x),
      h0: data(h0),
      c0: data(c0),
      Wx: data(w.Wx),
      Wh: data(w.Wh).map((value, n) => value * factor(n)),
      b: w.biases.map(data).reduce((total, b) => total.map((value, j) => value + b[j]!)),
      forget: cell === "forgetBias1" ? 1 : 0,
      mask: alive,
    },
    { coef: data(coef), coefC: data(coefC) },
  );
  const { gradients } = reference;
  const want: [string, Tensor, Float64Array][] = [
    ["y", run.h, reference.y],
    ["h", run.state.h, reference.h],
    ["c", run.state.c, reference.c],
  ];
  const wantGradients = [
    gradients.Wx,
    gradients.Wh.map((value, n) => value * factor(n)),
    gradients.b,
    gradients.x,
    gradients.h0,
    gradients.c0,
  ];
  grad(loss, wrt).forEach((tensor, i) => {
    want.push([`gradient ${["Wx", "Wh", "b", "x", "h0", "c0"][i]}`, tensor, wantGradients[i]!]);
  });
  return { want, values, loss, w };
}

async function check(choices: Choices): Promise<void> {
  const { want, values } = problem(choices);
  const tensors = want.map(([, tensor]) => tensor);
  const inOracle = interpret(tensors, values);
  const onOrt = await runOrtWithState(tensors, values);
  want.forEach(([name, , data], i) => {
    expectClose(inOracle[i]!.data, data, { ...exact, label: `${name} in the oracle` });
    expectClose(onOrt[i]!, data, { ...single(data), label: `${name} on ONNX Runtime` });
  });
}

describe.each(["forgetBias1", "pytorch"] as const)("cell %s", (cell) => {
  test("odd sizes, one of everything first", async () => {
    await check({ cell, T: 1, B: 1, E: 1, H: 1 });
    await check({ cell, T: 7, B: 3, E: 5, H: 3 });
  });

  test("200 steps", () => check({ cell, T: 200, B: 2, E: 3, H: 4 }));

  test("padding at the start, in the middle, at the end, and a whole row", () =>
    check({
      cell,
      T: 9,
      B: 5,
      E: 2,
      H: 3,
      mask: (t, row) => [t >= 2, t < 3 || t > 5, t < 6, false, true][row]!,
    }));

  test("dropped recurrent weights", () => check({ cell, T: 7, B: 2, E: 3, H: 4, dropped: true }));

  test("written out instead of a loop", () =>
    check({ cell, T: 5, B: 2, E: 3, H: 2, unroll: true, mask: (t, row) => t !== 2 || row === 0 }));
});

test("the reference's own gradients agree with differences of its loss", () => {
  const sizes = { T: 4, B: 2, E: 2, H: 2 };
  const draw = (n: number, seed: number): Float64Array => normals([n], seed, 0.7).data;
  const arrays = {
    x: draw(16, 1),
    h0: draw(4, 2),
    c0: draw(4, 3),
    Wx: draw(16, 4),
    Wh: draw(16, 5),
    b: draw(8, 6),
    forget: 1,
    mask: Float64Array.of(1, 1, 0, 1, 1, 1, 1, 0),
  };
  const loss = { coef: draw(16, 7), coefC: draw(4, 8) };
  const value = (changed: Partial<typeof arrays>): number => {
    const { y, c } = lstmReference(sizes, { ...arrays, ...changed }, loss);
    const dot = (a: Float64Array, b: Float64Array): number => a.reduce((total, x, i) => total + x * b[i]!, 0);
    return dot(y, loss.coef) + dot(c, loss.coefC);
  };
  const { gradients } = lstmReference(sizes, arrays, loss);
  for (const key of ["Wx", "Wh", "b", "x", "h0", "c0"] as const) {
    const numeric = centralDifferences((data) => value({ [key]: data }), arrays[key]);
    expectClose(gradients[key], numeric, { rtol: 1e-6, atol: 1e-8, label: key });
  }
});

test("steps one by one, and windows one after the other, give what one window gives", () => {
  const [T, B, E, H] = [6, 2, 3, 4];
  const w = lstmWeights("l", { in: E, hidden: H }, "pytorch");
  const x = input("x", [T, B, E]);
  const start = { h: input("h0", [B, H]), c: input("c0", [B, H]) };
  const whole = lstm(w, x, start);
  const [first, second] = split(x, [4, 2], 0) as [Tensor, Tensor];
  const before = lstm(w, first, start);
  const after = lstm(w, second, before.state);
  let stepped = start as { h: Tensor; c: Tensor };
  for (const part of split(x, T, 0)) stepped = lstmStep(w, reshape(part, [B, E]), stepped);
  const values = new Map(
    [w.Wx, w.Wh, ...w.biases, x, start.h, start.c].map((t, i) => [t, normals(t.shape, i)]),
  );
  const [h, c, ...others] = interpret(
    [whole.state.h, whole.state.c, after.state.h, after.state.c, stepped.h, stepped.c],
    values,
  );
  others.forEach(({ data }, i) => {
    expectClose(data, (i % 2 === 0 ? h : c)!.data, { rtol: 1e-13, atol: 1e-15 });
  });
});

test.each([
  ["a loop", false, false],
  ["a loop with padding", true, false],
  ["written-out steps", false, true],
])("a window whose gates are known has the same gradients: %s", (_, masked, unroll) => {
  const [T, B, E, H] = [6, 2, 3, 4];
  const w = lstmWeights("l", { in: E, hidden: H }, "pytorch");
  const x = input("x", [T, B, E]);
  const alive = input("alive", [T, B]);
  const start = { h: input("h0", [B, H]), c: input("c0", [B, H]) };
  const options = { ...(masked ? { mask: alive } : {}), unroll };
  const wrt = [w.Wx, w.Wh, ...w.biases, x, start.h, start.c];
  const gradientsOf = ({ h, state: { c } }: ReturnType<typeof lstm>): Tensor[] =>
    grad(add(sum(mul(h, h)), sum(tanh(c))), wrt);
  const values = new Map<Tensor, Value>(wrt.map((t, i) => [t, normals(t.shape, i)]));
  values.set(alive, {
    shape: [T, B],
    data: Float64Array.from({ length: T * B }, (__, i) => (i % 5 ? 1 : 0)),
  });
  const whole = lstm(w, x, start, options);

  // The gates of every step: from the state before it, which the window gives.
  const [h] = interpret([whole.h], values);
  const past = input("past", [T, B, H]);
  values.set(past, {
    shape: [T, B, H],
    data: Float64Array.of(...values.get(start.h)!.data, ...h!.data.slice(0, (T - 1) * B * H)),
  });
  const { gates: made } = lstmStep(w, x, { h: past, c: past });
  const gates = made.map((gate, i) => {
    const known = input(`gate${i}`, gate.shape);
    values.set(known, interpret([gate], values)[0]!);
    return known;
  }) as unknown as LstmGates;

  const want = interpret(gradientsOf(whole), values);
  const got = simplify(gradientsOf(lstm(w, x, start, { ...options, gates })));
  interpret(got, values).forEach(({ data }, i) => {
    expectClose(data, want[i]!.data, { rtol: 1e-11, atol: 1e-13, label: `${i}` });
  });
  // Neither gates nor what they are made of is computed again.
  const count = (graph: Tensor[], op: string): number => printGraph(graph).split(`= ${op}(`).length - 1;
  const full = simplify(gradientsOf(whole));
  const steps = unroll ? T : 1;
  expect([count(full, "sigmoid"), count(got, "sigmoid")]).toEqual([3 * steps, 0]);
  expect(count(full, "matmul") - count(got, "matmul")).toBe(1 + steps);
});

test("weight dropout in a program: one mask for the whole window, drawn under seed and step", async () => {
  const [T, B, E, H] = [5, 2, 3, 4];
  const w = lstmWeights("l", { in: E, hidden: H }, "pytorch");
  const x = input("x", [T, B, E]);
  const zero = input("zero", [B, H]);
  const droppedWh = where(randomMask("l.drop", [H, 4 * H], 0.5), mul(w.Wh, 2), 0);
  const { h } = lstm(w, x, { h: zero, c: zero }, { droppedWh });
  const memory = new State(4);
  const program = await compile({ outputs: { h } }, { runtime: nodeRuntime, threads: 1, state: memory });
  const xs = normals([T, B, E], 9).data.map(Math.fround);
  const stored = (name: string): Float64Array => Float64Array.from(memory.get(name).data as Float32Array);
  for (const step of [0, 1]) {
    const mask = new Uint8Array(4 * H * H);
    fillMask(mask, 0.5, keyOf(3, "mask", "l.drop", step));
    expect(new Set(mask)).toEqual(new Set([0, 1]));
    const bias = stored("l.bh");
    const { y } = lstmReference(
      { T, B, E, H },
      {
        x: xs,
        h0: new Float64Array(B * H),
        c0: new Float64Array(B * H),
        Wx: stored("l.Wx"),
        Wh: stored("l.Wh").map((value, n) => 2 * value * mask[n]!),
        b: stored("l.bx").map((value, j) => value + bias[j]!),
        forget: 0,
      },
      { coef: new Float64Array(T * B * H), coefC: new Float64Array(B * H) },
    );
    const out = await program.run({ x: xs, zero: new Float32Array(B * H) }, { seed: 3, step });
    expectClose(out.h!, y, single(y));
  }
  await program.release();
});

describe("tokens under an embedding", () => {
  const [V, E, H, B] = [5, 3, 4, 3];

  /** The layer over embedded tokens in both forms, with the gradients of all it is made from. */
  function forms(T: number, { padded, dropped }: { padded: boolean; dropped: boolean }) {
    const w = lstmWeights("l", { in: E, hidden: H }, "pytorch");
    const embedding = input("embedding", [V, E]);
    const kept = input("kept", [V, 1]);
    const tokens = input("tokens", [T, B], "i32");
    const mask = input("mask", [T, B]);
    const start = { h: input("h0", [B, H]), c: input("c0", [B, H]) };
    const coef = input("coef", [T, B, H]);
    const table = dropped ? mul(embedding, kept) : embedding;
    const options = padded ? { mask } : {};
    const wrt = [embedding, w.Wx, w.Wh, ...w.biases, start.h, start.c];
    const whole = ({ h, state }: ReturnType<typeof lstm>): Tensor[] => [
      h,
      state.c,
      ...grad(add(sum(mul(h, coef)), sum(mul(state.c, state.c))), wrt),
    ];
    const values = new Map<Tensor, Value>(
      [...wrt, coef].map((t, i) => {
        const { shape, data } = normals(t.shape, 40 + i, 0.7);
        return [t, { shape, data: data.map(Math.fround) }];
      }),
    );
    const whereNot = (shape: readonly number[], zero: (i: number) => boolean): Value => ({
      shape,
      data: Float64Array.from({ length: shape.reduce((a, b) => a * b) }, (_, i) => (zero(i) ? 0 : 1)),
    });
    // Word 4 never occurs; words 1 and 3 are dropped; row 2 is padding from its third token on.
    const words = Float64Array.from({ length: T * B }, (_, i) => (i * i + 3 * i) % 4);
    values.set(tokens, { shape: [T, B], data: words });
    values.set(
      kept,
      whereNot([V, 1], (i) => i % 2 === 1),
    );
    values.set(
      mask,
      whereNot([T, B], (i) => i % B === 2 && i >= 2 * B),
    );
    return {
      values,
      plain: whole(lstm(w, gatherRows(table, tokens), start, options)),
      table: whole(embeddedLstm(w, table, tokens, start, options)),
    };
  }

  const choices = [false, true].flatMap((padded) => [false, true].map((dropped) => ({ padded, dropped })));

  // 42 tokens add up by a one-hot product, 90 in groups.
  test.each(choices.flatMap((choice) => [14, 30].map((T) => ({ ...choice, T }))))(
    "through the table of gates, values and gradients are those of the plain form: %o",
    async ({ T, ...choice }) => {
      const { values, plain, table } = forms(T, choice);
      const want = interpret(plain, values);
      const got = interpret(table, values);
      const onRuntime = await runOrtWithState(table, values);
      want.forEach(({ data }, i) => {
        expectClose(got[i]!.data, data, { rtol: 1e-11, atol: 1e-13, label: `${i}` });
        expectClose(onRuntime[i]!, data, { ...single(data), label: `${i} on ONNX Runtime` });
      });
    },
  );

  test("the shape chooses the form: products of the input weights have as few rows as there are", () => {
    const rowsOf = (T: number): number[] =>
      topological(simplify(forms(T, { padded: false, dropped: false }).table.slice(0, 1)))
        .filter(({ op, outputs: [y] }) => op.name === "matmul" && y!.shape[1] === 4 * H)
        .map(({ outputs: [y] }) => y!.shape[0]!);
    expect(rowsOf(3)).toEqual([3 * B]);
    expect(rowsOf(7)).toEqual([V]);
  });
});
