/** The LSTM with a hundred times as many weights, taught by the same recipe as the memory. */
import { metarlExperiment } from "../src/experiment/metarlSettings.ts";
import tuned from "./metarl-fwm-tuned.ts";
import lstm from "./metarl-lstm-512.ts";

export default metarlExperiment({
  ...lstm,
  shows: "meta-RL on random graphs, LSTM 512, our recipe: success seen, true advantage, higher rate",
  settings: { ...tuned.settings, system: lstm.settings.system },
});
