/** How good a trained agent is: its mean total reward with fixed weights, between random play and the graph known. */
import {
  type Baseline,
  explorerBaseline,
  type GraphRules,
  observationSize,
  randomBaseline,
  runBaseline,
  sampleGraphSets,
  shortestPathBaseline,
} from "../environment/index.ts";
import type { LoadedModel } from "../store/modelFolder.ts";
import { type Actor, sampleActions } from "../train/actor.ts";
import { type AgentConfig, type GraphWorld, makeWorld } from "./metarl.ts";
import { loadAgent } from "./metarlSaved.ts";

/** Graphs an agent is evaluated on: those it was trained on, or as many others. */
export type AgentSplit = "test" | "train";

/** On which graphs to play, and how often. */
export interface PlayOptions {
  /** `test` unless told. */
  readonly split?: AgentSplit;
  /** Episodes on every graph; 10 unless told. */
  readonly episodes?: number;
  /** Seed of the places and the sampled actions; 1 unless told. */
  readonly seed?: number;
  /** Whether success sets the count of failures to 0; by the rules it was trained by unless told. */
  readonly timer?: GraphRules["timerOnSuccess"];
}

/** How to evaluate an agent. */
export interface EvaluateAgentOptions extends PlayOptions {
  /** Of a run: its best checkpoint (else its last), or the last. */
  readonly which?: "best" | "last";
  readonly threads?: number;
  /** Called after every episode, with how many are done and how many there are. */
  readonly onEpisode?: (done: number, total: number) => void;
}

/** A mean total reward per episode, and how sure it is. */
export interface MeanReward {
  readonly mean: number;
  /** Standard error of `mean` on these graphs: what other places and actions would change. Null for one episode. */
  readonly standardError: number | null;
  /** Standard error of `mean` when the graphs are drawn anew too. Null for one graph. */
  readonly graphError: number | null;
}

/** What an agent reached, and what it is measured by. */
export interface AgentEvaluation {
  /** Folder the weights came from. */
  readonly model: string;
  readonly experiment: string;
  /** Training episodes made when the agent was saved, where known. */
  readonly step: number | null;
  readonly split: AgentSplit;
  /** Graphs, each played on by one agent in each of the episodes. */
  readonly graphs: number;
  readonly episodes: number;
  /** Steps of an episode. */
  readonly length: number;
  readonly seed: number;
  readonly rules: GraphRules;
  /** The agent: actions sampled from its policy, no update. */
  readonly reward: MeanReward;
  /** Uniformly random actions on the same graphs by the same rules. */
  readonly random: MeanReward;
  /** One who has to find the graph out in each episode, but forgets nothing and plans: an agent could get as much. */
  readonly explorer: MeanReward;
  /** Shortest paths by one who knows the graph. */
  readonly shortestPath: MeanReward;
}

/** Places of an evaluation are drawn for episodes from here on; no training gets so far. */
const firstEpisode = 2 ** 31;

/** Plays episodes with the weights of a run, checkpoint or model folder as they are. */
export async function evaluateAgent(
  from: string | LoadedModel,
  { which, threads, onEpisode, ...play }: EvaluateAgentOptions = {},
): Promise<AgentEvaluation> {
  const { folder, config, actor: makeActor } = await loadAgent(from, which ? { which } : {});
  const { split = "test", episodes = 10, seed = 1 } = play;
  const world = worldOf(config, play);
  const actor = makeActor(world.agents, threads);
  try {
    const reward = await measure(world, episodes, async (episode, i) => {
      await playAgents(actor, world, episode);
      onEpisode?.(i + 1, episodes);
    });
    const { environment, agents: graphs, steps: length } = world;
    return {
      model: folder.path,
      experiment: config.experiment,
      step: folder.step ?? null,
      split,
      graphs,
      episodes,
      length,
      seed,
      rules: environment.rules,
      reward,
      ...(await frameReward(config, play)),
    };
  } finally {
    await actor.release();
  }
}

/** What frames an agent's reward: random play, exploring, and shortest paths with the graph known. */
export async function frameReward(
  about: Pick<AgentConfig, "task" | "graphs">,
  play: PlayOptions = {},
): Promise<Pick<AgentEvaluation, "random" | "explorer" | "shortestPath">> {
  const { split = "test", episodes = 10, seed = 1 } = play;
  const world = worldOf(about, play);
  const by = (player: Baseline) =>
    measure(world, episodes, (episode) => void runBaseline(world.environment, episode, player));
  return {
    random: await by(randomBaseline(seed, split)),
    explorer: await by(explorerBaseline()),
    shortestPath: await by(shortestPathBaseline(world.environment.graphs)),
  };
}

/** The graphs of one split, by the agent's rules. */
function worldOf(
  { task, graphs }: Pick<AgentConfig, "task" | "graphs">,
  { split = "test", seed = 1, timer }: PlayOptions,
): GraphWorld {
  const played = timer ? { ...task, timerOnSuccess: timer } : task;
  return makeWorld(played, sampleGraphSets(task.graphSeed, graphs, graphs)[split], seed, split);
}

/** One episode of all agents; nothing is learned. */
async function playAgents(actor: Actor, world: GraphWorld, episode: number): Promise<void> {
  const x = new Float32Array(world.agents * observationSize);
  const uniform = new Float32Array(world.agents);
  const chosen = new Int32Array(world.agents);
  await actor.begin();
  world.reset(episode);
  for (let t = 0; t < world.steps; t++) {
    world.observe(x, 0);
    const { policy } = await actor.act(x);
    world.draw(uniform, episode, t);
    sampleActions(policy, uniform, chosen);
    world.step(chosen);
  }
}

async function measure(
  { environment }: GraphWorld,
  episodes: number,
  play: (episode: number, i: number) => Promise<void> | void,
): Promise<MeanReward> {
  const totals: Float64Array[] = [];
  for (let i = 0; i < episodes; i++) {
    await play(firstEpisode + i, i);
    totals.push(environment.returns.slice());
  }
  return meanReward(totals);
}

/** The mean of totals[episode][graph]. Graphs are independent of each other, and so are episodes on one graph. */
export function meanReward(totals: readonly Float64Array[]): MeanReward {
  const graphs = totals[0]!.length;
  const perGraph = Array.from({ length: graphs }, (_, graph) => totals.map((total) => total[graph]!));
  const means = perGraph.map(average);
  const within = perGraph.reduce((sum, values) => sum + variance(values), 0);
  return {
    mean: average(means),
    standardError: totals.length > 1 ? Math.sqrt(within / totals.length) / graphs : null,
    graphError: graphs > 1 ? Math.sqrt(variance(means) / graphs) : null,
  };
}

function average(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function variance(values: readonly number[]): number {
  const mean = average(values);
  return values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1);
}
