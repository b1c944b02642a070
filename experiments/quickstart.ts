/** What `npm start` trains: a small memory, and an LSTM of the same width, on new stories that need no download. */
import { catbabiTask, experiment, fwmSystem, releasedTraining } from "../src/experiment/settings.ts";
import { lstmDefaults } from "../src/model/lstmModel.ts";

const task = { ...catbabiTask, source: "generated", tasks: "1,2" } as const;
const training = {
  ...releasedTraining,
  window: 100,
  steps: 3000,
  learningRate: 4e-3,
  warmup: 50,
  decay: "cosine",
  final: 0.02,
  clip: 1,
  logEvery: 20,
  validEvery: 250,
  saveEvery: 1000,
  validBatch: 32,
} as const;

/** The memory. */
export const quickstartFwm = experiment({
  shows: "new stories of tasks 1 and 2, a small FWM",
  settings: { task, training, system: { ...fwmSystem, embedding: 64, hidden: 64, memory: 16 } },
  smoke: { training: { steps: 20, validEvery: 10 } },
});

/** Its opponent. */
export const quickstartLstm = experiment({
  shows: "new stories of tasks 1 and 2, an LSTM of the same width",
  settings: { task, training, system: { ...lstmDefaults, embedding: 64, hidden: 64 } },
  smoke: quickstartFwm.smoke,
});
