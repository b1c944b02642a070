/** Our recipe on the paper's terms: real stories only, and dropout, because training gets ahead of validation. */
import { catbabiExperiment, catbabiSystem } from "../src/experiment/catbabi/settings.ts";
import decay from "./catbabi-qa-fwm-decay.ts";

export default catbabiExperiment({
  ...decay,
  description: "catbAbI, question answering, FWM, our recipe with dropout, real stories only",
  settings: {
    ...decay.settings,
    system: { ...catbabiSystem, weightDropout: 0.15, hiddenDropout: 0.1, outputDropout: 0.1 },
    training: { ...decay.settings.training, steps: 40_000, evalEvery: 1_000 },
  },
});
