/**
 * The catbAbI system of the paper: embedding, LSTM, Fast Weight Memory, softmax over the vocabulary.
 *
 *   e_t = Emb(x_t)   h_t = LSTM(e_t, h_{t-1})   y_t = softmax(W_s (h_t + FWM(h_t, F_t)))
 *
 * Weight counts and initial values follow the released program: 693,985 weights at vocabulary 200 and
 * sizes 256 / 256 / 32 with three reads.
 */
import { gatherRows, reshape, scoped, state, type Tensor } from "../graph/index.ts";
import {
  type FwmSizes,
  type FwmVariant,
  type FwmWeights,
  fastWeightShape,
  fwmOutput,
  fwmWeights,
  readStep,
  readVectors,
  releasedCatbabi,
  writeStep,
  writeVectors,
} from "./fwm.ts";
import { fwmWindow } from "./fwmWindow.ts";
import { type LinearWeights, linear, linearWeights } from "./linear.ts";
import { type LstmWeights, lstm, lstmStep, lstmWeights } from "./lstm.ts";
import type { SequenceModel, TokenSizes } from "./sequence.ts";

/** Sizes and variant of the system. */
export interface FwmModelConfig extends TokenSizes, FwmSizes {
  readonly variant?: FwmVariant;
  /** Tokens per chunk of the parallel form. */
  readonly chunk?: number;
}

/** The system. */
export function fwmModel(config: FwmModelConfig): SequenceModel {
  const { vocabulary: V, embedding: E, hidden: H, variant = releasedCatbabi } = config;
  const table = state("embedding", [V, E], { kind: "normal", mean: 0, std: 1 });
  const controller: LstmWeights = lstmWeights("lstm", { in: E, hidden: H }, variant.cell);
  const memory: FwmWeights = fwmWeights("fwm", config, variant);
  const output: LinearWeights = linearWeights(
    "output",
    { in: H, out: V },
    { bias: false, weight: { kind: "normal", mean: 0, std: Math.sqrt(2 / (H + V)) } },
  );
  const maps = [memory.write, memory.read, memory.out, output];
  return {
    parameters: [
      table,
      controller.Wx,
      controller.Wh,
      ...controller.biases,
      ...maps.flatMap(({ W, b }) => (b ? [W, b] : [W])),
    ],
    recurrent: [
      { name: "h", shape: (B) => [B, H] },
      { name: "c", shape: (B) => [B, H] },
      { name: "F", shape: (B) => fastWeightShape(memory, B) },
    ],
    window({ tokens, state: [h, c, F], mask, positions }) {
      const embedded = scoped("embedding", () => gatherRows(table, tokens));
      const run = lstm(controller, embedded, { h: h!, c: c! }, mask ? { mask } : {});
      const read = fwmWindow(memory, run.h, F!, {
        ...(mask ? { mask } : {}),
        ...(positions ? { positions } : {}),
        ...(config.chunk ? { chunk: config.chunk } : {}),
      });
      return {
        logits: scoped("output", () => linear(output, read.y)),
        state: [run.state.h, run.state.c, read.F],
      };
    },
    step(tokens, [h, c, F]) {
      const next = lstmStep(controller, gatherRows(table, tokens), { h: h!, c: c! });
      const written = writeVectors(memory, next.h);
      const after = writeStep(variant.keys, F!, written);
      const n = readStep(memory, after, next.h);
      const { n: query, e } = readVectors(memory, next.h);
      const logits = linear(output, fwmOutput(memory, next.h, n));
      const queries: Record<string, Tensor> = { n0: query };
      e.forEach((key, i) => {
        queries[`e${i + 1}`] = key;
      });
      const { k1, k2, v, beta } = written;
      return {
        logits,
        state: [next.h, next.c, after],
        trace: { k1, k2, v, beta: reshape(beta, [-1]), ...queries },
      };
    },
  };
}
