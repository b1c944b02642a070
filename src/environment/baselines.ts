/**
 * Players that frame what an agent can reach: uniformly random actions, and the shortest path with the graph
 * known. Their mean totals check the environment, and are the floor and the ceiling of the curves. Between them
 * is the explorer (explorer.ts), who has to find the graph out.
 */
import { below, type Purpose, purpose } from "./draws.ts";
import { explorerBaseline } from "./explorer.ts";
import { GraphEnvironment, type GraphRules, graphRules } from "./graphEnvironment.ts";
import { actions as actionCount, type GraphSplit, type Graphs, sampleGraphs, states } from "./sampler.ts";

/** Chooses an action for every agent of an environment. */
export type Baseline = (environment: GraphEnvironment, into: Uint8Array) => void;

/** Plays uniformly random actions, addressed by episode, step and agent. */
export function randomBaseline(seed: number, split: GraphSplit): Baseline {
  const use: Purpose = purpose[`${split}Action`];
  return (environment, into) => {
    for (let agent = 0; agent < into.length; agent++) {
      into[agent] = below(actionCount, seed, use, environment.episode, environment.stepsTaken, agent);
    }
  };
}

/** Plays the first action of a shortest path from agent to reward, by its knowledge of the graphs. */
export function shortestPathBaseline(graphs: Graphs): Baseline {
  const first = shortestActions(graphs);
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

/** Plays one whole episode and returns the mean return over the agents. */
export function runBaseline(environment: GraphEnvironment, episode: number, baseline: Baseline): number {
  const chosen = new Uint8Array(environment.agents);
  environment.reset(episode);
  while (!environment.done) {
    baseline(environment, chosen);
    environment.step(chosen);
  }
  return environment.meanReturn();
}

/** What a measurement of play plays on. */
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
  const means: number[] = [];
  let squares = 0;
  for (const seed of seeds) {
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
    const totals = Array.from({ length: episodes }, (_, episode) =>
      runBaseline(environment, episode, baseline),
    );
    const mean = average(totals);
    means.push(mean);
    for (const total of totals) squares += (total - mean) ** 2;
  }
  const mean = average(means);
  const graphStd = Math.sqrt(sumOfSquares(means, mean) / (means.length - 1));
  return {
    mean,
    standardError: graphStd / Math.sqrt(means.length),
    graphStd,
    episodeStd: Math.sqrt(squares / (seeds.length * (episodes - 1))),
  };
}

/** One line of the check: what an independent simulation of the rules gave, and what this environment gives. */
export interface BaselineCheck extends BaselineResult {
  readonly baseline: BaselineSettings["baseline"];
  readonly rules: keyof typeof graphRules;
  /** The value to agree with, printed to one decimal; null for the explorer, who is of our making. */
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

function average(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function sumOfSquares(values: readonly number[], mean: number): number {
  return values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
}
