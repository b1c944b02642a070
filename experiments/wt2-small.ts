/** The memory on WikiText-2 at a size that a laptop trains in an afternoon and a browser loads: the language model that ships. */
import { textExperiment } from "../src/experiment/text/settings.ts";
import { awdFwmWt2 } from "../src/model/awdFwm.ts";
import { ptbFwmSmall, smallFwm } from "./ptb-small.ts";

const { task, training } = ptbFwmSmall.settings;

/** 6,324,703 weights: 12.6 MB in float16. */
export const wt2FwmSmall = textExperiment({
  description: "WikiText-2, AWD-FWM of six million weights",
  settings: {
    task: { ...task, dataset: "wikitext-2" },
    // The dropout of the small models of Penn Treebank: a few epochs do not overfit.
    system: { ...smallFwm, vocabulary: awdFwmWt2.vocabulary, embedding: 160, hidden: 320 },
    training: {
      ...training,
      optimizer: { ...training.optimizer, learningRate: 4e-3 },
      batch: 32,
      // Three epochs of about 963 windows.
      steps: 2_900,
      evalEvery: 0,
    },
  },
  smoke: ptbFwmSmall.smoke,
});
