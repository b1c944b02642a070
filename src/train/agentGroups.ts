/**
 * Agents in groups that act and learn side by side, each group in a thread of its own. The operators of a small agent are
 * too short for several threads to share; a group of agents is not.
 *
 * An update is that of `A2cTrainer` up to rounding: every group gives the gradient of its mean loss, these are averaged in
 * the order of the groups, and the optimizer runs once. Where the loss has means over all agents, they are exchanged first.
 */
import { grad } from "../compile/grad.ts";
import { input, stateAttrs } from "../graph/index.ts";
import type { Agent } from "../model/agents.ts";
import { type CompileOptions, compile, type Program } from "../runtime/program.ts";
import { State } from "../runtime/state.ts";
import { Actor } from "./actor.ts";
import {
  type A2cTrainerSettings,
  AgentTrainer,
  episodeLoss,
  type LossNumbers,
  nonFiniteIn,
  optimizerStep,
  ratesFed,
  resultOf,
  scalars,
  type UpdateRates,
  type UpdateResult,
} from "./agentTrainer.ts";
import { type EpisodeReport, StoredEpisode } from "./episodes.ts";
import { type Answers, type Environment, rollout } from "./rollout.ts";

/** An episode to act in. */
export interface RolloutOrder {
  /** In the order of the agent's parameters. */
  readonly weights: readonly Float32Array[];
  /** Name of the environment that the group has its part of. */
  readonly environment: string;
  readonly episode: number;
  /** Number of the lessons, if it is one. */
  readonly lesson?: number | undefined;
  /** Whether it is to be learned from. */
  readonly store: boolean;
}

/** Means over agents for every step, [T] each. */
export interface GroupMeans {
  readonly returns: Float32Array;
  readonly values: Float32Array;
}

/** What a group made of an episode. */
export interface GroupRollout extends EpisodeReport {
  /** Over the group's agents; of an episode that is learned from. */
  readonly means?: GroupMeans;
}

/** A group's share of an update. */
export interface GroupGradients {
  readonly numbers: Omit<LossNumbers, "gradNorm">;
  /** In the order of the agent's parameters. */
  readonly gradients: readonly Float32Array[];
}

/** What weighs the parts of the loss. */
export type LossRates = Omit<UpdateRates, "learningRate">;

/** Some of the agents of a run, in this thread or another. */
export interface AgentGroup {
  /** Takes over weights and acts in an episode. */
  rollout(order: RolloutOrder): Promise<GroupRollout>;
  /** The gradient for the episode stored last; `means` are over the agents of all groups. */
  gradients(means: GroupMeans, rates: LossRates): Promise<GroupGradients>;
  /** Frees what the group holds. */
  release(): Promise<void>;
}

/** A group in this thread; `settings.agents` are those of the group. */
export class LocalGroup implements AgentGroup {
  private readonly state: State;
  private readonly actor: Actor;
  private readonly stored: StoredEpisode;
  private program: Promise<Program> | undefined;

  constructor(
    private readonly agent: Agent,
    private readonly settings: A2cTrainerSettings,
    /** The group's part of each, by name. */
    private readonly environments: Readonly<Record<string, Environment>>,
    private readonly options: Omit<CompileOptions, "state">,
  ) {
    this.state = new State(settings.seed);
    this.actor = new Actor(agent, settings, this.state, options);
    this.stored = new StoredEpisode(this.actor, settings);
  }

  async rollout({ weights, environment: name, episode, lesson, store }: RolloutOrder): Promise<GroupRollout> {
    const environment = this.environments[name];
    if (!environment) throw new Error(`internal: a group of agents has no environment ${name}`);
    this.agent.parameters.forEach((parameter, i) => {
      this.state.set(stateAttrs(parameter)!.name, weights[i]!);
    });
    environment.lesson = lesson;
    if (!store) return { meanReturn: await rollout(this.actor, environment, episode) };
    const report = await this.stored.rollout(environment, episode);
    const { agents } = this.settings;
    const returns = this.stored.returns(this.settings);
    return {
      ...report,
      means: { returns: overAgents(returns, agents), values: overAgents(this.stored.values, agents) },
    };
  }

  async gradients(means: GroupMeans, rates: LossRates): Promise<GroupGradients> {
    this.program ??= this.compile();
    const program = await this.program;
    const isFed = (name: string): boolean => program.plan.inputs.has(name);
    const out = await program.run({
      ...this.stored.feeds(),
      returns: this.stored.returns(this.settings),
      ...ratesFed(this.settings, rates),
      ...(isFed("meanReturns") ? { meanReturns: means.returns } : {}),
      ...(isFed("meanValues") ? { meanValues: means.values } : {}),
    });
    const { gradNorm: _, ...numbers } = scalars({ ...out, gradNorm: out.loss! });
    // The program's arrays are overwritten by its next run.
    const gradients = this.agent.parameters.map((__, i) => (out[`gradient${i}`] as Float32Array).slice());
    return { numbers, gradients };
  }

  async release(): Promise<void> {
    await this.actor.release();
    await (await this.program?.catch(() => undefined))?.release();
    this.program = undefined;
  }

  private compile(): Promise<Program> {
    const { steps: T } = this.settings;
    const means = { returns: input("meanReturns", [T, 1]), values: input("meanValues", [T, 1]) };
    const parts = episodeLoss(this.agent, this.settings, means);
    const gradients = grad(parts.loss, this.agent.parameters).map(
      (gradient, i) => [`gradient${i}`, gradient] as const,
    );
    return compile(
      { name: "gradients", outputs: { ...parts, ...Object.fromEntries(gradients) } },
      { ...this.options, state: this.state },
    );
  }
}

/** A trainer whose agents are in groups of equal size. */
export class GroupedA2cTrainer extends AgentTrainer {
  private means: GroupMeans | undefined;

  constructor(
    agent: Agent,
    settings: A2cTrainerSettings,
    private readonly groups: readonly AgentGroup[],
    private readonly options: Omit<CompileOptions, "state">,
  ) {
    super(agent, settings);
  }

  async rollout(environment: Environment, episode: number): Promise<EpisodeReport> {
    const made = await this.act(environment, episode, true);
    const mean = (pick: (means: GroupMeans) => Float32Array): Float32Array =>
      average(made.map(({ means }) => pick(means!)));
    this.means = { returns: mean(({ returns }) => returns), values: mean(({ values }) => values) };
    return { meanReturn: meanReturn(made), answers: allAnswers(made.map(({ answers }) => answers)) };
  }

  async evaluate(environment: Environment, episode: number): Promise<number> {
    return meanReturn(await this.act(environment, episode, false));
  }

  async update({ learningRate, ...rates }: UpdateRates): Promise<UpdateResult> {
    const program = await this.compiled();
    const { means } = this;
    if (!means) throw new Error("internal: an update without an episode");
    const made = await Promise.all(this.groups.map((group) => group.gradients(means, rates)));
    const part = (name: keyof GroupGradients["numbers"]): number =>
      made.reduce((total, { numbers }) => total + numbers[name]!, 0) / made.length;
    const numbers = (gradNorm: number): LossNumbers => ({
      loss: part("loss"),
      policyLoss: part("policyLoss"),
      valueLoss: part("valueLoss"),
      entropy: part("entropy"),
      gradNorm,
      ...(this.settings.advised > 0 ? { teacherLoss: part("teacherLoss") } : {}),
      ...(this.settings.factCoef > 0 ? { factLoss: part("factLoss") } : {}),
    });
    const gradients = this.agent.parameters.map(
      (_, i) => [`gradient${i}`, average(made.map((of) => of.gradients[i]!))] as const,
    );
    const out = await program.run(
      { ...Object.fromEntries(gradients), learningRate },
      undefined,
      ({ gradNorm }) => nonFiniteIn(numbers(Number(gradNorm![0]))) === undefined,
    );
    return resultOf(numbers(Number(out.gradNorm![0])));
  }

  override async release(): Promise<void> {
    for (const group of this.groups) await group.release();
    await super.release();
  }

  protected compile(): Promise<Program> {
    const { optimizer, clip } = this.settings;
    const { parameters } = this.agent;
    const gradients = parameters.map(({ shape }, i) => input(`gradient${i}`, shape));
    const { gradNorm, updates } = optimizerStep(optimizer, clip, parameters, gradients);
    return compile(
      { name: "update", outputs: { gradNorm }, updates },
      { ...this.options, state: this.state },
    );
  }

  /** All groups at once. A group in this thread blocks it only after the others have their orders. */
  private act({ name, lesson }: Environment, episode: number, store: boolean): Promise<GroupRollout[]> {
    if (name === undefined)
      throw new Error("internal: an environment that groups of agents share has a name");
    const weights = [...this.weightNames].map((weight) => this.state.get(weight).data as Float32Array);
    return Promise.all(
      this.groups.map((group) => group.rollout({ weights, environment: name, episode, lesson, store })),
    );
  }
}

/** [T, B] → [T] */
function overAgents(values: Float32Array, agents: number): Float32Array {
  return Float32Array.from({ length: values.length / agents }, (_, t) => {
    let total = 0;
    for (let b = 0; b < agents; b++) total += values[t * agents + b]!;
    return total / agents;
  });
}

/** Element by element, in the order given. */
function average(parts: readonly Float32Array[]): Float32Array {
  const sum = new Float32Array(parts[0]!.length);
  for (const part of parts) for (let i = 0; i < sum.length; i++) sum[i]! += part[i]!;
  return sum.map((value) => value / parts.length);
}

function meanReturn(made: readonly GroupRollout[]): number {
  return made.reduce((total, of) => total + of.meanReturn, 0) / made.length;
}

/** Of all groups; undefined where there is no lesson. */
function allAnswers(parts: readonly (Answers | undefined)[]): Answers | undefined {
  const known = parts.filter((part) => part !== undefined);
  const sum = (name: keyof Answers): number => known.reduce((total, part) => total + part[name], 0);
  return known.length > 0 ? { correct: sum("correct"), asked: sum("asked") } : undefined;
}
