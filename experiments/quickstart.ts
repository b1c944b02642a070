/** What `npm start` trains: a small memory, and an LSTM of the same width, on new stories that need no download. */
import {
  type CatbabiSettings,
  catbabiExperiment,
  catbabiSystem,
  catbabiTask,
  releasedTraining,
} from "../src/experiment/catbabi/settings.ts";
import { lstmDefaults } from "../src/model/lstmModel.ts";

const task = { ...catbabiTask, source: "generated", tasks: "1,2" } as const;
const training = {
  ...releasedTraining,
  window: 100,
  steps: 3000,
  optimizer: { ...releasedTraining.optimizer, learningRate: 4e-3 },
  schedule: { name: "cosine", warmup: 50, decayStart: 0, finalLrRatio: 0.02 },
  clip: 1,
  logEvery: 20,
  evalEvery: 250,
  saveEvery: 1000,
  evalBatch: 32,
} satisfies CatbabiSettings["training"];

/** The memory. */
export const quickstartFwm = catbabiExperiment({
  description: "new stories of tasks 1 and 2, a small FWM",
  settings: { task, training, system: { ...catbabiSystem, embedding: 64, hidden: 64, memory: 16 } },
  smoke: { training: { steps: 20, evalEvery: 10 } },
});

/** Its baseline. */
export const quickstartLstm = catbabiExperiment({
  description: "new stories of tasks 1 and 2, an LSTM of the same width",
  settings: { task, training, system: { ...lstmDefaults, embedding: 64, hidden: 64 } },
  smoke: quickstartFwm.smoke,
});
