/**
 * AWD-LSTM (Merity, Keskar and Socher, ICLR 2018): a language model of stacked LSTM layers, dropped out everywhere.
 *
 *   code      equation                                        shape          meaning
 *   e         locked_pi(word_pe(Emb)[x])                      [T, B, E]      embedded words
 *   a         a^l = LSTM_l(b^(l-1)),  b^0 = e                 [T, B, H]      a layer's output; the last layer's has width E
 *   b         b^l = locked_ph(a^l)                            [T, B, H]      what the next layer reads
 *   raw       a^L, or what a layer on top makes of it         [T, B, E]      hidden vector
 *   out       locked_po(raw)                                  [T, B, E]      hidden vector, dropped
 *   logits    Emb out + b                                     [T, B, V]      tied with the undropped embedding
 *   penalty   α mean(out²) + β mean((raw_{t+1} - raw_t)²)     []             AR and TAR, both over all entries
 *
 *   T time, B batch, V vocabulary, E embedding, H hidden, L layers. Every layer's recurrent matrix is weight-dropped
 *   with p_w; all masks are drawn once per window.
 *
 * Departures from the released program:
 *   - its look-up gives the last word of the vocabulary no gradient through the input (`padding_idx = -1`); here every
 *     word is treated alike;
 *   - erased words are erased after the look-up instead of in a copy of the whole table; the numbers are the same.
 *
 * A window may be padded at its end (`mask`): states pass through the padding and the penalties' means leave it out, so
 * that windows of many lengths share one program.
 */
import { z } from "zod";
import {
  add,
  cast,
  div,
  gatherRows,
  lockedDropout,
  matmul,
  max,
  mul,
  randomMask,
  reshape,
  scoped,
  slice,
  state,
  sub,
  sum,
  type Tensor,
  unsqueeze,
  weightDropout,
} from "../graph/index.ts";
import { withChunks } from "./chunk.ts";
import { symmetric } from "./linear.ts";
import { type LstmWeights, lstm, lstmStep, lstmWeights } from "./lstm.ts";
import {
  type RecurrentPart,
  type SequenceModel,
  type System,
  size,
  tokenSizes,
  type WindowInput,
  type Work,
} from "./sequence.ts";
import { meanSoftmaxLoss, type OutputLayer, softmaxLossesAt } from "./softmaxLoss.ts";

const rate = z.number().min(0).lt(1);

/** Settings that every system of this family shares. */
export const awdSettings = {
  ...tokenSizes,
  /** Width of all layers but the last, which has the embedding's. */
  hidden: size,
  layers: z.int().min(1).max(16),
  /** Embedding's initial values: uniform in ± this. */
  embeddingRange: z.number().positive(),
  /** Rates of dropout, named as the places they act at. */
  dropout: z.strictObject({
    /** p_e: whole words of the vocabulary. */
    word: rate,
    /** p_i: embedded words. */
    input: rate,
    /** p_h: between layers. */
    between: rate,
    /** p_o: the last layer's output. */
    output: rate,
    /** p_w: recurrent weights. */
    weight: rate,
  }),
  /** α: activation regularisation, on the dropped output. */
  ar: z.number().min(0),
  /** β: temporal activation regularisation, on the undropped output. */
  tar: z.number().min(0),
};

const schema = z.strictObject({ name: z.literal("awd-lstm"), ...awdSettings });

/** Settings of the system. */
export type AwdLstmSettings = z.infer<typeof schema>;

/** The system: settings, model, cost. */
export const awdLstmSystem: System<AwdLstmSettings> = {
  schema,
  build: (settings) => awdModel(settings),
  flops: awdFlops,
};

/** The official recipe for Penn Treebank: 24,221,600 weights. */
export const awdLstmPtb: AwdLstmSettings = {
  name: "awd-lstm",
  vocabulary: 10_000,
  embedding: 400,
  hidden: 1150,
  layers: 3,
  embeddingRange: 0.1,
  dropout: { word: 0.1, input: 0.4, between: 0.25, output: 0.4, weight: 0.5 },
  ar: 2,
  tar: 1,
};

/** The official recipe for WikiText-2: 33,556,078 weights. */
export const awdLstmWt2: AwdLstmSettings = {
  ...awdLstmPtb,
  vocabulary: 33_278,
  dropout: { word: 0.1, input: 0.65, between: 0.2, output: 0.4, weight: 0.5 },
};

/** What may stand between the last LSTM layer and the output: it sees a^L [T, B, E] and gives as much. */
export interface TopLayer {
  readonly parameters: readonly Tensor[];
  readonly recurrent: readonly RecurrentPart[];
  window(a: Tensor, state: readonly Tensor[], mask?: Tensor): { y: Tensor; state: readonly Tensor[] };
  step(
    a: Tensor,
    state: readonly Tensor[],
  ): { y: Tensor; state: readonly Tensor[]; trace: Readonly<Record<string, Tensor>> };
}

/** Builds a model of this family; without a top layer it is AWD-LSTM itself. */
export function awdModel(settings: Omit<AwdLstmSettings, "name">, top?: TopLayer): SequenceModel {
  const { vocabulary: V, embedding: E, hidden: H, layers: L, dropout } = settings;
  const table = state("embedding", [V, E], symmetric(settings.embeddingRange));
  const bias = state("output.b", [V]);
  const widths = [E, ...new Array<number>(L - 1).fill(H), E];
  const layers: LstmWeights[] = Array.from({ length: L }, (_, l) =>
    lstmWeights(`lstm${l + 1}`, { in: widths[l]!, hidden: widths[l + 1]! }, "pytorch"),
  );
  const stateOf = (s: readonly Tensor[], l: number) => ({ h: s[2 * l]!, c: s[2 * l + 1]! });
  const decode = (out: Tensor): Tensor => add(matmul(out, table, { transB: true }), bias);
  const layerAt = (x: Tensor): OutputLayer => ({ x, W: table, b: bias });

  return withChunks({
    parameters: [
      table,
      ...layers.flatMap(({ Wx, Wh, biases }) => [Wx, Wh, ...biases]),
      ...(top?.parameters ?? []),
      bias,
    ],
    recurrent: [
      ...layers.flatMap((_, l): RecurrentPart[] => [
        { name: `h${l + 1}`, shape: (B) => [B, widths[l + 1]!] },
        { name: `c${l + 1}`, shape: (B) => [B, widths[l + 1]!] },
      ]),
      ...(top?.recurrent ?? []),
    ],
    window({ tokens, state: before, training, mask, positions, temperature }) {
      const [T, B] = tokens.shape as [number, number];
      const p = training ? dropout : { word: 0, input: 0, between: 0, output: 0, weight: 0 };
      const after: Tensor[] = [];
      const e = scoped("embedding", () => eraseWords(gatherRows(table, tokens), tokens, V, p.word));
      let b = lockedDropout(e, p.input, "dropout.input");
      let a = b;
      for (const [l, layer] of layers.entries()) {
        const droppedWh = weightDropout(layer.Wh, p.weight, `dropout.weight${l + 1}`);
        const run = lstm(layer, b, stateOf(before, l), { droppedWh, ...(mask ? { mask } : {}) });
        a = run.h;
        after.push(run.state.h, run.state.c);
        if (l + 1 < L) b = lockedDropout(a, p.between, `dropout.between${l + 1}`);
      }
      const topped = top?.window(a, before.slice(2 * L), mask);
      const raw = topped?.y ?? a;
      const out = lockedDropout(raw, p.output, "dropout.output");
      const seen = positions ? gatherRows(reshape(out, [T * B, E]), positions) : out;
      const softened = temperature ? div(seen, temperature) : seen;
      return {
        logits: scoped("output", () => decode(softened)),
        losses: (targets) => softmaxLossesAt(layerAt(softened), targets),
        loss: (targets, counted) => meanSoftmaxLoss(layerAt(softened), targets, counted),
        hidden: seen,
        state: [...after, ...(topped?.state ?? [])],
        ...(training ? activationPenalty({ dropped: out, raw, mask }, settings) : {}),
      };
    },
    step(tokens, before) {
      const after: Tensor[] = [];
      let a = gatherRows(table, tokens);
      for (const [l, layer] of layers.entries()) {
        const next = lstmStep(layer, a, stateOf(before, l));
        a = next.h;
        after.push(next.h, next.c);
      }
      const topped = top?.step(a, before.slice(2 * L));
      return {
        logits: decode(topped?.y ?? a),
        state: [...after, ...(topped?.state ?? [])],
        trace: topped?.trace ?? {},
      };
    },
  });
}

/** Word dropout after the look-up: every occurrence of an erased word vanishes. */
function eraseWords(e: Tensor, tokens: Tensor, V: number, p: number): Tensor {
  if (p === 0) return e;
  const kept = gatherRows(cast(randomMask("dropout.word", [V, 1], 1 - p), "f32"), tokens); // [T, B, 1]
  return mul(e, mul(kept, 1 / (1 - p)));
}

/** AR on one vector and TAR on another, [T, B, E] both; their means leave padding out. */
export function activationPenalty(
  { dropped, raw, mask }: { dropped: Tensor; raw: Tensor; mask: WindowInput["mask"] },
  { ar, tar }: { readonly ar: number; readonly tar: number },
): { penalty?: Tensor } {
  const T = raw.shape[0]!;
  const terms: Tensor[] = [];
  const late = mask && T > 1 ? slice(mask, 0, 1) : undefined;
  if (ar > 0) terms.push(mul(maskedMeanSquare(dropped, mask), ar));
  if (tar > 0 && T > 1) {
    terms.push(mul(maskedMeanSquare(sub(slice(raw, 0, 1), slice(raw, 0, 0, T - 1)), late), tar));
  }
  return terms.length > 0 ? { penalty: scoped("penalty", () => terms.reduce((a, b) => add(a, b))) } : {};
}

function maskedMeanSquare(x: Tensor, mask: Tensor | undefined): Tensor {
  const [T, B, E] = x.shape as [number, number, number];
  const squares = mul(x, x);
  if (!mask) return mul(sum(squares), 1 / (T * B * E));
  return div(sum(mul(squares, unsqueeze(mask, -1))), mul(max(sum(mask), 1), E));
}

/** Operations of the layers and the output. */
export function awdFlops(settings: Omit<AwdLstmSettings, "name">, { tokens, positions }: Work): number {
  const { vocabulary: V, embedding: E, hidden: H, layers: L } = settings;
  const widths = [E, ...new Array<number>(L - 1).fill(H), E];
  const perToken = widths.slice(1).reduce((total, out, l) => total + 2 * 4 * out * (widths[l]! + out), 0);
  return perToken * tokens + 2 * E * V * positions;
}
