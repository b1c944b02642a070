/**
 * The paper's agent in the authors' world, taught better: it sees its success, the critic is one, rewards are of
 * size one, and the rate is higher and falls.
 */
import { metarlExperiment } from "../src/experiment/metarlSettings.ts";
import released from "./metarl-fwm.ts";

export default metarlExperiment({
  ...released,
  shows: "meta-RL on random graphs, FWM 32/16, our recipe: success seen, true advantage, higher rate",
  settings: {
    ...released.settings,
    task: { ...released.settings.task, rewardInput: "success", layout: "paper" },
    training: {
      ...released.settings.training,
      steps: 25_000,
      learningRate: 3e-3,
      decay: "linear",
      final: 0.1,
      clip: 1,
      rewardScale: 0.1,
      lambda: 0.9,
      value: 0.5,
      entropyFinal: 0.1,
      advantage: "a2c",
    },
  },
});
