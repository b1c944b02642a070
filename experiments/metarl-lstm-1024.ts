/** The LSTM at twice the width: 4,276,228 weights. */
import { metarlExperiment, metarlSmoke, publishedCurve } from "../src/experiment/metarl/settings.ts";
import released from "./metarl-fwm.ts";

export default metarlExperiment({
  description: "meta-RL on random graphs, LSTM 1024, the released rules and advantage",
  settings: {
    task: released.settings.task,
    system: { name: "lstm", hidden: 1024 },
    training: { ...released.settings.training, episodes: 232_000 },
  },
  smoke: { ...metarlSmoke, system: { hidden: 32 } },
  // The authors' log.
  paper: {
    episodes: 232_000,
    trainReturn: 143.13,
    testReturn: 79.82,
    curve: publishedCurve(
      [0, 45.6, 46.1],
      [1_000, 50.9, 50.2],
      [2_500, 52.3, 51.8],
      [5_000, 52.8, 52.0],
      [7_500, 53.1, 52.6],
      [10_000, 53.9, 53.0],
      [15_000, 54.6, 53.0],
      [20_000, 56.0, 54.1],
      [25_000, 57.8, 55.4],
      [50_000, 101.5, 80.4],
      [100_000, 138.1, 80.7],
    ),
  },
});
