/**
 * Metalearned Neural Memory, plastic version, over tokens (Munkhdalai, Sordoni, Wang and Trischler, 2019): "MNM-p" in the
 * paper's table. The memory is a feed-forward net of three layers whose weights are written by a local rule.
 *
 *   code         equation                                                  shape              meaning
 *   e            Emb(x_t)                                                  [B, E]             embedded token
 *   h, c         LSTM([e; r_{t-1}], h_{t-1}, c_{t-1})                      [B, H]             controller
 *   p            tanh(W_I h + b_I)                                         [B, (3N+1) m]      interaction: p_β, then each head's
 *   kw, vw, kr                                                             [B, N, m]          write keys, values, read keys
 *   beta         σ(w_b · p_β + b_b)                                        [B, 1]             rate of the write
 *   z            z_0 = key, z_1 = tanh(z_0 M_1), z_2 = tanh(z_1 M_2), z_3 = z_2 M_3           the net, f(key) = z_3
 *   g            (g_1, g_2, g_3) = T vw + t_0                              [B, N, m] each     targets of the layers
 *   M            M_l ← M_l - β 2/(N m) Σ_heads z_{l-1} ⊗ (z_l - g_l)       [B, m, m]          in by out, l = 1, 2, 3 together
 *   meta         mean over heads and entries of (f(kw) - vw)²              [B, 1]             with M after the write
 *   r            mean over heads of f(kr)                                  [B, m]             with M after the write
 *   o, logits    o = W_o [h; r] + b_o,  W_s o                              [B, H], [B, V]
 *
 *   B batch, E embedding, H hidden, N heads, m memory (its width), V vocabulary
 *
 * Loss: the task's plus `metaWeight` times the mean of `meta` over tokens. The state is what was written: M less the
 * memory it starts from, M⁰, which is drawn once, is the same for all rows and models, and is not trained.
 *
 * A window makes M once per chunk of tokens. Inside a chunk it is P + Zᵀ U: P the weights at the chunk's start, and a row of
 * Z and of U for each write since, so that z M = z P + (z Zᵀ) U. That is exact; what a gradient needs is P once per chunk and
 * the rows, and its sum over the chunk's tokens, dP = Xᵀ dY, is one product.
 *
 * The equations are one public implementation's (Webb et al. 2021), not the authors' own; docs/systems.md has the rest.
 */
import { z } from "zod";
import {
  add,
  cast,
  concat,
  constant,
  div,
  gatherRows,
  matmul,
  max,
  mean,
  mul,
  reshape,
  scan,
  scoped,
  sigmoid,
  slice,
  split,
  squeeze,
  stack,
  state,
  sub,
  sum,
  type Tensor,
  tanh,
  unsqueeze,
  where,
} from "../graph/index.ts";
import { keyOf, uniform } from "../random.ts";
import { type LinearWeights, linear, linearWeights } from "./linear.ts";
import { type LstmWeights, lstmCell, lstmStep, lstmWeights, tokenGates } from "./lstm.ts";
import {
  dot,
  type SequenceModel,
  type System,
  size,
  type Tracer,
  tokenSizes,
  type Work,
} from "./sequence.ts";

const schema = z.strictObject({
  name: z.literal("mnm"),
  ...tokenSizes,
  hidden: size,
  /** m: width of the memory's three layers. */
  memory: size.max(4096),
  /** N: keys and values per token. */
  heads: size.max(256),
  /** Weight of the meta-objective beside the task's loss. */
  metaWeight: z.number().min(0).default(1),
  /** Tokens between two copies of the fast weights; a matter of memory and speed only. */
  chunk: z.int().min(1).max(64).default(8),
});

/** Settings of the system. */
export type MnmSettings = z.infer<typeof schema>;

/** The system: settings, model, cost. */
export const mnmSystem: System<MnmSettings> = { schema, build: mnmModel, flops };

/** The paper's memory; the controller's width and the heads are those that fit its number of weights. */
export const mnmDefaults: MnmSettings = {
  name: "mnm",
  vocabulary: 200,
  embedding: 256,
  hidden: 256,
  memory: 100,
  heads: 3,
  metaWeight: 1,
  chunk: 8,
};

/** The slow weights of controller and memory. */
export interface MnmWeights {
  readonly heads: number;
  /** Its input is [e; r]. */
  readonly lstm: LstmWeights;
  readonly interact: LinearWeights;
  readonly beta: LinearWeights;
  readonly targets: LinearWeights;
  readonly out: LinearWeights;
}

/** Declares the slow weights. */
export function mnmWeights(
  sizes: Pick<MnmSettings, "embedding" | "hidden" | "memory" | "heads">,
): MnmWeights {
  const { embedding: E, hidden: H, memory: m, heads } = sizes;
  return {
    heads,
    lstm: lstmWeights("lstm", { in: E + m, hidden: H }, "pytorch"),
    interact: linearWeights("interact", { in: H, out: (3 * heads + 1) * m }),
    beta: linearWeights("beta", { in: m, out: 1 }),
    targets: linearWeights("targets", { in: m, out: 3 * m }),
    out: linearWeights("out", { in: H + m, out: H }),
  };
}

/** Everything a row remembers; M has the three layers. */
export interface MnmState {
  readonly h: Tensor;
  readonly c: Tensor;
  readonly r: Tensor;
  readonly M: readonly Tensor[];
}

/** What the controller says to the memory: kw, vw, kr [B, N, m], the targets [B, N, m] and the rate [B, 1, 1]. */
function interaction(w: MnmWeights, h: Tensor) {
  const B = h.shape[0]!;
  const m = w.beta.W.shape[0]!;
  const N = w.heads;
  const p = tanh(linear(w.interact, h));
  const [pBeta, rest] = split(p, [m, 3 * N * m]) as [Tensor, Tensor];
  const beta = sigmoid(linear(w.beta, pBeta));
  const [kw, vw, kr] = split(reshape(rest, [B, N, 3 * m]), 3) as [Tensor, Tensor, Tensor];
  const g = split(linear(w.targets, vw), 3);
  return { kw, vw, kr, g, rate: mul(reshape(beta, [B, 1, 1]), 2 / (N * m)) };
}

const functions = [tanh, tanh, (z: Tensor) => z] as const;

/** z_0 … z_3 of keys [B, n, m]. */
function forward(M: readonly Tensor[], keys: Tensor): Tensor[] {
  const zs = [keys];
  for (const [l, layer] of M.entries()) zs.push(functions[l]!(matmul(zs[l]!, layer)));
  return zs;
}

function meanSquare(x: Tensor): Tensor {
  return mean(mul(x, x), { axes: [-2, -1] });
}

/** One token, the equations as they stand: e [B, E]. */
function mnmStep(w: MnmWeights, e: Tensor, s: MnmState) {
  const { h, c } = lstmStep(w.lstm, concat([e, s.r]), s);
  const { kw, vw, kr, g, rate } = interaction(w, h);
  const zs = forward(s.M, kw);
  const M = s.M.map((layer, l) => {
    const error = mul(rate, sub(zs[l + 1]!, g[l]!));
    return sub(layer, matmul(zs[l]!, error, { transA: true }));
  });
  const r = mean(forward(M, kr)[3]!, { axes: 1 });
  return { state: { h, c, r, M }, meta: meanSquare(sub(forward(M, kw)[3]!, vw)), kw, kr };
}

/** The output of a token: h [..., H], r [..., m] → [..., H]. */
export function mnmOutput(w: MnmWeights, h: Tensor, r: Tensor): Tensor {
  return linear(w.out, concat([h, r]));
}

/** Choices for a window. */
export interface MnmWindowOptions {
  /** [T, B]; where it is 0 everything stays as it is. */
  readonly mask?: Tensor | undefined;
  readonly chunk: number;
}

/** A layer inside a chunk: the weights at its start, [B, m, m], and what was written since, [B, n, m] each. */
interface Layer {
  readonly P: Tensor;
  readonly Z?: Tensor;
  readonly U?: Tensor;
}

/** The controller's input weights apart: those of e as of an LSTM over tokens, and the rows of r, [m, 4H]. */
export function controllerInputs({ lstm, beta }: MnmWeights): { ofToken: LstmWeights; ofRead: Tensor } {
  const m = beta.W.shape[0]!;
  const [Wx, ofRead] = split(lstm.Wx, [lstm.Wx.shape[0]! - m, m], 0) as [Tensor, Tensor];
  return { ofToken: { ...lstm, Wx }, ofRead };
}

/** A window: what its tokens add to the gates, [T, B, 4H], gives h [T, B, H], r [T, B, m], meta [T, B] and the state. */
export function mnmWindow(w: MnmWeights, gates: Tensor, s: MnmState, { mask, chunk }: MnmWindowOptions) {
  const [T, B] = gates.shape as [number, number];
  const N = w.heads;
  const recurrent = concat([controllerInputs(w).ofRead, w.lstm.Wh], 0); // of [r; h]

  /** One token; `live` [B, 1] is 0 at padding. */
  const token = (
    { h, c, r, layers }: { h: Tensor; c: Tensor; r: Tensor; layers: readonly Layer[] },
    z: Tensor,
    live: Tensor | undefined,
  ) => {
    const next = lstmCell(add(z, matmul(concat([r, h]), recurrent)), c);
    const { kw, vw, kr, g, rate } = interaction(w, next.h);
    const written = live ? mul(rate, unsqueeze(live, -1)) : rate;
    // The net over the write keys before the write, and over write and read keys after it, layer by layer.
    let before = kw;
    let after = concat([kw, kr], 1);
    const changed = layers.map(({ P, Z: Z0, U: U0 }, l): Layer => {
      const f = functions[l]!;
      const all = concat([before, after], 1);
      const Z = Z0 ? concat([Z0, before], 1) : before;
      const scores = matmul(all, Z, { transB: true });
      const [oldScores, freshScores] = split(scores, [N, 2 * N], 1) as [Tensor, Tensor];
      const [old, fresh] = split(matmul(all, P), [N, 2 * N], 1) as [Tensor, Tensor];
      const n = U0?.shape[1] ?? 0;
      const z = f(U0 ? add(old, matmul(slice(oldScores, -1, 0, n), U0)) : old);
      const update = mul(written, sub(g[l]!, z));
      const U = U0 ? concat([U0, update], 1) : update;
      [before, after] = [z, f(add(fresh, matmul(freshScores, U)))];
      return { P, Z, U };
    });
    const [recalled, read] = split(after, 2, 1) as [Tensor, Tensor];
    const kept = { h: next.h, c: next.c, r: mean(read, { axes: 1 }) };
    if (live) {
      const condition = cast(live, "bool");
      kept.h = where(condition, kept.h, h);
      kept.c = where(condition, kept.c, c);
      kept.r = where(condition, kept.r, r);
    }
    return { next: { ...kept, layers: changed }, ys: [kept.h, kept.r, sub(recalled, vw)] };
  };

  /** A chunk written out: the xs have its tokens on their first axis. */
  const chunkOf = ([h, c, r, ...M]: readonly Tensor[], xs: readonly Tensor[]) => {
    const length = xs[0]!.shape[0]!;
    const slices = xs.map((x) => split(x, length, 0).map((part) => squeeze(part, 0)));
    let now = { h: h!, c: c!, r: r!, layers: M.map((P): Layer => ({ P })) };
    const made: Tensor[][] = [];
    for (let t = 0; t < length; t++) {
      const { next, ys } = token(now, slices[0]![t]!, slices[1]?.[t]);
      now = next;
      made.push(ys);
    }
    const written = now.layers.map(({ P, Z, U }) => add(P, matmul(Z!, U!, { transA: true })));
    return {
      carry: [now.h, now.c, now.r, ...written],
      ys: [0, 1, 2].map((i) => stack(made.map((ys) => ys[i]!))),
    };
  };

  let carry: readonly Tensor[] = [s.h, s.c, s.r, ...s.M];
  const parts: Tensor[][] = [];
  const xs = [gates, ...(mask ? [reshape(mask, [T, B, 1])] : [])];
  const tokensOf = (from: number, to: number): Tensor[] => xs.map((x) => slice(x, 0, from, to));
  const chunks = Math.floor(T / chunk);
  if (chunks > 0) {
    const cut = tokensOf(0, chunks * chunk).map((x) => reshape(x, [chunks, chunk, ...x.shape.slice(1)]));
    const made = scan({ carry, xs: cut }, chunkOf);
    carry = made.carry;
    parts.push(made.ys.map((y) => reshape(y, [chunks * chunk, ...y.shape.slice(2)])));
  }
  if (chunks * chunk < T) {
    const made = chunkOf(carry, tokensOf(chunks * chunk, T));
    carry = made.carry;
    parts.push(made.ys);
  }
  const [h, r, errors] = [0, 1, 2].map((i) =>
    concat(
      parts.map((ys) => ys[i]!),
      0,
    ),
  ) as [Tensor, Tensor, Tensor];
  const [hEnd, cEnd, rEnd, ...M] = carry as [Tensor, Tensor, Tensor, ...Tensor[]];
  return { h, r, meta: meanSquare(errors), state: { h: hEnd, c: cEnd, r: rEnd, M } };
}

/** M⁰: three matrices [in, out], uniform in ±1/√m, the same for everybody. */
function initialMemory(m: number): Tensor[] {
  const limit = 1 / Math.sqrt(m);
  return [1, 2, 3].map((l) => {
    const key = keyOf(0, "mnm", "initial memory", l);
    const data = Float32Array.from({ length: m * m }, (_, i) => limit * (2 * uniform(key, i) - 1));
    return constant(data, [m, m]);
  });
}

/** The model that settings describe; `M0` stands in for the memory it starts from. */
export function mnmModel(
  settings: Omit<MnmSettings, "name">,
  M0: readonly Tensor[] = initialMemory(settings.memory),
): SequenceModel {
  const { vocabulary: V, embedding: E, hidden: H, memory: m, metaWeight, chunk } = settings;
  const table = state("embedding", [V, E], { kind: "normal", mean: 0, std: 1 });
  const w = mnmWeights(settings);
  const output = linearWeights("output", { in: H, out: V }, { bias: false });
  const stateOf = ([h, c, r, ...written]: readonly Tensor[]): MnmState => ({
    h: h!,
    c: c!,
    r: r!,
    M: written.map((change, l) => add(change, M0[l]!)),
  });
  const partsOf = ({ h, c, r, M }: MnmState): Tensor[] => [
    h,
    c,
    r,
    ...M.map((layer, l) => sub(layer, M0[l]!)),
  ];
  return {
    parameters: [
      table,
      ...[w.lstm.Wx, w.lstm.Wh, ...w.lstm.biases],
      ...[w.interact, w.beta, w.targets, w.out].flatMap(({ W, b }) => [W, b!]),
      output.W,
    ],
    recurrent: [
      { name: "h", shape: (B) => [B, H] },
      { name: "c", shape: (B) => [B, H] },
      { name: "r", shape: (B) => [B, m] },
      ...[1, 2, 3].map((l) => ({ name: `M${l}`, shape: (B: number) => [B, m, m] })),
    ],
    window({ tokens, state: before, mask, positions }) {
      const [T, B] = tokens.shape as [number, number];
      const gates = tokenGates(controllerInputs(w).ofToken, table, tokens);
      const run = scoped("memory", () => mnmWindow(w, gates, stateOf(before), { mask, chunk }));
      const at = (x: Tensor): Tensor =>
        positions ? gatherRows(reshape(x, [T * B, x.shape[2]!]), positions) : x;
      const counted = mask ? div(sum(mul(run.meta, mask)), max(sum(mask), 1)) : mean(run.meta);
      return {
        logits: scoped("output", () => linear(output, mnmOutput(w, at(run.h), at(run.r)))),
        state: partsOf(run.state),
        penalty: mul(counted, metaWeight),
      };
    },
    step(tokens, before) {
      const next = mnmStep(w, gatherRows(table, tokens), stateOf(before));
      const { h, r } = next.state;
      const flat = (x: Tensor): Tensor => reshape(x, [x.shape[0]!, -1]);
      return {
        logits: linear(output, mnmOutput(w, h, r)),
        state: partsOf(next.state),
        penalty: mul(next.meta, metaWeight),
        trace: { writeKeys: flat(next.kw), readKeys: flat(next.kr) },
      };
    },
    tracer: readTracer(settings.heads, m),
  };
}

/** Shows, for every read key, how well the best write key of each earlier token matches it: their inner product. */
function readTracer(heads: number, m: number): Tracer {
  const key = (keys: Float32Array, i: number): Float32Array => keys.subarray(i * m, (i + 1) * m);
  return {
    keep: ["writeKeys"],
    rows: (history, now) =>
      Array.from({ length: heads }, (_, i) => ({
        name: `read ${i + 1}`,
        values: Float32Array.from(history, ({ writeKeys }) =>
          Math.max(
            ...Array.from({ length: heads }, (__, j) => dot(key(now.readKeys!, i), key(writeKeys!, j))),
          ),
        ),
      })),
  };
}

function flops(settings: MnmSettings, { tokens, positions }: Work): number {
  const { vocabulary: V, embedding: E, hidden: H, memory: m, heads: N } = settings;
  const controller = 2 * 4 * H * (E + m + H) + 2 * H * (3 * N + 1) * m + 2 * m + 2 * N * m * 3 * m;
  // Three layers: the net over N write keys, the write of N outer products, the net over N write and N read keys.
  const memory = 3 * (2 * N + 2 * N + 2 * 2 * N) * m * m;
  return (controller + memory) * tokens + (2 * (H + m) * H + 2 * H * V) * positions;
}
