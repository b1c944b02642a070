/**
 * Endless stories in language-model mode: tasks are generated as they are needed. Answers are 3.5 % of the tokens; weighed
 * like any other they do not bring the memory to chain its reads within so many steps.
 */
import { catbabiExperiment } from "../src/experiment/catbabi/settings.ts";
import decay from "./catbabi-lm-fwm-decay.ts";
import endless from "./catbabi-qa-fwm-endless.ts";

export default catbabiExperiment({
  ...decay,
  description: "catbAbI, language-model mode, FWM, endless stories: tasks are generated as they are needed",
  settings: {
    ...endless.settings,
    task: { ...endless.settings.task, mode: "lm" },
    training: { ...endless.settings.training, steps: 7_000, answerWeight: 20 },
  },
});
