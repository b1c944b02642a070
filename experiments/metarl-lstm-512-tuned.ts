/**
 * The LSTM with a hundred times as many weights, trained by the memory's recipe at the authors' rate: at the memory's
 * three times higher one its policy hardly changes after 300 episodes (docs/meta-rl.md).
 */
import { metarlExperiment } from "../src/experiment/metarl/settings.ts";
import tuned from "./metarl-fwm-tuned.ts";
import lstm from "./metarl-lstm-512.ts";

const { optimizer } = lstm.settings.training;

export default metarlExperiment({
  ...lstm,
  description: "meta-RL on random graphs, LSTM 512, our recipe at the authors' rate",
  settings: {
    ...tuned.settings,
    system: lstm.settings.system,
    training: { ...tuned.settings.training, optimizer },
  },
});
