/**
 * Endless stories in one run: three of four are generated, none twice, and how often a task comes follows its validation
 * error. Of each the memory is told which statements its answers follow from. Real stories alone overfit after some 20 epochs;
 * here they are seen fewer than twice.
 *
 * The two tasks that wait longest for their first right chain of reads come first, and begin smaller than bAbI's: induction
 * among three animals instead of five, path finding on maps of three and four rooms instead of six.
 */
import { catbabiExperiment } from "../src/experiment/catbabi/settings.ts";
import muon from "./catbabi-qa-fwm-muon.ts";

const { difficulty: ordinary } = muon.settings.task;

export default catbabiExperiment({
  ...muon,
  description: "catbAbI, question answering, FWM, endless stories: tasks are generated as they are needed",
  settings: {
    ...muon.settings,
    task: {
      ...muon.settings.task,
      source: "mixed",
      generatedFraction: 0.75,
      sampling: { name: "byError", of: "validation", floor: 0.25 },
      difficulty: { ...ordinary, ordinary: 0.5, rooms: [3, 6], chain: [1, 2] },
      curriculum: [
        {
          source: "generated",
          tasks: "16",
          difficulty: { ...ordinary, ordinary: 0, animals: [3, 3] },
          until: 0.95,
          steps: 1_000,
        },
        {
          source: "generated",
          tasks: "16",
          difficulty: { ...ordinary, ordinary: 0.5, animals: [3, 5] },
          until: 0.95,
          steps: 1_000,
        },
        {
          source: "generated",
          tasks: "16,19",
          difficulty: { ...ordinary, ordinary: 0.2, animals: [3, 5], rooms: [3, 4] },
          until: 0.85,
          steps: 1_000,
        },
      ],
    },
    // Without facts a seed may stay at a shortcut in the first stage: docs/infinite-catbabi.md.
    training: { ...muon.settings.training, steps: 8_000, evalEvery: 500, factCoef: 1 },
  },
});
