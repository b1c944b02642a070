/**
 * Agents that act: one compiled step, run once per step of an episode.
 *
 * Between the steps everything stays where the program reads it. JavaScript hands over observations, takes the
 * policy, and adds one row to each part of the agent's history (see agents.ts).
 */
import { input, state, stateAttrs, type Tensor } from "../graph/index.ts";
import type { Agent, AgentPart } from "../model/agents.ts";
import { type CompileOptions, compile, type Program } from "../runtime/program.ts";
import type { State } from "../runtime/state.ts";
import { policyOf } from "./a2c.ts";

/** Prefix of the agents' state while they act; it lasts for one episode and is never saved. */
export const actPrefix = "act.";

/** Sizes of an episode. */
export interface ActorSizes {
  /** B */
  readonly agents: number;
  /** T */
  readonly steps: number;
  /** O: numbers in an observation. */
  readonly observation: number;
}

/** What a step of acting gives; the arrays are overwritten by the next step. */
export interface Decision {
  /** Probabilities of the actions, [B, A]. */
  readonly policy: Float32Array;
  readonly logits: Float32Array;
  /** The critic's estimate of the return, [B]. */
  readonly value: Float32Array;
}

/** B agents with the same weights, each in its own episode. */
export class Actor {
  private readonly here: Float32Array;
  private program: Promise<Program> | undefined;
  private step = 0;

  constructor(
    readonly agent: Agent,
    readonly sizes: ActorSizes,
    /** Holds the weights, and under `actPrefix` what the agents keep between steps. */
    readonly state: State,
    private readonly options: Omit<CompileOptions, "state">,
  ) {
    for (const parameter of agent.parameters) state.declare(stateAttrs(parameter)!);
    this.here = new Float32Array(sizes.steps);
  }

  /** Starts an episode: everything the agents kept is zero again. */
  async start(): Promise<void> {
    await this.compiled();
    for (const { name } of [...this.agent.state, ...this.agent.history]) {
      (this.state.get(actPrefix + name).data as Float32Array).fill(0);
    }
    this.step = 0;
  }

  /**
   * One step: what the agents see, [B, O], becomes what they would do. Arrays of `activations` receive what an update
   * takes over from this step, in the order of the agent's `savedActivations`.
   */
  async act(x: Float32Array, activations: readonly Float32Array[] = []): Promise<Decision> {
    const program = await this.compiled();
    activations.forEach((part, i) => {
      program.bindOutput(this.agent.savedActivations[i]!.name, part);
    });
    this.here.fill(0)[this.step] = 1;
    const feeds = program.plan.inputs.has("here") ? { x, here: this.here } : { x };
    const out = (await program.run(feeds)) as Record<string, Float32Array>;
    for (const { name } of this.agent.history) this.append(name, out[name]!);
    this.step++;
    return { policy: out.policy!, logits: out.logits!, value: out.value! };
  }

  /** Frees the compiled program. */
  async release(): Promise<void> {
    await (await this.program?.catch(() => undefined))?.release();
    this.program = undefined;
  }

  /** Writes one row of the history of every agent: short copies instead of a pass over all of it in the program. */
  private append(name: string, rows: Float32Array): void {
    const { agents: B, steps: T } = this.sizes;
    const history = this.state.get(actPrefix + name).data as Float32Array;
    const width = rows.length / B;
    for (let b = 0; b < B; b++) {
      const to = (b * T + this.step) * width;
      for (let i = 0; i < width; i++) history[to + i] = rows[b * width + i]!;
    }
  }

  private compiled(): Promise<Program> {
    this.program ??= this.compile();
    return this.program;
  }

  private compile(): Promise<Program> {
    const { agents: B, steps: T, observation: O } = this.sizes;
    const declare = ({ name, shape }: AgentPart): Tensor => state(actPrefix + name, shape(B, T));
    const before = this.agent.state.map(declare);
    const history = this.agent.history.map(declare);
    const step = this.agent.act({ x: input("x", [B, O]), here: input("here", [T]), state: before, history });
    const rows = this.agent.history.map(({ name }, i) => [name, step.rows[i]!] as const);
    const saved = this.agent.savedActivations.map(
      ({ name }, i) => [name, step.savedActivations[i]!] as const,
    );
    return compile(
      {
        name: "act",
        outputs: {
          policy: policyOf(step.logits),
          logits: step.logits,
          value: step.value,
          ...Object.fromEntries([...rows, ...saved]),
        },
        updates: before.map((tensor, i) => [tensor, step.state[i]!] as const),
      },
      { ...this.options, state: this.state },
    );
  }
}
