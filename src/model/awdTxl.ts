/**
 * AWD-TXL: the regularised Transformer-XL that the paper compares with on Penn Treebank and WikiText-2.
 *
 *   code      equation                                              shape            meaning
 *   X         locked_i(√D word_e(Emb)[x])                           [B, n, D]        embedded words, then a layer's output
 *   M                                                               [B, m, D]        cached inputs of a layer
 *   R         locked_i(sinusoid(k-1 … 0))                           [1, k, D]        distances
 *   Q, K, Vv  locked([M; X] W_qkv)                                  [B, h, ·, d]     one fused matrix
 *   Rk, u, w  see below                                                              positions, and the queries' biases
 *   A         locked(attention(Q, K, Vv, Rk, u, w) W_o)             [B, n, D]        `relativeAttention.ts`
 *   X'        LN(X + A)
 *   X''       LN(X' + locked(W_2 locked(relu(W_1 X' + b_1)) + b_2))
 *   raw, out  the last layer's X'', and locked_o(drop(raw))         [T, B, D]
 *   logits    Emb out + b                                           [T, B, V]        tied; or an adaptive softmax
 *
 *   B batch, T tokens of the window, D width, h heads of width d; n = T plus the context, k = n + m.
 *
 * The two programs that the authors used differ in how they look back and in their positions:
 *
 *             Penn Treebank (Transformer-XL's authors)        WikiText-2 (T. Dettmers)
 *   context   the tokens before the window are fed again,     none
 *             and no loss is taken there
 *   memory    none                                            every layer's input, cached without gradient
 *   positions Rk, Rq from W_qkv too, with a mask of their     Rk = R W_r without dropout; u and w are learned and
 *             own; u = w = Rq at distance 0                   shared by all layers
 *   output    softmax, AR and TAR on raw                      adaptive softmax over words by frequency
 *
 * Both are settings here (`context` or `memory`, `positions`, `cutoffs`). In both, a word that is erased has the value
 * 1e-12 instead of 0, before the factor √D.
 *
 * What lies before the beginning of a text is not zeros but nothing: those places are hidden from attention. The
 * tokens to feed again are kept as numbers plus 1 in a state that starts at 0, so 0 means "none".
 *
 * Departures: none known. The list of distances leaves out k, which no score uses.
 */
import { z } from "zod";
import {
  add,
  cast,
  concat,
  constant,
  div,
  elementDropout,
  gatherRows,
  greater,
  type Initial,
  lockedDropout,
  matmul,
  max,
  mul,
  randomMask,
  relu,
  reshape,
  scoped,
  slice,
  split,
  state,
  stopGradient,
  sub,
  sum,
  type Tensor,
  transpose,
  unsqueeze,
  where,
} from "../graph/index.ts";
import {
  type AdaptiveWeights,
  adaptiveLogProbabilities,
  adaptiveLoss,
  adaptiveLosses,
  adaptiveWeights,
} from "./adaptiveSoftmax.ts";
import { activationPenalty } from "./awdLstm.ts";
import { type LinearWeights, linear, linearWeights } from "./linear.ts";
import { norm as affineNorm, type NormWeights, normWeights } from "./norm.ts";
import {
  blockedAttention,
  causalMask,
  hidden,
  joinHeads,
  sinusoid,
  splitHeads,
} from "./relativeAttention.ts";
import {
  type RecurrentPart,
  type SequenceModel,
  type System,
  size,
  tokenSizes,
  type WindowInput,
  type WindowOutput,
  type Work,
} from "./sequence.ts";
import { meanSoftmaxLoss, type OutputLayer, softmaxLossesAt } from "./softmaxLoss.ts";

const rate = z.number().min(0).lt(1);

const fields = z.strictObject({
  name: z.literal("awd-txl"),
  ...tokenSizes,
  layers: z.int().min(1).max(64),
  heads: size,
  headSize: size,
  /** Width inside the feed-forward part. */
  inner: size,
  /** Tokens before a window that are fed again. */
  context: z.int().min(0).max(65_536),
  /** Inputs of every layer that are cached. */
  memory: z.int().min(0).max(65_536),
  positions: z.enum(["fused", "separate"]),
  /** Where the clusters of the adaptive softmax begin; none: an ordinary softmax. */
  cutoffs: z.array(z.int().min(1)),
  /** Rates of dropout, named as the places they act at. */
  dropout: z.strictObject({
    /** Whole words of the vocabulary. */
    word: rate,
    /** Embedded words and sinusoids; locked. */
    input: rate,
    /** Attention's probabilities. */
    attention: rate,
    /** After the fused projection and after attention's output; locked. */
    projection: rate,
    /** After both maps of the feed-forward part; locked. */
    feedForward: rate,
    /** Between layers; locked. */
    between: rate,
    /** The last layer's output, each entry by itself. */
    final: rate,
    /** The last layer's output; locked. */
    output: rate,
  }),
  /** α and β of AR and TAR, both on the undropped output. */
  ar: z.number().min(0),
  tar: z.number().min(0),
});

const schema = fields.refine(({ context, memory }) => context === 0 || memory === 0, {
  error: "context and memory exclude each other",
});

/** Settings of the system. */
export type AwdTxlSettings = z.infer<typeof schema>;
type Rates = AwdTxlSettings["dropout"];

/** The system: settings, model, cost. */
export const awdTxlSystem: System<AwdTxlSettings> = { schema, build: awdTxlModel, flops };

/** As trained on Penn Treebank: 24,040,400 weights. */
export const awdTxlPtb: AwdTxlSettings = {
  name: "awd-txl",
  vocabulary: 10_000,
  embedding: 380,
  layers: 16,
  heads: 10,
  headSize: 38,
  inner: 900,
  context: 70,
  memory: 0,
  positions: "fused",
  cutoffs: [],
  dropout: {
    word: 0.2,
    input: 0.6,
    attention: 0.2,
    projection: 0.2,
    feedForward: 0.2,
    between: 0,
    final: 0,
    output: 0.5,
  },
  ar: 0.2,
  tar: 0.1,
};

/** As trained on WikiText-2, words numbered by frequency: 37,712,881 weights. */
export const awdTxlWt2: AwdTxlSettings = {
  ...awdTxlPtb,
  vocabulary: 33_278,
  embedding: 400,
  headSize: 40,
  context: 0,
  memory: 150,
  positions: "separate",
  cutoffs: [20_000, 40_000, 200_000],
  dropout: { ...awdTxlPtb.dropout, final: 0.2 },
  ar: 0,
  tar: 0,
};

/** Standard deviation of all initial weights. */
const std = 0.02;
const drawn: Initial = { kind: "normal", mean: 0, std };

interface Layer {
  readonly qkv: LinearWeights;
  readonly out: LinearWeights;
  readonly norm: NormWeights;
  /** W_r, where positions have their own map. */
  readonly position?: LinearWeights;
  readonly ff1: LinearWeights;
  readonly ff2: LinearWeights;
  readonly ffNorm: NormWeights;
}

function layerWeights(
  name: string,
  { embedding: D, heads, headSize, inner, positions }: AwdTxlSettings,
): Layer {
  const hd = heads * headSize;
  const matrix = (key: string, from: number, to: number): LinearWeights =>
    linearWeights(`${name}.${key}`, { in: from, out: to }, { bias: false, weight: drawn });
  const affine = (key: string, from: number, to: number): LinearWeights =>
    linearWeights(`${name}.${key}`, { in: from, out: to }, { weight: drawn, biasInit: { kind: "zeros" } });
  const gain: Initial = { kind: "normal", mean: 1, std };
  return {
    qkv: matrix("qkv", D, 3 * hd),
    out: matrix("out", hd, D),
    norm: normWeights(`${name}.norm`, D, gain),
    ...(positions === "separate" ? { position: matrix("position", D, hd) } : {}),
    ff1: affine("ff1", D, inner),
    ff2: affine("ff2", inner, D),
    ffNorm: normWeights(`${name}.ffNorm`, D, gain),
  };
}

function layerParameters({ qkv, out, norm, position, ff1, ff2, ffNorm }: Layer): Tensor[] {
  const maps = [ff1, ff2].flatMap(({ W, b }) => [W, b!]);
  return [
    qkv.W,
    out.W,
    norm.gain,
    norm.bias,
    ...(position ? [position.W] : []),
    ...maps,
    ffNorm.gain,
    ffNorm.bias,
  ];
}

/** Builds the model. */
export function awdTxlModel(settings: AwdTxlSettings): SequenceModel {
  const { vocabulary: V, embedding: D, layers: L, heads, headSize, context: C, memory: m } = settings;
  const table = state("embedding", [V, D], drawn);
  const bias = state("output.b", [V]);
  const layers = Array.from({ length: L }, (_, l) => layerWeights(`layer${l + 1}`, settings));
  const learned =
    settings.positions === "separate"
      ? { u: state("u", [heads, headSize], drawn), w: state("w", [heads, headSize], drawn) }
      : undefined;
  const adaptive: AdaptiveWeights | undefined =
    settings.cutoffs.length > 0 ? adaptiveWeights("output", D, settings.cutoffs, std) : undefined;

  const recurrent: RecurrentPart[] = [
    ...(C > 0 ? [{ name: "context", shape: (B: number) => [B, C] }] : []),
    ...(m > 0
      ? [
          // 1 where the memory holds something.
          { name: "filled", shape: (B: number) => [B, m] },
          ...layers.map((_, l) => ({ name: `memory${l + 1}`, shape: (B: number) => [B, m, D] })),
        ]
      : []),
  ];

  function window({
    tokens,
    state: before,
    training,
    mask,
    positions,
    temperature,
  }: WindowInput): WindowOutput {
    const [T, B] = tokens.shape as [number, number];
    const p: Rates = training ? settings.dropout : noDropout;
    const rest = [...before];
    const context = C > 0 ? rest.shift()! : undefined;
    const filled = m > 0 ? rest.shift()! : undefined;
    const memories = rest;

    const fresh = transpose(tokens); // [B, T]
    const again = context && cast(max(sub(context, 1), 0), "i32");
    const fed = again ? concat([again, fresh], 1) : fresh; // [B, n]
    const n = C + T;
    const k = m + n;
    const seen = seenMask(n, k, [filled, context]);

    let X = scoped("embedding", () => lockedRows(embed(table, fed, p.word), p.input, "dropout.input"));
    const R = lockedRows(reshape(sinusoid(k, D), [1, k, D]), p.input, "dropout.positions");
    const cached: Tensor[] = [];
    for (const [l, layer] of layers.entries()) {
      const M = memories[l];
      if (M) cached.push(shiftIn(M, X, mask));
      // Of the last layer only the window itself is wanted.
      const wanted = l + 1 < L ? n : T;
      X = scoped(`layer${l + 1}`, () =>
        runLayer(layer, `dropout.layer${l + 1}`, { X, wanted, M, R, seen, learned, p }),
      );
      if (l + 1 < L) X = lockedRows(X, p.between, `dropout.between${l + 1}`);
    }
    const raw = transpose(X, [1, 0, 2]); // [T, B, D]
    const out = lockedDropout(elementDropout(raw, p.final, "dropout.final"), p.output, "dropout.output");
    const at = positions ? gatherRows(reshape(out, [T * B, D]), positions) : out;
    const after = [
      ...(context ? [shiftIn(context, add(cast(fresh, "f32"), 1), mask)] : []),
      ...(filled ? [shiftIn(filled, ones([B, T]), mask)] : []),
      ...cached,
    ];
    return {
      ...outputs(at, temperature),
      hidden: at,
      state: after,
      ...(training ? activationPenalty({ dropped: raw, raw, mask }, settings) : {}),
    };
  }

  /** Logits and losses of hidden vectors; a temperature divides the logits. */
  function outputs(x: Tensor, temperature?: Tensor): Pick<WindowOutput, "logits" | "losses" | "loss"> {
    // (Emb x + b) / T, without touching the logits themselves.
    const soft = (t: Tensor): Tensor => (temperature ? div(t, temperature) : t);
    const layer: OutputLayer = { x: soft(x), W: table, b: soft(bias) };
    if (adaptive) {
      const w = { ...adaptive, d: soft(adaptive.d) };
      return {
        logits: adaptiveLogProbabilities(w, layer),
        losses: (targets) => adaptiveLosses(w, layer, targets),
        loss: (targets, mask) => adaptiveLoss(w, layer, targets, mask),
      };
    }
    return {
      logits: add(matmul(layer.x, table, { transB: true }), layer.b),
      losses: (targets) => softmaxLossesAt(layer, targets),
      loss: (targets, mask) => meanSoftmaxLoss(layer, targets, mask),
    };
  }

  /** Attention and the feed-forward part of one layer: X [B, n, D] → its last places, [B, wanted, D]. */
  function runLayer(
    { qkv, out, norm, position, ff1, ff2, ffNorm }: Layer,
    name: string,
    { X, wanted, M, R, seen, learned: given, p }: LayerInputs,
  ): Tensor {
    const hd = heads * headSize;
    const all = M ? concat([stopGradient(M), X], 1) : X;
    const projected = lockedRows(linear(qkv, all), p.projection, `${name}.qkv`);
    const [q, keys, values] = split(projected, 3) as [Tensor, Tensor, Tensor];
    const k = all.shape[1]!;
    const byHead = (x: Tensor): Tensor => splitHeads(x, heads);
    let r: Tensor; // [1, h, k, d]
    let [u, w] = given ? [given.u, given.w].map((x) => unsqueeze(x, 1)) : [];
    if (position) r = byHead(linear(position, R));
    else {
      const fromR = lockedRows(linear(qkv, R), p.projection, `${name}.positions`);
      r = byHead(slice(fromR, -1, hd, 2 * hd));
      // The query of distance 0, the last one: [1, 1, hd] → [h, 1, d]
      u = w = reshape(slice(slice(fromR, -1, 0, hd), 1, k - 1), [heads, 1, headSize]);
    }
    const y = blockedAttention(
      {
        q: byHead(slice(q, 1, k - wanted)),
        k: byHead(keys),
        v: byHead(values),
        r,
        u: u!,
        w: w!,
        mask: slice(seen, -2, seen.shape.at(-2)! - wanted),
        dropout: (P, block) =>
          elementDropout(P, p.attention, `${name}.attention${block === 0 ? "" : block + 1}`),
      },
      Math.max(1, Math.round(wanted / blockSize)),
    );
    const A = lockedRows(linear(out, joinHeads(y)), p.projection, `${name}.out`);
    const attended = affineNorm(norm, add(slice(X, 1, X.shape[1]! - wanted), A));
    const inner = lockedRows(relu(linear(ff1, attended)), p.feedForward, `${name}.ff1`);
    const fed = lockedRows(linear(ff2, inner), p.feedForward, `${name}.ff2`);
    return affineNorm(ffNorm, add(attended, fed));
  }

  return {
    parameters: [
      table,
      ...(learned ? [learned.u, learned.w] : []),
      ...layers.flatMap(layerParameters),
      ...(adaptive ? [adaptive.U, adaptive.d] : []),
      bias,
    ],
    recurrent,
    window,
    step(tokens, before) {
      const { logits, state: after } = window({
        tokens: unsqueeze(tokens, 0),
        state: before,
        training: false,
      });
      return { logits: reshape(logits, [tokens.shape[0]!, V]), state: after, trace: {} };
    },
  };
}

interface LayerInputs {
  readonly X: Tensor;
  /** How many of the last places are wanted. */
  readonly wanted: number;
  readonly M: Tensor | undefined;
  readonly R: Tensor;
  readonly seen: Tensor;
  readonly learned: { readonly u: Tensor; readonly w: Tensor } | undefined;
  readonly p: Rates;
}

/** Queries that meet their keys at once: smaller blocks save scores, and cost more, smaller products. */
const blockSize = 70;

const noDropout: Rates = {
  word: 0,
  input: 0,
  attention: 0,
  projection: 0,
  feedForward: 0,
  between: 0,
  final: 0,
  output: 0,
};

/** The value of a word that is erased. */
const erased = 1e-12;

/** √D Emb[x], erased words at almost 0: ids [B, n] → [B, n, D]. */
function embed(table: Tensor, ids: Tensor, p: number): Tensor {
  const [V, D] = table.shape as [number, number];
  const e = gatherRows(table, ids);
  if (p === 0) return mul(e, Math.sqrt(D));
  const kept = gatherRows(cast(randomMask("dropout.word", [V, 1], 1 - p), "f32"), ids);
  return mul(where(greater(kept, 0.5), mul(e, 1 / (1 - p)), erased), Math.sqrt(D));
}

/** Locked dropout of [B, n, F]: features of a row, the same at all its places. */
function lockedRows(x: Tensor, p: number, name: string): Tensor {
  if (p === 0) return x;
  const [B, , F] = x.shape as [number, number, number];
  return mul(x, mul(cast(randomMask(name, [B, 1, F], 1 - p), "f32"), 1 / (1 - p)));
}

/**
 * What each query may look at, [B, 1, n, k] or [n, k]: nothing after itself, and nothing before the text began. `before`
 * are the parts of the keys that stand before the window, positive where there is something.
 */
function seenMask(n: number, k: number, before: readonly (Tensor | undefined)[]): Tensor {
  const causal = causalMask(n, k);
  const parts = before.filter((part): part is Tensor => part !== undefined);
  if (parts.length === 0) return causal;
  const B = parts[0]!.shape[0]!;
  const known = parts.reduce((total, part) => total + part.shape[1]!, 0);
  const there = concat([...parts.map((part) => cast(greater(part, 0), "f32")), ones([B, k - known])], 1);
  return add(causal, reshape(mul(sub(1, there), hidden), [B, 1, 1, k]));
}

function ones(shape: readonly [number, number]): Tensor {
  return constant(new Float32Array(shape[0] * shape[1]).fill(1), shape);
}

/**
 * The last places of what was there followed by what is new, without gradient: [B, m, ...] and [B, T, ...] → [B, m, ...].
 * Places that the mask [T, B] says are padding do not push anything out.
 */
function shiftIn(old: Tensor, fresh: Tensor, mask: Tensor | undefined): Tensor {
  const [B, m, ...rest] = old.shape as [number, number, ...number[]];
  const all = stopGradient(concat([old, fresh], 1));
  const total = all.shape[1]!;
  if (!mask) return slice(all, 1, total - m);
  // Row b goes on by as many places as it has tokens.
  const row = constant(
    Float32Array.from({ length: B }, (_, b) => b * total),
    [B],
  );
  const start = add(sum(mask, { axes: 0 }), row);
  const places = constant(
    Float32Array.from({ length: m }, (_, j) => j),
    [1, m],
  );
  const ids = cast(add(reshape(start, [B, 1]), places), "i32");
  return gatherRows(reshape(all, [B * total, ...rest]), ids);
}

function flops(settings: AwdTxlSettings, { tokens, positions, window }: Work): number {
  const { vocabulary: V, embedding: D, layers: L, heads, headSize, inner, context, memory } = settings;
  const hd = heads * headSize;
  const n = window + context;
  const k = n + memory;
  // q queries: keys and values of all, attention by content, position and values.
  const perRow = (q: number): number =>
    2 * D * hd * (q + 2 * k) + 2 * D * hd * q + 2 * 2 * D * inner * q + 3 * 2 * q * k * hd;
  const rows = tokens / window;
  const layers = (L - 1) * perRow(n) + perRow(window);
  return rows * layers + 2 * D * (V + settings.cutoffs.length) * positions;
}
