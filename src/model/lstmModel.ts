/** A single-layer LSTM over tokens: embedding, LSTM, softmax. The baseline of the same width. */
import { z } from "zod";
import { gatherRows, reshape, state } from "../graph/index.ts";
import { linear, linearWeights } from "./linear.ts";
import { embeddedLstm, lstmStep, lstmWeights } from "./lstm.ts";
import { type SequenceModel, type System, size, tokenSizes } from "./sequence.ts";

const schema = z.strictObject({ name: z.literal("lstm"), ...tokenSizes, hidden: size });

/** Settings of the system. */
export type LstmSettings = z.infer<typeof schema>;

/** The system: settings, model, cost. */
export const lstmSystem: System<LstmSettings> = {
  schema,
  build: lstmModel,
  flops: ({ vocabulary: V, embedding: E, hidden: H }, { tokens, positions }) =>
    2 * 4 * H * (E + H) * tokens + 2 * H * V * positions,
};

/** The model that settings describe. */
export function lstmModel({
  vocabulary: V,
  embedding: E,
  hidden: H,
}: Omit<LstmSettings, "name">): SequenceModel {
  const table = state("embedding", [V, E], { kind: "normal", mean: 0, std: 1 });
  const layer = lstmWeights("lstm", { in: E, hidden: H }, "forgetBias1");
  const output = linearWeights(
    "output",
    { in: H, out: V },
    { bias: false, weight: { kind: "normal", mean: 0, std: Math.sqrt(2 / (H + V)) } },
  );
  return {
    parameters: [table, layer.Wx, layer.Wh, ...layer.biases, output.W],
    recurrent: [
      { name: "h", shape: (B) => [B, H] },
      { name: "c", shape: (B) => [B, H] },
    ],
    window({ tokens, state: [h, c], mask, positions }) {
      const run = embeddedLstm(layer, table, tokens, { h: h!, c: c! }, mask ? { mask } : {});
      const [T, B] = tokens.shape as [number, number];
      const seen = positions ? gatherRows(reshape(run.h, [T * B, H]), positions) : run.h;
      return { logits: linear(output, seen), state: [run.state.h, run.state.c] };
    },
    step(tokens, [h, c]) {
      const next = lstmStep(layer, gatherRows(table, tokens), { h: h!, c: c! });
      return { logits: linear(output, next.h), state: [next.h, next.c], trace: {} };
    },
  };
}
