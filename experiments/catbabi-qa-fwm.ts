/** The paper's main result: Fast Weight Memory on catbAbI, question answering, by the released recipe. */
import {
  catbabiExperiment,
  catbabiSystem,
  catbabiTask,
  releasedTraining,
} from "../src/experiment/catbabi/settings.ts";

/** Updates and validation accuracy of the authors' run. */
const authorsRun = [
  [1_500, 0.848],
  [2_000, 0.859],
  [2_500, 0.866],
  [3_000, 0.878],
  [3_500, 0.883],
  [4_000, 0.892],
  [4_500, 0.912],
  [5_000, 0.919],
  [6_000, 0.929],
  [7_250, 0.94],
  [8_000, 0.937],
  [10_000, 0.94],
  [12_000, 0.946],
  [14_000, 0.949],
  [15_000, 0.956],
  [17_500, 0.959],
  [20_000, 0.959],
  [25_000, 0.961],
  [30_000, 0.957],
  [35_000, 0.96],
  [40_000, 0.959],
  [45_000, 0.96],
  [50_000, 0.959],
] as const;

export default catbabiExperiment({
  description: "catbAbI, question answering, FWM, the released recipe",
  settings: { task: catbabiTask, system: catbabiSystem, training: releasedTraining },
  smoke: {
    task: { source: "generated", tasks: "1,15" },
    system: { embedding: 32, hidden: 32, memory: 8 },
    training: { batch: 8, window: 50, steps: 50, evalEvery: 25, logEvery: 5, evalBatch: 16 },
  },
  paper: {
    accuracy: 0.9675,
    perplexity: 1.36,
    weights: 694e3,
    stateVariables: 33.3e3,
    curve: authorsRun.map(([step, accuracy]) => ({ step, accuracy })),
  },
});
