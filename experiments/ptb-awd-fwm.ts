/** The paper's language model on Penn Treebank: AWD-LSTM with a Fast Weight Memory, as the authors' logs show it trained. */
import { publishedCurve, textExperiment, textSmoke } from "../src/experiment/text/settings.ts";
import { awdFwmPtb } from "../src/model/awdFwm.ts";
import lstm from "./ptb-awd-lstm.ts";

const { task, training } = lstm.settings;

export default textExperiment({
  description: "Penn Treebank, AWD-FWM, the released recipe",
  settings: {
    task,
    system: awdFwmPtb,
    training: {
      ...training,
      lengths: { ...training.lengths, max: 80 },
      // 900 epochs of about 686 windows.
      steps: 617_500,
      optimizer: {
        name: "asgd",
        learningRate: 2,
        weightDecay: 1.2e-6,
        before: {
          name: "adam",
          learningRate: 1e-3,
          beta1: 0.9,
          beta2: 0.999,
          eps: 1e-8,
          weightDecay: 1.2e-6,
        },
        // After the 766th epoch, as in the logs; the text of the paper says 916 of 1000.
        switch: { when: "epoch", epoch: 766 },
      },
    },
  },
  smoke: { ...textSmoke, system: { vocabulary: 200, embedding: 16, hidden: 24, memory: 8 } },
  paper: {
    valid: 56.76,
    test: 54.48,
    // The same seed; batch 10, temperature 1.
    curve: publishedCurve(
      [1, 312.61],
      [2, 234.12],
      [3, 193.28],
      [4, 163.58],
      [5, 149.72],
      [6, 136.62],
      [7, 132.17],
      [8, 120.89],
      [9, 132.39],
      [10, 119.85],
      [20, 99.08],
      [50, 76.78],
      [100, 69.78],
      [200, 64.56],
      [300, 63.43],
      [500, 62.47],
      [700, 70.3],
      [766, 58.84],
      [767, 58.48],
      [775, 58.06],
      [800, 57.72],
      [900, 57.83],
    ),
  },
});
