/** AWD-LSTM and AWD-FWM against the originals: outputs, losses, states and every gradient, with fixed masks and without. */
import { describe, expect, test } from "vitest";
import { grad } from "../../src/compile/grad.ts";
import {
  add,
  crossEntropy,
  input,
  mean,
  type Shape,
  sizeOf,
  state,
  stateAttrs,
  type Tensor,
} from "../../src/graph/index.ts";
import type { Value } from "../../src/graph/op.ts";
import { awdFwmPtb, awdFwmSystem, awdFwmWt2 } from "../../src/model/awdFwm.ts";
import { awdLstmPtb, awdLstmSystem, awdLstmWt2 } from "../../src/model/awdLstm.ts";
import { buildSystem } from "../../src/model/registry.ts";
import { countWeights, type SequenceModel } from "../../src/model/sequence.ts";
import { nodeRuntime } from "../../src/runtime/node.ts";
import { interpret } from "../../src/runtime/oracle.ts";
import { State } from "../../src/runtime/state.ts";
import { asgd, sgd } from "../../src/train/optimizers.ts";
import { SequenceTrainer } from "../../src/train/sequenceTrainer.ts";
import { expectClose, normals } from "../support/check.ts";
import { asValue, fixture, type StoredTensor, transposed } from "../support/fixtures.ts";
import { checkTensors, exact, stepwise, withMasks } from "../support/originals.ts";

type Stored = Record<string, StoredTensor>;

interface Segment {
  x: StoredTensor;
  y: StoredTensor;
  logits: StoredTensor;
  last_raw?: StoredTensor;
  ce: number;
  ar: number;
  tar: number;
  total: number;
  state: { h: StoredTensor; c: StoredTensor; F?: StoredTensor }[];
  gradients: Stored;
  masks?: Record<string, { p: number; mask: StoredTensor }>;
}

interface Case {
  config?: Record<string, number>;
  changed_weights?: Stored;
  segments: Segment[];
}

const lstmFixture = fixture<{ cases: Record<string, Case & { weights: Stored }> }>("awd-lstm-official");
const fwmFixture = fixture<{
  weights: Stored;
  cases: Record<string, Case>;
  evaluation: {
    tokens: StoredTensor;
    temperatures: Record<string, { segments: { length: number; loss: number; logits?: StoredTensor }[] }>;
  };
}>("awd-fwm-released");

const sizes = { vocabulary: 13, embedding: 4, hidden: 6, layers: 3, embeddingRange: 0.1, ar: 2, tar: 1 };
const noDropout = { word: 0, input: 0, between: 0, output: 0, weight: 0 };
const fixedRates = { word: 0.2, input: 0.5, between: 0.25, output: 0.4, weight: 0.5 };

function small(system: "awd-lstm" | "awd-fwm", dropout = noDropout): SequenceModel {
  return system === "awd-lstm"
    ? awdLstmSystem.build({ ...awdLstmPtb, ...sizes, dropout })
    : awdFwmSystem.build({ ...awdFwmPtb, ...sizes, dropout, memory: 3, reads: 3, chunk: 2 });
}

/** Stored weights or gradients in the order of the model's parameters. */
function inOrder(stored: Stored): Value[] {
  const fwm = "rnns.0.rnn.weight_ih_l0" in stored;
  const layer = (l: number): Value[] => {
    const prefix = fwm ? `rnns.${l}.rnn.` : `rnns.${l}.`;
    return [
      transposed(stored[`${prefix}weight_ih_l0`]!),
      transposed(stored[`${prefix}weight_hh_l0`]!),
      asValue(stored[`${prefix}bias_ih_l0`]!),
      asValue(stored[`${prefix}bias_hh_l0`]!),
    ];
  };
  const memory = ["fwm.W_write", "fwm.W_read", "linear"].flatMap((name) => [
    transposed(stored[`rnns.2.${name}.weight`] ?? { shape: [0, 0], data: [] }),
    asValue(stored[`rnns.2.${name}.bias`] ?? { shape: [0], data: [] }),
  ]);
  return [
    asValue(stored["encoder.weight"]!),
    ...[0, 1, 2].flatMap(layer),
    ...(fwm ? memory : []),
    asValue(stored["decoder.bias"]!),
  ];
}

/** The stored masks under our names and layout. */
function masksOf({ masks = {} }: Segment): Map<string, Value> {
  const ours: [string, string][] = [
    ["word", "word"],
    ["input", "input"],
    ["between 0-1", "between1"],
    ["between 1-2", "between2"],
    ["output", "output"],
    ...[0, 1, 2].map((l): [string, string] => [`weight_hh layer ${l}`, `weight${l + 1}`]),
  ];
  return new Map(
    ours.flatMap(([theirs, name]) => {
      const mask = masks[theirs]?.mask;
      if (!mask) return [];
      return [[`dropout.${name}`, theirs.startsWith("weight") ? transposed(mask) : asValue(mask)] as const];
    }),
  );
}

function statesOf(segment: Segment): Value[] {
  return [
    ...segment.state.flatMap(({ h, c }) => [asValue(h), asValue(c)]),
    ...segment.state.flatMap(({ F }) => (F ? [asValue(F)] : [])),
  ];
}

const scalarValue = (value: number): Value => ({ shape: [], data: Float64Array.of(value) });
const zerosOf = (shape: Shape): Value => ({ shape, data: new Float64Array(sizeOf(shape)) });

/** Time steps of padding at the end, and whether the loss is the model's own, without all logits at once. */
interface Form {
  readonly padding: number;
  readonly chunked: boolean;
}
const plain: Form = { padding: 0, chunked: false };
const padded: Form = { padding: 3, chunked: true };

interface Built {
  readonly given: Map<Tensor, Value>;
  readonly tensors: Map<string, Tensor>;
}

/** A window of `T + padding` time steps of which T are real, and everything the fixture says about it. */
function build(
  model: SequenceModel,
  weights: Stored,
  segment: Segment,
  before: readonly Value[],
  { padding, chunked }: Form = plain,
): Built {
  const [T, B] = segment.x.shape as [number, number];
  const full = T + padding;
  const tokens = input("tokens", [full, B], "i32");
  const targets = input("targets", [full, B], "i32");
  const mask = input("mask", [full, B]);
  const states = model.recurrent.map(({ name, shape }) => input(`before.${name}`, shape(B)));
  const run = model.window({ tokens, state: states, training: true, ...(padding > 0 ? { mask } : {}) });
  const ce = chunked
    ? run.loss!(targets, mask)
    : crossEntropy(run.logits, targets, padding > 0 ? mask : undefined);
  const total = add(ce, run.penalty!);
  const gradients = grad(total, model.parameters);
  const filled = ({ data }: StoredTensor): Value => ({
    shape: [full, B],
    data: Float64Array.from({ length: full * B }, (_, i) => data[i] ?? 1),
  });
  return {
    given: new Map<Tensor, Value>([
      [tokens, filled(segment.x)],
      [targets, filled(segment.y)],
      [
        mask,
        { shape: [full, B], data: Float64Array.from({ length: full * B }, (_, i) => (i < T * B ? 1 : 0)) },
      ],
      ...states.map((tensor, i) => [tensor, before[i]!] as const),
      ...model.parameters.map((tensor, i) => [tensor, inOrder(weights)[i]!] as const),
    ]),
    tensors: new Map([
      ...(padding > 0 ? [] : [["logits", run.logits] as const]),
      ["ce", ce],
      ["penalty", run.penalty!],
      ["total", total],
      ...run.state.map((tensor, i) => [`state ${model.recurrent[i]!.name}`, tensor] as const),
      ...gradients.map(
        (tensor, i) => [`gradient of ${stateAttrs(model.parameters[i]!)!.name}`, tensor] as const,
      ),
    ]),
  };
}

function wanted(model: SequenceModel, segment: Segment): Map<string, Value> {
  return new Map([
    ["logits", asValue(segment.logits)],
    ["ce", scalarValue(segment.ce)],
    ["penalty", scalarValue(segment.ar + segment.tar)],
    ["total", scalarValue(segment.total)],
    ...statesOf(segment).map((value, i) => [`state ${model.recurrent[i]!.name}`, value] as const),
    ...inOrder(segment.gradients).map(
      (value, i) => [`gradient of ${stateAttrs(model.parameters[i]!)!.name}`, value] as const,
    ),
  ]);
}

async function checkSegments(
  system: "awd-lstm" | "awd-fwm",
  weights: Stored,
  { segments }: Case,
  form: Form,
): Promise<void> {
  const model = small(system, segments[0]!.masks ? fixedRates : noDropout);
  let before = model.recurrent.map(({ shape }) => zerosOf(shape(segments[0]!.x.shape[1]!)));
  for (const segment of segments) {
    const built = build(model, weights, segment, before, form);
    const names = [...built.tensors.keys()];
    const masked = withMasks([...built.tensors.values()], masksOf(segment));
    const given = new Map([...built.given, ...masked.given]);
    const want = wanted(model, segment);
    await checkTensors(
      new Map(names.map((name, i) => [name, { tensor: masked.tensors[i]!, value: want.get(name)! }])),
      given,
    );
    before = statesOf(segment);
  }
}

describe("AWD-LSTM: the official program's logits, losses, states and gradients", () => {
  const { weights } = lstmFixture.cases["two segments, no dropout"]!;
  for (const name of ["two segments, no dropout", "two segments, fixed masks"]) {
    test(name, () => checkSegments("awd-lstm", weights, lstmFixture.cases[name]!, plain));
    test(`${name}, padded, logits in chunks`, () =>
      checkSegments("awd-lstm", weights, lstmFixture.cases[name]!, padded));
  }

  test("the last word has a gradient through the input too, unlike the released look-up", async () => {
    const { segments } = lstmFixture.cases["input contains the last vocabulary word"]!;
    const model = small("awd-lstm");
    const segment = segments[0]!;
    const before = model.recurrent.map(({ shape }) => zerosOf(shape(segment.x.shape[1]!)));
    const { given, tensors } = build(model, weights, segment, before);
    const value = asValue(segment.gradients["encoder.weight with an ordinary look-up"]!);
    await checkTensors(
      new Map([["gradient", { tensor: tensors.get("gradient of embedding")!, value }]]),
      given,
    );
  });
});

describe("AWD-FWM: the authors' logits, losses, states and gradients", () => {
  for (const [name, segmentCase] of Object.entries(fwmFixture.cases)) {
    const weights = { ...fwmFixture.weights, ...segmentCase.changed_weights };
    test(name, () => checkSegments("awd-fwm", weights, segmentCase, plain));
    test(`${name}, padded, logits in chunks`, () => checkSegments("awd-fwm", weights, segmentCase, padded));
  }

  test.each(Object.keys(fwmFixture.evaluation.temperatures))("evaluation at temperature %s", async (key) => {
    const { tokens: stored, temperatures } = fwmFixture.evaluation;
    const model = small("awd-fwm");
    const [, B] = stored.shape as [number, number];
    let before = model.recurrent.map(({ shape }) => zerosOf(shape(B)));
    let row = 0;
    for (const { length, loss, logits } of temperatures[key]!.segments) {
      const tokens = input("tokens", [length, B], "i32");
      const targets = input("targets", [length, B], "i32");
      const temperature = input("temperature", []);
      const states = model.recurrent.map(({ name, shape }) => input(`before.${name}`, shape(B)));
      const run = model.window({ tokens, state: states, training: false, temperature });
      expect(run.penalty).toBeUndefined();
      const rows = (from: number): Value => ({
        shape: [length, B],
        data: Float64Array.from(stored.data.slice(from * B, (from + length) * B)),
      });
      const given = new Map<Tensor, Value>([
        [tokens, rows(row)],
        [targets, rows(row + 1)],
        [temperature, scalarValue(Number(key))],
        ...states.map((tensor, i) => [tensor, before[i]!] as const),
        ...model.parameters.map((tensor, i) => [tensor, inOrder(fwmFixture.weights)[i]!] as const),
      ]);
      await checkTensors(
        new Map([
          ...(logits ? [["logits", { tensor: run.logits, value: asValue(logits) }] as const] : []),
          ["loss", { tensor: mean(run.losses!(targets)), value: scalarValue(loss) }],
        ]),
        given,
      );
      before = interpret(run.state, given);
      row += length;
    }
  });
});

describe.each(["awd-lstm", "awd-fwm"] as const)("%s", (system) => {
  test("token by token it is what it is over a window", () => {
    const model = small(system, fixedRates);
    const [T, B] = [5, 2];
    const tokens = input("tokens", [T, B], "i32");
    const states = model.recurrent.map(({ name, shape }) => state(`before.${name}`, shape(B)));
    const whole = model.window({ tokens, state: states, training: false });
    const steps = stepwise(model, tokens, states);
    const given = new Map<Tensor, Value>([
      [tokens, { shape: [T, B], data: Float64Array.from({ length: T * B }, (_, i) => (i * 7) % 13) }],
      ...[...states, ...model.parameters].map(
        (tensor, i) => [tensor, normals(tensor.shape, i, 0.3)] as const,
      ),
    ]);
    const a = interpret([whole.logits, ...whole.state], given);
    const b = interpret([steps.logits, ...steps.state], given);
    a.forEach(({ data }, i) => {
      expectClose(data, b[i]!.data, { ...exact, label: i === 0 ? "logits" : model.recurrent[i - 1]!.name });
    });
  });

  test("logits at chosen positions are those of the whole window", () => {
    const model = small(system);
    const [T, B] = [4, 2];
    const tokens = input("tokens", [T, B], "i32");
    const positions = input("positions", [B, 2], "i32");
    const states = model.recurrent.map(({ name, shape }) => input(`before.${name}`, shape(B)));
    const whole = model.window({ tokens, state: states, training: true });
    const some = model.window({ tokens, state: states, training: true, positions });
    const given = new Map<Tensor, Value>([
      [tokens, { shape: [T, B], data: Float64Array.from({ length: T * B }, (_, i) => (i * 5) % 13) }],
      [positions, { shape: [B, 2], data: Float64Array.of(2, 6, 1, 7) }],
      ...[...states, ...model.parameters].map(
        (tensor, i) => [tensor, normals(tensor.shape, i, 0.3)] as const,
      ),
    ]);
    const [all, picked] = interpret([whole.logits, some.logits], given);
    const rows = [2, 6, 1, 7].flatMap((at) => [...all!.data.subarray(at * 13, (at + 1) * 13)]);
    expectClose(picked!.data, rows, exact);
  });
});

test("a memory whose output map starts from zeros starts as AWD-LSTM, and not otherwise", () => {
  const [T, B] = [5, 2];
  const tokens = input("tokens", [T, B], "i32");
  const text: Value = { shape: [T, B], data: Float64Array.from({ length: T * B }, (_, i) => (i * 5) % 13) };
  const logitsOf = (model: SequenceModel): ArrayLike<number> => {
    const drawn = new State(1);
    for (const parameter of model.parameters) drawn.declare(stateAttrs(parameter)!);
    const states = model.recurrent.map(({ name, shape }) => input(`before.${name}`, shape(B)));
    const given = new Map<Tensor, Value>([
      [tokens, text],
      ...states.map((tensor) => [tensor, normals(tensor.shape, 0, 0)] as const),
      ...model.parameters.map((tensor) => {
        const { data } = drawn.get(stateAttrs(tensor)!.name);
        return [tensor, { shape: tensor.shape, data: Float64Array.from(data as Float32Array) }] as const;
      }),
    ]);
    return interpret([model.window({ tokens, state: states, training: false }).logits], given)[0]!.data;
  };
  const lstm = logitsOf(small("awd-lstm"));
  const withMemory = (outInit: "pytorch" | "zeros"): ArrayLike<number> =>
    logitsOf(
      awdFwmSystem.build({
        ...awdFwmPtb,
        ...{ ...sizes, dropout: noDropout, memory: 3, chunk: 2, outInit },
      }),
    );
  expectClose(withMemory("zeros"), lstm, exact);
  expect(withMemory("pytorch")).not.toEqual(lstm);
});

test("weight counts are the published ones", () => {
  expect(countWeights(buildSystem(awdLstmPtb))).toBe(24_221_600);
  expect(countWeights(buildSystem(awdLstmWt2))).toBe(33_556_078);
  expect(countWeights(buildSystem(awdFwmPtb))).toBe(24_325_025);
  expect(countWeights(buildSystem(awdFwmWt2))).toBe(33_659_503);
});

describe("AWD-LSTM's training: three steps of SGD, then four of ASGD", () => {
  interface Training {
    config: { weight_decay: number; clip: number };
    tokens: StoredTensor;
    steps: { optimizer: string; length: number; scaled_lr: number; ce: number; gradient_norm: number }[];
    parameters_after_3: Stored;
    parameters_after_7: Stored;
    ax_after_7: Stored;
  }
  const { cases } = lstmFixture;
  const recorded = cases["training: 3 SGD steps, then 4 ASGD steps"] as unknown as Training;
  const { weights } = cases["two segments, no dropout"]!;

  // float32 through seven steps at rates of about 2.
  const close = { rtol: 1e-4, atol: 2e-5 };
  test.each([0, 3])("windows padded by %i", async (padding) => {
    const { config, tokens, steps } = recorded;
    const B = tokens.shape[1]!;
    const decay = { weightDecay: config.weight_decay };
    const trainer = new SequenceTrainer(
      small("awd-lstm"),
      {
        optimizers: { first: sgd(decay), averaging: asgd(decay) },
        clip: config.clip,
        emaDecay: 0,
        seed: 1,
      },
      { runtime: nodeRuntime, threads: 1 },
    );
    const names = trainer.model.parameters.map((parameter) => stateAttrs(parameter)!.name);
    inOrder(weights).forEach(({ data }, i) => {
      trainer.state.set(names[i]!, data as Float64Array);
    });
    const expectWeights = (prefix: string, stored: Stored, label: string): void => {
      inOrder(stored).forEach(({ data }, i) => {
        const got = trainer.state.get(prefix + names[i]!).data as Float32Array;
        expectClose(got, data as Float64Array, { ...close, label: `${label}: ${names[i]}` });
      });
    };
    let start = 0;
    for (const [step, { optimizer, length, scaled_lr, ce, gradient_norm }] of steps.entries()) {
      const window = length + padding;
      const cut = (from: number): Int32Array => {
        const padded = new Int32Array(window * B);
        padded.set(tokens.data.slice(from * B, (from + length) * B));
        return padded;
      };
      const mask = new Float32Array(window * B).fill(1, 0, length * B);
      const batch = { batch: B, window, tokens: cut(start), targets: cut(start + 1), mask, lossMask: mask };
      const made = await trainer.step(batch, {
        learningRate: scaled_lr,
        averaging: optimizer === "ASGD",
        key: { seed: 1, step },
      });
      expect(made.loss, `loss of step ${step}`).toBeCloseTo(ce, 4);
      expect(made.gradNorm, `norm of step ${step}`).toBeCloseTo(gradient_norm, 4);
      start += length;
      if (step === 2) expectWeights("", recorded.parameters_after_3, "after three steps");
    }
    expectWeights("", recorded.parameters_after_7, "after seven steps");
    expectWeights("asgd.average.", recorded.ax_after_7, "average");
    // Evaluation has the averages, and the weights continue as they were.
    const averages = inOrder(recorded.ax_after_7);
    for (const [i, values] of [...trainer.evaluationWeights().values()].entries()) {
      expectClose(values, averages[i]!.data as Float64Array, close);
    }
    await trainer.release();
  });
});
