/**
 * One set of programs for every runtime: each is run by ONNX Runtime, in Node and in a browser, and by the
 * oracle. Nothing here or below may need Node; test/browser/imports.test.ts holds us to that.
 */
import { grad } from "../../src/compile/grad.ts";
import {
  add,
  cast,
  crossEntropy,
  div,
  input,
  matmul,
  mul,
  opTable,
  randomMask,
  scan,
  state,
  stateAttrs,
  sum,
  type Tensor,
  tanh,
  topological,
} from "../../src/graph/index.ts";
import type { Op, SampleInput, Value } from "../../src/graph/op.ts";
import type { MaskAttrs, SourceAttrs } from "../../src/graph/ops/source.ts";
import { Node, type Shape, sizeOf, type TensorType } from "../../src/graph/tensor.ts";
import { fwmModel } from "../../src/model/fwmModel.ts";
import { linear, linearWeights } from "../../src/model/linear.ts";
import { lstm, lstmWeights } from "../../src/model/lstm.ts";
import { fillMask, integer, keyOf, normal, uniform } from "../../src/random.ts";
import { interpret } from "../../src/runtime/oracle.ts";
import { compile, type ProgramSpec, type RunKey } from "../../src/runtime/program.ts";
import type { Runtime, SessionOptions } from "../../src/runtime/runtime.ts";
import { State } from "../../src/runtime/state.ts";
import { adam } from "../../src/train/optimizers.ts";

/** A program and what it is run with. */
export interface CaseProgram {
  readonly spec: ProgramSpec;
  /** Inputs of each run, one run after the other; states stay between them. */
  readonly runs: readonly Readonly<Record<string, readonly number[]>>[];
}

/** A named case. Graphs are built when asked for, because building them is part of what is tested. */
export interface Case {
  readonly name: string;
  build(): CaseProgram;
  /** |got - want| ≤ atol + rtol |want|; float32 against float64. */
  readonly rtol: number;
  readonly atol: number;
}

/** Outputs of every run under `run 0/<name>`, and states after the last under `state/<name>`. */
export type CaseValues = Record<string, number[]>;

const seed = 5;
const keyOfRun = (step: number): RunKey => ({ seed, step });

/** Runs a case on a runtime. */
export async function runCase(
  { build }: Case,
  runtime: Runtime,
  options: SessionOptions = {},
): Promise<CaseValues> {
  const { spec, runs } = build();
  const states = new State(seed);
  const program = await compile(spec, { runtime, state: states, ...options });
  const values: CaseValues = {};
  try {
    for (const [step, inputs] of runs.entries()) {
      const outputs = await program.run(inputs, keyOfRun(step));
      for (const [name, data] of Object.entries(outputs)) {
        values[`run ${step}/${name}`] = Array.from(data as Float32Array, Number);
      }
    }
    for (const name of states.names()) {
      values[`state/${name}`] = Array.from(states.get(name).data as Float32Array, Number);
    }
    return values;
  } finally {
    await program.release();
  }
}

/** What the oracle makes of a case, in float64 from the first run to the last. */
export function expectedOf({ build }: Case): CaseValues {
  const { spec, runs } = build();
  const updates = [...(spec.updates ?? [])];
  const roots = [...Object.values(spec.outputs), ...updates.map(([, next]) => next)];
  const sources = topological([...roots, ...updates.map(([before]) => before)]).map((n) => n.outputs[0]!);
  const initial = new State(seed);
  const states = new Map<Tensor, Value>();
  for (const tensor of sources) {
    const attrs = stateAttrs(tensor);
    if (!attrs) continue;
    initial.declare(attrs);
    const data = Float64Array.from(initial.get(attrs.name).data as Float32Array);
    states.set(tensor, { shape: tensor.shape, data });
  }
  const values: CaseValues = {};
  runs.forEach((inputs, step) => {
    const given = new Map(states);
    for (const tensor of sources) {
      const { op, attrs } = tensor.node;
      if (op.name === "randomMask") given.set(tensor, maskOf(attrs as MaskAttrs, step));
      if (op.name !== "input") continue;
      given.set(tensor, tensorValue(tensor.shape, inputs[(attrs as SourceAttrs).name]!));
    }
    const results = interpret(roots, given);
    Object.keys(spec.outputs).forEach((name, i) => {
      values[`run ${step}/${name}`] = Array.from(results[i]!.data);
    });
    updates.forEach(([before], i) => {
      states.set(before, results[roots.length - updates.length + i]!);
    });
  });
  for (const [tensor, { data }] of states) values[`state/${stateAttrs(tensor)!.name}`] = Array.from(data);
  return values;
}

function tensorValue(shape: Shape, data: readonly number[]): Value {
  return { shape, data: Float64Array.from(data) };
}

function maskOf({ name, shape, keep }: MaskAttrs, step: number): Value {
  const drawn = new Uint8Array(sizeOf(shape));
  fillMask(drawn, keep, keyOf(seed, "mask", name, step));
  return tensorValue(shape, Array.from(drawn));
}

/** float32 numbers from N(0, 1), so that both sides start from the same values. */
function normals(size: number, path: string): number[] {
  const key = keyOf(seed, path);
  return Array.from({ length: size }, (_, i) => Math.fround(normal(key, i)));
}

function integers(size: number, below: number, path: string): number[] {
  const key = keyOf(seed, path);
  return Array.from({ length: size }, (_, i) => integer(key, i, below));
}

/** An op at each of its samples, as it stands in the op table. */
function opCase(op: Op): Case {
  return {
    name: `op ${op.name}`,
    // Sums of a few dozen products of numbers near 1.
    rtol: 1e-4,
    atol: 1e-5,
    build() {
      const outputs: Record<string, Tensor> = {};
      const inputs: Record<string, number[]> = {};
      op.samples.forEach((sample, s) => {
        const attrs: unknown =
          typeof sample.attrs === "function"
            ? (sample.attrs as (size: (name: number) => number) => unknown)((size) => size)
            : (sample.attrs ?? null);
        const operands = sample.inputs.map((spec, i) => {
          const name = `in${s}.${i}`;
          const { type, data } = operand(spec, `${op.name} ${name}`);
          inputs[name] = data;
          return input(name, type.shape, type.dtype);
        });
        const types = op.infer(operands, attrs);
        const node = new Node(op, operands, attrs, Array.isArray(types) ? types : [types as TensorType]);
        node.outputs.forEach((output, i) => {
          outputs[`out${s}.${i}`] = output;
        });
      });
      return { spec: { name: op.name, outputs }, runs: [inputs] };
    },
  };
}

function operand(spec: SampleInput, path: string): { type: TensorType; data: number[] } {
  const shape = "shape" in spec ? spec.shape : spec;
  const size = sizeOf(shape);
  if ("below" in spec) return { type: { shape, dtype: "i32" }, data: integers(size, spec.below, path) };
  if ("dtype" in spec) return { type: { shape, dtype: "bool" }, data: integers(size, 2, path) };
  if (!("range" in spec)) return { type: { shape, dtype: "f32" }, data: normals(size, path) };
  const [low, high] = spec.range;
  const key = keyOf(seed, path);
  const data = Array.from({ length: size }, (_, i) => Math.fround(low + (high - low) * uniform(key, i)));
  return { type: { shape, dtype: "f32" }, data };
}

/** h_t = tanh(x_t U + h_{t-1} W): the loop, and the gradient of everything it uses. */
function scanCase(reverse: boolean): Case {
  return {
    name: reverse ? "scan from the last step to the first, with its gradient" : "scan with its gradient",
    rtol: 1e-4,
    atol: 1e-5,
    build() {
      const [T, B, E, H] = [7, 3, 2, 5];
      const x = input("x", [T, B, E]);
      const h0 = input("h0", [B, H]);
      const U = input("U", [E, H]);
      const W = input("W", [H, H]);
      const target = input("target", [T, B, H]);
      const { carry, ys } = scan({ carry: [h0], xs: [x], reverse }, ([h], [xt]) => {
        const next = tanh(add(matmul(xt!, U), matmul(h!, W)));
        return { carry: [next], ys: [next] };
      });
      const loss = add(sum(mul(ys[0]!, target)), sum(mul(carry[0]!, carry[0]!)));
      const [dx, dh0, dU, dW] = grad(loss, [x, h0, U, W]) as [Tensor, Tensor, Tensor, Tensor];
      const sizes = { x: T * B * E, h0: B * H, U: E * H, W: H * H, target: T * B * H };
      const inputs = Object.entries(sizes).map(([name, size]) => [name, normals(size, `scan ${name}`)]);
      return {
        spec: { name: "scan", outputs: { loss, last: carry[0]!, ys: ys[0]!, dx, dh0, dU, dW } },
        runs: [Object.fromEntries(inputs) as Record<string, number[]>],
      };
    },
  };
}

// With the usual ε of 1e-8 the sign of a vanishing gradient, which float32 cannot know, would move a weight by a
// whole step; with 1e-3 an error in the gradient stays one of the same size times the rate.
const trainer = adam({ eps: 1e-3 });
const rate = 0.05;

const lstmTraining: Case = {
  name: "LSTM training steps with Adam, state resident",
  rtol: 1e-4,
  atol: 2e-5,
  build() {
    const [T, B, E, H, V, runs] = [5, 3, 4, 7, 6, 4];
    const weights = lstmWeights("lstm", { in: E, hidden: H }, "pytorch");
    const output = linearWeights("output", { in: H, out: V });
    const h = state("train.h", [B, H]);
    const c = state("train.c", [B, H]);
    const run = lstm(weights, input("x", [T, B, E]), { h, c });
    const loss = crossEntropy(linear(output, run.h), input("classes", [T, B], "i32"));
    const parameters = [weights.Wx, weights.Wh, ...weights.biases, output.W, output.b!];
    const updates = trainer(parameters, grad(loss, parameters), input("learningRate", []));
    return {
      spec: {
        name: "lstm training",
        outputs: { loss },
        updates: [...updates, [h, run.state.h], [c, run.state.c]],
      },
      runs: Array.from({ length: runs }, (_, step) => ({
        x: normals(T * B * E, `lstm x ${step}`),
        classes: integers(T * B, V, `lstm classes ${step}`),
        learningRate: [Math.fround(rate)],
      })),
    };
  },
};

const fwmTraining: Case = {
  name: "FWM window training steps in QA mode with Adam, state resident",
  rtol: 1e-3,
  // Three steps through layer norms, each of which divides by a spread that may be small.
  atol: 5e-5,
  build() {
    // Chunks of 4 in a window of 9 leave an odd one; the last token of row 1 is padding.
    const [T, B, Q, V, runs] = [9, 2, 3, 11, 3];
    const model = fwmModel({ vocabulary: V, embedding: 5, hidden: 7, memory: 3, reads: 2, chunk: 4 });
    const before = model.recurrent.map(({ name, shape }) => state(`train.${name}`, shape(B)));
    const { logits, state: after } = model.window({
      training: true,
      tokens: input("tokens", [T, B], "i32"),
      state: before,
      mask: input("alive", [T, B]),
      positions: input("queries", [B, Q], "i32"),
    });
    const asked = input("asked", [B, Q], "bool");
    const loss = crossEntropy(logits, input("targets", [B, Q], "i32"), asked);
    const { parameters } = model;
    const updates = trainer(parameters, grad(loss, parameters), input("learningRate", []));
    return {
      spec: {
        name: "fwm training",
        outputs: { loss, logits },
        updates: [...updates, ...before.map((tensor, i) => [tensor, after[i]!] as const)],
      },
      runs: Array.from({ length: runs }, (_, step) => ({
        tokens: integers(T * B, V, `fwm tokens ${step}`),
        alive: Array.from({ length: T * B }, (_, at) => (at === T * B - 1 ? 0 : 1)),
        // t · B + b for three tokens of each row
        queries: [1, 4, 8, 0, 3, 7].map((t, i) => t * B + Math.floor(i / Q)),
        targets: integers(B * Q, V, `fwm targets ${step}`),
        asked: [1, 1, 1, 1, 1, 0],
        learningRate: [Math.fround(rate)],
      })),
    };
  },
};

const dropout: Case = {
  name: "dropout masks under a key, another at every run",
  // The mask has to be the same bit for bit on every machine; the rest is one product.
  rtol: 1e-6,
  atol: 0,
  build() {
    const shape = [7, 9];
    const keep = 0.75;
    const x = input("x", shape);
    const mask = cast(randomMask("hidden", shape, keep), "f32");
    const dropped = mul(x, div(mask, keep));
    const [dx] = grad(sum(mul(dropped, dropped)), [x]) as [Tensor];
    return {
      spec: { name: "dropout", outputs: { mask, dropped, dx } },
      runs: Array.from({ length: 3 }, () => ({ x: normals(sizeOf(shape), "dropout x") })),
    };
  },
};

const emptyMask: Case = {
  name: "cross entropy with an empty mask, then with a full one",
  rtol: 1e-4,
  atol: 1e-6,
  build() {
    const [B, V] = [3, 5];
    const logits = input("logits", [B, V]);
    const loss = crossEntropy(logits, input("classes", [B], "i32"), input("mask", [B], "bool"));
    const [dlogits] = grad(loss, [logits]) as [Tensor];
    const values = { logits: normals(B * V, "empty logits"), classes: integers(B, V, "empty classes") };
    return {
      spec: { name: "cross entropy", outputs: { loss, dlogits } },
      runs: [
        { ...values, mask: [0, 0, 0] },
        { ...values, mask: [1, 1, 1] },
      ],
    };
  },
};

/** Every case: each op of the table that has samples, then whole programs. */
export const cases: readonly Case[] = [
  // The table's order is that of loading, which differs from runtime to runtime.
  ...[...opTable.values()]
    .filter(({ samples }) => samples.length > 0)
    .map(opCase)
    .sort((a, b) => a.name.localeCompare(b.name)),
  scanCase(false),
  scanCase(true),
  lstmTraining,
  fwmTraining,
  dropout,
  emptyMask,
];
