/** A trained agent on graphs it has never seen, step by step: what `fwm rollout` shows. */

import {
  actions as actionCount,
  explorerBaseline,
  observationSize,
  runBaseline,
  sampleGraphSets,
  shortestPathBaseline,
  states,
} from "../environment/index.ts";
import { sampleGraphs } from "../environment/sampler.ts";
import { type Actor, sampleActions } from "../train/actor.ts";
import { type GraphWorld, makeWorld } from "./metarl.ts";
import { loadAgent } from "./metarlSaved.ts";

/** One step of an episode. */
export interface RolloutStep {
  /** Where the agent and the reward were. */
  readonly agent: number;
  readonly goal: number;
  readonly action: number;
  /** Where the action leads, or null where it has no edge. */
  readonly to: number | null;
  readonly reward: number;
  /** Sum of the rewards so far. */
  readonly total: number;
  /** Whether agent and reward were placed anew afterwards: the reward was reached, or time was up. */
  readonly placed: boolean;
  /** Probabilities of the actions. */
  readonly policy: readonly number[];
}

/** One episode on one graph. */
export interface Rollout {
  /** graph[from][action]: where the action leads, or null. */
  readonly graph: readonly (readonly (number | null)[])[];
  readonly steps: readonly RolloutStep[];
  readonly total: number;
  /** Total of one who has to find the graph out from the same start, but forgets nothing and plans. */
  readonly explorer: number;
  /** Total of one who knows the graph and takes shortest paths from the same start. */
  readonly shortestPath: number;
}

/** What is rolled out. */
export interface RolloutOptions {
  /** Seed of the graphs, the places and the sampled actions. */
  readonly seed: number;
  readonly episodes: number;
}

/** Loads an agent and plays episodes, each on a new graph: none that the agent was trained on. */
export async function rollOut(
  path: string,
  { seed, episodes }: RolloutOptions,
): Promise<{ model: string; experiment: string; step: number | null; episodes: Rollout[] }> {
  const { folder, config, actor: makeActor } = await loadAgent(path);
  const { task, graphs, experiment } = config;
  const actor = makeActor(1, 1);
  const { train } = sampleGraphSets(task.graphSeed, graphs, graphs);
  const fresh = sampleGraphs(seed, episodes, 0, train).graphs;
  const size = states * actionCount;
  const played: Rollout[] = [];
  try {
    for (let i = 0; i < episodes; i++) {
      const graph = { count: 1, next: fresh.next.subarray(i * size, (i + 1) * size) };
      played.push(await playOne(actor, makeWorld(task, graph, seed, "test"), i));
    }
  } finally {
    await actor.release();
  }
  return { model: folder.path, experiment, step: folder.step ?? null, episodes: played };
}

async function playOne(actor: Actor, world: GraphWorld, episode: number): Promise<Rollout> {
  const { environment } = world;
  const { next } = environment.graphs;
  const explorer = runBaseline(environment, episode, explorerBaseline());
  const shortestPath = runBaseline(environment, episode, shortestPathBaseline(environment.graphs));
  const edge = (from: number, action: number): number | null => {
    const to = next[from * actionCount + action]!;
    return to < 0 ? null : to;
  };
  const x = new Float32Array(observationSize);
  const uniform = new Float32Array(1);
  const chosen = new Int32Array(1);
  const steps: RolloutStep[] = [];
  await actor.begin();
  world.reset(episode);
  while (!environment.done) {
    const [agent, goal] = [environment.agentAt[0]!, environment.rewardAt[0]!];
    world.observe(x, 0);
    const { policy } = await actor.act(x);
    world.draw(uniform, episode, environment.stepsTaken);
    sampleActions(policy, uniform, chosen);
    const action = chosen[0]!;
    const to = edge(agent, action);
    // Rewards are float32; -0.05 should read so.
    const reward = Math.round(world.step(chosen)[0]! * 100) / 100;
    // Anew means another place for the reward: it is never put where it was.
    const placed = environment.rewardAt[0] !== goal;
    steps.push({
      agent,
      goal,
      action,
      to,
      reward,
      total: environment.returns[0]!,
      placed,
      policy: [...policy],
    });
  }
  const graph = Array.from({ length: states }, (_, from) =>
    Array.from({ length: actionCount }, (_, action) => edge(from, action)),
  );
  return { graph, steps, total: environment.returns[0]!, explorer, shortestPath };
}
