/** An LSTM without a memory of its own: 1,089,540 weights, a hundred times as many as the FWM. */
import { metarlExperiment, metarlSmoke, publishedCurve } from "../src/experiment/metarl/settings.ts";
import released from "./metarl-fwm.ts";

export default metarlExperiment({
  description: "meta-RL on random graphs, LSTM 512, the released rules and advantage",
  settings: {
    task: released.settings.task,
    system: { name: "lstm", hidden: 512 },
    training: { ...released.settings.training, episodes: 278_000 },
  },
  smoke: { ...metarlSmoke, system: { hidden: 32 } },
  // The authors' log.
  paper: {
    episodes: 278_000,
    trainReturn: 126.13,
    testReturn: 83.37,
    curve: publishedCurve(
      [0, 45.6, 45.5],
      [1_000, 50.1, 49.4],
      [2_500, 51.7, 50.8],
      [5_000, 52.4, 51.5],
      [7_500, 53.4, 52.5],
      [10_000, 53.2, 52.8],
      [15_000, 53.6, 52.6],
      [20_000, 54.6, 52.6],
      [25_000, 55.3, 52.9],
      [50_000, 59.0, 54.2],
      [100_000, 67.3, 59.0],
    ),
  },
});
