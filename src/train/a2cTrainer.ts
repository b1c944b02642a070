/**
 * An agent under training as two compiled programs: a step for acting, an episode for learning.
 *
 * Between the steps of an episode everything stays where the programs read it. JavaScript hands over observations,
 * samples actions from the policy, and adds one row to each record (see agents.ts).
 */
import { grad } from "../compile/grad.ts";
import { input, state, stateAttrs, type Tensor } from "../graph/index.ts";
import type { Agent, AgentPart } from "../model/agents.ts";
import type { HostTensor } from "../runtime/host.ts";
import { type CompileOptions, compile, type Program } from "../runtime/program.ts";
import { State } from "../runtime/state.ts";
import {
  type A2cSettings,
  a2cLoss,
  discountedReturns,
  type LearnResult,
  policyOf,
  type World,
} from "./a2c.ts";
import { globalNorm, type Optimizer } from "./optimizers.ts";

/** Sizes of an episode, and how it is learned from. */
export interface A2cTrainerSettings extends A2cSettings {
  /** B */
  readonly agents: number;
  /** T */
  readonly steps: number;
  /** O: numbers in an observation. */
  readonly observation: number;
  readonly optimizer: Optimizer;
  /** Seed of the weights. */
  readonly seed: number;
}

/** Prefix of the agents' state while they act; it lasts for one episode and is never saved. */
export const actPrefix = "act.";

/** An agent under training: `play` acts and stores, `learn` makes one update from what is stored. */
export class A2cTrainer {
  /** Weights and optimizer, and the acting state under `actPrefix`. */
  readonly state: State;
  /** Which of the names in `state` are the agent's weights. */
  readonly weightNames: ReadonlySet<string>;
  private readonly observations: Float32Array;
  private readonly actions: Int32Array;
  private readonly rewards: Float32Array;
  private readonly uniform: Float32Array;
  private readonly here: Float32Array;
  private programs: Promise<{ act: Program; learn: Program }> | undefined;

  constructor(
    readonly agent: Agent,
    readonly settings: A2cTrainerSettings,
    private readonly options: Omit<CompileOptions, "state">,
  ) {
    const { agents: B, steps: T, observation: O } = settings;
    this.state = new State(settings.seed);
    for (const parameter of agent.parameters) this.state.declare(stateAttrs(parameter)!);
    this.weightNames = new Set(this.state.names());
    this.observations = new Float32Array(T * B * O);
    this.actions = new Int32Array(T * B);
    this.rewards = new Float32Array(T * B);
    this.uniform = new Float32Array(B);
    this.here = new Float32Array(T);
  }

  /** Plays one episode, stores it, and gives the mean total reward of the agents. */
  async play(world: World, episode: number): Promise<number> {
    const { agents: B, steps: T, observation: O } = this.settings;
    const { act } = await this.compiled();
    this.forget();
    world.reset(episode);
    for (let t = 0; t < T; t++) {
      const x = this.observations.subarray(t * B * O, (t + 1) * B * O);
      const actions = this.actions.subarray(t * B, (t + 1) * B);
      world.observe(x, 0);
      this.here.fill(0)[t] = 1;
      const seen = act.plan.inputs.has("here") ? { x, here: this.here } : { x };
      const out = (await act.run(seen)) as Record<string, Float32Array>;
      this.record(out, t);
      world.draw(this.uniform, episode, t);
      sampleActions(out.policy!, this.uniform, actions);
      this.rewards.set(world.step(actions), t * B);
    }
    return world.meanTotal();
  }

  /** One update from the stored episode. Nothing changes when the loss or the gradient is not finite. */
  async learn(learningRate: number): Promise<LearnResult> {
    const { learn } = await this.compiled();
    const { agents, discount } = this.settings;
    const returns = discountedReturns(this.rewards, agents, discount);
    const feeds = { x: this.observations, actions: this.actions, returns, learningRate };
    const sound = (values: Record<string, ArrayLike<number | bigint>>): boolean =>
      [values.loss![0], values.gradNorm![0]].every((value) => Number.isFinite(Number(value)));
    const out = await learn.run(feeds, undefined, sound);
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
    if (!this.programs) return;
    const { act, learn } = await this.programs;
    this.programs = undefined;
    await act.release();
    await learn.release();
  }

  /** An episode begins with zeros. */
  private forget(): void {
    for (const { name } of [...this.agent.carried, ...this.agent.recorded]) {
      (this.state.get(actPrefix + name).data as Float32Array).fill(0);
    }
  }

  /** Writes row t of every record: B short copies instead of a pass over the whole record in the program. */
  private record(out: Readonly<Record<string, Float32Array>>, t: number): void {
    const { agents: B, steps: T } = this.settings;
    for (const { name } of this.agent.recorded) {
      const record = this.state.get(actPrefix + name).data as Float32Array;
      const rows = out[name]!;
      const width = rows.length / B;
      for (let b = 0; b < B; b++) {
        const to = (b * T + t) * width;
        for (let i = 0; i < width; i++) record[to + i] = rows[b * width + i]!;
      }
    }
  }

  private compiled(): Promise<{ act: Program; learn: Program }> {
    this.programs ??= this.compile();
    return this.programs;
  }

  private async compile(): Promise<{ act: Program; learn: Program }> {
    const { agents: B, steps: T, observation: O, optimizer } = this.settings;
    const options = { ...this.options, state: this.state };
    const declare = ({ name, shape }: AgentPart): Tensor => state(actPrefix + name, shape(B, T));
    const carried = this.agent.carried.map(declare);
    const recorded = this.agent.recorded.map(declare);
    const step = this.agent.act({ x: input("x", [B, O]), here: input("here", [T]), carried, recorded });
    const rows = this.agent.recorded.map(({ name }, i) => [name, step.rows[i]!] as const);
    const act = await compile(
      {
        name: "act",
        outputs: { policy: policyOf(step.logits), logits: step.logits, ...Object.fromEntries(rows) },
        updates: carried.map((before, i) => [before, step.carried[i]!] as const),
      },
      options,
    );
    const output = this.agent.episode(input("x", [T, B, O]));
    const parts = a2cLoss(output, input("actions", [T, B], "i32"), input("returns", [T, B]), this.settings);
    const { parameters } = this.agent;
    const gradients = grad(parts.loss, parameters);
    const updates = optimizer(parameters, gradients, input("learningRate", []));
    const learn = await compile(
      {
        name: "learn",
        outputs: { ...parts, gradNorm: globalNorm(gradients), logits: output.logits },
        updates,
      },
      options,
    );
    return { act, learn };
  }
}

/** One action per agent: the first whose cumulated probability exceeds the agent's uniform number. */
export function sampleActions(policy: Float32Array, uniform: Float32Array, into: Int32Array): void {
  const count = policy.length / uniform.length;
  for (let b = 0; b < uniform.length; b++) {
    let action = 0;
    let reached = policy[b * count]!;
    while (action < count - 1 && uniform[b]! >= reached) reached += policy[b * count + ++action]!;
    into[b] = action;
  }
}
