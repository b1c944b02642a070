/** Our recipe on endless stories: every second one is newly told, and none of those is seen twice. */
import { experiment } from "../src/experiment/settings.ts";
import decay from "./catbabi-qa-fwm-decay.ts";

export default experiment({
  ...decay,
  shows: "catbAbI, question answering, FWM, our recipe on real and generated stories, half each",
  settings: { ...decay.settings, task: { ...decay.settings.task, source: "mixed", share: 0.5 } },
});
