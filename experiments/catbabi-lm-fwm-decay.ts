/** Our recipe in language-model mode. */
import { catbabiExperiment } from "../src/experiment/catbabi/settings.ts";
import lm from "./catbabi-lm-fwm.ts";
import decay from "./catbabi-qa-fwm-decay.ts";

export default catbabiExperiment({
  ...lm,
  description: "catbAbI, language-model mode, FWM, our recipe: decaying rate, averaged weights",
  settings: { ...lm.settings, training: decay.settings.training },
});
