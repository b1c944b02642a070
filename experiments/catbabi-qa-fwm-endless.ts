/**
 * Endless stories in one run: three of four are generated, none twice, and how often a task comes follows its validation
 * error. Real stories alone overfit after some 20 epochs; here they are seen seven times.
 *
 * Induction comes first, and begins with fewer animals: it takes three reads in a row, and among five animals nothing
 * rewards the first two of them for a long time. Among three the chain is found at once, and holds for five.
 */
import { catbabiExperiment } from "../src/experiment/catbabi/settings.ts";
import muon from "./catbabi-qa-fwm-muon.ts";

const { difficulty: ordinary } = muon.settings.task;

export default catbabiExperiment({
  ...muon,
  description: "catbAbI, question answering, FWM, endless stories: tasks are generated as they are needed",
  settings: {
    ...muon.settings,
    task: {
      ...muon.settings.task,
      source: "mixed",
      generatedFraction: 0.75,
      sampling: { name: "byError", floor: 0.25 },
      curriculum: [
        {
          source: "generated",
          tasks: "16",
          difficulty: { ...ordinary, ordinary: 0, animals: [3, 3] },
          until: 0.95,
          steps: 1_000,
        },
        {
          source: "generated",
          tasks: "16",
          difficulty: { ...ordinary, ordinary: 0.5, animals: [3, 5] },
          until: 0.95,
          steps: 1_000,
        },
      ],
    },
    training: { ...muon.settings.training, evalEvery: 500 },
  },
});
