/** An LSTM without a memory of its own: 1,089,540 weights, a hundred times as many as the FWM. */
import { metarlExperiment, metarlSmoke } from "../src/experiment/metarlSettings.ts";
import released from "./metarl-fwm.ts";

export default metarlExperiment({
  shows: "meta-RL on random graphs, LSTM 512, the released rules and advantage",
  settings: {
    task: released.settings.task,
    system: { name: "lstm", hidden: 512 },
    training: { ...released.settings.training, steps: 278_000 },
  },
  smoke: { ...metarlSmoke, system: { hidden: 32 } },
  // The authors' log at its end, 278,000 episodes.
  paper: { trainReward: 126.13, testReward: 83.37 },
});
