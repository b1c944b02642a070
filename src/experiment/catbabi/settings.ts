/** Settings of a catbAbI experiment: a task, a system and how it is trained. One strict schema checks them all. */
import { z } from "zod";
import { type Difficulty, difficultyLimits, ordinary } from "../../babi/generator/difficulty.ts";
import { parseTasks } from "../../data/catbabi.ts";
import { fwmDefaults } from "../../model/fwmModel.ts";
import { systemSchema } from "../../model/registry.ts";
import { size } from "../../model/sequence.ts";
import { optimizerSchema, scheduleSchema } from "../../train/optimizerSettings.ts";
import { type Experiment, loopFields, untilLastStep } from "../kind.ts";

/** How often each task is generated. */
const samplingSchema = z.discriminatedUnion("name", [
  /** In the proportions of the training set; some tasks in equal parts. */
  z.strictObject({ name: z.literal("fixed") }),
  /** In those until the first validation, then by the share of wrong answers: `sampling.ts`. */
  z.strictObject({
    name: z.literal("byError"),
    /** Whose: those of the validation, or those in training since the one before, harder stories among them. */
    of: z.enum(["validation", "training"]).default("validation"),
    /** The part of the questions that all tasks have in equal parts, whatever their errors. */
    floor: z.number().min(0).max(1).default(0.25),
  }),
]);

/** The least and the most of a number. */
function ordered(bound: z.ZodInt) {
  return z
    .tuple([bound, bound])
    .refine(([from, to]) => from <= to, "the first is the least, the second the most");
}

/** The least and the most of one number of a difficulty; as in bAbI unless given. */
function range(name: keyof Difficulty) {
  const [least, most] = difficultyLimits[name];
  return ordered(z.int().min(least).max(most)).default([ordinary[name], ordinary[name]]);
}

/** How hard generated stories are: `src/babi/generator/difficulty.ts`. */
const difficultySchema = z.strictObject({
  /** The fraction of generated stories that are as in bAbI; the others draw each number from its range. */
  ordinary: z.number().min(0).max(1).default(1),
  distractors: range("distractors"),
  lookback: range("lookback"),
  objects: range("objects"),
  carried: range("carried"),
  rooms: range("rooms"),
  path: range("path"),
  chain: range("chain"),
  stories: range("stories"),
  animals: range("animals"),
  orders: range("orders"),
  distance: range("distance"),
});

/** Tasks of generated stories, e.g. "1-20" or "1,2,15". */
const tasksSchema = z.union([z.string(), z.int().transform(String)]).superRefine((tasks, context) => {
  try {
    parseTasks(tasks);
  } catch (error) {
    context.addIssue({ code: "custom", message: (error as Error).message });
  }
});

/** A stage of a curriculum: stories of some tasks, until they are learned. */
const stageSchema = z.strictObject({
  source: z.enum(["real", "generated"]).default("generated"),
  tasks: tasksSchema,
  difficulty: difficultySchema.prefault({}),
  /** The least and the most people, animals or rooms that no answer is about in a real story: `src/babi/bystanders.ts`. */
  bystanders: ordered(z.int().min(0).max(100)).optional(),
  /** Whether the words of a real story become the first ones of their kind: three animals are always the same three. */
  fewNames: z.boolean().optional(),
  /** The training accuracy at which the stage ends. */
  until: z.number().min(0).max(1),
  /** Steps after which it ends in any case. */
  steps: z.int().min(1),
});

/** Which stories, and what is learned of them. */
const taskSchema = z.strictObject({
  name: z.literal("catbabi"),
  /** qa: only answers are learned; lm: every next token. */
  mode: z.enum(["qa", "lm"]),
  /** Where training stories come from. Held-out ones are the prepared files, if there are any: docs/infinite-catbabi.md. */
  source: z.enum(["real", "generated", "mixed"]),
  /** Whether real stories come under other names each time they are trained on: `src/babi/rename.ts`. */
  rename: z.boolean().default(false),
  /** Fraction of generated stories when the source is mixed. */
  generatedFraction: z.number().min(0).max(0.99),
  /** Tasks of generated stories; real stories are of all that were prepared. */
  tasks: tasksSchema,
  /** How often each of them comes. */
  sampling: samplingSchema.default({ name: "fixed" }),
  /** How hard they are. */
  difficulty: difficultySchema.prefault({}),
  /** How hard they are once validation has come to an accuracy, from then on: the last entry that it has come to. */
  harder: z
    .array(z.strictObject({ accuracy: z.number().min(0).max(1), difficulty: difficultySchema.prefault({}) }))
    .default([]),
  /** What comes before all this, stage by stage: `../curriculum.ts`. */
  curriculum: z.array(stageSchema).default([]),
  /** Folder of prepared data; empty for the default place. Generated stories need none. */
  data: z.string(),
});

const trainingSchema = z.strictObject({
  ...loopFields,
  batch: size.max(4096),
  /** Tokens per row and step: truncated back-propagation. */
  window: size.max(4096),
  steps: z.int().min(1),
  optimizer: optimizerSchema,
  schedule: scheduleSchema,
  /** Global gradient norm; 0: no clipping. */
  clip: z.number().min(0),
  /** Decay of the moving average of the weights that evaluation uses; 0: none. */
  emaDecay: z.number().min(0).max(0.99999),
  /** Weight of an answer in the loss of language-model mode, where any other token has 1. */
  answerWeight: z.number().min(1).max(1000).default(1),
  /** Weight in the loss of finding the statements that answers of generated stories follow from: `../../train/facts.ts`. */
  factCoef: z.number().min(0).default(0),
  /** Until when these statements are told. */
  factsUntil: z.enum(["curriculum", "end"]).default("end"),
  evalBatch: size.max(4096),
});

/** The schema of a catbAbI experiment. */
export const catbabiSchema = z.strictObject({
  task: taskSchema,
  system: systemSchema,
  training: trainingSchema,
});

/** Settings of a catbAbI experiment. */
export type CatbabiSettings = z.infer<typeof catbabiSchema>;

/** What was published of a system on catbAbI. */
export interface CatbabiPaper {
  /** On the test split, mean of the paper's seeds. */
  readonly accuracy: number;
  readonly perplexity: number;
  /** Trained weights and state variables ("activations") of the system, rounded as the paper has them. */
  readonly weights?: number;
  readonly stateVariables?: number;
  /** Validation accuracy while the authors' released run trained, read off their plot: ± 0.003. */
  readonly curve?: readonly { readonly step: number; readonly accuracy: number }[];
}

/** A catbAbI experiment. */
export type CatbabiExperiment = Experiment<CatbabiSettings, CatbabiPaper>;

/** Declares a catbAbI experiment. */
export function catbabiExperiment(definition: CatbabiExperiment): CatbabiExperiment {
  return definition;
}

/** The task: question answering on the real 10k stories. */
export const catbabiTask: CatbabiSettings["task"] = {
  name: "catbabi",
  mode: "qa",
  source: "real",
  rename: false,
  generatedFraction: 0.5,
  tasks: "1-20",
  sampling: { name: "fixed" },
  difficulty: difficultySchema.parse({}),
  harder: [],
  curriculum: [],
  data: "",
};

/** The system at the paper's sizes, as the authors released it. */
export const catbabiSystem = fwmDefaults;

/** The released recipe: Adam at 0.001, batch 32, 50,000 steps, nothing else. */
export const releasedTraining: CatbabiSettings["training"] = {
  seed: 1,
  batch: 32,
  window: 200,
  steps: 50_000,
  optimizer: { name: "adam", learningRate: 1e-3, beta1: 0.9, beta2: 0.999, eps: 1e-8, weightDecay: 0 },
  schedule: { name: "constant", warmup: 0 },
  clip: 0,
  emaDecay: 0,
  answerWeight: 1,
  factCoef: 0,
  factsUntil: "end",
  logEvery: 25,
  evalEvery: 250,
  evalBatch: 128,
  saveEvery: 250,
  ...untilLastStep,
};

/** Names that settings had in version 0.1. */
export const renamedSettings: Readonly<Record<string, string>> = {
  "task.share": "task.generatedFraction",
  "training.learningRate": "training.optimizer.learningRate",
  "training.beta1": "training.optimizer.beta1",
  "training.beta2": "training.optimizer.beta2",
  "training.eps": "training.optimizer.eps",
  "training.weightDecay": "training.optimizer.weightDecay",
  "training.warmup": "training.schedule.warmup",
  "training.decay": "training.schedule.name",
  "training.final": "training.schedule.finalLrRatio",
  "training.decayFrom": "training.schedule.decayStart",
  "training.averaging": "training.emaDecay",
  "training.validEvery": "training.evalEvery",
  "training.validBatch": "training.evalBatch",
};
