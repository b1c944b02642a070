/** Meta-reinforcement learning on random graphs, as a kind of experiment. */
import { buildAgent } from "../../model/agentRegistry.ts";
import { countWeights } from "../../model/sequence.ts";
import { defineKind } from "../defineKind.ts";
import { evaluationOptions, type MetarlEvaluation } from "./options.ts";
import { agentCard, compareAgents, published, returnFigure, showAgent, showAgentLine } from "./present.ts";
import {
  agentSizesOf,
  type MetarlPaper,
  type MetarlSettings,
  metarlSchema,
  renamedSettings,
} from "./settings.ts";

/** The kind. What computes is loaded when it is needed. */
export const metarl = defineKind<MetarlSettings, MetarlEvaluation, MetarlPaper>({
  name: "metarl",
  schema: metarlSchema,
  renamed: renamedSettings,
  unit: "episode",
  flags: { steps: "training.episodes", batch: "training.agents" },
  measures: { return: { label: "return", better: "higher", digits: 2 } },
  best: "return",
  headline: "return",
  speed: { name: "episodesPerSecond", label: "episodes/s" },
  shown: "return",
  steps: ({ training }) => training.episodes,
  countWeights: ({ task, system }) => countWeights(buildAgent(system, agentSizesOf(task))),
  open: async (settings, context) => (await import("./session.ts")).openMetarl(settings, context),
  evaluationOptions,
  evaluate: async (model, options, context) =>
    (await import("./evaluate.ts")).evaluateMetarl(model, options, context),
  published,
  show: showAgent,
  showLine: showAgentLine,
  use: "fwm rollout",
  card: agentCard,
  figure: returnFigure,
  compare: compareAgents,
  benchRows: (settings) => [{ label: { agents: settings.training.agents }, settings }],
  bench: async (row, options) => (await import("./bench.ts")).benchMetarl(row, options),
});
