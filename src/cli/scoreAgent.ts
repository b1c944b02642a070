/** An agent's evaluation as commands make and show it: with progress, and beside the authors' number. */
import { metarlExperiments } from "../../experiments/index.ts";
import { type GraphRules, graphRules } from "../environment/index.ts";
import { UsageError } from "../errors.ts";
import type { AgentEvaluation, AgentSplit } from "../experiment/metarlEvaluate.ts";
import { type MetarlExperiment, rulesOf } from "../experiment/metarlSettings.ts";
import type { LoadedModel } from "../store/modelFolder.ts";
import type { Output } from "./output.ts";
import { table, thousands } from "./table.ts";

/** Episodes that an agent plays on every graph unless told. */
export const usualEpisodes = 10;

/** What commands let a person choose. */
export interface ScoreAgentOptions {
  readonly split: "valid" | AgentSplit;
  readonly episodes: number | undefined;
  readonly seed?: number | undefined;
  readonly timer?: GraphRules["timerOnSuccess"] | undefined;
  readonly threads: number | undefined;
}

/** Plays an agent's episodes, with progress. */
export async function scoreAgent(
  agent: LoadedModel,
  { split, episodes = usualEpisodes, seed, timer, threads }: ScoreAgentOptions,
  out: Output,
): Promise<AgentEvaluation> {
  if (split === "valid") {
    throw new UsageError("--split valid: agents have no validation graphs", {
      hint: "use --split test, the graphs it has not seen, or --split train",
    });
  }
  const { evaluateAgent } = await import("../experiment/metarlEvaluate.ts");
  const progress = out.progress({ label: `playing on ${split} graphs`, total: episodes, show: thousands });
  try {
    return await evaluateAgent(agent, {
      split,
      episodes,
      ...(seed === undefined ? {} : { seed }),
      ...(timer ? { timer } : {}),
      ...(threads ? { threads } : {}),
      onEpisode: (done) => progress.update(done, "episodes"),
    });
  } finally {
    progress.stop();
  }
}

/** What the authors' agent had reached at the end of its log on the split; null where the rules are not the experiment's. */
export function publishedReward({
  experiment,
  rules,
  length,
  split,
}: Pick<AgentEvaluation, "experiment" | "rules" | "length" | "split">): {
  episodes: number;
  reward: number;
} | null {
  const known = (metarlExperiments as Readonly<Record<string, MetarlExperiment>>)[experiment];
  if (!known?.paper) return null;
  const { task } = known.settings;
  const theirs = { ...rulesOf(task), length: task.length };
  const same = Object.entries({ ...rules, length }).every(
    ([name, value]) => theirs[name as keyof typeof theirs] === value,
  );
  if (!same) return null;
  const { episodes, testReward, trainReward } = known.paper;
  return { episodes, reward: split === "test" ? testReward : trainReward };
}

/** The evaluation as a table. */
export function showAgent(evaluation: AgentEvaluation): string {
  const { model, step, split, graphs, episodes, length, rules, reward, random, explorer, shortestPath } =
    evaluation;
  const named = Object.entries(graphRules).find(([, set]) =>
    Object.entries(set).every(([rule, value]) => rules[rule as keyof typeof rules] === value),
  );
  const paper = publishedReward(evaluation);
  const rows = [
    ["agent", reward],
    ["random play", random],
    ["explorer, forgets nothing", explorer],
    ["shortest path, graph known", shortestPath],
  ] as const;
  const error = (value: number | null): string => (value === null ? "-" : value.toFixed(2));
  return (
    `${model}${step === null ? "" : `, after ${thousands(step)} episodes`}\n` +
    `${thousands(graphs)} ${split} graphs, ${thousands(episodes)} ${episodes === 1 ? "episode" : "episodes"} ` +
    `of ${length} steps on each, ${named ? `${named[0]} rules` : "rules of its own"}\n\n` +
    table([
      ["mean total reward", "", "± episodes", "± graphs"],
      ...rows.map(([name, { mean, standardError, graphError }]) => [
        name,
        mean.toFixed(2),
        error(standardError),
        error(graphError),
      ]),
      ...(paper
        ? [[`paper, ${split}, after ${thousands(paper.episodes)} episodes`, paper.reward.toFixed(2), "", ""]]
        : []),
    ]) +
    "\n± standard errors: other episodes on these graphs; other graphs too\n"
  );
}

/** The evaluation in a line. */
export function agentLine(evaluation: AgentEvaluation): string {
  const { split, reward, random, explorer, shortestPath, episodes, graphs } = evaluation;
  const paper = publishedReward(evaluation);
  const error = reward.standardError === null ? "" : ` ± ${reward.standardError.toFixed(2)}`;
  return (
    `${split}: mean total reward ${reward.mean.toFixed(2)}${error} in ${thousands(episodes)} episodes on ` +
    `${thousands(graphs)} graphs; random play ${random.mean.toFixed(2)}, ` +
    `explorer ${explorer.mean.toFixed(2)}, graph known ${shortestPath.mean.toFixed(2)}${paper ? `  (paper: ${paper.reward.toFixed(2)} after ${thousands(paper.episodes)} episodes)` : ""}`
  );
}
