/** The three systems on Penn Treebank at a size that a laptop trains: about three million weights each, one recipe for all. */
import { type TextSettings, textExperiment, textSmoke } from "../src/experiment/text/settings.ts";
import { awdFwmPtb } from "../src/model/awdFwm.ts";
import { awdLstmPtb } from "../src/model/awdLstm.ts";
import { awdTxlPtb } from "../src/model/awdTxl.ts";
import lstm from "./ptb-awd-lstm.ts";

const sizes = {
  embedding: 200,
  hidden: 300,
  layers: 2,
  // Less than at the published size: small models do not overfit as much.
  dropout: { word: 0.1, input: 0.3, between: 0.2, output: 0.3, weight: 0.3 },
};

const { task, training } = lstm.settings;
const smallTraining: TextSettings["training"] = {
  ...training,
  seed: 1,
  lengths: { ...training.lengths, max: 80 },
  // 40 epochs of about 687 windows.
  steps: 27_500,
  optimizer: {
    name: "adam",
    learningRate: 2e-3,
    beta1: 0.9,
    beta2: 0.999,
    eps: 1e-8,
    weightDecay: 1.2e-6,
  },
  schedule: { name: "cosine", warmup: 500, decayStart: 0, finalLrRatio: 0 },
};

/** 3,014,000 weights. */
export const ptbLstmSmall = textExperiment({
  description: "Penn Treebank, AWD-LSTM of three million weights",
  settings: { task, system: { ...awdLstmPtb, ...sizes }, training: smallTraining },
  smoke: { ...textSmoke, system: { vocabulary: 200, embedding: 16, hidden: 24 } },
});

/** 3,065,825 weights. */
export const ptbFwmSmall = textExperiment({
  description: "Penn Treebank, AWD-FWM of three million weights",
  settings: { task, system: { ...awdFwmPtb, ...sizes }, training: smallTraining },
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
      dropout: { ...awdTxlPtb.dropout, word: 0.1, input: 0.3, output: 0.3 },
    },
    training: { ...smallTraining, optimizer: { ...smallTraining.optimizer, learningRate: 5e-4 } },
  },
  smoke: {
    ...textSmoke,
    system: { vocabulary: 200, embedding: 16, layers: 2, heads: 2, headSize: 8, inner: 24, context: 20 },
  },
});
