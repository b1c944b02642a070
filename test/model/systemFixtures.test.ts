/** The comparison systems against the numbers of their originals: outputs, states, losses and every gradient. */
import { describe, expect, test } from "vitest";
import { grad } from "../../src/compile/grad.ts";
import { add, crossEntropy, input, stateAttrs, type Tensor, topological } from "../../src/graph/index.ts";
import type { Value } from "../../src/graph/op.ts";
import type { MaskAttrs } from "../../src/graph/ops/source.ts";
import { jbfwDefaults, jbfwModel } from "../../src/model/jbfwModel.ts";
import { lstmModel } from "../../src/model/lstmModel.ts";
import type { SequenceModel } from "../../src/model/sequence.ts";
import { interpret } from "../../src/runtime/oracle.ts";
import { expectClose, runOrtWithState, type Tolerance } from "../support/check.ts";
import { asValue, fixture, type StoredTensor, transposed } from "../support/fixtures.ts";
import { zeroValue } from "../support/systems.ts";

// The oracle works in float64 as the fixtures do; float32 is measured against the largest entry of a tensor.
const exact: Tolerance = { rtol: 1e-9, atol: 1e-11 };
const single = (want: Float64Array): Tolerance => ({
  rtol: 0,
  atol: 1e-4 * want.reduce((largest, x) => Math.max(largest, Math.abs(x)), 1e-3),
});

type Stored = Record<string, StoredTensor>;

/** A window of a fixture in our layout: tokens [T, B], state in the order of `recurrent`, weights in their order. */
interface FixtureWindow {
  readonly x: Value;
  readonly y: Value;
  /** [T, B, V] */
  readonly logits: Value;
  readonly loss: number;
  /** Where the loss is taken: 1 or 0, [T, B]. */
  readonly counted: Value;
  /** Whether padding is masked. */
  readonly padded: boolean;
  readonly after: readonly Value[];
  readonly gradients: readonly Value[];
  /** Dropout masks by the names our model draws them under. */
  readonly masks?: Readonly<Record<string, Value>>;
}

/** Runs a model over windows, the state carried, and compares everything in the oracle and on ONNX Runtime. */
async function checkWindows(
  model: SequenceModel,
  weights: readonly Value[],
  windows: readonly FixtureWindow[],
  training = false,
): Promise<void> {
  expect(weights.map(({ shape }) => shape)).toEqual(model.parameters.map(({ shape }) => shape));
  const B = windows[0]!.x.shape[1]!;
  let state = model.recurrent.map(({ shape }) => zeroValue(shape(B)));
  for (const [n, window] of windows.entries()) {
    const { x, counted } = window;
    const tokens = input("tokens", x.shape, "i32");
    const targets = input("targets", x.shape, "i32");
    const where = input("counted", x.shape);
    const mask = input("mask", x.shape);
    const before = model.recurrent.map(({ name, shape }) => input(name, shape(B)));
    const run = model.window({ tokens, state: before, training, ...(window.padded ? { mask } : {}) });
    const task = crossEntropy(run.logits, targets, where);
    const loss = run.penalty ? add(task, run.penalty) : task;
    const grads = grad(loss, model.parameters);
    const given = new Map<Tensor, Value>([
      [tokens, x],
      [targets, window.y],
      [where, counted],
      [mask, { shape: x.shape, data: x.data.map((token) => (token === 0 ? 0 : 1)) }],
      ...before.map((tensor, i) => [tensor, state[i]!] as const),
      ...model.parameters.map((tensor, i) => [tensor, weights[i]!] as const),
    ]);
    for (const { op, attrs, outputs } of topological([loss])) {
      if (op.name !== "randomMask") continue;
      const drawn = window.masks![(attrs as MaskAttrs).name]!;
      expect(drawn.shape).toEqual(outputs[0]!.shape);
      given.set(outputs[0]!, drawn);
    }
    const want: (readonly [string, Tensor, Value])[] = [
      ["loss", loss, { shape: [], data: Float64Array.of(window.loss) }],
      ...model.recurrent.map(({ name }, i) => [`state ${name}`, run.state[i]!, window.after[i]!] as const),
      ...model.parameters.map(
        (tensor, i) => [`gradient of ${stateAttrs(tensor)!.name}`, grads[i]!, window.gradients[i]!] as const,
      ),
    ];
    const tensors = want.map(([, tensor]) => tensor);
    const inOracle = interpret([...tensors, run.logits], given);
    // Masks cannot be handed to a compiled program: it draws them.
    const onOrt = training ? undefined : await runOrtWithState(tensors, given);
    want.forEach(([name, , { data }], i) => {
      const label = `window ${n}: ${name}`;
      expectClose(inOracle[i]!.data, data, { ...exact, label: `${label} in the oracle` });
      if (onOrt) expectClose(onOrt[i]!, data, { ...single(data), label: `${label} on ONNX Runtime` });
    });
    const V = window.logits.shape[2]!;
    x.data.forEach((token, at) => {
      if (window.padded && token === 0) return;
      const row = (value: Value): Float64Array => value.data.subarray(at * V, (at + 1) * V);
      expectClose(row(inOracle.at(-1)!), row(window.logits), {
        ...exact,
        label: `window ${n}: logits at ${at}`,
      });
    });
    state = [...window.after];
  }
}

/** [B, T, …] as [T, B, …]. */
function timeFirst({ shape: [B, T, ...rest], data }: StoredTensor): Value {
  const width = rest.reduce((a, b) => a * b, 1);
  const out = new Float64Array(data.length);
  for (let t = 0; t < T!; t++)
    for (let b = 0; b < B!; b++)
      for (let i = 0; i < width; i++) out[(t * B! + b) * width + i] = data[(b * T! + t) * width + i]!;
  return { shape: [T!, B!, ...rest], data: out };
}

interface CatbabiWindow {
  x: StoredTensor;
  y: StoredTensor;
  logits: StoredTensor;
  loss: number;
  gradients: Stored;
}

/** A batch-major window of the fixtures that follow the catbAbI protocol: `<pad>` is 0, "?" is 2. */
function catbabiWindow(window: CatbabiWindow, mode: "qa" | "lm") {
  const x = timeFirst(window.x);
  const counts = (token: number): boolean => (mode === "qa" ? token === 2 : token !== 0);
  return {
    x,
    y: timeFirst(window.y),
    logits: timeFirst(window.logits),
    loss: window.loss,
    counted: { shape: x.shape, data: x.data.map((token) => (counts(token) ? 1 : 0)) },
    padded: true,
  };
}

describe("LSTM with residual connections", () => {
  interface Case {
    windows: (CatbabiWindow & {
      state: Stored[];
      masks?: Record<string, { p: number; mask: StoredTensor }>;
    })[];
  }
  const { config, weights, cases } = fixture<{
    config: { V: number; E: number; H: number; layers: number; rates: Record<string, number> };
    weights: Stored;
    cases: Record<string, Case>;
  }>("lstm-4x-residual");
  const { V, E, H, layers, rates } = config;
  const model = lstmModel({
    vocabulary: V,
    embedding: E,
    hidden: H,
    layers,
    wordDropout: rates.word!,
    inputDropout: rates.input!,
    hiddenDropout: rates.between!,
    weightDropout: rates.weight_hh!,
  });
  const each = [...Array(layers).keys()];
  const inOrder = (stored: Stored): Value[] => [
    asValue(stored["embedding.weight"]!),
    ...each.flatMap((l) => [
      transposed(stored[`lstm.${l}.W_ih`]!),
      transposed(stored[`lstm.${l}.W_hh`]!),
      asValue(stored[`lstm.${l}.bias`]!),
    ]),
    transposed(stored["linear.weight"]!),
  ];
  test.each(Object.entries(cases))("%s", async (title, { windows }) => {
    const masksOf = (masks: Record<string, { mask: StoredTensor }>): Record<string, Value> => ({
      "dropout.word": asValue(masks.word!.mask),
      "dropout.input": timeFirst(masks.input!.mask),
      ...Object.fromEntries(
        each.slice(1).map((l) => [`dropout.hidden${l}`, timeFirst(masks[`between ${l - 1}-${l}`]!.mask)]),
      ),
      ...Object.fromEntries(
        each.map((l) => [`dropout.Wh${l + 1}`, transposed(masks[`weight_hh layer ${l}`]!.mask)]),
      ),
    });
    await checkWindows(
      model,
      inOrder(weights),
      windows.map((window) => ({
        ...catbabiWindow(window, "qa"),
        after: window.state.flatMap(({ h, c }) => [asValue(h!), asValue(c!)]),
        gradients: inOrder(window.gradients),
        ...(window.masks ? { masks: masksOf(window.masks) } : {}),
      })),
      title.startsWith("training"),
    );
  });
});

describe("fast weights that attend to the recent past", () => {
  interface Case {
    config: { V: number; E: number; n: number; S: number; lambda: number; eta: number };
    weights: Stored;
    windows: (CatbabiWindow & { state: Stored })[];
  }
  const { cases } = fixture<{ cases: Record<string, Case> }>("jbfw");
  test.each(Object.entries(cases))("%s", async (_, { config, weights, windows }) => {
    const model = jbfwModel({
      ...jbfwDefaults,
      vocabulary: config.V,
      embedding: config.E,
      hidden: config.n,
      innerSteps: config.S,
      decay: config.lambda,
      fastRate: config.eta,
      chunk: 3,
    });
    const inOrder = (stored: Stored): Value[] => [
      asValue(stored["embedding.weight"]!),
      transposed(stored.W!),
      transposed(stored.C!),
      asValue(stored.b!),
      asValue(stored["ln.weight"]!),
      asValue(stored["ln.bias"]!),
      transposed(stored["linear.weight"]!),
    ];
    await checkWindows(
      model,
      inOrder(weights),
      windows.map((window) => ({
        ...catbabiWindow(window, "lm"),
        after: [asValue(window.state.h!), asValue(window.state.A!)],
        gradients: inOrder(window.gradients),
      })),
    );
  });
});
