/** Our recipe in language-model mode. */
import { experiment } from "../src/experiment/settings.ts";
import lm from "./catbabi-lm-fwm.ts";
import decay from "./catbabi-qa-fwm-decay.ts";

export default experiment({
  ...lm,
  shows: "catbAbI, language-model mode, FWM, our recipe: decaying rate, averaged weights",
  settings: { ...lm.settings, training: decay.settings.training },
});
