/** Settings of a meta-reinforcement-learning experiment: rules of the graphs, an agent, and how it learns. */
import { z } from "zod";
import { type GraphRules, graphRules } from "../environment/index.ts";
import { fwmVariants } from "../model/fwm.ts";

const size = z.int().min(1).max(65_536);
const seed = z.int().min(0).max(0xffffffff);
const share = z.number().min(0).max(1);

/** The graphs and the rules they are played by; see docs/meta-rl.md. */
const taskSchema = z.strictObject({
  name: z.literal("metarl"),
  /** The paper's rules, or those of the authors' program; each of the next three wins over them when given. */
  rules: z.enum(Object.keys(graphRules) as [keyof typeof graphRules, ...(keyof typeof graphRules)[]]),
  /** What an agent is told of its reward. */
  rewardInput: z.enum(["none", "success", "last", "cumulative"]).optional(),
  /** Whether reaching the reward sets the count of failures to 0. */
  timerOnSuccess: z.enum(["reset", "kept"]).optional(),
  /** Where previous action and constant stand in an observation. */
  layout: z.enum(["paper", "released"]).optional(),
  /** Seed of the graphs, the same for every training seed. */
  graphSeed: seed,
  /** Steps per episode. */
  length: z.int().min(1).max(1000),
});

/** Sizes of the agent with a Fast Weight Memory. */
const fwmSchema = z.strictObject({
  name: z.literal("fwm"),
  hidden: size,
  /** D: width of keys and values. */
  memory: size.max(1024),
  /** N_r: reads in a row. */
  reads: z.int().min(1).max(16),
  /** Which text of the equations; see docs/fwm.md. */
  variant: z.enum(Object.keys(fwmVariants) as [keyof typeof fwmVariants, ...(keyof typeof fwmVariants)[]]),
});

/** Size of the plain LSTM agent. */
const lstmSchema = z.strictObject({ name: z.literal("lstm"), hidden: size });

const trainingSchema = z.strictObject({
  /** Seed of the weights, the places and the sampled actions. */
  seed,
  /** Agents, each on a graph of its own: as many training graphs, and as many test graphs. */
  batch: size.max(4096),
  /** Episodes of all agents together, each followed by one update. */
  steps: z.int().min(1).max(0xffffffff),
  learningRate: z.number().positive(),
  /** How the rate falls to the share `final` of itself at the last episode; see src/train/schedules.ts. */
  decay: z.enum(["none", "cosine", "linear"]).default("none"),
  final: share.default(0),
  beta1: share,
  beta2: share,
  eps: z.number().positive(),
  /** Global norm above which gradients are scaled down; 0 for never. */
  clip: z.number().min(0).default(0),
  /** Rewards are multiplied by this before they are learned from. */
  rewardScale: z.number().positive().default(1),
  /** γ */
  discount: share,
  /** λ: 1 sums rewards to the end of the episode; less trusts the critic with what is further away. */
  lambda: share.default(1),
  /** Weight of the critic's loss. */
  value: z.number().min(0),
  /** Weight of the policy's entropy. */
  entropy: z.number().min(0),
  /** Share of that weight left at the last episode. */
  entropyFinal: share.default(1),
  /** a2c: return minus the agent's own value; broadcast: minus the mean value of all agents. See src/train/a2c.ts. */
  advantage: z.enum(["a2c", "broadcast"]),
  /** Episodes between lines of the log, each with one episode on the test graphs. */
  logEvery: z.int().min(1),
  /** Episodes between checkpoints. */
  saveEvery: z.int().min(1),
});

/** The schema of a meta-reinforcement-learning experiment. */
export const metarlSchema = z.strictObject({
  task: taskSchema,
  system: z.discriminatedUnion("name", [fwmSchema, lstmSchema]),
  training: trainingSchema,
});

/** Settings of a meta-reinforcement-learning experiment. */
export type MetarlSettings = z.infer<typeof metarlSchema>;
/** Settings of an agent. */
export type AgentSettings = MetarlSettings["system"];

/** The rules of a task: the named set, and over it what is given by name. */
export function rulesOf(task: MetarlSettings["task"]): GraphRules {
  const named = graphRules[task.rules];
  return {
    rewardInput: task.rewardInput ?? named.rewardInput,
    timerOnSuccess: task.timerOnSuccess ?? named.timerOnSuccess,
    layout: task.layout ?? named.layout,
  };
}

/** What the authors' log of an agent says: mean total reward per episode. */
export interface MetarlPaper {
  /** Where the log ends, and the means of its last 20 lines. */
  readonly episodes: number;
  readonly trainReward: number;
  readonly testReward: number;
  /** Points of the log, each the mean of 11 neighbouring lines. */
  readonly curve: readonly PublishedReward[];
}

/** One point of the authors' log. */
export interface PublishedReward {
  readonly episode: number;
  readonly train: number;
  readonly test: number;
}

/** A curve written as a table: a line is episode, train and test. */
export function publishedCurve(...rows: readonly (readonly [number, number, number])[]): PublishedReward[] {
  return rows.map(([episode, train, test]) => ({ episode, train, test }));
}

/** A meta-reinforcement-learning experiment as `experiments/` defines it. */
export interface MetarlExperiment {
  /** What it shows, in a line. */
  readonly shows: string;
  readonly settings: MetarlSettings;
  /** Small settings laid over the others by `--smoke`: a check, not a result. */
  readonly smoke: { readonly [Part in keyof MetarlSettings]?: Partial<MetarlSettings[Part]> };
  /** The published numbers this stands beside. */
  readonly paper?: MetarlPaper;
}

/** Declares a meta-reinforcement-learning experiment. */
export function metarlExperiment(definition: MetarlExperiment): MetarlExperiment {
  return definition;
}

/** The task by the authors' program. */
export const releasedTask: MetarlSettings["task"] = {
  name: "metarl",
  rules: "released",
  graphSeed: 666,
  length: 30,
};

/** The paper's agent as the authors released it: 10,933 weights. */
export const fwmAgentSettings: AgentSettings = {
  name: "fwm",
  hidden: 32,
  memory: 16,
  reads: 3,
  variant: "releasedMetaRl",
};

/** The released recipe, for as many episodes as the authors' log of the FWM has. */
export const releasedMetarlTraining: MetarlSettings["training"] = {
  seed: 1,
  batch: 600,
  steps: 51_000,
  learningRate: 1e-3,
  decay: "none",
  final: 0,
  beta1: 0.9,
  beta2: 0.999,
  eps: 1e-4,
  clip: 0,
  rewardScale: 1,
  discount: 0.9,
  lambda: 1,
  value: 0.1,
  entropy: 0.03,
  entropyFinal: 1,
  advantage: "broadcast",
  logEvery: 50,
  saveEvery: 500,
};

/** Minutes become seconds: few agents, small, for a few episodes. */
export const metarlSmoke: MetarlExperiment["smoke"] = {
  training: { batch: 40, steps: 30, logEvery: 10, saveEvery: 10 },
};
