/**
 * Fast weights that attend to the recent past (Ba, Hinton, Mnih, Leibo and Ionescu, 2016) over tokens: "JBFW" in the
 * paper's table.
 *
 *   code   equation                                            shape       meaning
 *   e      Emb(x_{t+1})                                        [B, E]      embedded token
 *   h      h_t                                                 [B, N]      hidden state
 *   A      A_t = λ A_{t-1} + η h_t ⊗ h_t                       [B, N, N]   fast weights
 *   s      s_{t+1} = W h_t + C e_{t+1} + b                     [B, N]      sustained input of the inner loop
 *   g      g⁰ = φ(s),  g^{j+1} = φ(LN(s + A_t g^j))            [B, N]      j < S; φ = ReLU
 *          h_{t+1} = g^S,  logits = W_s h_{t+1}
 *
 *   B batch, E embedding, N hidden, S inner steps, λ decay, η fast rate
 *
 * A window never makes A_t: A_t g = λ^t A g + η Σ_{τ ≤ t} λ^{t-τ} h_τ (h_τ · g), attention over the window's own states
 * beside the fast weights A it began with. That is exact, and a step needs no N × N matrix per token for its gradient.
 *
 * The equations are those of public re-implementations, which differ; docs/systems.md says in what. λ, η, S, φ and the
 * layer norm that the FWM paper's authors used are not known.
 */
import { z } from "zod";
import {
  add,
  cast,
  concat,
  constant,
  exp,
  gatherRows,
  greater,
  matmul,
  max,
  mul,
  relu,
  reshape,
  scan,
  scoped,
  slice,
  split,
  squeeze,
  state,
  sub,
  type Tensor,
  transpose,
  unsqueeze,
  where,
  zeros,
} from "../graph/index.ts";
import { linear, linearWeights, symmetric } from "./linear.ts";
import { norm, normWeights } from "./norm.ts";
import { perWord } from "./perWord.ts";
import {
  dot,
  type SequenceModel,
  type System,
  size,
  type Tracer,
  tokenSizes,
  type WindowInput,
  type Work,
} from "./sequence.ts";

const schema = z.strictObject({
  name: z.literal("jbfw"),
  ...tokenSizes,
  hidden: size,
  /** S: how often the fast weights are applied at each token. */
  innerSteps: z.int().min(1).max(64).default(1),
  /** λ: share of the fast weights left after a token. */
  decay: z.number().gt(0).max(1).default(0.95),
  /** η: strength of a write. */
  fastRate: z.number().min(0).default(0.5),
  /** Tokens per chunk of the parallel form; a matter of speed only. */
  chunk: z.int().min(1).max(4096).default(10),
});

/** Settings of the system. */
export type JbfwSettings = z.infer<typeof schema>;

/** The system: settings, model, cost. */
export const jbfwSystem: System<JbfwSettings> = { schema, build: (settings) => jbfwModel(settings), flops };

/** The system at the size that has the paper's number of weights. */
export const jbfwDefaults: JbfwSettings = {
  name: "jbfw",
  vocabulary: 200,
  embedding: 256,
  hidden: 512,
  innerSteps: 1,
  decay: 0.95,
  fastRate: 0.5,
  chunk: 10,
};

/** Elements of fast weights that are worked on together; 2²⁰ are 4 MB. */
const mostTogether = 2 ** 20;

/** The model that settings describe; `most` stands in for how many fast weights are worked on together. */
export function jbfwModel(settings: Omit<JbfwSettings, "name">, most: number = mostTogether): SequenceModel {
  const { vocabulary: V, embedding: E, hidden: N, innerSteps, decay, fastRate, chunk } = settings;
  const table = state("embedding", [V, E], { kind: "normal", mean: 0, std: 1 });
  // 0.05 I, as every re-implementation has it: without writes the state all but stands still.
  const W = state("W", [N, N], {
    kind: "values",
    data: Float32Array.from({ length: N * N }, (_, i) => (i % (N + 1) === 0 ? 0.05 : 0)),
  });
  const C = linearWeights("C", { in: E, out: N }, { biasInit: { kind: "zeros" } });
  const ln = normWeights("norm", N);
  const output = linearWeights(
    "output",
    { in: N, out: V },
    { bias: false, weight: symmetric(1 / Math.sqrt(N)) },
  );

  /** h_{t+1} from s and a way to apply the fast weights. */
  const innerLoop = (s: Tensor, apply: (g: Tensor) => Tensor): Tensor => {
    let g = relu(s);
    for (let j = 0; j < innerSteps; j++) g = relu(norm(ln, add(s, apply(g))));
    return g;
  };

  /** A window of some rows: h [b, N], A [b, N, N], inputs [T, b, N], mask [T, b] → the last h and A; every h [T, b, N] and g. */
  const rowsWindow = (h0: Tensor, A: Tensor, inputs: Tensor, mask: Tensor | undefined): Tensor[] => {
    const [T, b] = inputs.shape as [number, number];
    const { start, past, startEnd, pastEnd } = shares(decay, fastRate, T, mask);
    const alive = mask && cast(unsqueeze(mask, -1), "bool");
    let h = h0;
    let before: Tensor | undefined; // states of the chunks so far, [b, t, N]
    const hs: Tensor[] = [];
    const gs: Tensor[] = [];
    const lengths = Array.from({ length: Math.ceil(T / chunk) }, (_, c) => Math.min(chunk, T - c * chunk));
    // Split rather than sliced: the gradient is then one concatenation.
    for (const [c, chunkInputs] of split(inputs, lengths, 0).entries()) {
      const [first, length] = [c * chunk, lengths[c]!];
      const part = (x: Tensor): Tensor => slice(x, 0, first, first + length);
      const older = before;
      const weights = part(past);
      const made = scan(
        {
          carry: [h, zeros([b, length, N])],
          xs: [
            chunkInputs,
            part(start),
            slice(weights, -1, first, first + length),
            identity(length),
            ...(alive ? [part(alive)] : []),
            ...(older ? [slice(weights, -1, 0, first)] : []),
          ],
        },
        ([ht, own], [input, share, ownShares, here, ...rest]) => {
          const queries: Tensor[] = [];
          const g = innerLoop(add(matmul(ht!, W), input!), (x) => {
            queries.push(x);
            const query = unsqueeze(x, 1);
            const attend = (H: Tensor, w: Tensor): Tensor =>
              matmul(mul(matmul(query, H, { transB: true }), unsqueeze(w, 1)), H);
            const recent = attend(own!, ownShares!);
            const seen = older ? add(recent, attend(older, rest.at(-1)!)) : recent;
            return squeeze(add(mul(matmul(query, A), unsqueeze(share!, 1)), seen), 1);
          });
          const next = alive ? where(rest[0]!, g, ht!) : g;
          const kept = add(own!, mul(reshape(here!, [length, 1]), unsqueeze(next, 1)));
          return { carry: [next, kept], ys: [next, concat(queries)] };
        },
      );
      [h] = made.carry as [Tensor];
      hs.push(made.ys[0]!);
      gs.push(made.ys[1]!);
      before = before ? concat([before, made.carry[1]!], 1) : made.carry[1]!;
    }
    const all = before!;
    const written = matmul(mul(all, unsqueeze(pastEnd, -1)), all, { transA: true });
    return [h, add(mul(unsqueeze(startEnd, -1), A), written), concat(hs, 0), concat(gs, 0)];
  };

  /** A window: logits at the positions, the state, and what its tokens left and asked, [T, B, ·]. */
  const read = ({ tokens, state: [h0, A0], mask, positions }: Omit<WindowInput, "training">) => {
    const [T, B] = tokens.shape as [number, number];
    const inputs = scoped("embedding", () => perWord(table, tokens, (x) => linear(C, x)));
    // Rows that go through the window together, so that their fast weights stay in the processor's cache.
    const rows = rowsTogether(B, most / (N * N));
    const grouped = (x: Tensor): Tensor => reshape(x, [B / rows, rows, ...x.shape.slice(1)]);
    const overTime = (x: Tensor): Tensor =>
      transpose(reshape(x, [T, B / rows, rows, ...x.shape.slice(2)]), [1, 0, ...axesFrom(2, x.rank + 1)]);
    const run = scoped("fastWeights", () => {
      const { ys } = scan(
        {
          carry: [],
          xs: [grouped(h0!), grouped(A0!), overTime(inputs), ...(mask ? [overTime(mask)] : [])],
        },
        (_, [h, A, x, live]) => ({ carry: [], ys: rowsWindow(h!, A!, x!, live) }),
      );
      const byTime = (x: Tensor): Tensor => reshape(transpose(x, [1, 0, 2, 3]), [T, B, x.shape[3]!]);
      const [h, A, hs, gs] = ys as [Tensor, Tensor, Tensor, Tensor];
      return { h: reshape(h, [B, N]), A: reshape(A, [B, N, N]), states: byTime(hs), queries: byTime(gs) };
    });
    const at = (x: Tensor): Tensor =>
      positions ? gatherRows(reshape(x, [T * B, x.shape[2]!]), positions) : x;
    const logits = scoped("output", () => linear(output, at(run.states)));
    return { logits, state: [run.h, run.A], at, states: run.states, queries: run.queries };
  };

  return {
    parameters: [table, W, C.W, C.b!, ln.gain, ln.bias, output.W],
    recurrent: [
      { name: "h", shape: (B) => [B, N] },
      { name: "A", shape: (B) => [B, N, N] },
    ],
    window(input) {
      const { logits, state: after } = read(input);
      return { logits, state: after };
    },
    chunk(input) {
      const { logits, state: after, at, states, queries } = read(input);
      return { logits, state: after, trace: { state: states, queries: at(queries) } };
    },
    step(tokens, [h, A]) {
      const s = add(matmul(h!, W), linear(C, gatherRows(table, tokens)));
      const queries: Tensor[] = [];
      const next = innerLoop(s, (g) => {
        queries.push(g);
        return squeeze(matmul(unsqueeze(g, 1), A!), 1);
      });
      const outer = mul(unsqueeze(next, -1), unsqueeze(next, 1));
      const after = add(mul(A!, decay), mul(outer, fastRate));
      return {
        logits: linear(output, next),
        state: [next, after],
        trace: { state: next, queries: concat(queries) },
      };
    },
    tracer: attentionTracer(settings),
  };
}

/**
 * How much is left, at the read of each token, of the fast weights at the start, [T, B, 1], and of each write, [T, B, T];
 * and after the window, [B, 1] and [B, T]. Padding does not count as time. Without a mask B is 1 and broadcasts.
 */
function shares(decay: number, fastRate: number, T: number, mask: Tensor | undefined) {
  const alive = mask ?? constant(new Float32Array(T).fill(1), [T, 1]);
  const lower = constant(
    Float32Array.from({ length: T * T }, (_, i) => (i % T <= Math.floor(i / T) ? 1 : 0)),
    [T, T],
  );
  const counts = matmul(lower, alive); // tokens up to and with each, [T, B]
  const total = slice(counts, 0, T - 1);
  const power = (n: Tensor): Tensor => exp(mul(n, Math.log(decay)));
  const written = transpose(mul(alive, fastRate), [1, 0]); // [B, T]
  const ends = transpose(counts, [1, 0]);
  const before = sub(counts, alive);
  const earlier = reshape(cast(greater(lower, transpose(lower, [1, 0])), "f32"), [T, 1, T]);
  // What is not earlier is left out by `earlier`; max keeps its power from overflowing.
  const left = power(max(sub(unsqueeze(before, -1), ends), 0));
  return {
    start: unsqueeze(power(before), -1),
    past: mul(mul(left, written), earlier),
    startEnd: transpose(power(total), [1, 0]),
    pastEnd: mul(power(sub(transpose(total, [1, 0]), ends)), written),
  };
}

/** The largest divisor of the batch from 2 up to `most`; the batch where there is none. */
function rowsTogether(B: number, most: number): number {
  for (let rows = Math.min(B, Math.floor(most)); rows >= 2; rows--) {
    if (B % rows === 0) return rows;
  }
  return B;
}

/** first, …, last - 1 */
function axesFrom(first: number, last: number): number[] {
  return Array.from({ length: last - first }, (_, i) => first + i);
}

function identity(size: number): Tensor {
  return constant(
    Float32Array.from({ length: size * size }, (_, i) => (i % (size + 1) === 0 ? 1 : 0)),
    [size, size],
  );
}

/** Shows, for every inner step, what each earlier state adds to the sum that A g is: η λ^{t-τ} (h_τ · g). */
function attentionTracer({ hidden: N, innerSteps, decay, fastRate }: Omit<JbfwSettings, "name">): Tracer {
  return {
    keep: ["state"],
    rows: (history, { queries }) =>
      Array.from({ length: innerSteps }, (_, j) => ({
        name: `inner step ${j + 1}`,
        values: Float32Array.from(history, ({ state: h }, i) => {
          // The last token's own state is written after its read.
          const age = history.length - 2 - i;
          return age < 0 ? 0 : fastRate * decay ** age * dot(h!, queries!.subarray(j * N, (j + 1) * N));
        }),
      })),
  };
}

function flops(settings: JbfwSettings, { tokens, positions, window }: Work): number {
  const { vocabulary: V, embedding: E, hidden: N, innerSteps } = settings;
  // Of the window's own states a token sees half on average; each is used twice, for its weight and for its sum.
  const inner = innerSteps * (2 * N * N + 2 * window * N);
  return (2 * E * N + 2 * N * N + inner + 2 * N * N) * tokens + 2 * N * V * positions;
}
