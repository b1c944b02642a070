/** A trained agent on graphs it has never seen, step by step: what `fwm rollout` shows. */
import {
  actions as actionCount,
  type Baseline,
  explorerBaseline,
  type GraphEnvironment,
  runBaseline,
  sampleGraphSets,
  sampleGraphs,
  shortestPathBaseline,
  someGraphs,
} from "../environment/index.ts";
import { UsageError } from "../errors.ts";
import type { Actor } from "../train/actor.ts";
import { rollout } from "../train/rollout.ts";
import type { Kind, SavedModel } from "./kind.ts";
import { type AgentEnvironment, checkStates, makeEnvironment } from "./metarl/environments.ts";
import { actorOf } from "./metarl/evaluate.ts";
import { metarl } from "./metarl/kind.ts";
import type { MetarlSettings } from "./metarl/settings.ts";
import { loadSaved } from "./savedModel.ts";

/** One step of an episode, of whoever takes it. */
export interface WalkStep {
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
}

/** One step of the agent. */
export interface RolloutStep extends WalkStep {
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
  /** The explorer's steps. */
  readonly explorerSteps: readonly WalkStep[];
  /** Total of one who knows the graph and takes shortest paths from the same start. */
  readonly shortestPath: number;
}

/** What is rolled out. */
export interface RolloutOptions {
  /** Seed of the graphs, the places and the sampled actions. */
  readonly seed: number;
  readonly episodes: number;
  /** Locations of the graphs; as many as the paper's have by default. */
  readonly states?: number | undefined;
}

/** Loads an agent and lets it act in episodes, each on a new graph: none that it was trained on. */
export async function rollOut(
  path: string,
  { seed, episodes, states }: RolloutOptions,
): Promise<{ model: string; experiment: string; step: number | null; episodes: Rollout[] }> {
  const { kind, ...saved } = await loadSaved(path);
  if (kind !== (metarl as Kind)) {
    throw new UsageError(`${path}: a model of the kind ${kind.name}, not an agent`, {
      hint: `use it with: ${kind.use} ${path}`,
    });
  }
  // The schema of its kind has checked the settings.
  const model = saved as SavedModel<MetarlSettings>;
  const { task, training } = model.settings;
  checkStates(task, states);
  const { train } = sampleGraphSets(task.graphSeed, training.agents);
  const fresh = sampleGraphs(seed, episodes, 0, [train], states).graphs;
  const actor = actorOf(model, { agents: 1 }, 1);
  const done: Rollout[] = [];
  try {
    for (let i = 0; i < episodes; i++) {
      const graph = someGraphs(fresh, i, 1);
      done.push(await watchEpisode(actor, makeEnvironment(task, graph, seed, "test"), i));
    }
  } finally {
    await actor.release();
  }
  const { folder, experiment } = model;
  return { model: folder.path, experiment, step: folder.step ?? null, episodes: done };
}

async function watchEpisode(actor: Actor, environment: AgentEnvironment, episode: number): Promise<Rollout> {
  const { graphs } = environment;
  const explorerSteps = walk(graphs, episode, explorerBaseline());
  const explorer = graphs.returns[0]!;
  const shortestPath = runBaseline(graphs, episode, shortestPathBaseline(graphs.graphs));
  const steps: RolloutStep[] = [];
  let before = placesOf(graphs);
  await rollout(actor, environment, episode, {
    onAct() {
      before = placesOf(graphs);
    },
    onStep({ policy, actions }) {
      steps.push({ ...stepTaken(graphs, before, actions[0]!), policy: [...policy] });
    },
  });
  const graph = Array.from({ length: graphs.graphs.states }, (_, from) =>
    Array.from({ length: actionCount }, (_, action) => edge(graphs, from, action)),
  );
  return { graph, steps, total: graphs.returns[0]!, explorer, explorerSteps, shortestPath };
}

/** The steps of a baseline in an episode. */
function walk(graphs: GraphEnvironment, episode: number, baseline: Baseline): WalkStep[] {
  const steps: WalkStep[] = [];
  const chosen = new Uint8Array(1);
  graphs.reset(episode);
  while (!graphs.done) {
    const before = placesOf(graphs);
    baseline(graphs, chosen);
    graphs.step(chosen);
    steps.push(stepTaken(graphs, before, chosen[0]!));
  }
  return steps;
}

/** Where the agent and the reward are. */
function placesOf({ agentAt, rewardAt }: GraphEnvironment): Pick<WalkStep, "agent" | "goal"> {
  return { agent: agentAt[0]!, goal: rewardAt[0]! };
}

/** The step that was just taken, from where things were before it. */
function stepTaken(
  graphs: GraphEnvironment,
  { agent, goal }: Pick<WalkStep, "agent" | "goal">,
  action: number,
): WalkStep {
  return {
    agent,
    goal,
    action,
    to: edge(graphs, agent, action),
    // Rewards are float32; -0.05 should read so.
    reward: Math.round(graphs.rewards[0]! * 100) / 100,
    total: graphs.returns[0]!,
    // Placed anew means another place for the reward: it is never put where it was.
    placed: graphs.rewardAt[0] !== goal,
  };
}

function edge({ graphs }: GraphEnvironment, from: number, action: number): number | null {
  const to = graphs.next[from * actionCount + action]!;
  return to < 0 ? null : to;
}
