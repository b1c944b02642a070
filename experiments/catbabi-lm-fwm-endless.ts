/**
 * Endless stories in language-model mode: tasks are generated as they are needed. The curriculum asks for answers alone: among
 * the losses of all tokens those of the few answers are too small for a chain of reads to be found in time.
 */
import { catbabiExperiment } from "../src/experiment/catbabi/settings.ts";
import decay from "./catbabi-lm-fwm-decay.ts";
import endless from "./catbabi-qa-fwm-endless.ts";

export default catbabiExperiment({
  ...decay,
  description: "catbAbI, language-model mode, FWM, endless stories: tasks are generated as they are needed",
  settings: {
    ...endless.settings,
    task: {
      ...endless.settings.task,
      mode: "lm",
      curriculum: endless.settings.task.curriculum.map((stage) => ({ ...stage, mode: "qa" as const })),
    },
  },
});
