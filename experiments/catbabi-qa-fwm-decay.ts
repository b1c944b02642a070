/**
 * Our recipe for the same system: a rate that falls to zero, averaged weights, a clipped gradient. Half the
 * steps of the released recipe.
 */
import {
  catbabiExperiment,
  catbabiSystem,
  catbabiTask,
  releasedTraining,
} from "../src/experiment/catbabi/settings.ts";
import qa from "./catbabi-qa-fwm.ts";

export default catbabiExperiment({
  description: "catbAbI, question answering, FWM, our recipe: decaying rate, averaged weights",
  settings: {
    task: catbabiTask,
    system: catbabiSystem,
    training: {
      ...releasedTraining,
      steps: 25_000,
      optimizer: { ...releasedTraining.optimizer, learningRate: 1.5e-3 },
      schedule: { name: "cosine", warmup: 250, decayStart: 0, finalLrRatio: 0.01 },
      clip: 1,
      emaDecay: 0.999,
      evalEvery: 500,
    },
  },
  smoke: qa.smoke,
  paper: qa.paper!,
});
