/** The LSTM at four times the width: 16,941,060 weights. */
import { metarlExperiment, metarlSmoke, publishedCurve } from "../src/experiment/metarl/settings.ts";
import released from "./metarl-fwm.ts";

export default metarlExperiment({
  description: "meta-RL on random graphs, LSTM 2048, the released rules and advantage",
  settings: {
    task: released.settings.task,
    system: { name: "lstm", hidden: 2048 },
    training: { ...released.settings.training, episodes: 200_000 },
  },
  smoke: { ...metarlSmoke, system: { hidden: 32 } },
  // The authors' log.
  paper: {
    episodes: 200_000,
    trainReturn: 143.97,
    testReturn: 80.57,
    curve: publishedCurve([50_000, 122.7, 82.7], [100_000, 141.2, 80.0]),
  },
});
