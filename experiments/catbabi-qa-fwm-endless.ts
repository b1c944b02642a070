/**
 * Endless stories in one run: three of four are generated, none twice, and how often a task comes follows its validation
 * error. Real stories alone overfit after some 20 epochs; here they are seen about that often in all.
 */
import { catbabiExperiment } from "../src/experiment/catbabi/settings.ts";
import decay from "./catbabi-qa-fwm-decay.ts";

export default catbabiExperiment({
  ...decay,
  description: "catbAbI, question answering, FWM, endless stories: tasks are generated as they are needed",
  settings: {
    ...decay.settings,
    task: {
      ...decay.settings.task,
      source: "mixed",
      generatedFraction: 0.75,
      sampling: { name: "byError", floor: 0.25 },
    },
    training: { ...decay.settings.training, batch: 64, steps: 30_000 },
  },
});
