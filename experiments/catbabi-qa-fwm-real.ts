/**
 * Our recipe on the paper's terms: real stories only, under other names each time they come.
 *
 * The two tasks that wait longest for their first right chain of reads come first, and begin smaller: induction among three
 * animals instead of five, always the same three, and path finding on maps without the rooms beside the way.
 */
import { catbabiExperiment } from "../src/experiment/catbabi/settings.ts";
import muon from "./catbabi-qa-fwm-muon.ts";

const { difficulty } = muon.settings.task;
const stage = { source: "real", difficulty, fewNames: true, steps: 1_000 } as const;

export default catbabiExperiment({
  ...muon,
  description: "catbAbI, question answering, FWM, our recipe, real stories only",
  settings: {
    ...muon.settings,
    task: {
      ...muon.settings.task,
      rename: true,
      curriculum: [
        { ...stage, tasks: "16", bystanders: [1, 1], until: 0.95 },
        { ...stage, tasks: "16", bystanders: [1, 3], until: 0.95 },
        { ...stage, tasks: "16,19", bystanders: [0, 3], until: 0.85 },
      ],
    },
    training: { ...muon.settings.training, steps: 8_000, evalEvery: 500 },
  },
});
