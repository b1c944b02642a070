/** Our recipe on the paper's terms: real stories only, and dropout, because training gets ahead of validation. */
import { catbabiExperiment, catbabiSystem } from "../src/experiment/catbabi/settings.ts";
import muon from "./catbabi-qa-fwm-muon.ts";

export default catbabiExperiment({
  ...muon,
  description: "catbAbI, question answering, FWM, our recipe with dropout, real stories only",
  settings: {
    ...muon.settings,
    system: { ...catbabiSystem, weightDropout: 0.15, hiddenDropout: 0.1, outputDropout: 0.1 },
  },
});
