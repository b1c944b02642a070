/**
 * Baselines for agents: uniformly random actions, and the shortest path with the graph known. Their mean returns
 * check the environment, and are the floor and the ceiling of the learning curves. Between them is the explorer
 * (explorer.ts), which has to find out the graph as an agent does.
 */
import { mean, standardError, std, variance } from "../statistics.ts";
import type { BehaviourCounter } from "./behaviour.ts";
import { below, type Purpose, purpose } from "./draws.ts";
import { explorerBaseline } from "./explorer.ts";
import { GraphEnvironment, type GraphRules, graphRules } from "./graphEnvironment.ts";
import { actions as actionCount, type GraphSplit, type Graphs, sampleGraphs } from "./sampler.ts";

/** Chooses an action for every agent of an environment. */
export type Baseline = (environment: GraphEnvironment, into: Uint8Array) => void;

/** Uniformly random actions, addressed by episode, step and agent. */
export function randomBaseline(seed: number, split: GraphSplit): Baseline {
  const use: Purpose = purpose[`${split}Action`];
  return (environment, into) => {
    for (let agent = 0; agent < into.length; agent++) {
      into[agent] = below(actionCount, seed, use, environment.episode, environment.stepsTaken, agent);
    }
  };
}

/** The first action of a shortest path from agent to reward, with the graphs known. */
export function shortestPathBaseline(graphs: Graphs): Baseline {
  const first = shortestActions(graphs);
  const { states } = graphs;
  return (environment, into) => {
    for (let agent = 0; agent < into.length; agent++) {
      const goal = environment.rewardAt[agent]!;
      into[agent] = first[(agent * states + goal) * states + environment.agentAt[agent]!]!;
    }
  };
}

/**
 * The first action of a shortest path, [graph, goal, from]; 0 where from is the goal. Found by a
 * breadth-first search from every goal against the edges; the lower action wins a tie.
 */
export function shortestActions(graphs: Graphs): Uint8Array {
  const { states } = graphs;
  const first = new Uint8Array(graphs.count * states * states);
  const distance = new Int8Array(states);
  for (let graph = 0; graph < graphs.count; graph++) {
    for (let goal = 0; goal < states; goal++) {
      distance.fill(-1);
      distance[goal] = 0;
      for (let near = 0; near < states - 1; near++) {
        for (let from = 0; from < states; from++) {
          if (distance[from] !== -1) continue;
          for (let action = 0; action < actionCount; action++) {
            const to = graphs.next[(graph * states + from) * actionCount + action]!;
            if (to === -1 || distance[to] !== near) continue;
            distance[from] = near + 1;
            first[(graph * states + goal) * states + from] = action;
            break;
          }
        }
      }
    }
  }
  return first;
}

/** Runs one whole episode and gives the mean return over the agents; their choices are counted by `counter`. */
export function runBaseline(
  environment: GraphEnvironment,
  episode: number,
  baseline: Baseline,
  counter?: BehaviourCounter,
): number {
  const chosen = new Uint8Array(environment.agents);
  environment.reset(episode);
  while (!environment.done) {
    baseline(environment, chosen);
    counter?.before(environment, chosen);
    environment.step(chosen);
    counter?.after(environment);
  }
  return environment.meanReturn();
}

/** What a baseline is measured on. */
export interface BaselineSettings {
  /** Which baseline. */
  readonly baseline: "random" | "explorer" | "shortest path";
  /** The rule on which the baselines' returns depend; no baseline looks at observations. */
  readonly timerOnSuccess: GraphRules["timerOnSuccess"];
  /** One fresh draw of graphs per seed. */
  readonly seeds: readonly number[];
  /** Episodes on each draw of graphs. */
  readonly episodes: number;
  /** Graphs per draw; the paper's is 600. */
  readonly graphs?: number;
}

/** The mean return of a baseline, and how sure it is. */
export interface BaselineResult {
  /** Mean over graph draws, episodes and graphs. */
  readonly mean: number;
  /** Standard error of `mean`, from the spread between graph draws; NaN for a single draw. */
  readonly standardError: number;
  /** Standard deviation between graph draws; NaN for a single draw. */
  readonly graphStd: number;
  /** Standard deviation of one episode's mean around the mean of its graph draw; NaN for single episodes. */
  readonly episodeStd: number;
}

/** Measures the mean return of a baseline over several draws of graphs. */
export function measureBaseline(settings: BaselineSettings): BaselineResult {
  const { seeds, episodes, timerOnSuccess, graphs: count = 600 } = settings;
  const perDraw = seeds.map((seed) => {
    const { graphs } = sampleGraphs(seed, count);
    const environment = new GraphEnvironment({
      graphs,
      seed,
      split: "train",
      rules: "released",
      timerOnSuccess,
    });
    const baseline = {
      random: () => randomBaseline(seed, "train"),
      explorer: explorerBaseline,
      "shortest path": () => shortestPathBaseline(graphs),
    }[settings.baseline]();
    return Array.from({ length: episodes }, (_, episode) => runBaseline(environment, episode, baseline));
  });
  const means = perDraw.map(mean);
  return {
    mean: mean(means),
    standardError: standardError(means),
    graphStd: std(means),
    episodeStd: Math.sqrt(mean(perDraw.map(variance))),
  };
}

/** One line of the check: what an independent simulation of the rules gave, and what this environment gives. */
export interface BaselineCheck extends BaselineResult {
  readonly baseline: BaselineSettings["baseline"];
  readonly rules: keyof typeof graphRules;
  /** The value to agree with, printed to one decimal; null for the explorer, which is our own. */
  readonly expected: number | null;
}

const expectedReturns: readonly Pick<BaselineCheck, "baseline" | "rules" | "expected">[] = [
  { baseline: "random", rules: "released", expected: 45.4 },
  { baseline: "random", rules: "paper", expected: 44.4 },
  { baseline: "explorer", rules: "released", expected: null },
  { baseline: "explorer", rules: "paper", expected: null },
  { baseline: "shortest path", rules: "released", expected: 166.3 },
  { baseline: "shortest path", rules: "paper", expected: 171.0 },
];

/** Measures the baselines under both sets of rules, beside the values an independent simulation gave. */
export function checkBaselines(seeds: readonly number[], episodes: number): BaselineCheck[] {
  return expectedReturns.map((line) => ({
    ...line,
    ...measureBaseline({
      baseline: line.baseline,
      timerOnSuccess: graphRules[line.rules].timerOnSuccess,
      seeds,
      episodes,
    }),
  }));
}
