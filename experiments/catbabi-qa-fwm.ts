/** The paper's main result: Fast Weight Memory on catbAbI, question answering, by the released recipe. */
import { catbabiTask, experiment, fwmSystem, releasedTraining } from "../src/experiment/settings.ts";

export default experiment({
  shows: "catbAbI, question answering, FWM, the released recipe",
  settings: { task: catbabiTask, system: fwmSystem, training: releasedTraining },
  smoke: {
    task: { source: "generated", tasks: "1,15" },
    system: { embedding: 32, hidden: 32, memory: 8 },
    training: { batch: 8, window: 50, steps: 50, validEvery: 25, logEvery: 5, validBatch: 16 },
  },
  paper: { accuracy: 0.9675, perplexity: 1.36 },
});
