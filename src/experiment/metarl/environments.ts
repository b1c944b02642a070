/** The random graphs as agents act on them: all, or those of some agents. */
import {
  actions,
  fillUniform,
  GraphEnvironment,
  type GraphSplit,
  type Graphs,
  observationSize,
  purpose,
  someGraphs,
} from "../../environment/index.ts";
import type { Environment } from "../../train/rollout.ts";
import { type MetarlSettings, rulesOf } from "./settings.ts";

/** Sizes of what agents see and do. */
export const agentSizes = { observation: observationSize, actions };

/** Graphs as agents act on them. */
export interface AgentEnvironment extends Environment {
  readonly graphs: GraphEnvironment;
}

/** An environment over some graphs; places and actions depend on `seed` and `split`. With `part`, that of these agents. */
export function makeEnvironment(
  task: MetarlSettings["task"],
  graphs: Graphs,
  seed: number,
  split: GraphSplit,
  part: { readonly first: number; readonly agents: number } = { first: 0, agents: graphs.count },
): AgentEnvironment {
  const { rules, length: steps } = task;
  const own = { graphs: someGraphs(graphs, part.first, part.agents), firstAgent: part.first };
  const environment = new GraphEnvironment({ ...rulesOf(task), ...own, seed, split, rules, steps });
  return {
    name: split,
    graphs: environment,
    agents: environment.agents,
    steps,
    reset: (episode) => environment.reset(episode),
    observe: (into, offset) => environment.observe(into, offset),
    step: (chosen) => environment.step(chosen),
    meanReturn: () => environment.meanReturn(),
    noise: (into, episode, step) =>
      fillUniform(into, seed, purpose[`${split}Action`], episode, step, part.first),
  };
}
