/**
 * The paper's agent in the authors' environment, with a better recipe: it sees its success, the critic is one, rewards are of
 * size one, and the rate is higher and falls.
 */
import { metarlExperiment } from "../src/experiment/metarl/settings.ts";
import released from "./metarl-fwm.ts";

export default metarlExperiment({
  ...released,
  description: "meta-RL on random graphs, FWM 32/16, our recipe: success seen, true advantage, higher rate",
  settings: {
    ...released.settings,
    task: { ...released.settings.task, rewardInput: "success", layout: "paper" },
    training: {
      ...released.settings.training,
      episodes: 25_000,
      optimizer: { ...released.settings.training.optimizer, learningRate: 3e-3 },
      schedule: { name: "linear", warmup: 0, decayStart: 0, finalLrRatio: 0.1 },
      clip: 1,
      rewardScale: 0.1,
      lambda: 0.9,
      valueCoef: 0.5,
      finalEntropyRatio: 0.1,
      advantage: "a2c",
    },
  },
});
