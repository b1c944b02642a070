/** The comparison systems against the numbers of their originals: outputs, states, losses and every gradient. */
import { describe, expect, test } from "vitest";
import { grad } from "../../src/compile/grad.ts";
import {
  add,
  constant,
  crossEntropy,
  expand,
  input,
  mean,
  mul,
  sigmoid,
  stateAttrs,
  sum,
  type Tensor,
  topological,
  zeros,
} from "../../src/graph/index.ts";
import type { Value } from "../../src/graph/op.ts";
import type { MaskAttrs } from "../../src/graph/ops/source.ts";
import { deltaLayer, deltaWindow, featureMap } from "../../src/model/deltaNetModel.ts";
import { jbfwDefaults, jbfwModel } from "../../src/model/jbfwModel.ts";
import { linearWeights } from "../../src/model/linear.ts";
import { inputGates } from "../../src/model/lstm.ts";
import { lstmModel } from "../../src/model/lstmModel.ts";
import { controllerInputs, mnmModel, mnmOutput, mnmWeights, mnmWindow } from "../../src/model/mnmModel.ts";
import { normWeights } from "../../src/model/norm.ts";
import type { SequenceModel } from "../../src/model/sequence.ts";
import { transformerXlModel } from "../../src/model/transformerXlModel.ts";
import { interpret } from "../../src/runtime/oracle.ts";
import { expectClose, runOrtWithState } from "../support/check.ts";
import { asValue, fixture, type StoredTensor, transposed } from "../support/fixtures.ts";
import { checkTensors, exact, single } from "../support/originals.ts";
import { zeroValue } from "../support/systems.ts";

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

/** The last two axes exchanged: fast weights are stored value by key there, key by value here. */
function exchanged({ shape, data }: StoredTensor): Value {
  const [rows, columns] = shape.slice(-2) as [number, number];
  const parts: number[] = [];
  for (let at = 0; at < data.length; at += rows * columns) {
    const part = { shape: [rows, columns], data: data.slice(at, at + rows * columns) };
    parts.push(...transposed(part).data);
  }
  return { shape: [...shape.slice(0, -2), columns, rows], data: Float64Array.from(parts) };
}

/** Compares tensors in the oracle and on ONNX Runtime. */
function check(want: readonly (readonly [string, Tensor, Value])[], given: ReadonlyMap<Tensor, Value>) {
  return checkTensors(
    want.map(([name, tensor, value]) => [name, { tensor, value }] as const),
    given,
  );
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

describe("Transformer-XL", () => {
  interface Head {
    logits: StoredTensor;
    loss: number;
    gradients: Stored;
  }
  interface Case {
    config: Record<"n_layer" | "n_head" | "d_model" | "d_inner" | "d_embed" | "n_token" | "mem_len", number>;
    weights: Stored;
    segments: {
      x: StoredTensor;
      y: StoredTensor;
      official: Head;
      catbabi: Head;
      mems: StoredTensor[];
      attention?: { layers: StoredTensor[] };
    }[];
  }
  const { cases } = fixture<{ cases: Record<string, Case> }>("txl-official");
  const titles = ["memory 7, post-norm", "no memory, post-norm"] as const;
  const modelOf = ({ config }: Case, head: "tied" | "plain"): SequenceModel =>
    transformerXlModel({
      vocabulary: config.n_token,
      embedding: config.d_embed,
      hidden: config.d_model,
      layers: config.n_layer,
      heads: config.n_head,
      inner: config.d_inner,
      memory: config.mem_len,
      dropout: 0,
      attentionDropout: 0,
      head,
    });
  const inOrder = ({ config }: Case, head: "tied" | "plain", stored: Stored): Value[] => [
    asValue(stored["word_emb.emb_layers.0.weight"]!),
    transposed(stored["word_emb.emb_projs.0"]!),
    asValue(stored.r_w_bias!),
    asValue(stored.r_r_bias!),
    ...Array.from({ length: config.n_layer }, (_, l) => `layers.${l}.`).flatMap((layer) => [
      transposed(stored[`${layer}dec_attn.qkv_net.weight`]!),
      transposed(stored[`${layer}dec_attn.r_net.weight`]!),
      transposed(stored[`${layer}dec_attn.o_net.weight`]!),
      asValue(stored[`${layer}dec_attn.layer_norm.weight`]!),
      asValue(stored[`${layer}dec_attn.layer_norm.bias`]!),
      transposed(stored[`${layer}pos_ff.CoreNet.0.weight`]!),
      asValue(stored[`${layer}pos_ff.CoreNet.0.bias`]!),
      transposed(stored[`${layer}pos_ff.CoreNet.3.weight`]!),
      asValue(stored[`${layer}pos_ff.CoreNet.3.bias`]!),
      asValue(stored[`${layer}pos_ff.layer_norm.weight`]!),
      asValue(stored[`${layer}pos_ff.layer_norm.bias`]!),
    ]),
    ...(head === "plain"
      ? [transposed(stored["catbabi_head.weight"]!)]
      : [asValue(stored["crit.out_projs.0"]!), asValue(stored["crit.out_layers.0.bias"]!)]),
  ];
  /** Our memory: [m, B, D] of the tokens so far at the right end of [B, memory, D], and how many they are. */
  const stateAfter = ({ config }: Case, mems: readonly StoredTensor[]): Value[] => {
    const m = config.mem_len;
    if (m === 0) return [];
    const parts = mems.slice(0, config.n_layer).map((stored) => {
      const {
        shape: [B, count, D],
        data,
      } = timeFirst(stored);
      const out = new Float64Array(B! * m * D!);
      for (let b = 0; b < B!; b++) {
        const own = data.subarray(b * count! * D!, (b + 1) * count! * D!);
        out.set(own, (b * m + m - count!) * D!);
      }
      return { shape: [B!, m, D!], data: out };
    });
    const [count, B] = mems[0]!.shape as [number, number];
    return [...parts, { shape: [B, 1], data: new Float64Array(B).fill(count) }];
  };

  test.each(titles.flatMap((title) => (["tied", "plain"] as const).map((head) => [title, head] as const)))(
    "%s, %s head",
    async (title, head) => {
      const { [title]: found } = cases;
      const given = found!;
      await checkWindows(
        modelOf(given, head),
        inOrder(given, head, given.weights),
        given.segments.map((segment) => {
          const { logits, loss, gradients } = head === "tied" ? segment.official : segment.catbabi;
          const x = asValue(segment.x);
          return {
            x,
            y: asValue(segment.y),
            logits: asValue(logits),
            loss,
            counted: { shape: x.shape, data: new Float64Array(x.data.length).fill(1) },
            padded: false,
            after: stateAfter(given, segment.mems),
            gradients: inOrder(given, head, gradients),
          };
        }),
      );
    },
  );

  test("a step's trace is the official attention of the first token of a segment", () => {
    const given = cases["memory 7, post-norm"]!;
    const model = modelOf(given, "tied");
    const weights = inOrder(given, "tied", given.weights);
    const [before, segment] = given.segments as [Case["segments"][0], Case["segments"][0]];
    const B = segment.x.shape[1]!;
    const tokens = input("tokens", [B], "i32");
    const parts = model.recurrent.map(({ name, shape }) => input(name, shape(B)));
    const { trace } = model.step(tokens, parts);
    const values = new Map<Tensor, Value>([
      [tokens, { shape: [B], data: Float64Array.from(segment.x.data.slice(0, B)) }],
      ...parts.map((part, i) => [part, stateAfter(given, before.mems)[i]!] as const),
      ...model.parameters.map((parameter, i) => [parameter, weights[i]!] as const),
    ]);
    const { n_head: h, mem_len: m } = given.config;
    segment.attention!.layers.forEach(({ shape, data }, l) => {
      // [q, k, B, h] there, with a memory of 5: the first query sees these 5 and itself.
      const [, k, rows, heads] = shape as [number, number, number, number];
      expect([rows, heads]).toEqual([B, h]);
      const [got] = interpret([trace[`attention${l + 1}`]!], values);
      for (let b = 0; b < B; b++) {
        for (let n = 0; n < h; n++) {
          const want = Array.from({ length: 6 }, (_, j) => data[(j * B + b) * h + n]!);
          const own = got!.data.subarray((b * h + n) * (m + 1), (b * h + n + 1) * (m + 1));
          expectClose(own, [0, 0, ...want], { ...exact, label: `layer ${l} row ${b} head ${n}` });
          expect(k).toBe(10);
        }
      }
    });
  });
});

describe("metalearned neural memory", () => {
  const { cell, model: whole } = fixture<{
    cell: {
      inputs: Stored;
      weights: Stored;
      steps: Stored[];
      gradients: Stored;
      "gradients of the mean meta loss alone": Stored;
      "mean meta loss": number;
      loss: number;
    };
    model: {
      config: Record<"V" | "E" | "H" | "m" | "heads" | "reg", number>;
      weights: Stored;
      windows: (CatbabiWindow & { state: Stored })[];
    };
  }>("mnm-p-port");

  /** Controller and memory, in the order in which our weights are declared. */
  const cellValues = (stored: Stored): [string, Value][] => [
    ["Wx", transposed(stored["lstm_l1.weight_ih"]!)],
    ["Wh", transposed(stored["lstm_l1.weight_hh"]!)],
    ["bx", asValue(stored["lstm_l1.bias_ih"]!)],
    ["bh", asValue(stored["lstm_l1.bias_hh"]!)],
    ["interact.W", transposed(stored["heads_l2.weight"]!)],
    ["interact.b", asValue(stored["heads_l2.bias"]!)],
    ["beta.W", transposed(stored["f_l.weight"]!)],
    ["beta.b", asValue(stored["f_l.bias"]!)],
    ["targets.W", transposed(stored["memfunc.targets_net.weight"]!)],
    ["targets.b", asValue(stored["memfunc.targets_net.bias"]!)],
    ["out.W", transposed(stored["read_out.weight"]!)],
    ["out.b", asValue(stored["read_out.bias"]!)],
  ];
  /** M⁰, out by in there, in by out here. */
  const initial = (stored: Stored): Value[] => [1, 2, 3].map((l) => transposed(stored[`M0.${l}`]!));

  // A chunk and a rest, chunks without a rest, and all in the rest.
  test.each([4, 2, 50])("the cell over six steps, in chunks of %i", async (chunk) => {
    const { inputs, weights, steps, gradients } = cell;
    const [T, B, E] = inputs.x!.shape as [number, number, number];
    const [H, m, heads] = [5, 4, 2];
    const w = mnmWeights({ embedding: E, hidden: H, memory: m, heads });
    const x = input("x", [T, B, E]);
    const coef = input("coef", [T, B, H]);
    const M0 = [1, 2, 3].map((l) => input(`M${l}`, [m, m]));
    const start = {
      h: zeros([B, H]),
      c: zeros([B, H]),
      r: zeros([B, m]),
      M: M0.map((M) => expand(M, [B, m, m])),
    };
    const run = mnmWindow(w, inputGates(controllerInputs(w).ofToken, x), start, { chunk });
    const out = mnmOutput(w, run.h, run.r);
    const meta = mean(run.meta);
    const loss = add(sum(mul(out, coef)), meta);
    const parameters = [
      ...[w.lstm.Wx, w.lstm.Wh, ...w.lstm.biases],
      ...[w.interact, w.beta, w.targets, w.out].flatMap(({ W, b }) => [W, b!]),
    ];
    const grads = grad(loss, [...parameters, ...M0, x]);
    // Of the meta-objective alone, so that a missing part of it cannot hide.
    const metaGrads = grad(meta, [w.interact.W, w.beta.W, w.targets.W, ...M0]);
    const metaOnly = cell["gradients of the mean meta loss alone"];
    const stacked = (name: string): Value => ({
      shape: [T, ...steps[0]![name]!.shape],
      data: Float64Array.from(steps.flatMap((step) => step[name]!.data)),
    });
    const last = steps.at(-1)!;
    type Wanted = readonly [string, Tensor, Value];
    const named = [
      ...cellValues(gradients),
      ...initial(gradients).map((v, l) => [`M0.${l + 1}`, v] as const),
    ];
    await check(
      [
        ["h", run.h, stacked("h")],
        ["r", run.r, stacked("r")],
        ["out", out, stacked("out")],
        ["meta loss", run.meta, stacked("meta_loss_per_row")],
        ["c", run.state.c, asValue(last.c!)],
        ...[0, 1, 2].map((l): Wanted => [`M${l + 1}`, run.state.M[l]!, exchanged(last[`M${l + 1}`]!)]),
        ["loss", loss, { shape: [], data: Float64Array.of(cell.loss) }],
        ["mean meta loss", meta, { shape: [], data: Float64Array.of(cell["mean meta loss"]) }],
        ...named.map(([name, value], i): Wanted => [`gradient of ${name}`, grads[i]!, value]),
        ["gradient of x", grads.at(-1)!, asValue(gradients.x!)],
        ["meta gradient of interact.W", metaGrads[0]!, transposed(metaOnly["heads_l2.weight"]!)],
        ["meta gradient of beta.W", metaGrads[1]!, transposed(metaOnly["f_l.weight"]!)],
        ["meta gradient of targets.W", metaGrads[2]!, transposed(metaOnly["memfunc.targets_net.weight"]!)],
        ...initial(metaOnly).map((v, l): Wanted => [`meta gradient of M0.${l + 1}`, metaGrads[3 + l]!, v]),
      ],
      new Map<Tensor, Value>([
        ...cellValues(weights).map(([, value], i) => [parameters[i]!, value] as const),
        ...initial(weights).map((value, l) => [M0[l]!, value] as const),
        [x, asValue(inputs.x!)],
        [coef, asValue(inputs.coef!)],
      ]),
    );
  });

  test("the whole model over two windows with padding", async () => {
    const { config, weights, windows } = whole;
    const M0 = initial(weights);
    const model = mnmModel(
      {
        vocabulary: config.V,
        embedding: config.E,
        hidden: config.H,
        memory: config.m,
        heads: config.heads,
        metaWeight: config.reg,
        chunk: 3,
      },
      M0.map(({ shape, data }) => constant(data, shape)),
    );
    const inOrder = (stored: Stored): Value[] => [
      asValue(stored["embedding.weight"]!),
      ...cellValues(stored).map(([, value]) => value),
      transposed(stored["linear.weight"]!),
    ];
    const written = (stored: StoredTensor, l: number): Value => {
      const { shape, data } = exchanged(stored);
      const start = M0[l]!.data;
      return { shape, data: data.map((x, i) => x - start[i % start.length]!) };
    };
    await checkWindows(
      model,
      inOrder(weights),
      windows.map((window) => ({
        ...catbabiWindow(window, "qa"),
        after: [
          ...["h", "c", "r"].map((name) => asValue(window.state[name]!)),
          ...[0, 1, 2].map((l) => written(window.state[`M${l + 1}`]!, l)),
        ],
        gradients: inOrder(window.gradients),
      })),
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

describe("the delta rule", () => {
  interface Recurrence {
    inputs: Stored;
    outputs: Stored & { loss: number };
    gradients: Stored;
  }
  interface Layer {
    config: { d_model: number; heads: number };
    weights: Stored;
    segments: {
      x: StoredTensor;
      coef: StoredTensor;
      y: StoredTensor;
      S: StoredTensor;
      loss: number;
      gradients: Stored;
    }[];
  }
  const { cases } = fixture<{ cases: Record<string, Recurrence | Layer> }>("delta-net");

  const maps = [
    ["recurrence, softmax", "softmax"],
    ["recurrence, elu+1, divided by its sum", "elu"],
  ] as const;
  // In one chunk, in chunks with an odd one, and token by token.
  test.each(maps.flatMap(([title, map]) => [10, 4, 1].map((chunk) => [title, map, chunk] as const)))(
    "%s, by %s in chunks of %i",
    async (title, map, chunk) => {
      const { inputs, outputs, gradients } = cases[title] as Recurrence;
      const [q, k, v] = ["q", "k", "v"].map((name) => input(name, inputs[name]!.shape)) as [
        Tensor,
        Tensor,
        Tensor,
      ];
      const b = input("b", [...inputs.b!.shape, 1]);
      const S0 = input("S0", exchanged(inputs.S0!).shape);
      const [coefO, coefS] = [input("coefO", v.shape), input("coefS", S0.shape)];
      const vectors = { q: featureMap(map, q), k: featureMap(map, k), v, beta: sigmoid(b) };
      const { o, S } = deltaWindow(vectors, S0, chunk);
      const loss = add(sum(mul(o, coefO)), sum(mul(S, coefS)));
      const grads = grad(loss, [q, k, v, b, S0]);
      await check(
        [
          ["mapped q", vectors.q, asValue(outputs["mapped q"]!)],
          ["mapped k", vectors.k, asValue(outputs["mapped k"]!)],
          ["o", o, asValue(outputs.o!)],
          ["S", S, exchanged(outputs.S!)],
          ["loss", loss, { shape: [], data: Float64Array.of(outputs.loss) }],
          ...["q", "k", "v", "b"].map(
            (name, i) => [`gradient of ${name}`, grads[i]!, asValue(gradients[name]!)] as const,
          ),
          ["gradient of S0", grads[4]!, exchanged(gradients.S0!)],
        ],
        new Map<Tensor, Value>([
          [q, asValue(inputs.q!)],
          [k, asValue(inputs.k!)],
          [v, asValue(inputs.v!)],
          [b, asValue(inputs.b!, b.shape)],
          [S0, exchanged(inputs.S0!)],
          [coefO, asValue(inputs.coef_o!)],
          [coefS, exchanged(inputs.coef_S!)],
        ]),
      );
    },
  );

  test("layer of the authors' program over two segments", async () => {
    const { config, weights, segments } = cases["layer of lmtool-fwp"] as Layer;
    const D = config.d_model;
    // Here the one head is narrower than the layer.
    const d = weights["o_net.weight"]!.shape[1]!;
    const qkvb = linearWeights("qkvb", { in: D, out: 3 * d + 1 }, { bias: false });
    const out = linearWeights("out", { in: d, out: D }, { bias: false });
    const ln = normWeights("norm", D);
    const parameters = [qkvb.W, out.W, ln.gain, ln.bias];
    const inOrder = (stored: Stored): Value[] => [
      transposed(stored["qkvb_net.weight"]!),
      transposed(stored["o_net.weight"]!),
      asValue(stored["layer_norm.weight"]!),
      asValue(stored["layer_norm.bias"]!),
    ];
    let before = zeroValue([2, 1, d, d]);
    for (const segment of segments) {
      const x = input("x", timeFirst(segment.x).shape);
      const S = input("S", before.shape);
      const coef = input("coef", x.shape);
      const run = deltaLayer({ qkvb, out, norm: ln }, x, S, { heads: 1, featureMap: "elu", chunk: 2 });
      const loss = sum(mul(run.y, coef));
      const grads = grad(loss, [...parameters, x]);
      const after = exchanged(segment.S);
      await check(
        [
          ["y", run.y, timeFirst(segment.y)],
          ["S", run.S, after],
          ["loss", loss, { shape: [], data: Float64Array.of(segment.loss) }],
          ...inOrder(segment.gradients).map(
            (value, i) => [`gradient of ${stateAttrs(parameters[i]!)!.name}`, grads[i]!, value] as const,
          ),
          ["gradient of x", grads[4]!, timeFirst(segment.gradients.x!)],
        ],
        new Map<Tensor, Value>([
          ...parameters.map((tensor, i) => [tensor, inOrder(weights)[i]!] as const),
          [x, timeFirst(segment.x)],
          [S, before],
          [coef, timeFirst(segment.coef)],
        ]),
      );
      before = { shape: before.shape, data: after.data };
    }
  });
});
