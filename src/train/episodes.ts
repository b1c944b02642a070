/** Episodes as they are learned from: agents act, and what happened at every step is kept for one update. */
import { sizeOf } from "../graph/index.ts";
import { type A2cSettings, returnsOf } from "./a2c.ts";
import type { Actor } from "./actor.ts";
import { type Answers, type Environment, rollout } from "./rollout.ts";

/** How rewards become returns. */
export interface ReturnSettings extends Pick<A2cSettings, "discount" | "lambda"> {
  /** Rewards are multiplied by this before they are learned from. */
  readonly rewardScale: number;
}

/** What came of an episode. */
export interface EpisodeReport {
  /** Over the agents. */
  readonly meanReturn: number;
  /** Of a lesson: questions, and right answers. */
  readonly answers?: Answers | undefined;
}

/** The last episode of an actor. */
export class StoredEpisode {
  private readonly observations: Float32Array;
  private readonly actions: Int32Array;
  private readonly rewards: Float32Array;
  /** The critic's estimates while acting, [T, B]. */
  readonly values: Float32Array;
  private readonly activations: readonly Float32Array[];
  /** 1 where an action was the agent's own, [T, B]; absent where all are. */
  private readonly own: Float32Array | undefined;
  /** What a teacher advised, [T, B, A]. */
  private readonly advice: Float32Array | undefined;
  /** Which writes answers follow from, [T, B, 2, T]. */
  private readonly facts: Float32Array | undefined;

  constructor(
    private readonly actor: Actor,
    {
      guided,
      advised,
      factCoef,
    }: { readonly guided: boolean; readonly advised: number; readonly factCoef: number },
  ) {
    const { agents: B, steps: T, observation: O } = actor.sizes;
    this.observations = new Float32Array(T * B * O);
    this.actions = new Int32Array(T * B);
    this.rewards = new Float32Array(T * B);
    this.values = new Float32Array(T * B);
    this.advice = advised > 0 ? new Float32Array(T * B * advised) : undefined;
    this.facts = factCoef > 0 ? new Float32Array(T * B * 2 * T) : undefined;
    this.own = guided ? new Float32Array(T * B) : undefined;
    this.activations = actor.agent.savedActivations.map(({ shape }) => new Float32Array(sizeOf(shape(B, T))));
  }

  /** Acts in a whole episode and stores it. */
  async rollout(environment: Environment, episode: number): Promise<EpisodeReport> {
    const { agents: B, steps: T } = this.actor.sizes;
    const at = <A extends Float32Array | Int32Array>(whole: A, step: number): A =>
      whole.subarray((step * whole.length) / T, ((step + 1) * whole.length) / T) as A;
    this.own?.fill(1);
    this.facts?.fill(0);
    const meanReturn = await rollout(this.actor, environment, episode, {
      buffers: (step) => ({
        observation: at(this.observations, step),
        actions: at(this.actions, step),
        activations: this.activations.map((whole) => at(whole, step)),
        own: this.own && at(this.own, step),
        advice: this.advice && at(this.advice, step),
        facts: this.facts && at(this.facts, step),
      }),
      onStep: ({ step, value, rewards }) => {
        this.values.set(value, step * B);
        this.rewards.set(rewards, step * B);
      },
    });
    return { meanReturn, answers: environment.answers?.() };
  }

  /** Returns of every step and agent, [T, B]. */
  returns({ rewardScale, ...settings }: ReturnSettings): Float32Array {
    const rewards = this.rewards.map((reward) => reward * rewardScale);
    return returnsOf(rewards, this.values, this.actor.sizes.agents, settings);
  }

  /** What a program that learns from the episode is fed, apart from the returns. */
  feeds(): Record<string, Float32Array | Int32Array> {
    const saved = this.actor.agent.savedActivations.map(
      ({ name }, i) => [name, this.activations[i]!] as const,
    );
    return {
      x: this.observations,
      actions: this.actions,
      ...(this.own ? { own: this.own } : {}),
      ...(this.advice ? { advice: this.advice } : {}),
      ...(this.facts ? { facts: this.facts } : {}),
      ...Object.fromEntries(saved),
    };
  }
}
