/** Word-level language modelling on text, as a kind of experiment. */
import { buildSystem } from "../../model/registry.ts";
import { countState, countWeights } from "../../model/sequence.ts";
import { defineKind } from "../defineKind.ts";
import { evaluationOptions, type TextEvaluation } from "./options.ts";
import { perplexityFigure, published, showText, showTextLine, textCard } from "./present.ts";
import { generatedDataset, type TextPaper, type TextSettings, textSchema } from "./settings.ts";

/** The kind. What computes is loaded when it is needed. */
export const text = defineKind<TextSettings, TextEvaluation, TextPaper>({
  name: "text",
  schema: textSchema,
  unit: "step",
  flags: { steps: "training.steps", batch: "training.batch", data: "task.data" },
  measures: {
    loss: { label: "loss", better: "lower", digits: 4 },
    perplexity: { label: "perplexity", better: "lower", digits: 2 },
    bits: { label: "bits per word", better: "lower", digits: 3 },
  },
  best: "loss",
  headline: "perplexity",
  speed: { name: "tokensPerSecond", label: "tokens/s" },
  shown: "loss",
  steps: ({ training }) => training.steps,
  countWeights: ({ system }) => countWeights(buildSystem(system)),
  countState: ({ system, training }, rows = Math.max(training.batch, training.evalBatch)) =>
    countState(buildSystem(system), rows),
  open: async (settings, context) => (await import("./session.ts")).openTextSession(settings, context),
  evaluationOptions,
  evaluate: async (model, options, context) =>
    (await import("./evaluate.ts")).evaluateText(model, options, context),
  published,
  show: showText,
  showLine: showTextLine,
  use: "fwm generate",
  card: textCard,
  figure: (runs) => Promise.resolve(perplexityFigure(runs)),
  // The cost of a step depends on its shape alone: windows of the usual length, of text that needs no files.
  benchRows: ({ task, system, training }, { window = training.window }) => {
    const lengths = { ...training.lengths, halfProbability: 0, std: 0, max: 0 };
    return [
      {
        label: { system: system.name, batch: training.batch, window },
        settings: {
          task: { ...task, dataset: generatedDataset, data: "" },
          system,
          training: { ...training, window, lengths },
        },
      },
    ];
  },
  bench: async (row, options) => (await import("./bench.ts")).benchText(row, options),
});
