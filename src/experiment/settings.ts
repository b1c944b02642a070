/** Settings of an experiment: a task, a system and how it is trained. One strict schema checks them all. */
import { z } from "zod";
import { fwmDefaults } from "../model/fwmModel.ts";
import { type SystemSettings, systemSchema } from "../model/registry.ts";

/** What `config.json` of a model that answers has as its format. */
export const modelFormat = "fwm-model";
/** What `config.json` of an agent has as its format. */
export const agentFormat = "fwm-agent";

const size = z.int().min(1).max(65_536);
const count = z.int().min(0);
const share = z.number().min(0).max(1);

/** catbAbI: which stories, and what counts. */
const taskSchema = z.strictObject({
  name: z.literal("catbabi"),
  /** qa: only answers are learned; lm: every next token. */
  mode: z.enum(["qa", "lm"]),
  /** Where training stories come from. Held-out ones are the prepared files, if there are any: docs/infinite-catbabi.md. */
  source: z.enum(["real", "generated", "mixed"]),
  /** Share of generated stories when the source is mixed. */
  share: share.max(0.99),
  /** Tasks of generated stories, e.g. "1-20" or "1,2,15"; real stories are of all that were prepared. */
  tasks: z.union([z.string(), z.int().transform(String)]),
  /** Folder of prepared data; empty for the default place. Generated stories need none. */
  data: z.string(),
});

const trainingSchema = z.strictObject({
  seed: count,
  batch: size.max(4096),
  window: size.max(4096),
  steps: z.int().min(1),
  learningRate: z.number().positive(),
  /** Steps over which the rate rises. */
  warmup: count,
  decay: z.enum(["none", "cosine", "linear"]),
  /** Share of the rate left at the last step. */
  final: share,
  /** Step at which the decay begins. */
  decayFrom: count,
  beta1: share,
  beta2: share,
  eps: z.number().positive(),
  /** Coupled L2 decay. */
  weightDecay: z.number().min(0),
  /** Global gradient norm; 0: no clipping. */
  clip: z.number().min(0),
  /** Decay of the moving average of the weights that evaluation uses; 0: none. */
  averaging: share.max(0.99999),
  logEvery: z.int().min(1),
  validEvery: z.int().min(1),
  validBatch: size.max(4096),
  /** Steps between checkpoints besides those at validations. */
  saveEvery: z.int().min(1),
  /** Validations without a better loss after which training stops; 0: never. */
  patience: count,
});

/** The schema of a catbAbI experiment. */
export const settingsSchema = z.strictObject({
  task: taskSchema,
  system: systemSchema,
  training: trainingSchema,
});

/** Settings of a catbAbI experiment. */
export type Settings = z.infer<typeof settingsSchema>;
/** Settings of the training. */
export type TrainingSettings = Settings["training"];

/** An experiment as `experiments/` defines it. */
export interface Experiment {
  /** What it shows, in a line. */
  readonly shows: string;
  readonly settings: Settings;
  /** Small settings laid over the others by `--smoke`: a check, not a result. */
  readonly smoke: { readonly [Part in keyof Settings]?: Partial<Settings[Part]> };
  /** The published numbers this stands beside. */
  readonly paper?: Published;
}

/** What was published of a system on catbAbI. */
export interface Published {
  /** On the test split, mean of the paper's seeds. */
  readonly accuracy: number;
  readonly perplexity: number;
  /** Validation accuracy while the authors' released run trained, read off their plot: ± 0.003. */
  readonly curve?: readonly { readonly step: number; readonly accuracy: number }[];
}

/** The task: question answering on the real 10k stories. */
export const catbabiTask: Settings["task"] = {
  name: "catbabi",
  mode: "qa",
  source: "real",
  share: 0.5,
  tasks: "1-20",
  data: "",
};

/** The released recipe: Adam at 0.001, batch 32, 50,000 steps, nothing else. */
export const releasedTraining: TrainingSettings = {
  seed: 1,
  batch: 32,
  window: 200,
  steps: 50_000,
  learningRate: 1e-3,
  warmup: 0,
  decay: "none",
  final: 0,
  decayFrom: 0,
  beta1: 0.9,
  beta2: 0.999,
  eps: 1e-8,
  weightDecay: 0,
  clip: 0,
  averaging: 0,
  logEvery: 25,
  validEvery: 250,
  validBatch: 128,
  saveEvery: 250,
  patience: 0,
};

/** Declares an experiment. */
export function experiment(definition: Experiment): Experiment {
  return definition;
}

export { fwmDefaults as fwmSystem, type SystemSettings };
