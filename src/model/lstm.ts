/**
 * Long short-term memory: one layer over a window.
 *
 *   code      equation                             shape          meaning
 *   x         x_t                                  [T, B, E]      inputs
 *   h, c      h_t, c_t                             [B, H]         output and cell
 *   z         Wx x_t + Wh h_{t-1} + b              [B, 4H]        gates before their functions, order i, f, g, o
 *
 *   T time, B batch, E input, H hidden
 *
 * Two cells occur in the authors' code. "forgetBias1" has one bias and a constant 1 inside the forget gate; "pytorch" is
 * PyTorch's, with two biases that are drawn at random.
 */
import {
  add,
  cast,
  constant,
  type Initial,
  matmul,
  mul,
  reshape,
  scan,
  scoped,
  sigmoid,
  split,
  state,
  type Tensor,
  tanh,
  where,
  withValue,
} from "../graph/index.ts";
import { symmetric } from "./linear.ts";
import { perWord } from "./perWord.ts";

/** Which of the two cells. */
export type LstmCell = "forgetBias1" | "pytorch";

/** Weights of one layer. Wx is [E, 4H], Wh is [H, 4H]; the columns are the gates i, f, g, o. */
export interface LstmWeights {
  readonly cell: LstmCell;
  readonly Wx: Tensor;
  readonly Wh: Tensor;
  readonly biases: readonly Tensor[];
}

/** Recurrent state of one layer. */
export interface LstmState {
  readonly h: Tensor;
  readonly c: Tensor;
}

/** Declares the weights of a layer. */
export function lstmWeights(
  name: string,
  sizes: { in: number; hidden: number },
  cell: LstmCell,
): LstmWeights {
  const { hidden: H } = sizes;
  const uniform = symmetric(1 / Math.sqrt(H));
  const bias = (key: string, initial: Initial): Tensor => state(`${name}.${key}`, [4 * H], initial);
  return {
    cell,
    Wx: state(`${name}.Wx`, [sizes.in, 4 * H], uniform),
    Wh: state(`${name}.Wh`, [H, 4 * H], uniform),
    biases:
      cell === "forgetBias1" ? [bias("b", { kind: "zeros" })] : [bias("bx", uniform), bias("bh", uniform)],
  };
}

/** What the input adds to the gates, biases and the forget gate's constant included: [..., E] → [..., 4H]. */
export function inputGates(w: LstmWeights, x: Tensor): Tensor {
  const H = w.Wh.shape[0]!;
  let bias = w.biases.reduce((sum, b) => add(sum, b));
  if (w.cell === "forgetBias1") bias = add(bias, forgetOne(H));
  return add(matmul(x, w.Wx), bias);
}

function forgetOne(H: number): Tensor {
  return constant(
    Array.from({ length: 4 * H }, (_, j) => (j >= H && j < 2 * H ? 1 : 0)),
    [4 * H],
  );
}

/** The gates i, f, g, o of one step, [B, H] each. */
export type LstmGates = readonly [i: Tensor, f: Tensor, g: Tensor, o: Tensor];

function gatesOf(z: Tensor): LstmGates {
  const [i, f, g, o] = split(z, 4) as [Tensor, Tensor, Tensor, Tensor];
  return [sigmoid(i), sigmoid(f), tanh(g), sigmoid(o)];
}

function cellStep([i, f, g, o]: LstmGates, c: Tensor): LstmState {
  const next = add(mul(f, c), mul(i, g));
  return { h: mul(o, tanh(next)), c: next };
}

/** The cell alone: gates before their functions, z [B, 4H], and c [B, H]. */
export function lstmCell(z: Tensor, c: Tensor): LstmState {
  return scoped("lstm", () => cellStep(gatesOf(z), c));
}

/** One step: x [B, E]. */
export function lstmStep(w: LstmWeights, x: Tensor, s: LstmState): LstmState & { gates: LstmGates } {
  return scoped("lstm", () => {
    const gates = gatesOf(add(inputGates(w, x), matmul(s.h, w.Wh)));
    return { ...cellStep(gates, s.c), gates };
  });
}

/** Choices for a window. */
export interface LstmOptions {
  /** [T, B]; where it is 0 the state passes through unchanged. */
  readonly mask?: Tensor;
  /** Wh with entries dropped, one draw for the whole window. */
  readonly droppedWh?: Tensor;
  /** The gates of every step, [T, B, H] each, where they were computed before: they are only differentiated. */
  readonly gates?: LstmGates;
  /** Write the steps out instead of a loop. */
  readonly unroll?: boolean;
}

/** What a window gives: h [T, B, H] and the state after it. */
export interface LstmWindow {
  readonly h: Tensor;
  readonly state: LstmState;
}

/** A window: x [T, B, E]. The inputs' share of the gates is one product. */
export function lstm(w: LstmWeights, x: Tensor, s: LstmState, options: LstmOptions = {}): LstmWindow {
  return scoped("lstm", () => overTime(w, inputGates(w, x), s, options));
}

/**
 * What tokens, i32 [T, B], add to the gates under an embedding [V, E]: [T, B, 4H]. `embedding` may have rows dropped; what
 * drops single inputs comes between the two, and goes to `lstm`.
 */
export function tokenGates(w: LstmWeights, embedding: Tensor, tokens: Tensor): Tensor {
  return scoped("lstm", () => perWord(embedding, tokens, (x) => inputGates(w, x)));
}

/** A window of tokens, i32 [T, B], under an embedding [V, E]: `lstm` of its rows. */
export function embeddedLstm(
  w: LstmWeights,
  embedding: Tensor,
  tokens: Tensor,
  s: LstmState,
  options: LstmOptions = {},
): LstmWindow {
  const gates = tokenGates(w, embedding, tokens);
  return scoped("lstm", () => overTime(w, gates, s, options));
}

/** The loop over a window, given the inputs' share of the gates, [T, B, 4H]. */
function overTime(
  w: LstmWeights,
  zx: Tensor,
  s: LstmState,
  { mask, droppedWh, gates: before, unroll = false }: LstmOptions,
): LstmWindow {
  const Wh = droppedWh ?? w.Wh;
  const [T, B] = zx.shape as [number, number];
  const alive = mask ? [cast(reshape(mask, [T, B, 1]), "bool")] : [];
  const { carry, ys } = scan(
    { carry: [s.h, s.c], xs: [zx, ...(before ?? []), ...alive], unroll },
    ([h, c], [zt, ...rest]) => {
      const computed = gatesOf(add(zt!, matmul(h!, Wh)));
      const m = rest[before?.length ?? 0];
      const gates = before ? computed.map((gate, k) => withValue(gate, rest[k]!)) : computed;
      const next = cellStep(gates as LstmGates, c!);
      const kept = m ? { h: where(m, next.h, h!), c: where(m, next.c, c!) } : next;
      return { carry: [kept.h, kept.c], ys: [kept.h] };
    },
  );
  return { h: ys[0]!, state: { h: carry[0]!, c: carry[1]! } };
}
