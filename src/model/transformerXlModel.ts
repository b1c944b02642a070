/**
 * Transformer-XL over tokens (Dai et al. 2019): relative positions and a cached memory of hidden states, as in the authors'
 * program.
 *
 *   code    equation                                                shape
 *   X       X⁰ = drop(√D P Emb[x])                                  [B, T, D]      input of a layer
 *   M       the last m inputs of the layer before this window       [B, m, D]      memory: no gradient flows into it
 *   q, k, v X W_q, [M; X] W_k, [M; X] W_v                           [B, T or m+T, h·d]
 *   R       drop(sinusoid(m+T-1 … 0)),  r = R W_r                   [m+T, D]       shared by all layers and rows
 *   Y       attention of q over k, v, r with u and w                [B, T, h·d]    relativeAttention.ts
 *           X' = LN(X + drop(Y W_out))
 *           X'' = LN(X' + drop(W_2 drop(relu(W_1 X' + b_1)) + b_2))
 *   logits  head "tied":  (drop(X^L) P_out) Embᵀ + b                as the authors have it
 *           head "plain": drop(X^L) W_s                             [T, B, V]
 *
 *   B batch, T window, D hidden, h heads of d = D / h, m memory, V vocabulary. u and w belong to all layers.
 *
 * Memory grows from empty: it stands at the right end of M, and `count` says how much of M it is. Padding takes no part:
 * tokens of a row are moved together before anything else, so distances count tokens, and the memory takes only these.
 *
 * Keys and values of the memory. What is cached is M, not M W_k and M W_v: in training both weights change at every step and
 * get a gradient through M, so cached products would be stale and the gradient would miss most of its terms. A window goes
 * through a layer one row of the batch at a time and computes the row again for its gradient, so that scores, keys and
 * values of one row are all that exist at a time. A step of one token never computes them: (q + u) · (W_kᵀ c) = (W_k (q + u)) · c and Σ p (W_vᵀ c) = W_vᵀ Σ p c move the
 * weights to the query's side, which is exact and needs 1/64 of the work at the paper's size.
 *
 * Departures from the authors' program: padding (it has none). Its window sees at most m + T tokens back, and so does this
 * one; a step sees m + 1. Once more than m tokens have been read a stream of steps sees less than a window.
 */
import { z } from "zod";
import {
  add,
  cast,
  concat,
  constant,
  elementDropout,
  equal,
  gatherRows,
  iota,
  less,
  matmul,
  max,
  min,
  mul,
  randomMask,
  recompute,
  relu,
  reshape,
  scan,
  scoped,
  slice,
  softmax,
  split,
  squeeze,
  state,
  stopGradient,
  sub,
  sum,
  type Tensor,
  transpose,
  unsqueeze,
  where,
} from "../graph/index.ts";
import { type LinearWeights, linear, linearWeights } from "./linear.ts";
import { norm, normWeights } from "./norm.ts";
import {
  causalMask,
  hidden as hiddenScore,
  joinHeads,
  relativeAttention,
  sinusoid,
  splitHeads,
} from "./relativeAttention.ts";
import {
  dropoutRate,
  headsDivide,
  type SequenceModel,
  type System,
  size,
  type Tracer,
  tokenSizes,
  type Work,
} from "./sequence.ts";

const schema = headsDivide(
  z.strictObject({
    name: z.literal("transformer-xl"),
    ...tokenSizes,
    /** D: width of the layers. */
    hidden: size,
    layers: size.max(64),
    heads: size.max(1024),
    /** Width of the feed-forward layers. */
    inner: size,
    /** m: tokens cached before the window; 0 for none. */
    memory: z.int().min(0).max(65_536),
    dropout: dropoutRate,
    attentionDropout: dropoutRate,
    /** How logits are made: with the embedding's weights as the authors do, or with weights of their own. */
    head: z.enum(["tied", "plain"]).default("tied"),
  }),
);

/** Settings of the system. */
export type TransformerXlSettings = z.infer<typeof schema>;

/** The system: settings, model, cost. */
export const transformerXlSystem: System<TransformerXlSettings> = {
  schema,
  build: transformerXlModel,
  flops,
};

/** The paper's sizes; the number of heads and both rates of dropout are guesses. */
export const transformerXlDefaults: TransformerXlSettings = {
  name: "transformer-xl",
  vocabulary: 200,
  embedding: 256,
  hidden: 512,
  layers: 3,
  heads: 8,
  inner: 2048,
  memory: 1200,
  dropout: 0.1,
  attentionDropout: 0,
  head: "tied",
};

const normal = (std: number) => ({ kind: "normal", mean: 0, std }) as const;
const usual = { bias: false, weight: normal(0.02) } as const;
const withBias = { weight: normal(0.02), biasInit: { kind: "zeros" } } as const;

type Drop = (x: Tensor, name: string) => Tensor;
type LayerMasks = Readonly<Record<string, { readonly mask: Tensor; readonly keep: number }>>;

/** The model that settings describe. */
export function transformerXlModel(settings: Omit<TransformerXlSettings, "name">): SequenceModel {
  const { vocabulary: V, embedding: E, hidden: D, heads: h, inner, memory: m } = settings;
  const d = D / h;
  const table = state("embedding", [V, E], normal(0.02));
  // Maps between the two widths, where they differ.
  const projection = { bias: false, weight: normal(0.01) } as const;
  const project = E === D ? undefined : linearWeights("project", { in: E, out: D }, projection);
  const u = state("u", [h, d], normal(0.02));
  const w = state("w", [h, d], normal(0.02));
  const gain = { kind: "normal", mean: 1, std: 0.02 } as const;
  const layers = Array.from({ length: settings.layers }, (_, l) => {
    const name = `layer${l + 1}`;
    return {
      /** Columns q, k, v. */
      qkv: linearWeights(`${name}.qkv`, { in: D, out: 3 * D }, usual),
      r: linearWeights(`${name}.r`, { in: D, out: D }, usual),
      out: linearWeights(`${name}.out`, { in: D, out: D }, usual),
      norm: normWeights(`${name}.norm`, D, gain),
      W1: linearWeights(`${name}.W1`, { in: D, out: inner }, withBias),
      W2: linearWeights(`${name}.W2`, { in: inner, out: D }, withBias),
      innerNorm: normWeights(`${name}.innerNorm`, D, gain),
    };
  });
  type Layer = (typeof layers)[number];
  const head = headOf(settings, table);
  const contentBias = unsqueeze(u, 1); // [h, 1, d]
  const positionBias = unsqueeze(w, 1);

  /** √D P Emb[x]: the projection of V words is cheaper than that of all tokens. */
  const embed = (tokens: Tensor): Tensor => {
    const words = project ? linear(project, table) : table;
    return gatherRows(mul(words, Math.sqrt(D)), tokens);
  };
  /** Everything of a layer that follows its attention: x and y [..., D]. */
  const afterAttention = (layer: Layer, x: Tensor, y: Tensor, drop: Drop = (part) => part): Tensor => {
    const x1 = norm(layer.norm, add(x, drop(linear(layer.out, y), "out")));
    const z = linear(layer.W2, drop(relu(linear(layer.W1, x1)), "inner"));
    return norm(layer.innerNorm, add(x1, drop(z, "W2")));
  };

  /** The masks of a layer's dropout, one row of the batch each; none for a rate of 0. */
  const layerMasks = (name: string, [B, T, k]: [number, number, number]): LayerMasks => {
    const shapes = { attention: [h, T, k], out: [T, D], inner: [T, inner], W2: [T, D] };
    const made = Object.entries(shapes).map(([part, shape]) => {
      const keep = 1 - (part === "attention" ? settings.attentionDropout : settings.dropout);
      return [
        part,
        keep < 1 ? { keep, mask: randomMask(`${name}.${part}`, [B, ...shape], keep) } : undefined,
      ];
    });
    return Object.fromEntries(made.filter(([, mask]) => mask)) as LayerMasks;
  };

  /** x [B, T, D] → [B, T, D] and the next memory, one row of the batch after the other. */
  const windowLayer = (
    x: Tensor,
    memory: { M: Tensor; seen: Tensor } | undefined,
    layer: Layer,
    { positions, masks, order }: { positions: Tensor; masks: LayerMasks; order: Together },
  ): { y: Tensor; M?: Tensor } => {
    const T = x.shape[1]!;
    const k = m + T;
    const future = causalMask(T, k);
    const [, Wkv] = split(layer.qkv.W, [D, 2 * D], 1) as [Tensor, Tensor];
    const names = Object.keys(masks);
    const rows = [x, ...(memory ? [memory.M, memory.seen] : []), ...names.map((name) => masks[name]!.mask)];
    const counts = order.counts && memory ? [order.counts] : [];
    const { ys } = scan({ carry: [], xs: [...rows, ...counts] }, (_, slices) => ({
      carry: [],
      ys: [
        ...recompute(slices.slice(0, rows.length), ([own, ...rest]) => {
          const [M, seen] = memory ? (rest as [Tensor, Tensor]) : [];
          const drop: Drop = (part, name) => {
            const at = names.indexOf(name);
            if (at < 0) return part;
            return where(rest[rest.length - names.length + at]!, mul(part, 1 / masks[name]!.keep), 0);
          };
          const [q, kv] = split(linear(layer.qkv, own!), [D, 2 * D]) as [Tensor, Tensor];
          const all = M ? concat([matmul(M, Wkv), kv], 0) : kv;
          const [keys, values] = split(transpose(reshape(all, [k, 2, h, d]), [1, 2, 0, 3]), 2, 0) as [
            Tensor,
            Tensor,
          ];
          const { y } = relativeAttention({
            q: splitHeads(q, h),
            k: squeeze(keys, 0),
            v: squeeze(values, 0),
            r: positions,
            u: contentBias,
            w: positionBias,
            mask: seen ? add(future, seen) : future,
            dropout: (P) => drop(P, "attention"),
          });
          return [afterAttention(layer, own!, joinHeads(y), drop)];
        }),
        ...(memory ? [stopGradient(nextMemory(slices[1]!, slices[0]!, slices[rows.length]))] : []),
      ],
    }));
    const [y, M] = ys as [Tensor, Tensor?];
    return { y, ...(M ? { M } : {}) };
  };

  return {
    parameters: [
      table,
      ...(project ? [project.W] : []),
      u,
      w,
      ...layers.flatMap(({ qkv, r, out, norm: ln, W1, W2, innerNorm }) => [
        ...[qkv.W, r.W, out.W, ln.gain, ln.bias],
        ...[W1.W, W1.b!, W2.W, W2.b!, innerNorm.gain, innerNorm.bias],
      ]),
      ...head.parameters,
    ],
    recurrent:
      m === 0
        ? []
        : [
            ...layers.map((_, l) => ({ name: `M${l + 1}`, shape: (B: number) => [B, m, D] })),
            { name: "count", shape: (B: number) => [B, 1] },
          ],
    window({ tokens, state: before, training, mask, positions }) {
      const [T, B] = tokens.shape as [number, number];
      const drop: Drop = (x, name) => (training ? elementDropout(x, settings.dropout, `dropout.${name}`) : x);
      const order = together(T, B, mask);
      const R = drop(sinusoid(m + T, D), "positions");
      const seen = m === 0 ? undefined : keysSeen(m, T, before.at(-1)!);
      const after: Tensor[] = [];
      const embedded = scoped("embedding", () => embed(order.tokens(tokens)));
      const top = layers.reduce(
        (x, layer, l) =>
          scoped(`layer${l + 1}`, () => {
            const memory = m === 0 ? undefined : { M: stopGradient(before[l]!), seen: seen! };
            const { y, M } = windowLayer(x, memory, layer, {
              positions: splitHeads(linear(layer.r, R), h),
              masks: training ? layerMasks(`dropout.layer${l + 1}`, [B, T, m + T]) : {},
              order,
            });
            if (M) after.push(M);
            return y;
          }),
        drop(embedded, "embedding"),
      );
      if (m > 0) after.push(min(add(before.at(-1)!, order.counts ? cast(order.counts, "f32") : T), m));
      const chosen = order.places(drop(top, "top"), positions);
      return { logits: scoped("output", () => head.logits(chosen)), state: after };
    },
    step(tokens, before) {
      const B = tokens.shape[0]!;
      const R = sinusoid(m + 1, D);
      const seen = m === 0 ? undefined : squeeze(keysSeen(m, 1, before.at(-1)!), 1); // [B, k]
      const after: Tensor[] = [];
      const trace: Record<string, Tensor> = {};
      const top = layers.reduce((x, layer, l) => {
        const own = unsqueeze(x, 1);
        const C = m === 0 ? own : concat([before[l]!, own], 1);
        if (m > 0) after.push(slice(C, 1, 1));
        const { y, P } = stepAttention(layer, x, { C, R, u, w, seen });
        trace[`attention${l + 1}`] = reshape(P, [B, h * (m + 1)]);
        return afterAttention(layer, x, y);
      }, embed(tokens));
      if (m > 0) after.push(min(add(before.at(-1)!, 1), m));
      return { logits: head.logits(top), state: after, trace };
    },
    largeTensors: true,
    tracer: attentionTracer(settings.layers, h, m + 1),
  };
}

/** The last part: [..., D] → [..., V]. */
function headOf(settings: Omit<TransformerXlSettings, "name">, table: Tensor) {
  const { vocabulary: V, embedding: E, hidden: D } = settings;
  if (settings.head === "plain") {
    const output = linearWeights("output", { in: D, out: V }, usual);
    return { parameters: [output.W], logits: (x: Tensor) => linear(output, x) };
  }
  const bias = state("output.b", [V]);
  const project =
    E === D
      ? undefined
      : linearWeights("output.project", { in: D, out: E }, { bias: false, weight: normal(0.01) });
  return {
    parameters: [...(project ? [project.W] : []), bias],
    logits: (x: Tensor) => linear({ W: transpose(table, [1, 0]), b: bias }, project ? linear(project, x) : x),
  };
}

/** [B, 1, k], added to scores: hides what of the memory is still empty. */
function keysSeen(m: number, T: number, count: Tensor): Tensor {
  const empty = less(iota(m + T, "f32"), sub(m, count));
  return unsqueeze(where(empty, hiddenScore, 0), 1);
}

/** x [B, D] over C [B, k, D], of which it is the last row: y [B, D] and the attention [B, h, k]. */
function stepAttention(
  { qkv, r }: { qkv: LinearWeights; r: LinearWeights },
  x: Tensor,
  { C, R, u, w, seen }: Record<"C" | "R" | "u" | "w", Tensor> & { readonly seen: Tensor | undefined },
): { y: Tensor; P: Tensor } {
  const [B, D] = x.shape as [number, number];
  const [h, d] = u.shape as [number, number];
  const [Wq, Wk, Wv] = split(qkv.W, 3, 1) as [Tensor, Tensor, Tensor];
  const q = reshape(matmul(x, Wq), [B, h, d]);
  const byHead = (W: Tensor, axes: readonly number[]): Tensor => transpose(reshape(W, [D, h, d]), axes);
  /** (q + bias) W_hᵀ of every head h: [B, h, d] → [B, h, D]. */
  const query = (bias: Tensor, W: Tensor): Tensor => {
    const scaled = mul(add(q, bias), 1 / Math.sqrt(d));
    return transpose(matmul(transpose(scaled, [1, 0, 2]), byHead(W, [1, 2, 0])), [1, 0, 2]);
  };
  const content = matmul(query(u, Wk), C, { transB: true });
  const position = matmul(query(w, r.W), transpose(R, [1, 0]));
  const scores = add(content, position);
  const P = softmax(seen ? add(scores, unsqueeze(seen, 1)) : scores);
  const mixed = transpose(matmul(P, C), [1, 0, 2]); // [h, B, D]
  const y = transpose(matmul(mixed, byHead(Wv, [1, 0, 2])), [1, 0, 2]);
  return { y: reshape(y, [B, D]), P };
}

/** Where a window's tokens are when each row's padding is moved behind its tokens. */
interface Together {
  /** i32 [T, B] → [B, T] */
  tokens(tokens: Tensor): Tensor;
  /** Tokens of each row, i32 [B, 1], where there is padding; otherwise each has T. */
  readonly counts?: Tensor;
  /** x [B, T, D] at the window's own positions: [T, B, D], or [B, Q, D] at those asked for. */
  places(x: Tensor, positions: Tensor | undefined): Tensor;
}

function together(T: number, B: number, mask: Tensor | undefined): Together {
  const flat = (x: Tensor): Tensor => reshape(x, [-1, ...x.shape.slice(2)]);
  const find = (x: Tensor, places: Tensor, positions: Tensor | undefined): Tensor =>
    gatherRows(flat(x), positions ? gatherRows(flat(places), positions) : places);
  const rows = iota(B);
  if (!mask) {
    const places = constant(
      Array.from({ length: T * B }, (_, at) => (at % B) * T + Math.floor(at / B)),
      [T, B],
      "i32",
    );
    return {
      tokens: (tokens) => transpose(tokens, [1, 0]),
      places: (x, positions) => (positions ? find(x, places, positions) : transpose(x, [1, 0, 2])),
    };
  }
  const lower = constant(
    Float32Array.from({ length: T * T }, (_, i) => (i % T <= Math.floor(i / T) ? 1 : 0)),
    [T, T],
  );
  const counts = matmul(lower, mask); // tokens up to and with each, [T, B]
  const whole = (x: Tensor): Tensor => cast(x, "i32");
  // Token t of row b is moved to slot counts - 1; a slot that none is moved to takes token 0.
  const slots = max(sub(whole(counts), 1), 0);
  const places = add(mul(rows, T), slots);
  const moved = mul(cast(equal(unsqueeze(slots, 1), reshape(iota(T), [1, T, 1])), "f32"), unsqueeze(mask, 1)); // [t, slot, B]
  const from = whole(sum(mul(moved, reshape(iota(T, "f32"), [T, 1, 1])), { axes: 0 })); // [slot, B]
  return {
    tokens: (tokens) => gatherRows(flat(tokens), transpose(add(mul(from, B), rows), [1, 0])),
    counts: whole(transpose(slice(counts, 0, T - 1), [1, 0])),
    places: (x, positions) => find(x, places, positions),
  };
}

/** The last m of a row's memory [m, D] and window [T, D]; `count`, i32 [1], says how much of the window is no padding. */
function nextMemory(M: Tensor, X: Tensor, count: Tensor | undefined): Tensor {
  const [m, T] = [M.shape[0]!, X.shape[0]!];
  if (count) return gatherRows(concat([M, X], 0), add(iota(m), count));
  return T >= m ? slice(X, 0, T - m) : concat([slice(M, 0, T), X], 0);
}

/** Shows how much each head of each layer attends to each of the last tokens. */
function attentionTracer(layers: number, heads: number, k: number): Tracer {
  return {
    keep: [],
    rows: (history, now) =>
      Array.from({ length: layers * heads }, (_, at) => {
        const [l, head] = [Math.floor(at / heads), at % heads];
        const P = now[`attention${l + 1}`]!.subarray(head * k, (head + 1) * k);
        // The last token of both is the same; what is older than the memory gets no attention.
        const values = Float32Array.from(history, (__, i) => P[k - history.length + i] ?? 0);
        return { name: `layer ${l + 1} head ${head + 1}`, values };
      }),
  };
}

function flops(settings: TransformerXlSettings, { tokens, positions, window: T }: Work): number {
  const { vocabulary: V, embedding: E, hidden: D, layers, inner, memory: m } = settings;
  const k = m + T;
  const maps = 2 * D * (3 * D + D + 2 * inner) * tokens;
  // Once per window and row: keys and values of the memory; once per window: positions.
  const memory = (tokens / T) * m * 2 * 2 * D * D + 2 * k * D * D;
  const attention = 3 * 2 * k * D * tokens;
  const logits = settings.head === "plain" ? 2 * D * V : 2 * (D * E + E * V);
  return layers * (maps + memory + attention) + logits * positions;
}
