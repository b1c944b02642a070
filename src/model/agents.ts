/**
 * The agents of the meta-reinforcement-learning experiment: an LSTM, with or without a Fast Weight Memory on
 * top, and two linear heads for the policy and the value.
 *
 *   code         shape       meaning
 *   x            [B, O]      observation; [T, B, O] for a whole episode
 *   h, c         [B, H]      LSTM output and cell
 *   K1, K2, U    [B, T, D]   keys and updates of the writes so far in this episode; rows to come hold anything
 *   w            [B, 1, T]   share of each write that is left; 0 for writes to come
 *   m            [B, 1]      |F|²
 *   here         [T]         1 at the present step, 0 elsewhere
 *   k1 … s       [B, ·]      write of the present step, as in fwmEpisode.ts
 *
 *   B agents, T steps per episode, O observation, A actions, H hidden, D memory
 *
 * Every episode starts with zero state and an empty memory. So F_t = Σ_{i ≤ t} w_t[i] κ_i u_iᵀ is known by its
 * at most T writes, and neither acting nor learning ever makes the D³ fast weights: a step reads past writes, an
 * episode is fwmEpisode.ts.
 */
import {
  add,
  div,
  layerNorm,
  matmul,
  max,
  min,
  mul,
  scoped,
  split,
  sqrt,
  squeeze,
  stack,
  sub,
  sum,
  type Tensor,
  unsqueeze,
  zeros,
} from "../graph/index.ts";
import {
  type FwmSizes,
  type FwmVariant,
  type FwmWeights,
  fwmOutput,
  fwmWeights,
  readVectors,
  releasedMetaRl,
  writeVectors,
} from "./fwm.ts";
import { fwmEpisode } from "./fwmEpisode.ts";
import { type LinearWeights, linear, linearWeights } from "./linear.ts";
import { type LstmGates, type LstmWeights, lstm, lstmStep, lstmWeights } from "./lstm.ts";

/** What an agent sees and does. */
export interface AgentSizes {
  /** O: numbers in an observation. */
  readonly observation: number;
  /** A: actions to choose from. */
  readonly actions: number;
}

/** Policy logits [..., A] and value estimates [...]. */
export interface AgentOutput {
  readonly logits: Tensor;
  readonly value: Tensor;
  /** Of a whole episode of an agent with a memory: the share of every write in each of its reads, [B, T, T] for each. */
  readonly matches?: () => Tensor[];
}

/** A part of what an agent keeps between the steps of an episode. */
export interface AgentPart {
  readonly name: string;
  /** Its shape for B agents and episodes of T steps. */
  readonly shape: (agents: number, steps: number) => readonly number[];
}

/** What one step of acting is given. */
export interface ActInput {
  /** [B, O] */
  readonly x: Tensor;
  /** [T] */
  readonly here: Tensor;
  /** In the order of `state`. */
  readonly state: readonly Tensor[];
  /** In the order of `history`, [B, T, ·] each. */
  readonly history: readonly Tensor[];
}

/** An agent: weights, one step for acting, a whole episode for learning. Both give the same policy. */
export interface Agent {
  /** The weights, in the order in which they are saved. */
  readonly parameters: readonly Tensor[];
  /** State that every step replaces; zeros before the first. */
  readonly state: readonly AgentPart[];
  /** Records to which step t adds row t, [B, T, ·]. */
  readonly history: readonly AgentPart[];
  /** Values of every step that learning takes over from acting instead of computing them again, [T, B, ·]. */
  readonly savedActivations: readonly AgentPart[];
  /** One step: the next `state`, the row [B, ·] of every history, and the activations to save. */
  act(input: ActInput): AgentOutput & { state: Tensor[]; rows: Tensor[]; savedActivations: Tensor[] };
  /** An episode from its observations, [T, B, O]; with what acting stored, that is not computed again. */
  episode(x: Tensor, stored?: readonly Tensor[]): AgentOutput;
}

interface Heads {
  readonly policy: LinearWeights;
  readonly value: LinearWeights;
}

function heads(H: number, A: number): Heads {
  return {
    policy: linearWeights("policy", { in: H, out: A }),
    value: linearWeights("value", { in: H, out: 1 }),
  };
}

function decide({ policy, value }: Heads, y: Tensor): AgentOutput {
  return { logits: linear(policy, y), value: squeeze(linear(value, y), -1) };
}

function weightsOf(layer: LstmWeights, maps: readonly LinearWeights[]): Tensor[] {
  return [layer.Wx, layer.Wh, ...layer.biases, ...maps.flatMap(({ W, b }) => (b ? [W, b] : [W]))];
}

const cellParts = (H: number): AgentPart[] => [
  { name: "h", shape: (B) => [B, H] },
  { name: "c", shape: (B) => [B, H] },
];

/** The LSTM over an episode, from zero state. */
function runLstm(layer: LstmWeights, x: Tensor, gates?: LstmGates): Tensor {
  const zero = zeros([x.shape[1]!, layer.Wh.shape[0]!]);
  return lstm(layer, x, { h: zero, c: zero }, gates ? { gates } : {}).h;
}

/**
 * An LSTM of width `hidden`: the baseline. Nearly all of its time goes to products with Wh. Those of the forward
 * steps are the same in acting and in learning, so acting stores the gates they give.
 */
export function lstmAgent({ observation: O, actions: A, hidden: H }: AgentSizes & { hidden: number }): Agent {
  const layer = lstmWeights("lstm", { in: O, hidden: H }, "pytorch");
  const outputs = heads(H, A);
  return {
    parameters: weightsOf(layer, [outputs.policy, outputs.value]),
    state: cellParts(H),
    history: [],
    savedActivations: ["i", "f", "g", "o"].map((name) => ({ name, shape: (B, T) => [T, B, H] })),
    act({ x, state: [h, c] }) {
      const next = lstmStep(layer, x, { h: h!, c: c! });
      return {
        ...decide(outputs, next.h),
        state: [next.h, next.c],
        rows: [],
        savedActivations: [...next.gates],
      };
    },
    episode: (x, gates) => decide(outputs, runLstm(layer, x, gates as LstmGates | undefined)),
  };
}

/** The paper's agent: an LSTM that writes and reads a Fast Weight Memory. */
export function fwmAgent(config: AgentSizes & FwmSizes & { readonly variant?: FwmVariant }): Agent {
  const { observation: O, actions: A, hidden: H, memory: D, variant = releasedMetaRl } = config;
  const layer = lstmWeights("lstm", { in: O, hidden: H }, variant.cell);
  const memory = fwmWeights("fwm", config, variant);
  const outputs = heads(H, A);
  return {
    parameters: weightsOf(layer, [memory.write, memory.read, memory.out, outputs.policy, outputs.value]),
    state: [...cellParts(H), { name: "w", shape: (B, T) => [B, 1, T] }, { name: "m", shape: (B) => [B, 1] }],
    history: ["K1", "K2", "U"].map((name) => ({ name, shape: (B, T) => [B, T, D] })),
    savedActivations: [],
    act({ x, here, state: [h, c, w, m], history: [K1, K2, U] }) {
      const next = lstmStep(layer, x, { h: h!, c: c! });
      const past = { K1: K1!, K2: K2!, U: U!, w: w!, m: m! };
      const { y, after, rows } = actWithMemory(memory, next.h, past, here);
      return { ...decide(outputs, y), state: [next.h, next.c, after.w, after.m], rows, savedActivations: [] };
    },
    episode(x) {
      const { y, matches } = fwmEpisode(memory, runLstm(layer, x));
      return { ...decide(outputs, y), matches };
    },
  };
}

/** A memory known by the writes of this episode. */
interface PastWrites {
  readonly K1: Tensor;
  readonly K2: Tensor;
  readonly U: Tensor;
  readonly w: Tensor;
  readonly m: Tensor;
}

/**
 * Writes, then reads: the equations of fwm.ts with F as the sum of its writes. The records do not have the present
 * write yet, so it is added to what they give.
 */
function actWithMemory(
  weights: FwmWeights,
  h: Tensor,
  { K1, K2, U, w, m }: PastWrites,
  here: Tensor,
): { y: Tensor; after: { w: Tensor; m: Tensor }; rows: Tensor[] } {
  return scoped("fwm", () => {
    const join = weights.variant.keys === "product" ? mul : add;
    const dot = (a: Tensor, b: Tensor): Tensor => sum(mul(a, b), { axes: -1, keep: true });
    // The products of some vectors with all keys of one kind, each [B, 1, T], in one product of matrices.
    const compare = (vectors: readonly Tensor[], K: Tensor): Tensor[] =>
      split(matmul(stack(vectors, 1), K, { transB: true }), vectors.length, 1);
    // Σ_i left[i] (κ_i · vec(a ⊗ b)) u_i
    const retrieve = (left: Tensor, withK1: Tensor, withK2: Tensor): Tensor =>
      squeeze(matmul(mul(join(withK1, withK2), left), U), 1);

    const { k1, k2, v, beta } = writeVectors(weights, h);
    const { n: first, e } = readVectors(weights, h);
    // All but the later queries are known before anything is retrieved.
    const [ofKey1, ofFirst] = compare([k1, first], K1) as [Tensor, Tensor];
    const [ofKey2, ...ofE] = compare([k2, ...e], K2) as [Tensor, ...Tensor[]];
    const vOld = retrieve(w, ofKey1, ofKey2);
    const u = mul(beta, sub(v, vOld)); //                                                                    (3)
    const norm = add(m, dot(u, add(mul(vOld, 2), mul(join(dot(k1, k1), dot(k2, k2)), u))));
    const s = sqrt(div(1, max(norm, 1))); //                                                                 (4)
    const left = mul(w, unsqueeze(s, 1));
    const written = mul(s, u);

    const n = e.reduce((query, key, i) => {
      const ofQuery = i === 0 ? ofFirst : compare([query], K1)[0]!;
      const now = mul(join(dot(k1, query), dot(k2, key)), written);
      return layerNorm(add(retrieve(left, ofQuery, ofE[i]!), now)); //                                       (7)
    }, first);
    const after = { w: add(left, mul(here, unsqueeze(s, 1))), m: min(norm, 1) };
    return { y: fwmOutput(weights, h, n), after, rows: [k1, k2, u] };
  });
}
