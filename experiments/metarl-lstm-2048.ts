/** The LSTM at four times the width: 16,941,060 weights. */
import { metarlExperiment, metarlSmoke } from "../src/experiment/metarlSettings.ts";
import released from "./metarl-fwm.ts";

export default metarlExperiment({
  shows: "meta-RL on random graphs, LSTM 2048, the released rules and advantage",
  settings: {
    task: released.settings.task,
    system: { name: "lstm", hidden: 2048 },
    training: { ...released.settings.training, steps: 200_000 },
  },
  smoke: { ...metarlSmoke, system: { hidden: 32 } },
  // The authors' log at its end, 200,000 episodes.
  paper: { trainReward: 143.97, testReward: 80.57 },
});
