/**
 * The paper's agent in the authors' environment, taught to plan: lessons come first, in which it is shown a few edges, asked
 * for ways of two steps, and told which two of the edges its reads should find; until some time after them it hears what the
 * explorer would do; and no graph keeps its names.
 */
import { metarlExperiment } from "../src/experiment/metarl/settings.ts";
import tuned from "./metarl-fwm-tuned.ts";

export default metarlExperiment({
  ...tuned,
  description: "meta-RL on random graphs, FWM 32/16, lessons and a teacher first",
  settings: {
    ...tuned.settings,
    task: {
      ...tuned.settings.task,
      lessons: [
        // Of four edges alone, an LSTM learns the ways by heart, and its memory nothing.
        { extra: 4, joined: 0, until: 0.9, episodes: 2_000 },
        { extra: 6, joined: 0.5, until: 0.9, episodes: 500 },
      ],
      rename: true,
    },
    training: {
      ...tuned.settings.training,
      episodes: 3_000,
      optimizer: {
        name: "muon",
        learningRate: 0.015,
        momentum: 0.95,
        iterations: 5,
        byAdam: ["policy.W", "value.W"],
        blocks: { "lstm.Wx": 4, "lstm.Wh": 4 },
        lrRatios: {},
        beta1: 0.9,
        beta2: 0.999,
        eps: 1e-4,
        weightDecay: 0,
      },
      schedule: { name: "linear", warmup: 0, decayStart: 0, finalLrRatio: 0.02 },
      discount: 0.7,
      teacher: { coef: 1, episodes: 1_500 },
      factCoef: 10,
    },
  },
});
