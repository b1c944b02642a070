/**
 * AWD-FWM (the paper's language model, section 4.3): AWD-LSTM with a Fast Weight Memory on its last layer.
 *
 *   code      equation                        shape            meaning
 *   a         a^L_t                           [T, B, E]        last LSTM layer's output; it drives the memory
 *   F         F_t                             [B, D·D, D]      fast weights
 *   y         a^L_t + W_o n^(N_r) + b_o       [T, B, E]        what AWD-LSTM's output, AR and TAR then act on
 *
 *   The equations of the memory are those of `fwm.ts`; the lower layers have none.
 *
 * Departures from the paper: `variant` names the text that is followed. By default the authors' program: tanh on all
 * read vectors, β with a constant 1 inside its sigmoid, biases, no factor on the write, the residual around the memory.
 */
import { z } from "zod";
import { awdFlops, awdLstmPtb, awdLstmWt2, awdModel, awdSettings, type TopLayer } from "./awdLstm.ts";
import { type FwmSizes, fastWeightShape, fwmStep, fwmVariants, fwmWeights, keysOf, traceOf } from "./fwm.ts";
import { fwmWindow } from "./fwmWindow.ts";
import { type System, size, type Work } from "./sequence.ts";

const schema = z.strictObject({
  name: z.literal("awd-fwm"),
  ...awdSettings,
  /** D: width of keys and values. */
  memory: size.max(1024),
  /** N_r: reads in a row. */
  reads: z.int().min(1).max(16),
  /** Which text of the equations; see docs/fwm.md. */
  variant: z.enum(keysOf(fwmVariants)),
  /** Tokens per chunk of the parallel form; a matter of speed only. */
  chunk: z.int().min(1).max(4096),
  /** What W_o and b_o start from: with zeros training starts as AWD-LSTM's does. */
  outInit: z.enum(["pytorch", "zeros"]).default("pytorch"),
});

/** Settings of the system. */
export type AwdFwmSettings = z.infer<typeof schema>;

/** The system: settings, model, cost. */
export const awdFwmSystem: System<AwdFwmSettings> = {
  schema,
  build: (settings) => {
    const sizes = { hidden: settings.embedding, memory: settings.memory, reads: settings.reads };
    return awdModel(settings, fwmTop(sizes, settings));
  },
  flops,
};

/** The authors' settings for Penn Treebank: 24,325,025 weights. */
export const awdFwmPtb: AwdFwmSettings = {
  ...awdLstmPtb,
  name: "awd-fwm",
  embeddingRange: 0.25,
  dropout: { word: 0.1, input: 0.5, between: 0.3, output: 0.4, weight: 0.66 },
  memory: 32,
  reads: 3,
  variant: "releasedLanguageModel",
  chunk: 40,
  outInit: "pytorch",
};

/** The authors' settings for WikiText-2: 33,659,503 weights. */
export const awdFwmWt2: AwdFwmSettings = {
  ...awdFwmPtb,
  vocabulary: awdLstmWt2.vocabulary,
  dropout: { word: 0.1, input: 0.7, between: 0.25, output: 0.4, weight: 0.61 },
};

/** A memory as the top layer of an AWD-LSTM. */
function fwmTop(sizes: FwmSizes, { variant, chunk, outInit }: AwdFwmSettings): TopLayer {
  const memory = fwmWeights("fwm", sizes, fwmVariants[variant], outInit);
  return {
    parameters: [memory.write, memory.read, memory.out].flatMap(({ W, b }) => (b ? [W, b] : [W])),
    recurrent: [{ name: "F", shape: (B) => fastWeightShape(memory, B) }],
    window(a, [F], mask) {
      const { y, F: after } = fwmWindow(memory, a, F!, { chunk, ...(mask ? { mask } : {}) });
      return { y, state: [after] };
    },
    step(a, [F]) {
      const { y, F: after, ...vectors } = fwmStep(memory, a, F!);
      return { y, state: [after], trace: traceOf(vectors) };
    },
  };
}

function flops(settings: AwdFwmSettings, work: Work): number {
  const { embedding: E, memory: D, reads, chunk } = settings;
  const C = Math.min(chunk, work.window);
  const write = 2 * E * (3 * D + 1) + 2 * 2 * D ** 3 + 2 * 3 * C * D;
  const read = 2 * E * (1 + reads) * D + reads * (2 * D ** 3 + 3 * 2 * C * D) + 2 * D * E;
  return awdFlops(settings, work) + (write + read) * work.tokens;
}
