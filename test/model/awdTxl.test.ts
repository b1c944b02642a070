/** AWD-TXL in both forms against the originals: hidden vectors through losses, caches and every gradient. */
import { describe, expect, test } from "vitest";
import { grad } from "../../src/compile/grad.ts";
import { add, input, mean, sizeOf, stateAttrs, type Tensor } from "../../src/graph/index.ts";
import type { Value } from "../../src/graph/op.ts";
import {
  type AwdTxlSettings,
  awdTxlModel,
  awdTxlPtb,
  awdTxlSystem,
  awdTxlWt2,
} from "../../src/model/awdTxl.ts";
import { buildSystem } from "../../src/model/registry.ts";
import { countWeights, type SequenceModel } from "../../src/model/sequence.ts";
import { interpret } from "../../src/runtime/oracle.ts";
import { expectClose, normals } from "../support/check.ts";
import { asValue, fixture, type StoredTensor, transposed } from "../support/fixtures.ts";
import { checkTensors, exact, stepwise, withMasks } from "../support/originals.ts";

type Stored = Record<string, StoredTensor>;
type Masks = Record<string, { p: number; mask: StoredTensor }>;

interface PtbSegment {
  x: StoredTensor;
  y: StoredTensor;
  logits?: StoredTensor;
  ce: number;
  ar: number;
  tar: number;
  total: number;
  gradients: Stored;
}

const ptb = fixture<{
  weights: Stored;
  segments: (PtbSegment & { extended_context: number })[];
  "fixed masks, second segment": PtbSegment & { masks: Masks; nll: StoredTensor };
  "evaluation with temperature": {
    tokens: StoredTensor;
    temperature: number;
    segments: { first_row: number; length: number; loss: number }[];
  };
}>("txl-awd-ptb-released");

interface Wt2Segment {
  x: StoredTensor;
  y: StoredTensor;
  log_probs?: StoredTensor;
  nll?: StoredTensor;
  loss: number;
  mems: StoredTensor[];
  gradients: Stored;
}

const wt2 = fixture<{
  weights: Stored;
  segments: Wt2Segment[];
  "fixed masks, second segment": Wt2Segment & { masks: Masks };
}>("txl-awd-wt2-released");

const none = Object.fromEntries(
  Object.keys(awdTxlPtb.dropout).map((key) => [key, 0]),
) as AwdTxlSettings["dropout"];
const sizes = { vocabulary: 11, embedding: 6, layers: 2, heads: 2, headSize: 3, inner: 10 };
const smallPtb: AwdTxlSettings = { ...awdTxlPtb, ...sizes, context: 4, dropout: none };
const smallWt2: AwdTxlSettings = { ...awdTxlWt2, ...sizes, memory: 7, cutoffs: [6, 20, 100], dropout: none };

/** Stored weights or gradients in the order of the model's parameters. */
function inOrder(stored: Stored): Value[] {
  const isWt2 = "r_w_bias" in stored;
  const layer = (l: number): Value[] => {
    const at = (key: string): StoredTensor => stored[`layers.${l}.${key}`]!;
    return [
      transposed(at("dec_attn.qkv_net.0.weight")),
      transposed(at("dec_attn.o_net.weight")),
      asValue(at("dec_attn.layer_norm.weight")),
      asValue(at("dec_attn.layer_norm.bias")),
      ...(isWt2 ? [transposed(at("dec_attn.r_net.weight"))] : []),
      transposed(at("pos_ff.CoreNet.0.weight")),
      asValue(at("pos_ff.CoreNet.0.bias")),
      transposed(at("pos_ff.CoreNet.3.weight")),
      asValue(at("pos_ff.CoreNet.3.bias")),
      asValue(at("pos_ff.layer_norm.weight")),
      asValue(at("pos_ff.layer_norm.bias")),
    ];
  };
  return isWt2
    ? [
        asValue(stored["word_emb.emb_layers.0.weight"]!),
        asValue(stored.r_w_bias!),
        asValue(stored.r_r_bias!),
        ...layer(0),
        ...layer(1),
        asValue(stored["crit.cluster_weight"]!),
        asValue(stored["crit.cluster_bias"]!),
        asValue(stored["crit.out_layers.0.bias"]!),
      ]
    : [asValue(stored["word_emb.weight"]!), ...layer(0), ...layer(1), asValue(stored["out_layer.bias"]!)];
}

/** [1, B, F] as [B, 1, F]; the data are the same. */
const asRows = ({ shape: [, B, F], data }: StoredTensor): Value => asValue({ shape: [B!, 1, F!], data });

/** [q, k, B, h] as [B, h, q, k]; places of the memory that the original does not have yet come first. */
function asHeads({ shape, data }: StoredTensor): Value {
  const [q, own, B, h] = shape as [number, number, number, number];
  const k = own === q ? q : smallWt2.memory + q;
  const out = new Float64Array(B * h * q * k);
  for (let i = 0; i < q; i++)
    for (let j = 0; j < own; j++)
      for (let b = 0; b < B; b++)
        for (let n = 0; n < h; n++)
          out[((b * h + n) * q + i) * k + k - own + j] = data[((i * own + j) * B + b) * h + n]!;
  return { shape: [B, h, q, k], data: out };
}

/** The last rows of [B, h, q, k]: the queries that the last layer has. */
function lastQueries({ shape, data }: Value, wanted: number): Value {
  const [B, h, q, k] = shape as [number, number, number, number];
  const rows = Array.from({ length: B * h }, (_, i) => [
    ...data.slice((i * q + q - wanted) * k, (i + 1) * q * k),
  ]);
  return { shape: [B, h, wanted, k], data: Float64Array.from(rows.flat()) };
}

/** The stored masks under our names and layout; `T` tokens of the window are what the last layer gives. */
function masksOf(masks: Masks, T: number): Map<string, Value> {
  const named: Record<string, [string, (mask: StoredTensor) => Value]> = {
    "word [0]": ["word", asValue],
    "locked_drop_i [0]": ["input", asRows],
    "locked_drop_i [1]": ["positions", asRows],
    "locked_drop_h [0]": ["between1", asRows],
    "locked_drop_o [0]": ["output", asValue],
    "drop [0]": ["final", asValue],
  };
  for (const l of [0, 1]) {
    const at = `layers.${l}.`;
    named[`${at}dec_attn.qkv_net.1 [0]`] = [`layer${l + 1}.qkv`, asRows];
    named[`${at}dec_attn.qkv_net.1 [1]`] = [`layer${l + 1}.positions`, asRows];
    // "drop" is the attention's in one program and its output's in the other.
    const isWt2 = `${at}dec_attn.dropatt [0]` in masks;
    named[`${at}dec_attn.${isWt2 ? "dropatt" : "drop"} [0]`] = [`layer${l + 1}.attention`, asHeads];
    named[`${at}dec_attn.${isWt2 ? "drop" : "locked_drop"} [0]`] = [`layer${l + 1}.out`, asRows];
    named[`${at}pos_ff.CoreNet.2 [0]`] = [`layer${l + 1}.ff1`, asRows];
    named[`${at}pos_ff.CoreNet.4 [0]`] = [`layer${l + 1}.ff2`, asRows];
  }
  const given = new Map(
    Object.entries(masks).map(([key, { mask }]) => {
      const [name, layout] = named[key]!;
      return [`dropout.${name}`, layout(mask)];
    }),
  );
  const last = "dropout.layer2.attention";
  if (given.has(last)) given.set(last, lastQueries(given.get(last)!, T));
  return given;
}

const scalarValue = (value: number): Value => ({ shape: [], data: Float64Array.of(value) });

/** Runs a segment of T tokens (and padding) with given state; the tensors to look at, and everything they need. */
function build(
  model: SequenceModel,
  weights: Stored,
  tokens: readonly number[],
  targets: readonly number[],
  { B, before, padding }: { B: number; before: readonly Value[]; padding: number },
) {
  const T = targets.length / B;
  const full = T + padding;
  const x = input("tokens", [full, B], "i32");
  const y = input("targets", [full, B], "i32");
  const mask = input("mask", [full, B]);
  const states = model.recurrent.map(({ name, shape }) => input(`before.${name}`, shape(B)));
  const run = model.window({ tokens: x, state: states, training: true, ...(padding > 0 ? { mask } : {}) });
  const ce = run.loss!(y, mask);
  const total = run.penalty ? add(ce, run.penalty) : ce;
  const filled = (data: readonly number[]): Value => ({
    shape: [full, B],
    data: Float64Array.from({ length: full * B }, (_, i) => data[i] ?? 1),
  });
  return {
    run,
    y,
    ce,
    total,
    gradients: grad(total, model.parameters),
    given: new Map<Tensor, Value>([
      [x, filled(tokens)],
      [y, filled(targets)],
      [
        mask,
        { shape: [full, B], data: Float64Array.from({ length: full * B }, (_, i) => (i < T * B ? 1 : 0)) },
      ],
      ...states.map((tensor, i) => [tensor, before[i]!] as const),
      ...model.parameters.map((tensor, i) => [tensor, inOrder(weights)[i]!] as const),
    ]),
  };
}

async function checkAll(
  wanted: readonly (readonly [string, Tensor, Value])[],
  given: ReadonlyMap<Tensor, Value>,
  masks: ReadonlyMap<string, Value> = new Map(),
): Promise<void> {
  const masked = withMasks(
    wanted.map(([, tensor]) => tensor),
    masks,
  );
  await checkTensors(
    new Map(wanted.map(([name, , value], i) => [name, { tensor: masked.tensors[i]!, value }])),
    new Map([...given, ...masked.given]),
  );
}

function gradientsOf(model: SequenceModel, gradients: readonly Tensor[], stored: Stored) {
  return inOrder(stored).map(
    (value, i) => [`gradient of ${stateAttrs(model.parameters[i]!)!.name}`, gradients[i]!, value] as const,
  );
}

describe("Penn Treebank's program", () => {
  /** The state before a segment whose x begins with so many rows of context. */
  const contextOf = (x: StoredTensor, rows: number): Value => {
    const B = x.shape[1]!;
    const C = smallPtb.context;
    const data = new Float64Array(B * C);
    for (let b = 0; b < B; b++)
      for (let t = 0; t < rows; t++) data[b * C + C - rows + t] = x.data[t * B + b]! + 1;
    return { shape: [B, C], data };
  };

  async function check(segment: PtbSegment, context: number, padding: number, masks?: Masks): Promise<void> {
    const rates = { word: 0.2, input: 0.4, attention: 0.2, projection: 0.2, feedForward: 0.25, between: 0.1 };
    const dropout = masks ? { ...none, ...rates, output: 0.5 } : none;
    const model = awdTxlModel({ ...smallPtb, dropout });
    const B = segment.x.shape[1]!;
    const tokens = segment.x.data.slice(context * B);
    const before = [contextOf(segment.x, context)];
    const built = build(model, ptb.weights, tokens, segment.y.data, { B, before, padding });
    const after = contextOf(segment.x, 0);
    const n = segment.x.data.length / B;
    const C = smallPtb.context;
    for (let b = 0; b < B; b++)
      for (let j = 0; j < C; j++) after.data[b * C + j] = segment.x.data[(n - C + j) * B + b]! + 1;
    await checkAll(
      [
        ["ce", built.ce, scalarValue(segment.ce)],
        ["penalty", built.run.penalty!, scalarValue(segment.ar + segment.tar)],
        ["total", built.total, scalarValue(segment.total)],
        ["context", built.run.state[0]!, after],
        ...(segment.logits && padding === 0
          ? [["logits", built.run.logits, asValue(segment.logits)] as const]
          : []),
        ...gradientsOf(model, built.gradients, segment.gradients),
      ],
      built.given,
      masks && masksOf(masks, segment.y.shape[0]!),
    );
  }

  test.each([0, 3])("two segments with extended context, %i places of padding", async (padding) => {
    for (const segment of ptb.segments) await check(segment, segment.extended_context, padding);
  });

  test("fixed masks", async () => {
    const segment = ptb["fixed masks, second segment"];
    await check(segment, segment.x.shape[0]! - segment.y.shape[0]!, 0, segment.masks);
  });

  test("evaluation with a temperature, in short segments with a longer context", async () => {
    const { tokens, temperature, segments } = ptb["evaluation with temperature"];
    const B = tokens.shape[1]!;
    const model = awdTxlModel({ ...smallPtb, context: 7 });
    let before: Value[] = model.recurrent.map(({ shape }) => ({
      shape: shape(B),
      data: new Float64Array(sizeOf(shape(B))),
    }));
    for (const { first_row, length, loss } of segments) {
      const start = first_row * B;
      const x = input("tokens", [length, B], "i32");
      const y = input("targets", [length, B], "i32");
      const T = input("temperature", []);
      const states = model.recurrent.map(({ name, shape }) => input(`before.${name}`, shape(B)));
      const run = model.window({ tokens: x, state: states, training: false, temperature: T });
      const rows = (from: number): Value => ({
        shape: [length, B],
        data: Float64Array.from(tokens.data.slice(from, from + length * B)),
      });
      const given = new Map<Tensor, Value>([
        [x, rows(start)],
        [y, rows(start + B)],
        [T, scalarValue(temperature)],
        ...states.map((tensor, i) => [tensor, before[i]!] as const),
        ...model.parameters.map((tensor, i) => [tensor, inOrder(ptb.weights)[i]!] as const),
      ]);
      await checkAll([[`loss at ${first_row}`, mean(run.losses!(y)), scalarValue(loss)]], given);
      before = interpret(run.state, given);
    }
  });
});

describe("WikiText-2's program", () => {
  /** Time-major memories of the original as our state: places at the end, batch first. */
  function stateOf(mems: readonly StoredTensor[]): Value[] {
    const [rows, B, D] = mems[0]!.shape as [number, number, number];
    const m = smallWt2.memory;
    const filled = Float64Array.from({ length: B * m }, (_, i) => (i % m >= m - rows ? 1 : 0));
    const memories = mems.slice(0, -1).map(({ data }): Value => {
      const out = new Float64Array(B * m * D);
      for (let t = 0; t < rows; t++)
        for (let b = 0; b < B; b++)
          for (let d = 0; d < D; d++) out[(b * m + m - rows + t) * D + d] = data[(t * B + b) * D + d]!;
      return { shape: [B, m, D], data: out };
    });
    return [{ shape: [B, m], data: filled }, ...memories];
  }

  async function check(segment: Wt2Segment, before: Value[], padding: number, masks?: Masks): Promise<void> {
    const rates = { word: 0.2, input: 0.4, attention: 0.25, projection: 0.2, feedForward: 0.2, final: 0.2 };
    const dropout = masks ? { ...none, ...rates, output: 0.5 } : none;
    const model = awdTxlModel({ ...smallWt2, dropout });
    const B = segment.x.shape[1]!;
    const built = build(model, wt2.weights, segment.x.data, segment.y.data, { B, before, padding });
    const after = stateOf(segment.mems);
    await checkAll(
      [
        ["loss", built.ce, scalarValue(segment.loss)],
        ...after.map((value, i) => [model.recurrent[i]!.name, built.run.state[i]!, value] as const),
        ...(segment.log_probs && padding === 0
          ? [["log probabilities", built.run.logits, asValue(segment.log_probs)] as const]
          : []),
        ...(segment.nll && padding === 0
          ? [["losses", built.run.losses!(built.y), asValue(segment.nll)] as const]
          : []),
        ...gradientsOf(model, built.gradients, segment.gradients),
      ],
      built.given,
      masks && masksOf(masks, segment.y.shape[0]!),
    );
  }

  const empty = (B: number): Value[] =>
    awdTxlModel(smallWt2).recurrent.map(({ shape }) => ({
      shape: shape(B),
      data: new Float64Array(sizeOf(shape(B))),
    }));

  test.each([0, 2])(
    "two segments with memory and adaptive softmax, %i places of padding",
    async (padding) => {
      let before = empty(2);
      for (const segment of wt2.segments) {
        await check(segment, before, padding);
        before = stateOf(segment.mems);
      }
    },
  );

  test("fixed masks", async () => {
    const segment = wt2["fixed masks, second segment"];
    await check(segment, stateOf(wt2.segments[0]!.mems), 0, segment.masks);
  });
});

describe.each([
  ["with context", { ...smallPtb, context: 9 }],
  ["with memory", { ...smallWt2, memory: 9 }],
] as const)("%s", (_, settings) => {
  test("token by token it is what it is over a window that fits", () => {
    const model = awdTxlModel(settings);
    const [T, B] = [5, 2];
    const tokens = input("tokens", [T, B], "i32");
    const states = model.recurrent.map(({ name, shape }) => input(`before.${name}`, shape(B)));
    const whole = model.window({ tokens, state: states, training: false });
    const steps = stepwise(model, tokens, states);
    const given = new Map<Tensor, Value>([
      [tokens, { shape: [T, B], data: Float64Array.from({ length: T * B }, (_, i) => (i * 7) % 11) }],
      ...states.map((tensor): [Tensor, Value] => [
        tensor,
        { shape: tensor.shape, data: new Float64Array(sizeOf(tensor.shape)) },
      ]),
      ...model.parameters.map((tensor, i) => [tensor, normals(tensor.shape, i, 0.3)] as const),
    ]);
    const a = interpret([whole.logits, ...whole.state], given);
    const b = interpret([steps.logits, ...steps.state], given);
    a.forEach(({ data }, i) => {
      expectClose(b[i]!.data, data, { ...exact, label: i === 0 ? "logits" : model.recurrent[i - 1]!.name });
    });
  });
});

test("weight counts are the published ones", () => {
  expect(countWeights(buildSystem(awdTxlPtb))).toBe(24_040_400);
  expect(countWeights(buildSystem(awdTxlWt2))).toBe(37_712_881);
});

test("context and memory exclude each other", () => {
  expect(() => awdTxlSystem.schema.parse({ ...awdTxlPtb, memory: 5 })).toThrow(/exclude each other/);
});
