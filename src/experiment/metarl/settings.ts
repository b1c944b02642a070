/** Settings of a meta-reinforcement-learning experiment: rules of the graphs, an agent, and how it learns. */
import { z } from "zod";
import { actions, type GraphRules, graphRules, observationSizeOf, states } from "../../environment/index.ts";
import { type AgentSettings, agentSchema } from "../../model/agentRegistry.ts";
import type { AgentSizes } from "../../model/agents.ts";
import { keysOf } from "../../model/fwm.ts";
import { size } from "../../model/sequence.ts";
import { plainOptimizerSchema, stepScheduleSchema } from "../../train/optimizerSettings.ts";
import { type Experiment, loopFields, untilLastStep } from "../kind.ts";

const fraction = z.number().min(0).max(1);

/** A stage of lessons: edges are shown, and ways of two steps asked for (src/environment/lessons.ts). */
const lessonSchema = z.strictObject({
  /** At most so many edges are shown besides the four of the fork that is asked about. */
  extra: z.int().min(0).max(20),
  /** Probability that an edge and one that goes on from it are shown as one walk. */
  joined: fraction,
  /** The share of right answers at which the stage ends. */
  until: fraction,
  /** Episodes after which it ends in any case. */
  episodes: z.int().min(1).max(0x7fffffff),
});

/** The graphs and their rules; see docs/meta-rl.md. */
const taskSchema = z.strictObject({
  name: z.literal("metarl"),
  /** The paper's rules, or those of the authors' program; each of the next three wins over them when given. */
  rules: z.enum(keysOf(graphRules)),
  /** What an agent sees of its reward. */
  rewardInput: z.enum(["none", "success", "last", "cumulative"]).optional(),
  /** Whether reaching the reward sets the count of failures to 0. */
  timerOnSuccess: z.enum(["reset", "kept"]).optional(),
  /** Where previous action and constant stand in an observation. */
  layout: z.enum(["paper", "released"]).optional(),
  /** Seed of the graphs, the same for every training seed. */
  graphSeed: z.int().min(0).max(0xffffffff),
  /** Names that a location may be observed by; more than five for agents that are to act on larger graphs. */
  names: z.int().min(states).max(20).default(states),
  /** Steps per episode. */
  length: z.int().min(1).max(1000),
  /** What comes before ordinary episodes, stage by stage. */
  lessons: z.array(lessonSchema).default([]),
  /** Whether the training graphs have other names of locations and actions in every ordinary episode. */
  rename: z.boolean().default(false),
});

const trainingSchema = z.strictObject({
  ...loopFields,
  /** Each on a graph of its own: as many training graphs, and as many for validation and for testing. */
  agents: size.max(4096),
  /** Episodes of all agents together, each followed by one update. */
  episodes: z.int().min(1).max(0x7fffffff),
  optimizer: plainOptimizerSchema,
  schedule: stepScheduleSchema,
  /** Global norm above which gradients are scaled down; 0 for never. */
  clip: z.number().min(0),
  /** Rewards are multiplied by this before they are learned from. */
  rewardScale: z.number().positive(),
  /** γ */
  discount: fraction,
  /** λ: 1 sums rewards to the end of the episode; less trusts the critic with what is further away. */
  lambda: fraction,
  /** Weight of the critic's loss. */
  valueCoef: z.number().min(0),
  /** Weight of the policy's entropy, and what is left of it at the last episode. */
  entropyCoef: z.number().min(0),
  finalEntropyRatio: fraction,
  /** a2c: return minus the agent's own value; broadcast: minus the mean value of all agents. See src/train/a2c.ts. */
  advantage: z.enum(["a2c", "broadcast"]),
  /**
   * The explorer as a teacher (src/environment/explorer.ts): the weight of its advice, which falls to 0 in so many episodes
   * after the lessons.
   */
  teacher: z.strictObject({ coef: z.number().min(0), episodes: z.int().min(1).max(0x7fffffff) }).optional(),
  /** Weight of being told, in lessons, which writes an answer follows from (src/train/a2c.ts). */
  factCoef: z.number().min(0).default(0),
  /** Episodes on the validation graphs at an evaluation. */
  evalEpisodes: z.int().min(1).max(1000),
});

/** The schema of a meta-reinforcement-learning experiment. */
export const metarlSchema = z.strictObject({
  task: taskSchema,
  system: agentSchema,
  training: trainingSchema,
});

/** Settings of a meta-reinforcement-learning experiment. */
export type MetarlSettings = z.infer<typeof metarlSchema>;

/** Sizes of what the agents of a task see and do. */
export function agentSizesOf({ names }: MetarlSettings["task"]): AgentSizes {
  return { observation: observationSizeOf(names), actions };
}

/** The rules of a task: the named set, and over it what is given by name. */
export function rulesOf(task: MetarlSettings["task"]): GraphRules {
  const named = graphRules[task.rules];
  return {
    rewardInput: task.rewardInput ?? named.rewardInput,
    timerOnSuccess: task.timerOnSuccess ?? named.timerOnSuccess,
    layout: task.layout ?? named.layout,
  };
}

/** What the authors' log of an agent says: mean returns. */
export interface MetarlPaper {
  /** Where the log ends, and the means of its last 20 lines. */
  readonly episodes: number;
  readonly trainReturn: number;
  readonly testReturn: number;
  /** Points of the log, each the mean of 11 neighbouring lines. */
  readonly curve: readonly PublishedReturn[];
}

/** One point of the authors' log. */
export interface PublishedReturn {
  readonly episode: number;
  readonly train: number;
  readonly test: number;
}

/** A curve written as a table: a line is episode, train and test. */
export function publishedCurve(...rows: readonly (readonly [number, number, number])[]): PublishedReturn[] {
  return rows.map(([episode, train, test]) => ({ episode, train, test }));
}

/** A meta-reinforcement-learning experiment. */
export type MetarlExperiment = Experiment<MetarlSettings, MetarlPaper>;

/** Declares a meta-reinforcement-learning experiment. */
export function metarlExperiment(definition: MetarlExperiment): MetarlExperiment {
  return definition;
}

/** The task by the authors' program. */
export const releasedTask: MetarlSettings["task"] = {
  name: "metarl",
  rules: "released",
  graphSeed: 666,
  names: states,
  length: 30,
  lessons: [],
  rename: false,
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
  agents: 600,
  episodes: 51_000,
  optimizer: { name: "adam", learningRate: 1e-3, beta1: 0.9, beta2: 0.999, eps: 1e-4, weightDecay: 0 },
  schedule: { name: "constant", warmup: 0 },
  clip: 0,
  rewardScale: 1,
  discount: 0.9,
  lambda: 1,
  valueCoef: 0.1,
  entropyCoef: 0.03,
  finalEntropyRatio: 1,
  advantage: "broadcast",
  factCoef: 0,
  logEvery: 50,
  evalEvery: 250,
  evalEpisodes: 5,
  saveEvery: 500,
  ...untilLastStep,
};

/** Minutes become seconds: few agents, for a few episodes. */
export const metarlSmoke: MetarlExperiment["smoke"] = {
  training: { agents: 40, episodes: 30, logEvery: 10, evalEvery: 10, evalEpisodes: 1, saveEvery: 10 },
};

/** Names that settings had in version 0.1. */
export const renamedSettings: Readonly<Record<string, string>> = {
  "training.batch": "training.agents",
  "training.steps": "training.episodes",
  "training.learningRate": "training.optimizer.learningRate",
  "training.beta1": "training.optimizer.beta1",
  "training.beta2": "training.optimizer.beta2",
  "training.eps": "training.optimizer.eps",
  "training.decay": "training.schedule.name",
  "training.final": "training.schedule.finalLrRatio",
  "training.value": "training.valueCoef",
  "training.entropy": "training.entropyCoef",
  "training.entropyFinal": "training.finalEntropyRatio",
};
