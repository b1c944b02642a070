/**
 * Delta networks over tokens (Schlag, Irie and Schmidhuber, 2021, "Linear Transformers Are Secretly Fast Weight
 * Programmers"): the memory's nearest descendant. One key per write, mapped so that it is positive and sums to 1, and a
 * read per layer; the write rule is the memory's own.
 *
 *   code      equation                                          shape           meaning
 *   x         x_t                                               [B, T, D]       input of a layer
 *   k, q      φ(W_k x_t), φ(W_q x_t)                            [B, h, T, d]    key and query of each head
 *   v, beta   W_v x_t, σ(W_β x_t)                               [B, h, T, d]    value, strength of the write, [B, h, T, 1]
 *   S         S_t = S_{t-1} + β_t k_t ⊗ (v_t - S_{t-1} k_t)     [B, h, d, d]    fast weights, key by value
 *   o         o_t = S_t q_t / √d                                [B, h, T, d]    read
 *             y = LN(x + W_o o),  z = LN(y + W_2 relu(W_1 y))
 *
 *   B batch, T time, D hidden, h heads, d = D / h; φ(z) = (elu(z) + 1) / Σ (elu(z) + 1), or softmax(z)
 *
 * A window is computed without a loop over tokens. With U the updates β (v - S k) of a chunk of C tokens and L the strictly
 * lower part of β K Kᵀ, the delta rule says U + L U = β (V - K S), so U = (I + L)⁻¹ β (V - K S): the inverse is one of small
 * triangular matrices, all chunks and heads at once, and only S goes from chunk to chunk.
 *
 * Nobody has published this system on catbAbI. Its layer is that of the authors' program; the numbers of layers, heads and
 * widths are ours, chosen for the memory's number of weights (693,818 against 693,985).
 */
import { z } from "zod";
import {
  add,
  concat,
  constant,
  div,
  elementDropout,
  exp,
  gatherRows,
  matmul,
  min,
  mul,
  pad,
  relu,
  reshape,
  scoped,
  sigmoid,
  slice,
  softmax,
  split,
  squeeze,
  state,
  sub,
  sum,
  type Tensor,
  transpose,
  unsqueeze,
} from "../graph/index.ts";
import { type LinearWeights, linear, linearWeights } from "./linear.ts";
import { type NormWeights, norm, normWeights } from "./norm.ts";
import { joinHeads, splitHeads } from "./relativeAttention.ts";
import {
  dot,
  dropoutRate,
  headsDivide,
  type SequenceModel,
  type System,
  size,
  type Tracer,
  tokenSizes,
  type WindowInput,
  type Work,
} from "./sequence.ts";

const schema = headsDivide(
  z.strictObject({
    name: z.literal("delta-net"),
    ...tokenSizes,
    hidden: size,
    layers: size.max(64),
    heads: size.max(1024),
    /** Width of the feed-forward layers. */
    inner: size,
    /** φ: how keys and queries are made positive. */
    featureMap: z.enum(["elu", "softmax"]).default("elu"),
    dropout: dropoutRate,
    /** Tokens per chunk of the parallel form; a matter of speed only. */
    chunk: z.int().min(1).max(4096).default(32),
  }),
);

/** Settings of the system. */
export type DeltaNetSettings = z.infer<typeof schema>;

/** The system: settings, model, cost. */
export const deltaNetSystem: System<DeltaNetSettings> = { schema, build: deltaNetModel, flops };

/** About as many weights as the memory has at the paper's sizes. */
export const deltaNetDefaults: DeltaNetSettings = {
  name: "delta-net",
  vocabulary: 200,
  embedding: 128,
  hidden: 128,
  layers: 3,
  heads: 4,
  inner: 574,
  featureMap: "elu",
  dropout: 0,
  chunk: 32,
};

/** Keys and queries made positive with sum 1: [..., d] → [..., d]. */
export function featureMap(kind: DeltaNetSettings["featureMap"], z: Tensor): Tensor {
  if (kind === "softmax") return softmax(z);
  // elu(z) + 1 is z + 1 above 0 and e^z below; both are 1 at 0.
  const positive = add(relu(z), exp(min(z, 0)));
  return div(positive, sum(positive, { axes: -1, keep: true }));
}

/** What a window writes and asks: k, q, v [..., T, d] with k and q mapped, beta [..., T, 1]. */
export interface DeltaVectors {
  readonly q: Tensor;
  readonly k: Tensor;
  readonly v: Tensor;
  readonly beta: Tensor;
}

/** One token: vectors [..., d], S [..., d, d] → o [..., d] and the fast weights after it. */
function deltaStep({ q, k, v, beta }: DeltaVectors, S: Tensor): { o: Tensor; S: Tensor } {
  const read = (key: Tensor, memory: Tensor): Tensor => reshape(matmul(unsqueeze(key, -2), memory), v.shape);
  const update = mul(beta, sub(v, read(k, S)));
  const after = add(S, mul(unsqueeze(k, -1), unsqueeze(update, -2)));
  return { o: read(q, after), S: after };
}

/** A window: vectors [..., T, d], S [..., d, d] → o [..., T, d] and the fast weights after it. */
export function deltaWindow(vectors: DeltaVectors, S: Tensor, chunk: number): { o: Tensor; S: Tensor } {
  const T = vectors.v.shape.at(-2)!;
  const C = Math.min(chunk, T);
  const count = Math.ceil(T / C);
  // [..., count, C, d]; what fills the last chunk up has β = 0: it writes nothing.
  const [q, k, v, beta] = [vectors.q, vectors.k, vectors.v, vectors.beta].map((x) => {
    const filled = pad(x, -2, 0, count * C - T);
    return reshape(filled, [...x.shape.slice(0, -2), count, C, x.shape.at(-1)!]);
  }) as [Tensor, Tensor, Tensor, Tensor];
  const keys = mul(beta, k);
  const solve = unitLowerInverse(
    mul(
      matmul(keys, k, { transB: true }),
      matrix(C, (i, j) => j < i),
    ),
  );
  const scores = mul(
    matmul(q, k, { transB: true }),
    matrix(C, (i, j) => j <= i),
  );
  // U = values - fromStart S
  const values = matmul(solve, mul(beta, v));
  const fromStart = matmul(solve, keys);
  const byChunk = (x: Tensor): Tensor[] => split(x, count, -3).map((part) => squeeze(part, -3));
  const chunks = [values, fromStart, q, scores, k].map(byChunk);
  let memory = S;
  const o = Array.from({ length: count }, (_, c) => {
    const [v, start, query, score, key] = chunks.map((parts) => parts[c]!) as [
      Tensor,
      Tensor,
      Tensor,
      Tensor,
      Tensor,
    ];
    const U = sub(v, matmul(start, memory));
    const read = add(matmul(query, memory), matmul(score, U));
    memory = add(memory, matmul(key, U, { transA: true }));
    return read;
  });
  return { o: slice(concat(o, -2), -2, 0, T), S: memory };
}

/** [C, C]: 1 where it says so, 0 elsewhere. */
function matrix(C: number, one: (row: number, column: number) => boolean): Tensor {
  const data = Float32Array.from({ length: C * C }, (_, i) => (one(Math.floor(i / C), i % C) ? 1 : 0));
  return constant(data, [C, C]);
}

/**
 * (I + L)⁻¹ for L [..., C, C] that is 0 on and above the diagonal. The inverse of [[A, 0], [B, D]] is
 * [[A⁻¹, 0], [-D⁻¹ B A⁻¹, D⁻¹]]; here for all blocks of 1, 2, 4, … rows at once. As stable as substitution row after row,
 * where the sum of the powers of L would cancel.
 */
function unitLowerInverse(L: Tensor): Tensor {
  const C = L.shape.at(-1)!;
  // The Bs of blocks of so many rows.
  const corners = (rows: number): Tensor => {
    const block = (i: number): number => Math.floor(i / rows);
    return mul(
      L,
      matrix(C, (i, j) => block(i) % 2 === 1 && block(j) === block(i) - 1),
    );
  };
  let inverse = sub(
    matrix(C, (i, j) => i === j),
    corners(1),
  );
  for (let rows = 2; rows < C; rows *= 2) {
    inverse = sub(inverse, matmul(matmul(inverse, corners(rows)), inverse));
  }
  return inverse;
}

/** The slow weights of a layer that writes and reads. */
export interface DeltaLayerWeights {
  /** Columns q, k, v, then β of every head. */
  readonly qkvb: LinearWeights;
  readonly out: LinearWeights;
  readonly norm: NormWeights;
}

/** How a layer computes. */
export interface DeltaLayerOptions extends Pick<DeltaNetSettings, "heads" | "featureMap" | "chunk"> {
  /** [B, 1, T, 1]: 0 where nothing is written. */
  readonly mask?: Tensor | undefined;
  /** Dropout of what is added to the input. */
  readonly drop?: (x: Tensor) => Tensor;
}

/** x [B, T, D] and S [B, h, d, d] → y [B, T, D], the fast weights after the window, and what it wrote and asked. */
export function deltaLayer(
  w: DeltaLayerWeights,
  x: Tensor,
  S: Tensor,
  { heads: h, featureMap: kind, chunk, mask, drop = (part) => part }: DeltaLayerOptions,
): { y: Tensor; S: Tensor; vectors: DeltaVectors } {
  const T = x.shape.at(-2)!;
  const D = w.out.W.shape[0]!; // of all heads together
  const [q, k, v, b] = split(linear(w.qkvb, x), [D, D, D, h]) as [Tensor, Tensor, Tensor, Tensor];
  const map = (z: Tensor): Tensor => featureMap(kind, splitHeads(z, h));
  const strength = sigmoid(splitHeads(b, h));
  const vectors = { q: map(q), k: map(k), v: splitHeads(v, h), beta: mask ? mul(strength, mask) : strength };
  const read = T === 1 ? oneToken(vectors, S) : deltaWindow(vectors, S, chunk);
  const o = mul(joinHeads(read.o), 1 / Math.sqrt(D / h));
  return { y: norm(w.norm, add(x, drop(linear(w.out, o)))), S: read.S, vectors };
}

function oneToken({ q, k, v, beta }: DeltaVectors, S: Tensor): { o: Tensor; S: Tensor } {
  const next = deltaStep(
    { q: squeeze(q, -2), k: squeeze(k, -2), v: squeeze(v, -2), beta: squeeze(beta, -2) },
    S,
  );
  return { o: unsqueeze(next.o, -2), S: next.S };
}

/** The model that settings describe. */
function deltaNetModel(settings: Omit<DeltaNetSettings, "name">): SequenceModel {
  const { vocabulary: V, embedding: E, hidden: D, heads: h, inner, dropout: rate } = settings;
  const d = D / h;
  const table = state("embedding", [V, E], { kind: "normal", mean: 0, std: 1 });
  // Only embeddings of another width need a map.
  const project = E === D ? undefined : linearWeights("project", { in: E, out: D }, { bias: false });
  const layers = Array.from({ length: settings.layers }, (_, l) => {
    const name = `layer${l + 1}`;
    return {
      qkvb: linearWeights(`${name}.qkvb`, { in: D, out: 3 * D + h }, { bias: false }),
      out: linearWeights(`${name}.out`, { in: D, out: D }, { bias: false }),
      norm: normWeights(`${name}.norm`, D),
      W1: linearWeights(`${name}.W1`, { in: D, out: inner }),
      W2: linearWeights(`${name}.W2`, { in: inner, out: D }),
      innerNorm: normWeights(`${name}.innerNorm`, D),
    };
  });
  const output = linearWeights("output", { in: D, out: V }, { bias: false });

  /** tokens [B, T] → the last layer's output, [B, T, D], and the fast weights after it. */
  const run = (
    tokens: Tensor,
    before: readonly Tensor[],
    { drop, mask }: { drop: (x: Tensor, name: string) => Tensor; mask?: Tensor | undefined },
  ) => {
    const after: Tensor[] = [];
    const every: DeltaVectors[] = [];
    const e = scoped("embedding", () => gatherRows(table, tokens));
    const top = layers.reduce(
      (x, layer, l) =>
        scoped(`layer${l + 1}`, () => {
          const dropped = (name: string) => (part: Tensor) => drop(part, `layer${l + 1}.${name}`);
          const options = { ...settings, mask, drop: dropped("out") };
          const { y, S, vectors } = deltaLayer(layer, x, before[l]!, options);
          after.push(S);
          every.push(vectors);
          const z = linear(layer.W2, dropped("inner")(relu(linear(layer.W1, y))));
          return norm(layer.innerNorm, add(y, dropped("W2")(z)));
        }),
      drop(project ? linear(project, e) : e, "embedding"),
    );
    return { top, state: after, vectors: every };
  };
  /** A window of some rows: logits at the positions, the state, and what was written and asked, [T, B, layers · D]. */
  const read = ({ tokens, state: before, training, mask, positions }: WindowInput) => {
    const [T, B] = tokens.shape as [number, number];
    const made = run(transpose(tokens, [1, 0]), before, {
      drop: (x, name) => (training ? elementDropout(x, rate, `dropout.${name}`) : x),
      mask: mask && reshape(transpose(mask, [1, 0]), [B, 1, T, 1]),
    });
    const at = (x: Tensor): Tensor =>
      positions ? gatherRows(reshape(x, [T * B, x.shape[2]!]), positions) : x;
    const byTime = (of: "q" | "k"): Tensor =>
      concat(made.vectors.map((vectors) => reshape(transpose(vectors[of], [2, 0, 1, 3]), [T, B, D])));
    const top = at(transpose(made.top, [1, 0, 2]));
    return { logits: scoped("output", () => linear(output, top)), state: made.state, at, byTime };
  };
  return {
    parameters: [
      table,
      ...(project ? [project.W] : []),
      ...layers.flatMap(({ qkvb, out, norm: ln, W1, W2, innerNorm }) => [
        ...[qkvb.W, out.W, ln.gain, ln.bias],
        ...[W1.W, W1.b!, W2.W, W2.b!, innerNorm.gain, innerNorm.bias],
      ]),
      output.W,
    ],
    recurrent: layers.map((_, l) => ({ name: `S${l + 1}`, shape: (B) => [B, h, d, d] })),
    window(input) {
      const { logits, state: after } = read(input);
      return { logits, state: after };
    },
    chunk(input) {
      const { logits, state: after, at, byTime } = read({ ...input, training: false });
      return { logits, state: after, trace: { keys: byTime("k"), queries: at(byTime("q")) } };
    },
    step(tokens, before) {
      const made = run(unsqueeze(tokens, 1), before, { drop: (x) => x });
      const flat = (of: "q" | "k"): Tensor =>
        concat(made.vectors.map((vectors) => reshape(vectors[of], [tokens.shape[0]!, D])));
      return {
        logits: linear(output, squeeze(made.top, 1)),
        state: made.state,
        trace: { keys: flat("k"), queries: flat("q") },
      };
    },
    tracer: readTracer(settings),
  };
}

/** Shows, for every layer and head, how well the key of each token so far matches the query. */
function readTracer({ layers, heads, hidden }: Omit<DeltaNetSettings, "name">): Tracer {
  const d = hidden / heads;
  const at = (vectors: Float32Array, i: number): Float32Array => vectors.subarray(i * d, (i + 1) * d);
  return {
    keep: ["keys"],
    rows: (history, now) =>
      Array.from({ length: layers * heads }, (_, i) => ({
        name: `layer ${Math.floor(i / heads) + 1} head ${(i % heads) + 1}`,
        values: Float32Array.from(history, ({ keys }) => dot(at(keys!, i), at(now.queries!, i))),
      })),
  };
}

function flops(settings: DeltaNetSettings, { tokens, positions, window }: Work): number {
  const { vocabulary: V, embedding: E, hidden: D, heads, layers, inner, chunk } = settings;
  const C = Math.min(chunk, window);
  const d = D / heads;
  const maps = 2 * D * (3 * D + heads) + 2 * D * D + 2 * 2 * D * inner;
  // Per head: K Kᵀ, Q Kᵀ, the solve of values and keys, scores U, and three products with S.
  const memory = heads * (5 * 2 * C * d + 3 * 2 * d * d);
  const project = E === D ? 0 : 2 * E * D;
  return (project + layers * (maps + memory)) * tokens + 2 * D * V * positions;
}
