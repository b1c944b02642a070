/** Fast Weight Memory on catbAbI as a language model: every next token is learned, answers are judged. */
import { catbabiTask, experiment, fwmSystem, releasedTraining } from "../src/experiment/settings.ts";
import qa from "./catbabi-qa-fwm.ts";

export default experiment({
  shows: "catbAbI, language-model mode, FWM, the released recipe",
  settings: { task: { ...catbabiTask, mode: "lm" }, system: fwmSystem, training: releasedTraining },
  smoke: qa.smoke,
  paper: { accuracy: 0.9304, perplexity: 1.45 },
});
