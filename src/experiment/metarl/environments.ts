/** The random graphs as agents act on them: all, or those of some agents. */
import {
  explorerTeacher,
  fillUniform,
  GraphEnvironment,
  type GraphSplit,
  type Graphs,
  Lessons,
  purpose,
  renameGraphs,
  someGraphs,
} from "../../environment/index.ts";
import { UsageError } from "../../errors.ts";
import type { Environment } from "../../train/rollout.ts";
import { type MetarlSettings, rulesOf } from "./settings.ts";

/** Graphs as agents act on them. */
export interface AgentEnvironment extends Environment {
  readonly graphs: GraphEnvironment;
}

/** Refuses graphs of more locations than the agents of a task know names for. */
export function checkStates({ names }: MetarlSettings["task"], states: number | undefined): void {
  if (states === undefined || states <= names) return;
  throw new UsageError(`--states ${states}: this agent knows names for ${names} locations only`, {
    hint: "train one with more: fwm train metarl-fwm-ten-names",
  });
}

/** An environment over some graphs; places and actions depend on `seed` and `split`. With `part`, that of these agents. */
export function makeEnvironment(
  task: MetarlSettings["task"],
  graphs: Graphs,
  seed: number,
  split: GraphSplit,
  part: { readonly first: number; readonly agents: number } = { first: 0, agents: graphs.count },
): AgentEnvironment {
  const { rules, length: steps, lessons: stages, rename, names } = task;
  const given = someGraphs(graphs, part.first, part.agents);
  const own = { graphs: { ...given, next: given.next.slice() }, firstAgent: part.first };
  const environment = new GraphEnvironment({ ...rulesOf(task), ...own, seed, split, rules, steps, names });
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
  if (split !== "train") return ordinary;
  const { first } = part;
  const { next } = environment.graphs;
  const renamed: AgentEnvironment = {
    ...ordinary,
    reset(episode) {
      renameGraphs(given, { seed, episode, first }, next);
      environment.reset(episode);
    },
  };
  const usual = rename ? renamed : ordinary;
  if (stages.length === 0) return usual;
  // Lessons are about the graphs as they are.
  const restored: AgentEnvironment["reset"] = (episode) => {
    next.set(given.next);
    environment.reset(episode);
  };
  return withLessons(usual, restored, new Lessons(environment, seed, first), stages);
}

/** An environment whose episodes are lessons while `lesson` says which. */
function withLessons(
  ordinary: AgentEnvironment,
  reset: AgentEnvironment["reset"],
  lessons: Lessons,
  stages: MetarlSettings["task"]["lessons"],
): AgentEnvironment {
  const isLesson = (): boolean => environment.lesson !== undefined;
  const environment: AgentEnvironment = {
    ...ordinary,
    lesson: undefined,
    reset(episode) {
      if (!isLesson()) {
        ordinary.reset(episode);
        return;
      }
      reset(episode);
      lessons.begin(stages[environment.lesson!]!);
    },
    facts(into) {
      if (isLesson()) lessons.facts(into);
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
