/** A kind of experiment in a few lines: one weight, pulled towards a target with noise. No engine, no data. */
import { z } from "zod";
import { defineKind } from "../../src/experiment/defineKind.ts";
import { type BaseEvaluation, loopFields, type Session, untilLastStep } from "../../src/experiment/kind.ts";
import { registerExperiments, registerKind } from "../../src/experiment/registry.ts";
import { keyOf, normal } from "../../src/random.ts";

const schema = z.strictObject({
  task: z.strictObject({ name: z.literal("toy"), target: z.number() }),
  system: z.strictObject({ name: z.literal("weight") }),
  // A step can be made to take some milliseconds: time enough to be killed in.
  training: z.strictObject({ ...loopFields, steps: z.int(), rate: z.number(), pause: z.int() }),
});
type ToySettings = z.infer<typeof schema>;

function openToy({ task, training }: ToySettings): Session {
  const weight = new Float32Array(1);
  const tensor = () => ({ weight: { dtype: "f32" as const, shape: [1], data: weight.slice() } });
  const take = (model: Parameters<Session["init"]>[0]["model"]) => {
    weight[0] = Number(model.weight!.data[0]);
  };
  return {
    data: { identity: `target ${task.target}`, notes: [] },
    async step(step) {
      await new Promise((resolve) => setTimeout(resolve, training.pause));
      const noise = 0.1 * normal(keyOf(training.seed, "toy"), step);
      weight[0]! += training.rate * (task.target - weight[0]! + noise);
      const error = Math.abs(task.target - weight[0]!);
      return { means: { error }, work: 1, ...(Number.isFinite(error) ? {} : { nonFinite: "weight" }) };
    },
    evaluate: async () => ({ error: Math.abs(task.target - weight[0]!) }),
    init: ({ model }) => take(model),
    restore: async ({ model }) => take(model),
    snapshot: () => ({ model: tensor(), optimizer: {}, state: {} }),
    release: async () => {},
  };
}

/** The kind. */
export const toy = defineKind<ToySettings, BaseEvaluation & { error: number }, never>({
  name: "toy",
  schema,
  unit: "step",
  flags: { steps: "training.steps", batch: "training.seed" },
  measures: { error: { label: "error", better: "lower", digits: 4 } },
  best: "error",
  headline: "error",
  speed: { name: "stepsPerSecond", label: "steps/s" },
  shown: "error",
  steps: ({ training }) => training.steps,
  countWeights: () => 1,
  open: async (settings) => openToy(settings),
  evaluationOptions: { split: { type: "choice", values: ["valid", "test"], help: "which" } },
  evaluate: async ({ folder, experiment, settings }, { split = "valid" }) => ({
    ...{ model: folder.path, experiment, step: folder.step ?? null, split: String(split) },
    error: Math.abs(settings.task.target - Number(folder.model.weight!.data[0])),
  }),
});

const training = {
  seed: 1,
  steps: 60,
  rate: 0.2,
  pause: 0,
  logEvery: 10,
  evalEvery: 20,
  saveEvery: 5,
  ...untilLastStep,
};
/** Registers the kind and an experiment of it. */
export function registerToy(): void {
  registerKind(toy);
  const settings = {
    task: { name: "toy" as const, target: 3 },
    system: { name: "weight" as const },
    training,
  };
  registerExperiments({ "toy-weight": { description: "a weight", settings, smoke: {} } });
}
