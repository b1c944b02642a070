/**
 * The catbAbI system of the paper: embedding, LSTM, Fast Weight Memory, softmax over the vocabulary.
 *
 *   e_t = Emb(x_t)   h_t = LSTM(e_t, h_{t-1})   y_t = softmax(W_s (h_t + FWM(h_t, F_t)))
 *
 * In training, rows of Emb, connections of the LSTM, features of h and of the output's input may be dropped. The
 * authors drop nothing, and all rates are 0 unless an experiment sets them.
 *
 * Weight counts and initial values follow the released program: 693,985 weights at vocabulary 200 and
 * sizes 256 / 256 / 32 with three reads.
 */
import { z } from "zod";
import {
  elementDropout,
  gatherRows,
  lockedDropout,
  scoped,
  state,
  type Tensor,
  weightDropout,
  wordDropout,
} from "../graph/index.ts";
import {
  type FwmSizes,
  type FwmVariant,
  type FwmWeights,
  fastWeightShape,
  fwmStep,
  fwmVariants,
  fwmWeights,
  keysOf,
  readTrace,
  releasedCatbabi,
  traceOf,
} from "./fwm.ts";
import { fwmTracer } from "./fwmTrace.ts";
import { fwmWindow } from "./fwmWindow.ts";
import { type LinearWeights, linear, linearWeights } from "./linear.ts";
import { embeddedLstm, type LstmWeights, lstmStep, lstmWeights } from "./lstm.ts";
import {
  dropoutRate,
  type SequenceModel,
  type System,
  size,
  tokenSizes,
  type WindowInput,
  type Work,
} from "./sequence.ts";

const schema = z.strictObject({
  name: z.literal("fwm"),
  ...tokenSizes,
  hidden: size,
  /** D: width of keys and values. */
  memory: size.max(1024),
  /** N_r: reads in a row. */
  reads: z.int().min(1).max(16),
  /** Which text of the equations; see docs/fwm.md. */
  variant: z.enum(keysOf(fwmVariants)),
  keys: z.enum(["product", "concat"]),
  /** Tokens per chunk of the loop over the writes; a matter of speed only. */
  chunk: z.int().min(1).max(4096),
  /** Words erased from the embedding. */
  wordDropout: dropoutRate,
  /** Recurrent connections of the LSTM. */
  weightDropout: dropoutRate,
  /** Features of h, before the memory and the output see it. */
  hiddenDropout: dropoutRate,
  /** Entries of h + FWM(h, F), before the output. */
  outputDropout: dropoutRate,
});

/** Settings of the system. */
export type FwmSettings = z.infer<typeof schema>;

/** The system: settings, model, cost. */
export const fwmSystem: System<FwmSettings> = {
  schema,
  build: (settings) =>
    fwmModel({ ...settings, variant: { ...fwmVariants[settings.variant], keys: settings.keys } }),
  flops,
};

/** The system at the paper's sizes, as the authors released it. */
export const fwmDefaults: FwmSettings = {
  name: "fwm",
  vocabulary: 200,
  embedding: 256,
  hidden: 256,
  memory: 32,
  reads: 3,
  variant: "releasedCatbabi",
  keys: "product",
  chunk: 50,
  wordDropout: 0,
  weightDropout: 0,
  hiddenDropout: 0,
  outputDropout: 0,
};

type DropoutRates = Pick<FwmSettings, "wordDropout" | "weightDropout" | "hiddenDropout" | "outputDropout">;

/** Sizes and variant of a model. */
export interface FwmModelConfig extends FwmSizes, Partial<DropoutRates> {
  readonly vocabulary: number;
  readonly embedding: number;
  readonly variant?: FwmVariant;
  /** Tokens per chunk of the loop over the writes. */
  readonly chunk?: number;
}

/** Builds the model. */
export function fwmModel(config: FwmModelConfig): SequenceModel {
  const { vocabulary: V, embedding: E, hidden: H, variant = releasedCatbabi, chunk } = config;
  const { wordDropout: pw = 0, weightDropout: pr = 0, hiddenDropout: ph = 0, outputDropout: po = 0 } = config;
  const table = state("embedding", [V, E], { kind: "normal", mean: 0, std: 1 });
  const controller: LstmWeights = lstmWeights("lstm", { in: E, hidden: H }, variant.cell);
  const memory: FwmWeights = fwmWeights("fwm", config, variant);
  const output: LinearWeights = linearWeights(
    "output",
    { in: H, out: V },
    { bias: false, weight: { kind: "normal", mean: 0, std: Math.sqrt(2 / (H + V)) } },
  );
  const maps = [memory.write, memory.read, memory.out, output];
  /** The layers below the output over a window. */
  const layers = ({
    tokens,
    state: [h, c, F],
    training,
    mask,
    positions,
    matchesAt,
    exact = !training,
  }: WindowInput) => {
    const drop = (kind: typeof lockedDropout, x: Tensor, rate: number, name: string): Tensor =>
      training ? kind(x, rate, `dropout.${name}`) : x;
    const words = drop(wordDropout, table, pw, "word");
    const run = embeddedLstm(
      controller,
      words,
      tokens,
      { h: h!, c: c! },
      {
        ...(mask ? { mask } : {}),
        droppedWh: drop(weightDropout, controller.Wh, pr, "Wh"),
      },
    );
    const seen = drop(lockedDropout, run.h, ph, "hidden");
    const read = fwmWindow(memory, seen, F!, {
      ...(mask ? { mask } : {}),
      ...(positions ? { positions } : {}),
      ...(matchesAt ? { matchesAt } : {}),
      ...(chunk ? { chunk } : {}),
      // Writes of strength 1 scale the memory down by more than a block of the fixed point can hold.
      ...(exact || variant.writeScale === "one" ? {} : { fixedPoint: {} }),
    });
    const y = drop(elementDropout, read.y, po, "output");
    return { ...read, y, state: [run.state.h, run.state.c, read.F] };
  };
  const logits = (y: Tensor): Tensor => scoped("output", () => linear(output, y));
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
    window(input) {
      const { y, state: after, residual, matches } = layers(input);
      return {
        logits: logits(y),
        state: after,
        ...(residual ? { residual } : {}),
        ...(matches ? { matches } : {}),
      };
    },
    chunk(input) {
      const { y, state: after, written, read } = layers({ ...input, training: false });
      return {
        logits: logits(y),
        state: after,
        trace: { k1: written.k1, k2: written.k2, ...readTrace(read!) },
      };
    },
    step(tokens, [h, c, F]) {
      const next = lstmStep(controller, gatherRows(table, tokens), { h: h!, c: c! });
      const { y, F: after, ...vectors } = fwmStep(memory, next.h, F!);
      return {
        logits: linear(output, y),
        state: [next.h, next.c, after],
        trace: traceOf(vectors),
      };
    },
    tracer: fwmTracer(config, variant.keys),
  };
}

function flops(settings: FwmSettings, { tokens, positions, window }: Work): number {
  const { embedding: E, hidden: H, vocabulary: V, memory: D, reads, chunk: C, keys } = settings;
  const K = keys === "product" ? D * D : 2 * D;
  const seen = positions < tokens ? window : Math.min(C, window);
  // The input's share of the gates is needed once per word.
  const lstmShare = 2 * 4 * H * (E * Math.min(tokens, V) + H * tokens);
  const write = (2 * H * (3 * D + 1) + 2 * 2 * K * D + 2 * 2 * C * D + 2 * C * D) * tokens;
  const read = (2 * H * (1 + reads) * D + reads * (2 * K * D + 3 * 2 * seen * D) + 2 * D * H) * positions;
  return lstmShare + write + read + 2 * H * V * positions;
}
