/** The same agent under the paper's text: it sees its reward, success resets the timer, and A2C is A2C. */
import { metarlExperiment } from "../src/experiment/metarl/settings.ts";
import released from "./metarl-fwm.ts";

export default metarlExperiment({
  description: "meta-RL on random graphs, FWM 32/16, the paper's rules and a true advantage",
  settings: {
    task: { ...released.settings.task, rules: "paper" },
    system: released.settings.system,
    training: { ...released.settings.training, advantage: "a2c" },
  },
  smoke: released.smoke,
});
