/** What trainers of agents share: settings, weights and optimizer, the loss of an episode. */
import { input, sizeOf, stateAttrs, type Tensor } from "../graph/index.ts";
import type { Agent } from "../model/agents.ts";
import type { HostData, HostTensor } from "../runtime/host.ts";
import type { Program } from "../runtime/program.ts";
import { State } from "../runtime/state.ts";
import { type A2cSettings, a2cLoss, type StepMeans } from "./a2c.ts";
import { type ActorSizes, actPrefix } from "./actor.ts";
import type { EpisodeReport, ReturnSettings } from "./episodes.ts";
import { clipByNorm, globalNorm, type Optimizer } from "./optimizers.ts";
import type { Environment } from "./rollout.ts";

/** Sizes of an episode, and how it is learned from. */
export interface A2cTrainerSettings extends A2cSettings, ReturnSettings, ActorSizes {
  readonly optimizer: Optimizer;
  /** Global norm above which gradients are scaled down; 0 for never. */
  readonly clip: number;
  /** Seed of the weights. */
  readonly seed: number;
  /** Whether there are episodes in which some actions are not the agents' own. */
  readonly guided: boolean;
  /** Actions that a teacher advises on, whose advice is learned from besides rewards; 0 for no teacher. */
  readonly advised: number;
  /** Weight of being told which writes an answer follows from, for agents with a memory; 0 for none. */
  readonly factCoef: number;
}

/** What may change from update to update. */
export interface UpdateRates {
  readonly learningRate: number;
  /** Weight of the policy's entropy. */
  readonly entropyCoef: number;
  /** Weight of the teacher's advice, where agents have one. */
  readonly teacherCoef?: number | undefined;
}

/** Rates as a program that learns is fed them. */
export function ratesFed(
  { advised }: Pick<A2cTrainerSettings, "advised">,
  { entropyCoef, teacherCoef = 0 }: Omit<UpdateRates, "learningRate">,
): Record<string, number> {
  return { entropyCoef, ...(advised > 0 ? { teacherCoef } : {}) };
}

/** What one update gives. */
export interface UpdateResult {
  readonly loss: number;
  readonly policyLoss: number;
  readonly valueLoss: number;
  readonly entropy: number;
  readonly gradNorm: number;
  /** Of agents that have a teacher: how far the policy is from its advice, -log of the probability of advised actions. */
  readonly teacherLoss?: number;
  /** Of agents that are told the facts: how far their reads are from them. */
  readonly factLoss?: number;
  /** Set when something was not finite: the weights were left as they had been. */
  readonly nonFinite?: string;
}

/** Weights, optimizer and acting state of agents under training: what is saved and restored. */
export abstract class AgentTrainer {
  /** Weights and optimizer, and the acting state under `actPrefix`. */
  readonly state: State;
  /** Which of the names in `state` are the agent's weights. */
  readonly weightNames: ReadonlySet<string>;
  private program: Promise<Program> | undefined;

  protected constructor(
    readonly agent: Agent,
    readonly settings: A2cTrainerSettings,
  ) {
    this.state = new State(settings.seed);
    for (const parameter of agent.parameters) this.state.declare(stateAttrs(parameter)!);
    this.weightNames = new Set(this.state.names());
  }

  /** Acts in a whole episode and stores it. */
  abstract rollout(environment: Environment, episode: number): Promise<EpisodeReport>;

  /** Acts in a whole episode and stores nothing; gives the mean return of the agents. */
  abstract evaluate(environment: Environment, episode: number): Promise<number>;

  /** One update from the stored episode. Nothing changes when the loss or the gradient is not finite. */
  abstract update(rates: UpdateRates): Promise<UpdateResult>;

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
    await (await this.program?.catch(() => undefined))?.release();
    this.program = undefined;
  }

  /** The program that replaces the weights. */
  protected compiled(): Promise<Program> {
    this.program ??= this.compile();
    return this.program;
  }

  protected abstract compile(): Promise<Program>;
}

/** The loss of an episode that is fed in, and its parts. */
export function episodeLoss(
  agent: Agent,
  settings: A2cTrainerSettings,
  means?: StepMeans,
): ReturnType<typeof a2cLoss> {
  const { agents: B, steps: T, observation: O, guided, advised: A, factCoef } = settings;
  const activations = agent.savedActivations.map(({ name, shape }) => input(name, shape(B, T)));
  const output = agent.episode(input("x", [T, B, O]), activations);
  const facts = factCoef > 0 ? { facts: input("facts", [T, B, 2, T]), coef: factCoef } : undefined;
  const [actions, returns] = [input("actions", [T, B], "i32"), input("returns", [T, B])];
  const teaching = A > 0 ? { advice: input("advice", [T, B, A]), coef: input("teacherCoef", []) } : undefined;
  const own = guided ? input("own", [T, B]) : undefined;
  return a2cLoss(output, actions, returns, settings, input("entropyCoef", []), {
    means,
    own,
    teaching,
    facts,
  });
}

/** Gradients, clipped, become new weights; the norm is that before clipping. */
export function optimizerStep(
  optimizer: Optimizer,
  clip: number,
  parameters: readonly Tensor[],
  gradients: readonly Tensor[],
) {
  const gradNorm = globalNorm(gradients);
  const clipped = clip > 0 ? clipByNorm(gradients, clip, gradNorm) : gradients;
  return { gradNorm, updates: optimizer(parameters, clipped, input("learningRate", [])) };
}

/** The parts of the loss and the norm of its gradient. */
export type LossNumbers = Omit<UpdateResult, "nonFinite">;

/** Numbers among the outputs of a program. */
export function scalars(out: Readonly<Record<string, HostData>>): LossNumbers {
  const value = (name: string): number => Number(out[name]![0]);
  return {
    loss: value("loss"),
    policyLoss: value("policyLoss"),
    valueLoss: value("valueLoss"),
    entropy: value("entropy"),
    gradNorm: value("gradNorm"),
    ...("teacherLoss" in out ? { teacherLoss: value("teacherLoss") } : {}),
    ...("factLoss" in out ? { factLoss: value("factLoss") } : {}),
  };
}

/** What of them is not finite. */
export function nonFiniteIn({ loss, gradNorm }: LossNumbers): string | undefined {
  if (!Number.isFinite(loss)) return "loss";
  return Number.isFinite(gradNorm) ? undefined : "gradient norm";
}

/** They as the result of an update. */
export function resultOf(numbers: LossNumbers): UpdateResult {
  const nonFinite = nonFiniteIn(numbers);
  return { ...numbers, ...(nonFinite === undefined ? {} : { nonFinite }) };
}

/** Weights from which on a step of acting is worth more than one thread. */
const largeAgent = 100_000;

/** Whether an agent's operators are too short to be shared by threads. */
export function isSmall({ parameters }: Agent): boolean {
  return parameters.reduce((total, { shape }) => total + sizeOf(shape), 0) < largeAgent;
}
