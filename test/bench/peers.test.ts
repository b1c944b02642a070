/** The TensorFlow.js peers of the benchmarks do the work they claim to: losses and gradients by plain loops. */
import * as tf from "@tensorflow/tfjs-core";
import { describe, expect, it } from "vitest";
import {
  type FwmProblem,
  type FwmSizes,
  type FwmWeightName,
  fwmProblem,
} from "../../bench/peers/fwmProblem.ts";
import { startTfjs } from "../../bench/peers/tfjsBackend.ts";
import { tfjsFwm } from "../../bench/peers/tfjsFwm.ts";
import { scaleDown } from "../../bench/peers/tfjsFwmMemory.ts";
import { type LstmProblem, type LstmSizes, lstmProblem, tfjsLstm } from "../../bench/peers/tfjsLstm.ts";

const sigma = (x: number) => 1 / (1 + Math.exp(-x));

/** row [k] times matrix [k, n] plus bias [n], in float64. */
function times(row: number[], matrix: ArrayLike<number>, bias: ArrayLike<number>): number[] {
  return Array.from(bias, (b, j) =>
    row.reduce((sum, value, k) => sum + value * matrix[k * bias.length + j]!, b),
  );
}

/** One row's LSTM step; gates in the order i, f, g, o. */
function lstmStep(
  x: number[],
  h: number[],
  c: number[],
  w: { Wx: ArrayLike<number>; Wh: ArrayLike<number>; b: ArrayLike<number> },
  forgetBias: number,
): { h: number[]; c: number[] } {
  const H = h.length;
  const z = times(h, w.Wh, times(x, w.Wx, w.b));
  const gate = (k: number, j: number) => z[k * H + j]!;
  const cell = c.map(
    (old, j) => sigma(gate(1, j) + forgetBias) * old + sigma(gate(0, j)) * Math.tanh(gate(2, j)),
  );
  return { h: cell.map((value, j) => sigma(gate(3, j)) * Math.tanh(value)), c: cell };
}

function lstmLoss({ inputs, units, batch, steps }: LstmSizes, p: LstmProblem): number {
  let loss = 0;
  for (let row = 0; row < batch; row++) {
    let state = { h: new Array<number>(units).fill(0), c: new Array<number>(units).fill(0) };
    for (let t = 0; t < steps; t++) {
      const at = t * batch + row;
      const x = [...p.x.subarray(at * inputs, (at + 1) * inputs)];
      state = lstmStep(x, state.h, state.c, p, 0);
      state.h.forEach((value, j) => {
        loss += value * p.g[at * units + j]!;
      });
    }
  }
  return loss;
}

function fwmLoss(sizes: FwmSizes, p: FwmProblem): number {
  const { batch, steps, embedding: E, hidden: H, memory: d, reads: N, vocabulary: V } = sizes;
  const w = (name: FwmWeightName) => p.weights[name].values;
  const zeros = (n: number) => new Array<number>(n).fill(0);
  let loss = 0;
  let asked = 0;
  for (let row = 0; row < batch; row++) {
    let h = zeros(H);
    let c = zeros(H);
    let F = zeros(d * d * d); // F[a, b, v]
    const recall = (k1: number[], k2: number[]) =>
      zeros(d).map((_, v) => {
        let sum = 0;
        for (let a = 0; a < d; a++)
          for (let b = 0; b < d; b++) sum += k1[a]! * k2[b]! * F[(a * d + b) * d + v]!;
        return sum;
      });
    for (let t = 0; t < steps; t++) {
      const at = t * batch + row;
      const token = p.inputs[at]!;
      const x = [...w("embedding").subarray(token * E, (token + 1) * E)];
      ({ h, c } = lstmStep(x, h, c, { Wx: w("Wx"), Wh: w("Wh"), b: w("b") }, 1));
      const maps = times(h, w("A"), w("a0"));
      const [k1, k2, v] = [0, 1, 2].map((i) => maps.slice(i * d, (i + 1) * d).map(Math.tanh)) as [
        number[],
        number[],
        number[],
      ];
      const beta = sigma(maps[3 * d]! + 1);
      const old = recall(k1, k2);
      F = F.map((f, i) => {
        const [a, b, value] = [Math.floor(i / (d * d)), Math.floor(i / d) % d, i % d];
        return f + (k1[a]! * k2[b]! * beta * (v[value]! - old[value]!)) / d;
      });
      const norm = Math.hypot(...F);
      if (norm > 1) F = F.map((f) => f / norm);
      if (!p.questions[at]) continue;

      const queries = times(h, w("B"), w("b0"));
      let n = queries.slice(0, d);
      for (let i = 1; i <= N; i++) {
        const found = recall(n, queries.slice(i * d, (i + 1) * d).map(Math.tanh));
        const mean = found.reduce((a, b) => a + b) / d;
        const variance = found.reduce((sum, value) => sum + (value - mean) ** 2, 0) / d;
        n = found.map((value) => (value - mean) / Math.sqrt(variance + 1e-5));
      }
      const logits = times(times(n, w("Wo"), w("bo")), w("Ws"), zeros(V));
      const total = Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit), 0));
      loss += total - logits[p.targets[at]!]!;
      asked++;
    }
  }
  return loss / asked;
}

/** Central differences of `loss`, in float64, over the change that the float32 weights really make. */
function differences(weights: Float32Array, loss: () => number): number[] {
  const step = 2 ** -14;
  return Array.from(weights, (value, i) => {
    weights[i] = value + step;
    const [above, high] = [loss(), weights[i]!];
    weights[i] = value - step;
    const [below, low] = [loss(), weights[i]!];
    weights[i] = value;
    return (above - below) / (high - low);
  });
}

/** The peers compute in float32: 1e-3 of the largest entry leaves room for sums over steps and rows. */
function expectClose(got: Float32Array, want: number[], label: string): void {
  const scale = Math.max(...want.map(Math.abs));
  expect(scale, `${label} has a gradient`).toBeGreaterThan(0);
  expect(got.length).toBe(want.length);
  const worst = Math.max(...want.map((value, i) => Math.abs(value - got[i]!)));
  expect(worst / scale, label).toBeLessThan(1e-3);
}

describe("the TensorFlow.js backend", () => {
  it("is WebAssembly with SIMD, and says on how many threads", async () => {
    const { backend, threads } = await startTfjs();
    expect(backend).toMatch(/^tfjs \d+\.\d+\.\d+ wasm simd$/);
    expect(threads).toBeGreaterThanOrEqual(1);
  });
});

describe("the LSTM peer", () => {
  const sizes: LstmSizes = { inputs: 3, units: 5, batch: 2, steps: 7 };

  it("has the loss and the gradients of plain loops", async () => {
    const peer = await tfjsLstm(sizes);
    const problem = lstmProblem(sizes);
    expect(await peer.run()).toBeCloseTo(lstmLoss(sizes, problem), 4);
    const gradients = await peer.gradients();
    for (const name of ["Wx", "Wh", "b"] as const) {
      expectClose(
        gradients[name],
        differences(problem[name], () => lstmLoss(sizes, problem)),
        name,
      );
    }
    peer.dispose();
  });

  it("frees what it allocates", async () => {
    await startTfjs();
    const before = tf.memory().numTensors;
    const peer = await tfjsLstm(sizes);
    await peer.run();
    const after = tf.memory().numTensors;
    await peer.run();
    expect(tf.memory().numTensors).toBe(after);
    peer.dispose();
    expect(tf.memory().numTensors).toBe(before);
  });
});

describe("the FWM peer", () => {
  const sizes: FwmSizes = {
    batch: 3,
    steps: 40,
    embedding: 4,
    hidden: 5,
    memory: 3,
    reads: 2,
    vocabulary: 7,
  };

  it.each([40, 13, 1])(
    "has the loss and the gradients of plain loops with %i tokens per tape",
    async (tokens) => {
      const peer = await tfjsFwm(sizes, tokens);
      const problem = fwmProblem(sizes);
      const gradients = await peer.gradients();
      for (const [name, { values }] of Object.entries(problem.weights)) {
        const want = differences(values, () => fwmLoss(sizes, problem));
        expectClose(gradients[name as FwmWeightName], want, name);
      }
      expect(await peer.run()).toBeCloseTo(fwmLoss(sizes, problem), 4);
      peer.dispose();
    },
  );

  it("learns its segment by heart", async () => {
    const peer = await tfjsFwm({ ...sizes, hidden: 16, memory: 4 });
    const first = await peer.run();
    let last = first;
    for (let i = 0; i < 60; i++) last = await peer.run();
    expect(last).toBeLessThan(0.8 * first);
    peer.dispose();
  });

  it("frees what it allocates", async () => {
    await startTfjs();
    const before = tf.memory().numTensors;
    const peer = await tfjsFwm(sizes, 2);
    await peer.run(); // the optimizer makes its moments in the first step
    const after = tf.memory().numTensors;
    await peer.run();
    expect(tf.memory().numTensors).toBe(after);
    peer.dispose();
    expect(tf.memory().numTensors).toBe(before);
  });

  it("scales the fast weights down above norm 1 only, with the right gradient", async () => {
    await startTfjs();
    const rows = [0.4, 3]; // below and above norm 1
    const values = rows.flatMap((norm) => [0.1, -0.7, 0.5, 0.5].map((x) => x * norm));
    const along = [0.3, 0.2, -1, 0.6, 0.4, -0.9, 0.8, 0.1];
    const plain = (F: ArrayLike<number>) =>
      rows.reduce((sum, _, row) => {
        const part = Array.from({ length: 4 }, (_, i) => F[row * 4 + i]!);
        const norm = Math.max(1, Math.hypot(...part));
        return sum + part.reduce((s, f, i) => s + (f / norm) * along[row * 4 + i]!, 0);
      }, 0);
    const input = Float32Array.from(values);
    const want = differences(input, () => plain(input));
    const got = tf.tidy(() => {
      const F = tf.tensor3d(values, [2, 2, 2]);
      return tf
        .grad((x) => tf.sum(tf.mul(scaleDown(x), tf.tensor3d(along, [2, 2, 2]))))(F)
        .dataSync();
    });
    expectClose(Float32Array.from(got), want, "scaleDown");
  });
});
