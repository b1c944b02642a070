/** The largest LSTM of the paper: 67,436,548 weights. */
import { metarlExperiment, metarlSmoke, publishedCurve } from "../src/experiment/metarl/settings.ts";
import released from "./metarl-fwm.ts";

export default metarlExperiment({
  description: "meta-RL on random graphs, LSTM 4096, the released rules and advantage",
  settings: {
    task: released.settings.task,
    system: { name: "lstm", hidden: 4096 },
    training: { ...released.settings.training, episodes: 114_000 },
  },
  smoke: { ...metarlSmoke, system: { hidden: 32 } },
  // The authors' log.
  paper: {
    episodes: 114_000,
    trainReturn: 142.86,
    testReturn: 81.16,
    curve: publishedCurve([50_000, 120.6, 82.3], [100_000, 141.6, 80.9]),
  },
});
