/** Our recipe in language-model mode on endless stories: every second one is generated. */
import { catbabiExperiment } from "../src/experiment/catbabi/settings.ts";
import decay from "./catbabi-lm-fwm-decay.ts";
import mixed from "./catbabi-qa-fwm-mixed.ts";

export default catbabiExperiment({
  ...decay,
  description: "catbAbI, language-model mode, FWM, our recipe on real and generated stories, half each",
  settings: { ...decay.settings, task: { ...mixed.settings.task, mode: "lm" } },
});
