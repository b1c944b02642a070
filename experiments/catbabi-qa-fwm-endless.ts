/**
 * Endless stories in one run: three of four are generated, none twice, and how often a task comes follows its validation
 * error. Real stories alone overfit after some 20 epochs; here they are seen seven times.
 *
 * Some are easier than bAbI's. Induction takes three reads in a row, and among five animals nothing rewards the first two
 * of them for a long time; among three the chain is found at once, and holds for five.
 */
import { catbabiExperiment } from "../src/experiment/catbabi/settings.ts";
import muon from "./catbabi-qa-fwm-muon.ts";

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
      difficulty: { ...muon.settings.task.difficulty, ordinary: 0.25, animals: [3, 5], rooms: [3, 6] },
    },
    training: { ...muon.settings.training, evalEvery: 500 },
  },
});
