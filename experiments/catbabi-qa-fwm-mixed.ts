/** Our recipe on endless stories: every second one is generated, and none of those is seen twice. */
import { catbabiExperiment } from "../src/experiment/catbabi/settings.ts";
import decay from "./catbabi-qa-fwm-decay.ts";

export default catbabiExperiment({
  ...decay,
  description: "catbAbI, question answering, FWM, our recipe on real and generated stories, half each",
  settings: { ...decay.settings, task: { ...decay.settings.task, source: "mixed", generatedFraction: 0.5 } },
});
