/** Our recipe with Muon instead of Adam. */
import { catbabiExperiment } from "../src/experiment/catbabi/settings.ts";
import decay from "./catbabi-qa-fwm-decay.ts";

export default catbabiExperiment({
  ...decay,
  description: "catbAbI, question answering, FWM, our recipe: Muon, decaying rate, averaged weights",
  settings: {
    ...decay.settings,
    training: {
      ...decay.settings.training,
      steps: 17_500,
      optimizer: {
        name: "muon",
        learningRate: 5e-3,
        momentum: 0.95,
        iterations: 5,
        byAdam: ["embedding", "output.W"],
        blocks: { "lstm.Wx": 4, "lstm.Wh": 4 },
        beta1: 0.9,
        beta2: 0.999,
        eps: 1e-8,
        weightDecay: 0,
      },
      evalEvery: 1_000,
    },
  },
});
