/** The paper's comparison on Penn Treebank: a regularised Transformer-XL, its last epochs averaged. */
import { publishedCurve, textExperiment, textSmoke } from "../src/experiment/text/settings.ts";
import { awdTxlPtb } from "../src/model/awdTxl.ts";
import lstm from "./ptb-awd-lstm.ts";

const { task, training } = lstm.settings;

export default textExperiment({
  description: "Penn Treebank, AWD-TXL, the Transformer-XL authors' recipe",
  settings: {
    task,
    system: awdTxlPtb,
    training: {
      ...training,
      seed: 3,
      batch: 10,
      // 175 epochs of about 1372 windows.
      steps: 240_000,
      optimizer: {
        name: "averagedAdam",
        learningRate: 3e-4,
        beta1: 0.9,
        beta2: 0.999,
        eps: 1e-8,
        weightDecay: 1.2e-6,
        lrRatios: { embedding: 2 },
        switch: { when: "epoch", epoch: 125 },
        averagingLrRatio: 0.5,
      },
      schedule: { name: "cosine", warmup: 3000, decayStart: 0, decayEnd: 166_000, finalLrRatio: 1 / 3 },
      evalWindow: 10,
      evalContext: 130,
    },
  },
  smoke: {
    ...textSmoke,
    system: { vocabulary: 200, embedding: 16, layers: 2, heads: 2, headSize: 8, inner: 24, context: 20 },
    training: { ...textSmoke.training, evalContext: 30 },
  },
  paper: {
    valid: 59.39,
    test: 56.5,
    // The same seed; batch 10, temperature 1.
    curve: publishedCurve(
      [1, 373.6],
      [2, 238.2],
      [3, 187.6],
      [4, 161.4],
      [5, 148.9],
      [6, 135.8],
      [7, 127.9],
      [8, 122.1],
      [9, 117.5],
      [10, 112.7],
      [20, 91.2],
      [50, 71.7],
      [100, 62.3],
      [125, 61.29],
      [126, 60.31],
      [150, 59.63],
      [175, 59.53],
    ),
  },
});
