/** The paper's meta-reinforcement-learning result: an agent with a Fast Weight Memory, by the released program. */
import {
  fwmAgentSettings,
  metarlExperiment,
  metarlSmoke,
  publishedCurve,
  releasedMetarlTraining,
  releasedTask,
} from "../src/experiment/metarl/settings.ts";

export default metarlExperiment({
  description: "meta-RL on random graphs, FWM 32/16, the released rules and advantage",
  settings: { task: releasedTask, system: fwmAgentSettings, training: releasedMetarlTraining },
  smoke: { ...metarlSmoke, system: { hidden: 16, memory: 8 } },
  // The authors' log.
  paper: {
    episodes: 51_000,
    trainReturn: 109.98,
    testReturn: 107.1,
    curve: publishedCurve(
      [0, 45.8, 45.5],
      [1_000, 50.0, 49.5],
      [2_500, 52.6, 52.1],
      [5_000, 55.1, 53.6],
      [7_500, 64.5, 62.3],
      [10_000, 78.7, 77.8],
      [15_000, 92.8, 91.2],
      [20_000, 98.3, 96.8],
      [25_000, 102.4, 100.3],
      [50_000, 109.5, 106.1],
    ),
  },
});
