/** The random graphs as agents act on them: all, or those of some agents. */
import {
  actions,
  explorerTeacher,
  fillUniform,
  GraphEnvironment,
  type GraphSplit,
  type Graphs,
  Lessons,
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
  const { rules, length: steps, lessons: stages } = task;
  const own = { graphs: someGraphs(graphs, part.first, part.agents), firstAgent: part.first };
  const environment = new GraphEnvironment({ ...rulesOf(task), ...own, seed, split, rules, steps });
  const teacher = explorerTeacher();
  const ordinary: AgentEnvironment = {
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
    advise: (into) => teacher(environment, into),
  };
  if (split !== "train" || stages.length === 0) return ordinary;
  return withLessons(ordinary, new Lessons(environment, seed, part.first), stages);
}

/** An environment whose episodes are lessons while `lesson` says which. */
function withLessons(
  ordinary: AgentEnvironment,
  lessons: Lessons,
  stages: MetarlSettings["task"]["lessons"],
): AgentEnvironment {
  const isLesson = (): boolean => environment.lesson !== undefined;
  const environment: AgentEnvironment = {
    ...ordinary,
    lesson: undefined,
    reset(episode) {
      ordinary.reset(episode);
      if (isLesson()) lessons.begin(stages[environment.lesson!]!);
    },
    guide(actions, own) {
      if (isLesson()) lessons.guide(actions, own);
    },
    step(actions) {
      const rewards = ordinary.step(actions);
      if (isLesson()) lessons.follow();
      return rewards;
    },
    answers: () => (isLesson() ? lessons.answers() : undefined),
  };
  return environment;
}
