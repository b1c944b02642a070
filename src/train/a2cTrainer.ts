/** An agent under training: `rollout` acts and stores an episode, `update` learns from it. */
import { grad } from "../compile/grad.ts";
import type { Agent } from "../model/agents.ts";
import { type CompileOptions, compile, type Program } from "../runtime/program.ts";
import { Actor } from "./actor.ts";
import {
  type A2cTrainerSettings,
  AgentTrainer,
  episodeLoss,
  isSmall,
  nonFiniteIn,
  optimizerStep,
  ratesFed,
  resultOf,
  scalars,
  type UpdateRates,
  type UpdateResult,
} from "./agentTrainer.ts";
import { type EpisodeReport, StoredEpisode } from "./episodes.ts";
import { type Environment, rollout } from "./rollout.ts";

/** Acting and learning as two compiled programs that share their weights. */
export class A2cTrainer extends AgentTrainer {
  private readonly options: Omit<CompileOptions, "state">;
  private readonly actor: Actor;
  private readonly stored: StoredEpisode;

  constructor(agent: Agent, settings: A2cTrainerSettings, options: Omit<CompileOptions, "state">) {
    super(agent, settings);
    this.options = { ...options, stopSpinning: true };
    this.actor = new Actor(agent, settings, this.state, actingOptions(agent, this.options));
    this.stored = new StoredEpisode(this.actor, settings);
  }

  rollout(environment: Environment, episode: number): Promise<EpisodeReport> {
    return this.stored.rollout(environment, episode);
  }

  evaluate(environment: Environment, episode: number): Promise<number> {
    return rollout(this.actor, environment, episode);
  }

  async update({ learningRate, ...rates }: UpdateRates): Promise<UpdateResult> {
    const program = await this.compiled();
    const returns = this.stored.returns(this.settings);
    const feeds = { ...this.stored.feeds(), returns, learningRate, ...ratesFed(this.settings, rates) };
    const out = await program.run(feeds, undefined, (made) => nonFiniteIn(scalars(made)) === undefined);
    return resultOf(scalars(out));
  }

  override async release(): Promise<void> {
    await this.actor.release();
    await super.release();
  }

  protected compile(): Promise<Program> {
    const { optimizer, clip } = this.settings;
    const { parameters } = this.agent;
    const parts = episodeLoss(this.agent, this.settings);
    const gradients = grad(parts.loss, parameters);
    const { gradNorm, updates } = optimizerStep(optimizer, clip, parameters, gradients);
    return compile(
      { name: "update", outputs: { ...parts, gradNorm }, updates },
      { ...this.options, state: this.state },
    );
  }
}

/**
 * A small agent acts on one thread: a second pool of waiting threads takes time from the one that learns (600 FWM agents
 * on two cores: 5.6 episodes/s with two pools, 8.1 with one).
 */
function actingOptions<O extends object>(agent: Agent, options: O): O & { threads?: number } {
  return isSmall(agent) ? { ...options, threads: 1 } : options;
}
