/** An agent under training: `play` acts and stores an episode, `learn` makes one update from it. */
import { grad } from "../compile/grad.ts";
import { input, sizeOf } from "../graph/index.ts";
import type { Agent } from "../model/agents.ts";
import type { HostTensor } from "../runtime/host.ts";
import { type CompileOptions, compile, type Program } from "../runtime/program.ts";
import { State } from "../runtime/state.ts";
import {
  type A2cSettings,
  a2cLoss,
  type Learner,
  type LearnRates,
  type LearnResult,
  returnsOf,
  type World,
} from "./a2c.ts";
import { Actor, type ActorSizes, actPrefix, sampleActions } from "./actor.ts";
import { clipByNorm, globalNorm, type Optimizer } from "./optimizers.ts";

/** Sizes of an episode, and how it is learned from. */
export interface A2cTrainerSettings extends A2cSettings, ActorSizes {
  readonly optimizer: Optimizer;
  /** Rewards are multiplied by this before they are learned from. */
  readonly rewardScale: number;
  /** Global norm above which gradients are scaled down; 0 for never. */
  readonly clip: number;
  /** Seed of the weights. */
  readonly seed: number;
}

/** Acting and learning as two compiled programs that share their weights. */
export class A2cTrainer implements Learner {
  /** Weights and optimizer, and the acting state under `actPrefix`. */
  readonly state: State;
  /** Which of the names in `state` are the agent's weights. */
  readonly weightNames: ReadonlySet<string>;
  private readonly options: Omit<CompileOptions, "state">;
  private readonly actor: Actor;
  private readonly observations: Float32Array;
  private readonly actions: Int32Array;
  private readonly rewards: Float32Array;
  private readonly values: Float32Array;
  private readonly uniform: Float32Array;
  private readonly stored: readonly Float32Array[];
  private learner: Promise<Program> | undefined;

  constructor(
    readonly agent: Agent,
    readonly settings: A2cTrainerSettings,
    options: Omit<CompileOptions, "state">,
  ) {
    this.options = { ...options, stopSpinning: true };
    const { agents: B, steps: T, observation: O } = settings;
    this.state = new State(settings.seed);
    this.actor = new Actor(agent, settings, this.state, actingOptions(agent, this.options));
    this.weightNames = new Set(this.state.names());
    this.observations = new Float32Array(T * B * O);
    this.actions = new Int32Array(T * B);
    this.rewards = new Float32Array(T * B);
    this.values = new Float32Array(T * B);
    this.uniform = new Float32Array(B);
    this.stored = agent.savedActivations.map(({ shape }) => new Float32Array(sizeOf(shape(B, T))));
  }

  /** Plays one episode, stores it, and gives the mean total reward of the agents. */
  async play(world: World, episode: number): Promise<number> {
    const { agents: B, steps: T, observation: O } = this.settings;
    await this.actor.begin();
    world.reset(episode);
    for (let t = 0; t < T; t++) {
      const x = this.observations.subarray(t * B * O, (t + 1) * B * O);
      const actions = this.actions.subarray(t * B, (t + 1) * B);
      world.observe(x, 0);
      const store = this.stored.map((whole) => {
        const size = whole.length / T;
        return whole.subarray(t * size, (t + 1) * size);
      });
      const { policy, value } = await this.actor.act(x, store);
      this.values.set(value, t * B);
      world.draw(this.uniform, episode, t);
      sampleActions(policy, this.uniform, actions);
      this.rewards.set(world.step(actions), t * B);
    }
    return world.meanTotal();
  }

  /** One update from the stored episode. Nothing changes when the loss or the gradient is not finite. */
  async learn({ learningRate, entropy }: LearnRates): Promise<LearnResult> {
    const program = await this.compiled();
    const { agents, rewardScale } = this.settings;
    const rewards = this.rewards.map((reward) => reward * rewardScale);
    const returns = returnsOf(rewards, this.values, agents, this.settings);
    const feeds = {
      x: this.observations,
      actions: this.actions,
      returns,
      learningRate,
      entropyWeight: entropy,
      ...Object.fromEntries(this.agent.savedActivations.map(({ name }, i) => [name, this.stored[i]!])),
    };
    const sound = (values: Record<string, ArrayLike<number | bigint>>): boolean =>
      [values.loss![0], values.gradNorm![0]].every((value) => Number.isFinite(Number(value)));
    const out = await program.run(feeds, undefined, sound);
    const value = (name: string): number => Number(out[name]![0]);
    return {
      loss: value("loss"),
      policyLoss: value("policyLoss"),
      valueLoss: value("valueLoss"),
      entropy: value("entropy"),
      gradNorm: value("gradNorm"),
      ...(sound(out) ? {} : { refused: Number.isFinite(value("loss")) ? "gradient norm" : "loss" }),
    };
  }

  /** Takes over the weights and the optimizer of a checkpoint; `source` names it in errors. */
  async adopt(values: ReadonlyMap<string, HostTensor>, source: string): Promise<void> {
    await this.compiled();
    this.state.load(values, { source, filter: (name) => !name.startsWith(actPrefix) });
  }

  /** Frees the compiled programs. */
  async release(): Promise<void> {
    await this.actor.release();
    await (await this.learner?.catch(() => undefined))?.release();
    this.learner = undefined;
  }

  private compiled(): Promise<Program> {
    this.learner ??= this.compile();
    return this.learner;
  }

  private compile(): Promise<Program> {
    const { agents: B, steps: T, observation: O, optimizer, clip } = this.settings;
    const { parameters } = this.agent;
    const stored = this.agent.savedActivations.map(({ name, shape }) => input(name, shape(B, T)));
    const output = this.agent.episode(input("x", [T, B, O]), stored);
    const [actions, returns] = [input("actions", [T, B], "i32"), input("returns", [T, B])];
    const parts = a2cLoss(output, actions, returns, this.settings, input("entropyWeight", []));
    const gradients = grad(parts.loss, parameters);
    const gradNorm = globalNorm(gradients);
    const clipped = clip > 0 ? clipByNorm(gradients, clip, gradNorm) : gradients;
    return compile(
      {
        name: "learn",
        outputs: { ...parts, gradNorm },
        updates: optimizer(parameters, clipped, input("learningRate", [])),
      },
      { ...this.options, state: this.state },
    );
  }
}

/** Weights from which on a step of acting is worth more than one thread. */
const largeAgent = 100_000;

/**
 * A small agent acts on one thread: its operators are too short to be shared, and a second pool of waiting threads
 * takes time from the one that learns (600 FWM agents on two cores: 5.6 episodes/s with two pools, 8.1 with one).
 */
function actingOptions<O extends object>({ parameters }: Agent, options: O): O & { threads?: number } {
  const weights = parameters.reduce((total, { shape }) => total + sizeOf(shape), 0);
  return weights < largeAgent ? { ...options, threads: 1 } : options;
}
