/** Optimizers and learning-rate schedules as settings: what an experiment or `--set` may say, and what becomes of it. */
import { z } from "zod";
import { adam, asgd, averaged, muon, type Optimizer, sgd } from "./optimizers.ts";

const learningRate = z.number().positive();
const momentum = z.number().min(0).lt(1);
/** Coupled L2 decay: added to the gradient. */
const weightDecay = z.number().min(0).default(0);

const adamSchema = z.strictObject({
  name: z.literal("adam"),
  learningRate,
  beta1: momentum.default(0.9),
  beta2: momentum.default(0.999),
  eps: z.number().positive().default(1e-8),
  weightDecay,
  /** Factors on the rate of single parameters, by name. */
  lrRatios: z.record(z.string(), z.number().positive()).optional(),
});

/** Muon for matrices, Adam at the same rate for all else. */
const muonSchema = adamSchema.extend({
  name: z.literal("muon"),
  momentum: momentum.default(0.95),
  /** Iterations of Newton and Schulz. */
  iterations: z.int().min(1).max(20).default(5),
  /** Matrices that Adam trains nevertheless, by name: embedding and output. */
  byAdam: z.array(z.string()).default([]),
  /** Matrices that are several side by side, such as an LSTM's gates, and how many. */
  blocks: z.record(z.string(), z.int().min(1)).default({}),
});

const sgdSchema = z.strictObject({ name: z.literal("sgd"), learningRate, weightDecay });

/** When averaging begins: at the start of an epoch (the first is 0), or when validation stops to improve. */
const switchSchema = z.discriminatedUnion("when", [
  z.strictObject({ when: z.literal("epoch"), epoch: z.int().min(0) }),
  /** The loss is above the best of all validations but the last `window`: AWD-LSTM's rule. */
  z.strictObject({ when: z.literal("nonMonotone"), window: z.int().min(1).default(5) }),
]);

const asgdSchema = z.strictObject({
  name: z.literal("asgd"),
  learningRate,
  weightDecay,
  /** What trains until then. */
  before: z.discriminatedUnion("name", [adamSchema, sgdSchema]),
  switch: switchSchema,
});

const averagedAdamSchema = adamSchema.extend({
  name: z.literal("averagedAdam"),
  /** When the mean of the weights begins; Adam continues as it was. */
  switch: switchSchema,
  /** Factor on the rate from then on. */
  averagingLrRatio: z.number().positive().default(1),
});

/** The schema of an optimizer. */
export const optimizerSchema = z.discriminatedUnion("name", [
  adamSchema,
  muonSchema,
  sgdSchema,
  asgdSchema,
  averagedAdamSchema,
]);

/** The schema of an optimizer without a switch, for training that has no epochs. */
export const plainOptimizerSchema = z.discriminatedUnion("name", [adamSchema, muonSchema, sgdSchema]);

/** Settings of an optimizer. */
export type OptimizerSettings = z.infer<typeof optimizerSchema>;

/** Steps over which the rate rises from 0. */
const warmup = z.int().min(0).default(0);
/** Steps at which the decay begins and ends (unless given: at the last one), and what is left of the rate then. */
const decay = {
  warmup,
  decayStart: z.int().min(0).default(0),
  decayEnd: z.int().min(1).optional(),
  finalLrRatio: z.number().min(0).max(1).default(0),
};

const byStep = [
  z.strictObject({ name: z.literal("constant"), warmup }),
  z.strictObject({ name: z.literal("cosine"), ...decay }),
  z.strictObject({ name: z.literal("linear"), ...decay }),
] as const;

/** The schema of a schedule that goes by steps alone. */
export const stepScheduleSchema = z.discriminatedUnion("name", byStep);

/** The schema of a schedule. */
export const scheduleSchema = z.discriminatedUnion("name", [
  ...byStep,
  /** The rate is multiplied by `factor` at the start of each of these epochs (the first is 0). */
  z.strictObject({
    name: z.literal("epochs"),
    warmup,
    epochs: z.array(z.int().min(1)),
    factor: z.number().positive(),
  }),
]);

/** Settings of a schedule. */
export type ScheduleSettings = z.infer<typeof scheduleSchema>;

/** The optimizer before averaging begins, and the averaging one where there is one. */
export function optimizersOf(settings: OptimizerSettings): { first: Optimizer; averaging?: Optimizer } {
  switch (settings.name) {
    case "adam":
      return { first: adam(settings) };
    case "muon":
      return { first: muon(settings) };
    case "sgd":
      return { first: sgd(settings) };
    case "asgd":
      return { first: optimizersOf(settings.before).first, averaging: asgd(settings) };
    case "averagedAdam":
      return { first: adam(settings), averaging: averaged(adam(settings)) };
  }
}

/** The rate before the schedule: of the optimizer that is at work. */
export function baseRate(settings: OptimizerSettings, averaging: boolean): number {
  switch (settings.name) {
    case "adam":
    case "muon":
    case "sgd":
      return settings.learningRate;
    case "asgd":
      return (averaging ? settings : settings.before).learningRate;
    case "averagedAdam":
      return settings.learningRate * (averaging ? settings.averagingLrRatio : 1);
  }
}

/** Whether averaging begins now: before a step of `epoch`, after validations with these losses. */
export function startsAveraging(
  settings: OptimizerSettings,
  { epoch, losses }: { readonly epoch: number; readonly losses: readonly number[] },
): boolean {
  if (!("switch" in settings)) return false;
  if (settings.switch.when === "epoch") return epoch >= settings.switch.epoch;
  const { window } = settings.switch;
  const last = losses.at(-1);
  const earlier = losses.slice(0, -1);
  // The list is appended after the test in the original, so it needs more than `window` earlier epochs.
  return last !== undefined && earlier.length > window && last > Math.min(...earlier.slice(0, -window));
}
