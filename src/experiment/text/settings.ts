/** Settings of a language-modelling experiment: a text, a system and how it is trained. One strict schema checks them all. */
import { z } from "zod";
import type { LengthSettings } from "../../data/text/columns.ts";
import { systemSchema } from "../../model/registry.ts";
import { size } from "../../model/sequence.ts";
import { optimizerSchema, scheduleSchema } from "../../train/optimizerSettings.ts";
import { type Experiment, loopFields } from "../kind.ts";

/** The text that needs no files: generated stories, for checks and benchmarks. */
export const generatedDataset = "generated";

const taskSchema = z.strictObject({
  name: z.literal("text"),
  /** Prepared text by the name of its folder under `FWM_DATA`, such as ptb or wikitext-2; or "generated". */
  dataset: z
    .string()
    .regex(/^\w[\w.-]*$/, "a name such as ptb, wikitext-2 or text-mine; --data takes any folder"),
  /** Folder of prepared text; empty for the default place. */
  data: z.string(),
});

const trainingSchema = z.strictObject({
  ...loopFields,
  /** Steps between evaluations; 0: at the end of every epoch. */
  evalEvery: z.int().min(0),
  /** Columns that the text is cut into. */
  batch: size.max(4096),
  /** Usual tokens per row and step: truncated back-propagation. */
  window: size.min(2).max(4096),
  /** How the length of a window varies around the usual one; the rate of a step is scaled by it. */
  lengths: z.strictObject({
    /** Probability of half the usual length. */
    halfProbability: z.number().min(0).max(1),
    std: z.number().min(0),
    min: z.int().min(2),
    /** 0: no limit. */
    max: z.int().min(0).max(4096),
  }),
  steps: z.int().min(1),
  optimizer: optimizerSchema,
  schedule: scheduleSchema,
  /** Global gradient norm; 0: no clipping. */
  clip: z.number().min(0),
  /** Decay of the moving average of the weights that evaluation uses; 0: none. */
  emaDecay: z.number().min(0).max(0.99999),
  /** Columns and tokens per window of an evaluation. */
  evalBatch: size.max(4096),
  evalWindow: size.max(4096),
  /** Of awd-txl: tokens before a window that are fed again in an evaluation; unless given as many as in training. */
  evalContext: z.int().min(1).max(65_536).optional(),
});

/** The schema of a language-modelling experiment. */
export const textSchema = z
  .strictObject({ task: taskSchema, system: systemSchema, training: trainingSchema })
  .superRefine(({ system, training: { evalContext, lengths } }, context) => {
    const hasContext = system.name === "awd-txl" && system.context > 0;
    if (evalContext !== undefined && !hasContext) {
      const message = "only for awd-txl with a context";
      context.addIssue({ code: "custom", path: ["training", "evalContext"], message });
    }
    if (lengths.max > 0 && lengths.max < lengths.min) {
      const message = `${lengths.max} is below the least length ${lengths.min}`;
      context.addIssue({ code: "custom", path: ["training", "lengths", "max"], message });
    }
  });

/** Settings of a language-modelling experiment. */
export type TextSettings = z.infer<typeof textSchema>;

/** The lengths of training windows. */
export function lengthsOf({
  window,
  lengths,
}: Pick<TextSettings["training"], "window" | "lengths">): LengthSettings {
  return { base: window, ...lengths };
}

/**
 * Sizes that training windows are padded to: half the usual length and the usual one with room for its spread. Each is
 * a compiled program that holds memory of its own; with the published lengths 40, 70 and 80 pad by 7 %.
 */
export function paddedWindows({
  window,
  lengths: { halfProbability, std, max },
}: Pick<TextSettings["training"], "window" | "lengths">): number[] {
  const roomy = (length: number): number => Math.ceil((length + std) / 10) * 10;
  const half = halfProbability > 0 ? [roomy(window / 2)] : [];
  const above = std > 0 ? [max > 0 ? max : roomy(window + std)] : [];
  return [...new Set([...half, window, ...above])].sort((a, b) => a - b);
}

/** The system as an evaluation reads with it: the same weights, perhaps with another context. */
export function evaluationSystem({
  system,
  training: { evalContext },
}: TextSettings): TextSettings["system"] {
  return system.name === "awd-txl" && evalContext !== undefined
    ? { ...system, context: evalContext }
    : system;
}

/** What was published of a system on a text: perplexities. */
export interface TextPaper {
  readonly valid?: number;
  readonly test: number;
  /** Validation perplexity while the authors' run trained, from their log. */
  readonly curve?: readonly { readonly epoch: number; readonly perplexity: number }[];
}

/** A language-modelling experiment. */
export type TextExperiment = Experiment<TextSettings, TextPaper>;

/** Declares a language-modelling experiment. */
export function textExperiment(definition: TextExperiment): TextExperiment {
  return definition;
}

/** A curve from pairs of epoch and perplexity. */
export function publishedCurve(
  ...points: readonly (readonly [epoch: number, perplexity: number])[]
): NonNullable<TextPaper["curve"]> {
  return points.map(([epoch, perplexity]) => ({ epoch, perplexity }));
}

/** Small settings of every experiment on text: generated text, a few dozen steps. */
export const textSmoke = {
  task: { dataset: generatedDataset },
  training: {
    batch: 4,
    window: 20,
    lengths: { halfProbability: 0.05, std: 2, min: 5, max: 24 },
    steps: 40,
    logEvery: 5,
    evalEvery: 20,
    saveEvery: 20,
    evalWindow: 20,
  },
} as const satisfies TextExperiment["smoke"];
