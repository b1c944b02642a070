/**
 * Registers the system, the kind and an experiment, trains it, and evaluates what was saved.
 *
 *   tsx train.ts [run folder] [steps]
 */
import { evaluateSaved, registerExperiments, registerKind, trainRun } from "fwm";
import { registerSystem } from "fwm/model";
import { gatedFwm } from "./model.ts";
import { type RecallEvaluation, recall, vocabularyOf } from "./recall.ts";

const [folder = "runs/recall", steps = "750"] = process.argv.slice(2);

// Systems first: once settings have been parsed, none can be added.
registerSystem("gated-fwm", gatedFwm);
registerKind(recall);

const task = { name: "recall", symbols: 8, pairs: 4 };
const system = {
  name: "gated-fwm",
  vocabulary: vocabularyOf(task),
  embedding: 32,
  hidden: 64,
  memory: 16,
  reads: 1,
};
const settings = recall.schema.parse({
  task,
  system,
  training: {
    seed: 1,
    steps: Number(steps),
    batch: 32,
    optimizer: { name: "adam", learningRate: 3e-3 },
    ...{ logEvery: 100, evalEvery: 250, saveEvery: 250, patience: 0 },
  },
});
const description = "recall of one of four pairs, a gated FWM";
registerExperiments({ "recall-gated-fwm": { description, settings, smoke: {} } });

await trainRun(
  { action: "start", experiment: "recall-gated-fwm", settings, folder },
  {
    env: process.env,
    signal: new AbortController().signal,
    command: process.argv,
    packageVersion: "0.1.0",
    callbacks: {
      onLog: (step, { loss }) => console.log(`step ${step}: loss ${loss!.toFixed(3)}`),
      onEvaluation: (step, { accuracy }) =>
        console.log(`step ${step}: validation accuracy ${accuracy!.toFixed(3)}`),
    },
  },
);
const { evaluation } = await evaluateSaved(folder, { split: "test" });
console.log(`test accuracy ${(evaluation as RecallEvaluation).accuracy.toFixed(3)}`);
