/** catbAbI: question answering and language modelling on concatenated bAbI stories, as a kind of experiment. */
import { UsageError } from "../../errors.ts";
import { buildSystem } from "../../model/registry.ts";
import { countState, countWeights } from "../../model/sequence.ts";
import { defineKind } from "../defineKind.ts";
import { type CatbabiEvaluation, evaluationOptions, isStretch, type StretchEvaluation } from "./options.ts";
import { accuracyFigure, answersCard, published, showAnswers, showAnswersLine, taskBars } from "./present.ts";
import { showStretch, showStretchLine } from "./presentStretch.ts";
import { type CatbabiPaper, type CatbabiSettings, catbabiSchema, renamedSettings } from "./settings.ts";

/** The kind. What computes is loaded when it is needed. */
export const catbabi = defineKind<CatbabiSettings, CatbabiEvaluation | StretchEvaluation, CatbabiPaper>({
  name: "catbabi",
  schema: catbabiSchema,
  renamed: renamedSettings,
  unit: "step",
  flags: { steps: "training.steps", batch: "training.batch", data: "task.data" },
  measures: {
    loss: { label: "loss", better: "lower", digits: 4 },
    accuracy: { label: "accuracy", better: "higher", percent: true, digits: 2 },
    perplexity: { label: "perplexity", better: "lower", digits: 3 },
  },
  best: "loss",
  headline: "accuracy",
  speed: { name: "tokensPerSecond", label: "tokens/s" },
  shown: "loss",
  steps: ({ training }) => training.steps,
  countWeights: ({ system }) => countWeights(buildSystem(system)),
  countState: ({ system, training }, rows = Math.max(training.batch, training.evalBatch)) =>
    countState(buildSystem(system), rows),
  fitToData: async (settings) => (await import("./stories.ts")).fitToStories(settings),
  open: async (settings, context) => (await import("./session.ts")).openCatbabi(settings, context),
  evaluationOptions,
  evaluate: async (model, options, context) =>
    options.suite === undefined
      ? (await import("./evaluate.ts")).evaluateCatbabi(model, options, context)
      : (await import("./stretch.ts")).evaluateStretch(model, options, context),
  published: (evaluation, paper) => (isStretch(evaluation) ? null : published(evaluation, paper)),
  show: (evaluation, paper) =>
    isStretch(evaluation) ? showStretch(evaluation) : showAnswers(evaluation, paper),
  showLine: (evaluation, paper) =>
    isStretch(evaluation) ? showStretchLine(evaluation) : showAnswersLine(evaluation, paper),
  use: "fwm ask",
  card: (result, evaluation, about) => {
    if (isStretch(evaluation)) {
      throw new UsageError("--suite: a card is written of a split", { hint: "leave --suite away" });
    }
    return answersCard(result, evaluation, about);
  },
  figure: (runs) => Promise.resolve(accuracyFigure(runs)),
  bars: taskBars,
  benchRows: ({ task, system, training }, { batches = [32, 64], window = training.window, mode = "both" }) =>
    (mode === "both" ? (["qa", "lm"] as const) : [mode as "qa" | "lm"]).flatMap((each) =>
      batches.map((batch) => ({
        label: { mode: each, batch },
        settings: { task: { ...task, mode: each }, system, training: { ...training, batch, window } },
      })),
    ),
  bench: async (row, options) => (await import("./bench.ts")).benchCatbabi(row, options),
});
