/** The paper's language model on WikiText-2, as the authors' logs show it trained. */
import { publishedCurve, textExperiment } from "../src/experiment/text/settings.ts";
import { awdFwmWt2 } from "../src/model/awdFwm.ts";
import ptb from "./ptb-awd-fwm.ts";

const { task, training } = ptb.settings;

export default textExperiment({
  description: "WikiText-2, AWD-FWM, the released recipe",
  settings: {
    task: { ...task, dataset: "wikitext-2" },
    system: awdFwmWt2,
    training: {
      ...training,
      seed: 1882,
      batch: 80,
      // 1600 epochs of about 386 windows.
      steps: 618_000,
      optimizer: {
        name: "asgd",
        learningRate: 0.5,
        weightDecay: 1.2e-6,
        before: {
          name: "adam",
          learningRate: 1e-3,
          beta1: 0.9,
          beta2: 0.999,
          eps: 1e-8,
          weightDecay: 1.2e-6,
        },
        switch: { when: "epoch", epoch: 1372 },
      },
    },
  },
  smoke: ptb.smoke,
  paper: {
    valid: 63.98,
    test: 61.65,
    // The same seed; batch 10, temperature 1.
    curve: publishedCurve(
      [1, 457.4],
      [2, 305.16],
      [3, 336.15],
      [4, 265.76],
      [5, 234.33],
      [6, 215.86],
      [7, 199.86],
      [8, 188.05],
      [9, 178.34],
      [10, 171.79],
      [20, 124.95],
      [50, 84.45],
      [100, 74.69],
      [200, 70.51],
      [300, 68.75],
      [500, 67.64],
      [1000, 66.92],
      [1372, 66.24],
      [1373, 66.0],
      [1400, 65.61],
      [1500, 65.32],
      [1600, 65.22],
    ),
  },
});
