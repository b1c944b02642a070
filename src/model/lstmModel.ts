/**
 * Stacked LSTM layers over tokens, with residual connections and four kinds of dropout: the paper's LSTM baseline on
 * catbAbI at four layers of 512, and a plain LSTM at one layer.
 *
 *   code    equation                                              shape
 *   e       locked_pi(word_pe(Emb)[x_t])                          [T, B, E]    embedded tokens
 *   y       y¹ = LSTM_1(e)                                        [T, B, H]
 *           yˡ = LSTM_l(D(yˡ⁻¹)) + D(yˡ⁻¹),  l = 2 … L                         D = locked_ph
 *   logits  W_s y^L                                               [T, B, V]    no bias
 *
 *   T time, B batch, E embedding, H hidden, V vocabulary, L layers. Each Wh is weight-dropped once per window.
 *
 * The paper gives sizes and names the four kinds of dropout; docs/systems.md says what is a guess: the
 * cell (one bias, a constant 1 inside the forget gate), the residual of what was dropped, and the rates.
 */
import { z } from "zod";
import {
  add,
  gatherRows,
  lockedDropout,
  reshape,
  scoped,
  state,
  type Tensor,
  weightDropout,
  wordDropout,
} from "../graph/index.ts";
import { withChunks } from "./chunk.ts";
import { linear, linearWeights } from "./linear.ts";
import { embeddedLstm, type LstmState, type LstmWindow, lstm, lstmStep, lstmWeights } from "./lstm.ts";
import { dropoutRate, type SequenceModel, type System, size, tokenSizes } from "./sequence.ts";

const schema = z.strictObject({
  name: z.literal("lstm"),
  ...tokenSizes,
  hidden: size,
  layers: size.max(64).default(1),
  /** p_e: words erased from the embedding. */
  wordDropout: dropoutRate,
  /** p_i: features of the embedded tokens. */
  inputDropout: dropoutRate,
  /** p_w: recurrent connections of every layer. */
  weightDropout: dropoutRate,
  /** p_h: features between layers. */
  hiddenDropout: dropoutRate,
});

/** Settings of the system. */
export type LstmSettings = z.infer<typeof schema>;

/** The system: settings, model, cost. */
export const lstmSystem: System<LstmSettings> = {
  schema,
  build: lstmModel,
  // Without dropout of the embedded tokens the input's share of the first layer's gates is needed once per word.
  flops: ({ vocabulary: V, embedding: E, hidden: H, layers, inputDropout }, { tokens, positions }) =>
    2 * 4 * H * (E * (inputDropout > 0 ? tokens : Math.min(tokens, V)) + (2 * layers - 1) * H * tokens) +
    2 * H * V * positions,
};

/** One plain layer of the memory's width. */
export const lstmDefaults: LstmSettings = {
  name: "lstm",
  vocabulary: 200,
  embedding: 256,
  hidden: 256,
  layers: 1,
  wordDropout: 0,
  inputDropout: 0,
  weightDropout: 0,
  hiddenDropout: 0,
};

/** The paper's baseline: its sizes, and rates from the middle of what is plausible; it prints none. */
export const lstmBaseline: LstmSettings = {
  ...lstmDefaults,
  hidden: 512,
  layers: 4,
  wordDropout: 0.1,
  inputDropout: 0.2,
  weightDropout: 0.3,
  hiddenDropout: 0.2,
};

type Sizes = Pick<LstmSettings, "vocabulary" | "embedding" | "hidden">;

/** The model that settings describe. */
export function lstmModel(settings: Sizes & Partial<LstmSettings>): SequenceModel {
  const { vocabulary: V, embedding: E, hidden: H, layers: L, ...rates } = { ...lstmDefaults, ...settings };
  // One layer has the names it always had: models saved with them can be loaded.
  const suffix = (l: number): string => (L === 1 ? "" : String(l + 1));
  const table = state("embedding", [V, E], { kind: "normal", mean: 0, std: 1 });
  const layers = Array.from({ length: L }, (_, l) =>
    lstmWeights(`lstm${suffix(l)}`, { in: l === 0 ? E : H, hidden: H }, "forgetBias1"),
  );
  const output = linearWeights(
    "output",
    { in: H, out: V },
    { bias: false, weight: { kind: "normal", mean: 0, std: Math.sqrt(2 / (H + V)) } },
  );
  const stateOf = (parts: readonly Tensor[], l: number): LstmState => ({
    h: parts[2 * l]!,
    c: parts[2 * l + 1]!,
  });
  return withChunks({
    parameters: [table, ...layers.flatMap(({ Wx, Wh, biases }) => [Wx, Wh, ...biases]), output.W],
    recurrent: layers.flatMap((_, l) =>
      ["h", "c"].map((part) => ({ name: part + suffix(l), shape: (B: number) => [B, H] })),
    ),
    window({ tokens, state: before, training, mask, positions }) {
      const drop = (kind: typeof lockedDropout, x: Tensor, rate: number, name: string): Tensor =>
        training ? kind(x, rate, `dropout.${name}`) : x;
      const words = drop(wordDropout, table, rates.wordDropout, "word");
      const after: Tensor[] = [];
      const y = layers.reduce<Tensor | undefined>((below, layer, l) => {
        const how = {
          ...(mask ? { mask } : {}),
          droppedWh: drop(weightDropout, layer.Wh, rates.weightDropout, `Wh${l + 1}`),
        };
        const over = (x: Tensor): LstmWindow => lstm(layer, x, stateOf(before, l), how);
        if (below) {
          const x = drop(lockedDropout, below, rates.hiddenDropout, `hidden${l}`);
          return add(keep(over(x)), x);
        }
        if (!training || rates.inputDropout === 0) {
          return keep(embeddedLstm(layer, words, tokens, stateOf(before, l), how));
        }
        const e = scoped("embedding", () => gatherRows(words, tokens));
        return keep(over(drop(lockedDropout, e, rates.inputDropout, "input")));
      }, undefined)!;
      function keep({ h, state: last }: LstmWindow): Tensor {
        after.push(last.h, last.c);
        return h;
      }
      const [T, B] = tokens.shape as [number, number];
      const seen = positions ? gatherRows(reshape(y, [T * B, H]), positions) : y;
      return { logits: scoped("output", () => linear(output, seen)), state: after };
    },
    step(tokens, before) {
      const after: Tensor[] = [];
      const y = layers.reduce(
        (x, layer, l) => {
          const next = lstmStep(layer, x, stateOf(before, l));
          after.push(next.h, next.c);
          return l === 0 ? next.h : add(next.h, x);
        },
        gatherRows(table, tokens),
      );
      return { logits: linear(output, y), state: after, trace: {} };
    },
  });
}
