/** A kind of experiment that computes nothing: what is left of a sweep's time is the sweep itself. */
import { z } from "zod";
import { defineKind } from "../src/experiment/defineKind.ts";
import { type BaseEvaluation, loopFields } from "../src/experiment/kind.ts";
import { registerExperiments, registerKind } from "../src/experiment/registry.ts";

const schema = z.strictObject({
  task: z.strictObject({ name: z.literal("trivial") }),
  system: z.strictObject({ name: z.literal("nothing") }),
  training: z.strictObject({ ...loopFields, steps: z.int() }),
});

const tensors = () => ({ weight: { dtype: "f32" as const, shape: [1], data: new Float32Array(1) } });

registerKind(
  defineKind<z.infer<typeof schema>, BaseEvaluation & { value: number }, never>({
    name: "trivial",
    schema,
    unit: "step",
    flags: { steps: "training.steps", batch: "training.seed" },
    measures: { value: { label: "value", better: "lower", digits: 3 } },
    best: "value",
    headline: "value",
    speed: { name: "stepsPerSecond", label: "steps/s" },
    shown: "value",
    steps: ({ training }) => training.steps,
    countWeights: () => 1,
    open: ({ training: { seed } }) =>
      Promise.resolve({
        data: { notes: [] },
        step: () => Promise.resolve({ means: { value: seed }, work: 1 }),
        evaluate: () => Promise.resolve({ value: seed }),
        init: () => undefined,
        restore: () => Promise.resolve(),
        snapshot: () => ({ model: tensors(), optimizer: {}, state: {} }),
        release: () => Promise.resolve(),
      }),
    evaluationOptions: {},
    evaluate: ({ folder, experiment }) =>
      Promise.resolve({ model: folder.path, experiment, step: null, split: "valid", value: 0 }),
  }),
);

registerExperiments({
  trivial: {
    description: "nothing",
    settings: {
      task: { name: "trivial" },
      system: { name: "nothing" },
      training: schema.shape.training.parse({
        ...{ seed: 0, steps: 10, logEvery: 5, evalEvery: 5, saveEvery: 5, patience: 0 },
      }),
    },
    smoke: {},
  },
});
