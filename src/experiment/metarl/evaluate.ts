/** How good a trained agent is: its mean return with fixed weights, beside baselines on the same graphs. */
import {
  type Baseline,
  BehaviourCounter,
  explorerBaseline,
  ReadCounter,
  randomBaseline,
  runBaseline,
  sampleGraphSets,
  shortestPathBaseline,
} from "../../environment/index.ts";
import { input, stateAttrs } from "../../graph/index.ts";
import { buildAgent } from "../../model/agentRegistry.ts";
import { nodeRuntime } from "../../runtime/node.ts";
import { compile } from "../../runtime/program.ts";
import { State } from "../../runtime/state.ts";
import { mean, variance } from "../../statistics.ts";
import { expectTensors } from "../../store/safetensors.ts";
import { Actor } from "../../train/actor.ts";
import { rollout } from "../../train/rollout.ts";
import type { EvaluationContext, SavedModel } from "../kind.ts";
import { type AgentEnvironment, checkStates, makeEnvironment } from "./environments.ts";
import {
  type BaselineReturns,
  type MeanReturn,
  type MetarlEvaluation,
  type MetarlOptions,
  usualEpisodes,
} from "./options.ts";
import { agentSizesOf, type MetarlSettings } from "./settings.ts";

/** Places of an evaluation are drawn for episodes from here on; no training gets so far. */
const firstEpisode = 2 ** 31;

/** So many agents with the weights of a saved one, ready to act; to be released by the caller. */
export function actorOf(
  { folder, settings }: SavedModel<MetarlSettings>,
  { agents, steps = settings.task.length }: { readonly agents: number; readonly steps?: number },
  threads?: number,
): Actor {
  const seen = agentSizesOf(settings.task);
  const agent = buildAgent(settings.system, seen);
  const wanted = agent.parameters.map((tensor) => {
    const { name, shape } = stateAttrs(tensor)!;
    return [name, { dtype: "f32" as const, shape }] as const;
  });
  expectTensors(folder.model, Object.fromEntries(wanted), { file: `${folder.path}/model.safetensors` });
  const state = new State();
  const sizes = { agents, steps, observation: seen.observation };
  const actor = new Actor(agent, sizes, state, { runtime: nodeRuntime, ...(threads ? { threads } : {}) });
  for (const [name] of wanted) state.set(name, folder.model[name]!.data as Float32Array);
  return actor;
}

/** Acts for some episodes with the weights as they are. */
export async function evaluateMetarl(
  model: SavedModel<MetarlSettings>,
  options: MetarlOptions,
  { threads, onProgress }: EvaluationContext,
): Promise<MetarlEvaluation> {
  const { split = "test", episodes = usualEpisodes, seed = 1 } = options;
  const environment = environmentOf(model.settings, options);
  const actor = actorOf(model, environment, threads);
  try {
    const behaviour = new BehaviourCounter();
    const reads = await readMatches(actor, environment, threads);
    const reached = await measure(environment, episodes, async (episode, i) => {
      await rollout(actor, counted(environment, behaviour), episode);
      onProgress?.(i + 1, episodes, "episodes");
    });
    return {
      model: model.folder.path,
      experiment: model.experiment,
      step: model.folder.step ?? null,
      split,
      graphs: environment.agents,
      episodes,
      length: environment.steps,
      states: environment.graphs.graphs.states,
      seed,
      rules: environment.graphs.rules,
      return: reached,
      behaviour: behaviour.result(),
      ...(reads ? { reads } : {}),
      ...(await baselineReturns(model.settings, options)),
    };
  } finally {
    await actor.release();
  }
}

/** What an agent's return is measured by: random actions, exploring, and shortest paths with the graph known. */
export async function baselineReturns(
  settings: Pick<MetarlSettings, "task" | "training">,
  options: MetarlOptions = {},
): Promise<BaselineReturns> {
  const { split = "test", episodes = usualEpisodes, seed = 1 } = options;
  const environment = environmentOf(settings, options);
  const { graphs } = environment;
  const counter = new BehaviourCounter();
  const by = (baseline: Baseline, followedBy?: BehaviourCounter) =>
    measure(environment, episodes, (episode) => void runBaseline(graphs, episode, baseline, followedBy));
  return {
    random: await by(randomBaseline(seed, split)),
    explorer: await by(explorerBaseline(), counter),
    shortestPath: await by(shortestPathBaseline(graphs.graphs)),
    explorerBehaviour: counter.result(),
  };
}

/** What the reads of a memory matched in one episode; undefined for an agent without one. */
async function readMatches(
  actor: Actor,
  environment: AgentEnvironment,
  threads?: number,
): Promise<MetarlEvaluation["reads"]> {
  const { agent, sizes, state } = actor;
  const { agents: B, steps: T, observation: O } = sizes;
  const shares = agent.episode(input("x", [T, B, O])).matches?.();
  if (!shares) return undefined;
  const program = await compile(
    {
      name: "matches",
      outputs: Object.fromEntries(shares.map((share, i) => [`read${i}`, share])),
      updates: [],
    },
    { runtime: nodeRuntime, ...(threads ? { threads } : {}), state },
  );
  try {
    const x = new Float32Array(T * B * O);
    const counter = new ReadCounter();
    await rollout(actor, counted(environment, counter), firstEpisode, {
      onStep: ({ step, observation }) => x.set(observation, step * B * O),
    });
    const out = await program.run({ x });
    counter.count(shares.map((_, i) => out[`read${i}`] as Float32Array));
    return counter.result();
  } finally {
    await program.release();
  }
}

/** The environment, with its agents followed. */
function counted(
  environment: AgentEnvironment,
  counter: Pick<BehaviourCounter, "before" | "after">,
): AgentEnvironment {
  const { graphs } = environment;
  return {
    ...environment,
    step(actions) {
      counter.before(graphs, actions);
      const rewards = environment.step(actions);
      counter.after(graphs);
      return rewards;
    },
  };
}

/** The graphs of one split, by the agent's rules. */
function environmentOf(
  { task, training }: Pick<MetarlSettings, "task" | "training">,
  { split = "test", seed = 1, timer, length = task.length, states }: MetarlOptions,
): AgentEnvironment {
  checkStates(task, states);
  const plain = { ...task, lessons: [], rename: false };
  const rules = { ...plain, length, ...(timer ? { timerOnSuccess: timer } : {}) };
  const { agents } = training;
  const graphs = sampleGraphSets(task.graphSeed, agents, agents, agents, states)[split];
  return makeEnvironment(rules, graphs, seed, split);
}

async function measure(
  { graphs }: AgentEnvironment,
  episodes: number,
  act: (episode: number, i: number) => Promise<void> | void,
): Promise<MeanReturn> {
  const returns: Float64Array[] = [];
  for (let i = 0; i < episodes; i++) {
    await act(firstEpisode + i, i);
    returns.push(graphs.returns.slice());
  }
  return meanReturn(returns);
}

/** The mean of returns[episode][graph]. Graphs are independent of each other, and so are episodes on one graph. */
export function meanReturn(returns: readonly Float64Array[]): MeanReturn {
  const graphs = returns[0]!.length;
  const perGraph = Array.from({ length: graphs }, (_, graph) => returns.map((row) => row[graph]!));
  const means = perGraph.map(mean);
  const within = perGraph.reduce((sum, values) => sum + variance(values), 0);
  return {
    mean: mean(means),
    standardError: returns.length > 1 ? Math.sqrt(within / returns.length) / graphs : null,
    graphError: graphs > 1 ? Math.sqrt(variance(means) / graphs) : null,
  };
}
