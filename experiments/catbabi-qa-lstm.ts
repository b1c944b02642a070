/** A plain LSTM of the same width: what the memory is worth. */
import { catbabiExperiment, catbabiTask, releasedTraining } from "../src/experiment/catbabi/settings.ts";
import { lstmDefaults } from "../src/model/lstmModel.ts";
import qa from "./catbabi-qa-fwm.ts";

export default catbabiExperiment({
  description: "catbAbI, question answering, one LSTM layer of the FWM's width",
  settings: {
    task: catbabiTask,
    system: lstmDefaults,
    training: releasedTraining,
  },
  smoke: { ...qa.smoke, system: { embedding: 32, hidden: 32 } },
});
