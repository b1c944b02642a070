/** The LSTM at twice the width: 4,276,228 weights. */
import { metarlExperiment, metarlSmoke } from "../src/experiment/metarlSettings.ts";
import released from "./metarl-fwm.ts";

export default metarlExperiment({
  shows: "meta-RL on random graphs, LSTM 1024, the released rules and advantage",
  settings: {
    task: released.settings.task,
    system: { name: "lstm", hidden: 1024 },
    training: { ...released.settings.training, steps: 232_000 },
  },
  smoke: { ...metarlSmoke, system: { hidden: 32 } },
  // The authors' log at its end, 232,000 episodes.
  paper: { trainReward: 143.13, testReward: 79.82 },
});
