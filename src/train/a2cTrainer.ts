/** An agent under training: `rollout` acts and stores an episode, `update` learns from it. */
import { grad } from "../compile/grad.ts";
import { input, sizeOf } from "../graph/index.ts";
import type { Agent } from "../model/agents.ts";
import type { HostData, HostTensor } from "../runtime/host.ts";
import { type CompileOptions, compile, type Program } from "../runtime/program.ts";
import { State } from "../runtime/state.ts";
import { type A2cSettings, a2cLoss, returnsOf } from "./a2c.ts";
import { Actor, type ActorSizes, actPrefix } from "./actor.ts";
import { clipByNorm, globalNorm, type Optimizer } from "./optimizers.ts";
import { type Environment, rollout } from "./rollout.ts";

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

/** What may change from update to update. */
export interface UpdateRates {
  readonly learningRate: number;
  /** Weight of the policy's entropy. */
  readonly entropyCoef: number;
}

/** What one update gives. */
export interface UpdateResult {
  readonly loss: number;
  readonly policyLoss: number;
  readonly valueLoss: number;
  readonly entropy: number;
  readonly gradNorm: number;
  /** Set when something was not finite: the weights were left as they had been. */
  readonly nonFinite?: string;
}

/** Acting and learning as two compiled programs that share their weights. */
export class A2cTrainer {
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
  private readonly activations: readonly Float32Array[];
  private program: Promise<Program> | undefined;

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
    this.activations = agent.savedActivations.map(({ shape }) => new Float32Array(sizeOf(shape(B, T))));
  }

  /** Acts in a whole episode and stores it; gives the mean return of the agents. */
  rollout(environment: Environment, episode: number): Promise<number> {
    const { agents: B, steps: T } = this.settings;
    const at = <A extends Float32Array | Int32Array>(whole: A, step: number): A =>
      whole.subarray((step * whole.length) / T, ((step + 1) * whole.length) / T) as A;
    return rollout(this.actor, environment, episode, {
      buffers: (step) => ({
        observation: at(this.observations, step),
        actions: at(this.actions, step),
        activations: this.activations.map((whole) => at(whole, step)),
      }),
      onStep: ({ step, value, rewards }) => {
        this.values.set(value, step * B);
        this.rewards.set(rewards, step * B);
      },
    });
  }

  /** Acts in a whole episode and stores nothing; gives the mean return of the agents. */
  evaluate(environment: Environment, episode: number): Promise<number> {
    return rollout(this.actor, environment, episode);
  }

  /** One update from the stored episode. Nothing changes when the loss or the gradient is not finite. */
  async update({ learningRate, entropyCoef }: UpdateRates): Promise<UpdateResult> {
    const program = await this.compiled();
    const { agents, rewardScale } = this.settings;
    const rewards = this.rewards.map((reward) => reward * rewardScale);
    const feeds = {
      x: this.observations,
      actions: this.actions,
      returns: returnsOf(rewards, this.values, agents, this.settings),
      learningRate,
      entropyCoef,
      ...Object.fromEntries(this.agent.savedActivations.map(({ name }, i) => [name, this.activations[i]!])),
    };
    const finite = (out: Readonly<Record<string, HostData>>): boolean =>
      [out.loss![0], out.gradNorm![0]].every((value) => Number.isFinite(Number(value)));
    const out = await program.run(feeds, undefined, finite);
    const value = (name: string): number => Number(out[name]![0]);
    return {
      loss: value("loss"),
      policyLoss: value("policyLoss"),
      valueLoss: value("valueLoss"),
      entropy: value("entropy"),
      gradNorm: value("gradNorm"),
      ...(finite(out) ? {} : { nonFinite: Number.isFinite(value("loss")) ? "gradient norm" : "loss" }),
    };
  }

  /** Everything to save: weights and optimizer. */
  snapshot(): { model: Map<string, HostTensor>; optimizer: Map<string, HostTensor> } {
    const all = [...this.state.snapshot((name) => !name.startsWith(actPrefix))];
    return {
      model: new Map(all.filter(([name]) => this.weightNames.has(name))),
      optimizer: new Map(all.filter(([name]) => !this.weightNames.has(name))),
    };
  }

  /** Takes over the weights and the optimizer of a checkpoint; `source` names it in errors. */
  async restore(values: ReadonlyMap<string, HostTensor>, source: string): Promise<void> {
    await this.compiled();
    this.state.load(values, { source, filter: (name) => !name.startsWith(actPrefix) });
  }

  /** Takes over weights alone. */
  init(values: ReadonlyMap<string, HostTensor>, source: string): void {
    this.state.load(values, { source, filter: (name) => this.weightNames.has(name) });
  }

  /** Frees the compiled programs. */
  async release(): Promise<void> {
    await this.actor.release();
    await (await this.program?.catch(() => undefined))?.release();
    this.program = undefined;
  }

  private compiled(): Promise<Program> {
    this.program ??= this.compile();
    return this.program;
  }

  private compile(): Promise<Program> {
    const { agents: B, steps: T, observation: O, optimizer, clip } = this.settings;
    const { parameters } = this.agent;
    const activations = this.agent.savedActivations.map(({ name, shape }) => input(name, shape(B, T)));
    const output = this.agent.episode(input("x", [T, B, O]), activations);
    const [actions, returns] = [input("actions", [T, B], "i32"), input("returns", [T, B])];
    const parts = a2cLoss(output, actions, returns, this.settings, input("entropyCoef", []));
    const gradients = grad(parts.loss, parameters);
    const gradNorm = globalNorm(gradients);
    const clipped = clip > 0 ? clipByNorm(gradients, clip, gradNorm) : gradients;
    return compile(
      {
        name: "update",
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
