/**
 * Our recipe for the same system: a rate that falls to zero, averaged weights, a clipped gradient. Half the
 * steps of the released recipe.
 */
import { catbabiTask, experiment, fwmSystem, releasedTraining } from "../src/experiment/settings.ts";
import qa from "./catbabi-qa-fwm.ts";

export default experiment({
  shows: "catbAbI, question answering, FWM, our recipe: decaying rate, averaged weights",
  settings: {
    task: catbabiTask,
    system: fwmSystem,
    training: {
      ...releasedTraining,
      steps: 25_000,
      learningRate: 1.5e-3,
      warmup: 250,
      decay: "cosine",
      final: 0.01,
      clip: 1,
      averaging: 0.999,
      validEvery: 500,
    },
  },
  smoke: qa.smoke,
  paper: qa.paper!,
});
