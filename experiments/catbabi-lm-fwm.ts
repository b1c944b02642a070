/** Fast Weight Memory on catbAbI as a language model: every next token is learned, answers are scored. */
import {
  catbabiExperiment,
  catbabiSystem,
  catbabiTask,
  releasedTraining,
} from "../src/experiment/catbabi/settings.ts";
import qa from "./catbabi-qa-fwm.ts";

export default catbabiExperiment({
  description: "catbAbI, language-model mode, FWM, the released recipe",
  settings: { task: { ...catbabiTask, mode: "lm" }, system: catbabiSystem, training: releasedTraining },
  smoke: qa.smoke,
  paper: { accuracy: 0.9304, perplexity: 1.45, weights: 694e3, stateVariables: 33.3e3 },
});
