/** The memory on WikiText-2 at a size that a laptop trains in an afternoon and a browser loads: the language model that ships. */
import { textExperiment } from "../src/experiment/text/settings.ts";
import { awdFwmWt2 } from "../src/model/awdFwm.ts";
import { ptbFwmSmall } from "./ptb-small.ts";

const { task, training } = ptbFwmSmall.settings;

/** 6,324,703 weights: 12.6 MB in float16. */
export const wt2FwmSmall = textExperiment({
  description: "WikiText-2, AWD-FWM of six million weights",
  settings: {
    task: { ...task, dataset: "wikitext-2" },
    system: {
      ...awdFwmWt2,
      embedding: 160,
      hidden: 320,
      layers: 2,
      // A few epochs do not overfit.
      dropout: { word: 0.05, input: 0.2, between: 0.1, output: 0.2, weight: 0.1 },
    },
    training: {
      ...training,
      batch: 32,
      // Two and a half epochs of about 935 windows.
      steps: 2_400,
      evalEvery: 0,
      schedule: { name: "cosine", warmup: 100, decayStart: 0, finalLrRatio: 0 },
      optimizer: {
        name: "muon",
        learningRate: 3e-3,
        momentum: 0.95,
        iterations: 5,
        byAdam: ["embedding"],
        blocks: { "lstm1.Wx": 4, "lstm1.Wh": 4, "lstm2.Wx": 4, "lstm2.Wh": 4 },
        lrRatios: { embedding: 0.5, "output.b": 0.5 },
        beta1: 0.9,
        beta2: 0.999,
        eps: 1e-8,
        weightDecay: 1.2e-6,
      },
    },
  },
  smoke: ptbFwmSmall.smoke,
});
