/**
 * The agent with lessons, but a location is called by any of ten names: what it has learned on graphs of five locations can
 * be tried on graphs of seven and ten, of which it has never seen one (`fwm eval --states 10`).
 */
import { metarlExperiment } from "../src/experiment/metarl/settings.ts";
import lessons from "./metarl-fwm-lessons.ts";

export default metarlExperiment({
  ...lessons,
  description: "meta-RL on random graphs, FWM 32/16, lessons; ten names for five locations",
  settings: { ...lessons.settings, task: { ...lessons.settings.task, names: 10 } },
});
