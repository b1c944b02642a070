/** AWD-LSTM on Penn Treebank by its authors' recipe: SGD, then averaged SGD once validation stops to improve. */
import { untilLastStep } from "../src/experiment/kind.ts";
import { textExperiment, textSmoke } from "../src/experiment/text/settings.ts";
import { awdLstmPtb } from "../src/model/awdLstm.ts";

export default textExperiment({
  description: "Penn Treebank, AWD-LSTM, the official recipe without finetuning",
  settings: {
    task: { name: "text", dataset: "ptb", data: "" },
    system: awdLstmPtb,
    training: {
      seed: 141,
      batch: 20,
      window: 70,
      lengths: { halfProbability: 0.05, std: 5, min: 5, max: 0 },
      // 500 epochs of about 686 windows.
      steps: 343_000,
      optimizer: {
        name: "asgd",
        learningRate: 30,
        weightDecay: 1.2e-6,
        before: { name: "sgd", learningRate: 30, weightDecay: 1.2e-6 },
        switch: { when: "nonMonotone", window: 5 },
      },
      schedule: { name: "constant", warmup: 0 },
      clip: 0.25,
      emaDecay: 0,
      logEvery: 50,
      evalEvery: 0,
      saveEvery: 200,
      ...untilLastStep,
      evalBatch: 10,
      evalWindow: 70,
    },
  },
  smoke: { ...textSmoke, system: { vocabulary: 200, embedding: 16, hidden: 24 } },
  // As the paper quotes it; its authors' program reaches 61.2 and 58.8 without finetuning.
  paper: { valid: 60.0, test: 57.3 },
});
