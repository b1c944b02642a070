/** The three systems on Penn Treebank at a size that a laptop trains: about three million weights and twenty minutes of one core each. */
import { type TextSettings, textExperiment, textSmoke } from "../src/experiment/text/settings.ts";
import { type AwdFwmSettings, awdFwmPtb } from "../src/model/awdFwm.ts";
import { awdLstmPtb } from "../src/model/awdLstm.ts";
import { awdTxlPtb } from "../src/model/awdTxl.ts";
import lstm from "./ptb-awd-lstm.ts";

const sizes = {
  embedding: 200,
  hidden: 300,
  layers: 2,
  // Much less than at the published size, for eight epochs instead of hundreds.
  dropout: { word: 0.05, input: 0.2, between: 0.1, output: 0.2, weight: 0.1 },
};

const { task, training } = lstm.settings;

/** One recipe for all but the rates, which a search of twelve settings each chose; an epoch has about 687 steps. */
const smallTraining = (
  steps: number,
  learningRate: number,
  lrRatios?: Record<string, number>,
): TextSettings["training"] => ({
  ...training,
  seed: 1,
  lengths: { ...training.lengths, max: 80 },
  steps,
  evalEvery: 500,
  optimizer: {
    name: "adam",
    learningRate,
    beta1: 0.9,
    beta2: 0.999,
    eps: 1e-8,
    weightDecay: 1.2e-6,
    ...(lrRatios ? { lrRatios } : {}),
  },
  schedule: { name: "cosine", warmup: 200, decayStart: 0, finalLrRatio: 0 },
});

/** 3,014,000 weights. */
export const ptbLstmSmall = textExperiment({
  description: "Penn Treebank, AWD-LSTM of three million weights",
  settings: { task, system: { ...awdLstmPtb, ...sizes }, training: smallTraining(5_500, 8e-3) },
  smoke: { ...textSmoke, system: { vocabulary: 200, embedding: 16, hidden: 24 } },
});

/** The memory says nothing at first, and its output map learns slowly: docs/language-modelling.md. */
export const smallFwm: AwdFwmSettings = {
  ...awdFwmPtb,
  ...sizes,
  embeddingRange: awdLstmPtb.embeddingRange,
  outInit: "zeros",
};

/** 3,065,825 weights. */
export const ptbFwmSmall = textExperiment({
  description: "Penn Treebank, AWD-FWM of three million weights",
  settings: {
    task,
    system: smallFwm,
    training: smallTraining(5_500, 8e-3, { "fwm.out.W": 0.02, "fwm.out.b": 0.02 }),
  },
  smoke: { ...textSmoke, system: { vocabulary: 200, embedding: 16, hidden: 24, memory: 8 } },
});

/** 2,974,200 weights. */
export const ptbTxlSmall = textExperiment({
  description: "Penn Treebank, AWD-TXL of three million weights",
  settings: {
    task,
    system: {
      ...awdTxlPtb,
      embedding: 200,
      layers: 3,
      heads: 4,
      headSize: 50,
      inner: 400,
      dropout: {
        ...awdTxlPtb.dropout,
        ...{ word: 0.05, input: 0.2, output: 0.2 },
        ...{ attention: 0.1, projection: 0.1, feedForward: 0.1 },
      },
    },
    training: smallTraining(3_300, 1e-3, { embedding: 2 }),
  },
  smoke: {
    ...textSmoke,
    system: { vocabulary: 200, embedding: 16, layers: 2, heads: 2, headSize: 8, inner: 24, context: 20 },
  },
});
