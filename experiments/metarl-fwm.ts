/** The paper's meta-reinforcement-learning result: an agent with a Fast Weight Memory, by the released program. */
import {
  fwmAgentSettings,
  metarlExperiment,
  metarlSmoke,
  releasedMetarlTraining,
  releasedTask,
} from "../src/experiment/metarlSettings.ts";

export default metarlExperiment({
  shows: "meta-RL on random graphs, FWM 32/16, the released rules and advantage",
  settings: { task: releasedTask, system: fwmAgentSettings, training: releasedMetarlTraining },
  smoke: { ...metarlSmoke, system: { hidden: 16, memory: 8 } },
  // The authors' log at its end, 51,000 episodes: mean of the last 20 lines.
  paper: { trainReward: 109.98, testReward: 107.1 },
});
