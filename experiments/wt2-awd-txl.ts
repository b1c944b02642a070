/** The paper's comparison on WikiText-2: a regularised Transformer-XL with an adaptive softmax. */
import { publishedCurve, textExperiment, textSmoke } from "../src/experiment/text/settings.ts";
import { awdTxlWt2 } from "../src/model/awdTxl.ts";
import ptb from "./ptb-awd-lstm.ts";

const { task, training } = ptb.settings;

/** Windows of 150 tokens in 32 columns of the text. */
const stepsPerEpoch = 2_088_628 / 32 / 150;

/** Steps and validation perplexity of the authors' run with the same seed; batch 10, temperature 1. */
const authorsRun = [
  [400, 942],
  [800, 551],
  [1200, 390],
  [1600, 311],
  [2000, 255],
  [2800, 196],
  [4000, 152.4],
  [8000, 108.2],
  [10_000, 102.2],
  [20_000, 81.9],
  [40_000, 72.6],
  [60_000, 69.1],
  [80_000, 67.5],
  [100_000, 66.6],
  [120_000, 65.93],
  [124_800, 65.93],
] as const;

export default textExperiment({
  description: "WikiText-2, AWD-TXL, the recipe of T. Dettmers' program",
  settings: {
    task: { ...task, dataset: "wikitext-2" },
    system: awdTxlWt2,
    training: {
      ...training,
      seed: 666,
      batch: 32,
      window: 150,
      lengths: { halfProbability: 0, std: 0, min: 5, max: 0 },
      steps: 125_000,
      optimizer: {
        name: "adam",
        learningRate: 3.5e-4,
        beta1: 0.9,
        beta2: 0.999,
        eps: 1e-8,
        weightDecay: 1.2e-6,
      },
      schedule: { name: "cosine", warmup: 3000, decayStart: 0, finalLrRatio: 0 },
      evalEvery: 400,
      evalWindow: 150,
    },
  },
  smoke: {
    ...textSmoke,
    system: {
      vocabulary: 200,
      embedding: 16,
      layers: 2,
      heads: 2,
      headSize: 8,
      inner: 24,
      memory: 20,
      cutoffs: [100, 250, 300],
    },
  },
  paper: {
    valid: 65.73,
    test: 63.11,
    curve: publishedCurve(
      ...authorsRun.map(([step, perplexity]) => [step / stepsPerEpoch, perplexity] as const),
    ),
  },
});
