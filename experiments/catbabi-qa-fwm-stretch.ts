/**
 * Endless stories, and once ordinary ones are learned, half of the generated ones are harder than bAbI's: facts up to 100
 * sentences back, five things, maps of nine rooms, chains of five statements, stories without an end mark between them.
 * What they teach: docs/infinite-catbabi.md. With `--init <a run of endless stories>` they
 * begin after the first validation.
 */
import { catbabiExperiment } from "../src/experiment/catbabi/settings.ts";
import endless from "./catbabi-qa-fwm-endless.ts";

export default catbabiExperiment({
  ...endless,
  description: "catbAbI, question answering, FWM, endless stories, later ones harder than bAbI's",
  settings: {
    ...endless.settings,
    task: {
      ...endless.settings.task,
      // Validation has ordinary stories only, so its errors say little of the harder ones.
      sampling: { name: "byError", of: "training", floor: 0.25 },
      harder: [
        {
          accuracy: 0.95,
          difficulty: {
            ordinary: 0.5,
            distractors: [0, 80],
            distance: [1, 100],
            lookback: [5, 40],
            objects: [3, 5],
            carried: [0, 5],
            rooms: [3, 9],
            path: [3, 9],
            chain: [1, 5],
            stories: [1, 3],
            animals: [3, 5],
            orders: [2, 2],
          },
        },
      ],
    },
    training: {
      ...endless.settings.training,
      steps: 13_000,
      optimizer: { ...endless.settings.training.optimizer, learningRate: 3e-3 },
      schedule: { name: "cosine", warmup: 250, decayStart: 5_000, finalLrRatio: 0.01 },
    },
  },
});
