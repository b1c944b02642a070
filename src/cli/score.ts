/** What a saved model reaches, be it an agent or a model that answers, as every command scores and tells it. */
import type { GraphRules } from "../environment/index.ts";
import { UsageError } from "../errors.ts";
import type { AgentEvaluation } from "../experiment/metarlEvaluate.ts";
import type { Evaluation, StartState } from "../inference/evaluate.ts";
import type { LoadedModel } from "../store/modelFolder.ts";
import type { Output, Surroundings } from "./output.ts";
import { agentLine, publishedReward, scoreAgent, showAgent } from "./scoreAgent.ts";
import { answersLine, publishedAnswers, scoreAnswers, showAnswers } from "./scoreAnswers.ts";

/** A score of either kind. */
export type AnyScore = Evaluation | AgentEvaluation;

/** What commands let a person choose; some of it is for one kind only. */
export interface ScoreOptions {
  readonly split: "valid" | "test" | "train" | undefined;
  readonly batch: number | undefined;
  readonly episodes: number | undefined;
  readonly threads: number | undefined;
  readonly state?: StartState | undefined;
  readonly data?: string | undefined;
  readonly seed?: number | undefined;
  readonly timer?: GraphRules["timerOnSuccess"] | undefined;
}

/** Scores what a folder holds, with progress. */
export async function scoreModel(
  model: LoadedModel,
  { split, batch, state, data, episodes, seed, timer, threads }: ScoreOptions,
  env: Surroundings["env"],
  out: Output,
): Promise<AnyScore> {
  const { isAgent } = await import("../experiment/metarlSaved.ts");
  if (isAgent(model)) {
    refuse("agents", { batch, state, data });
    return scoreAgent(model, { split: split ?? "test", episodes, seed, timer, threads }, out);
  }
  refuse("models that answer", { episodes, seed, timer });
  return scoreAnswers(model, { split: split ?? "valid", batch, state, data, threads }, env, out);
}

/** Says no to options that mean something for the other kind of model only. */
function refuse(kind: string, options: Readonly<Record<string, unknown>>): void {
  const [given] = Object.entries(options).find(([, value]) => value !== undefined) ?? [];
  if (given) throw new UsageError(`--${given}: not for ${kind}`);
}

/** The published number a score stands beside; null where there is none. */
export function publishedFor(score: AnyScore): object | null {
  return isReward(score) ? publishedReward(score) : publishedAnswers(score);
}

/** A score as a table. */
export function showScore(score: AnyScore): string {
  return isReward(score) ? showAgent(score) : showAnswers(score);
}

/** A score in a line. */
export function scoreLine(score: AnyScore): string {
  return isReward(score) ? agentLine(score) : answersLine(score);
}

/** Whether a score is an agent's. */
export function isReward(score: AnyScore): score is AgentEvaluation {
  return "reward" in score;
}
