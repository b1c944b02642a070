/** Acting: a whole episode of all agents, observe, act, sample, step. The one place that does it. */
import type { Actor, Decision } from "./actor.ts";

/** How many questions a lesson asked, and how many were answered as they should be. */
export interface Answers {
  readonly correct: number;
  readonly asked: number;
}

/** Where agents act: all of them take a step together. */
export interface Environment {
  /** Name by which threads know their part of it. */
  readonly name?: string;
  /** Number of the lessons that the next episodes are; undefined for ordinary ones. */
  lesson?: number | undefined;
  readonly agents: number;
  /** Steps per episode. */
  readonly steps: number;
  reset(episode: number): void;
  /** Writes what the agents see, [B, O], from `offset` on. */
  observe(into: Float32Array, offset: number): void;
  /** One action per agent; gives one reward per agent. */
  step(actions: Int32Array): Float32Array;
  /** Replaces the actions of agents that are led, and writes 0 for them into `own`. */
  guide?(actions: Int32Array, own: Float32Array): void;
  /** Writes what a teacher would do now, [B, A]: 1 for every action it might take. Asked before every step of an episode. */
  advise?(into: Float32Array): void;
  /**
   * Writes which of the episode's writes an answer now would follow from, [B, 2, T]: 1 for the one to be found last, and
   * for the one before it. Asked before every step of an episode.
   */
  facts?(into: Float32Array): void;
  /** Of the lesson so far. */
  answers?(): Answers | undefined;
  /** Mean over the agents of the episode's return so far. */
  meanReturn(): number;
  /** Fills in one uniform number in [0, 1) per agent: what actions are sampled with. */
  noise(into: Float32Array, episode: number, step: number): void;
}

/** What happened at a step; the arrays are overwritten by the next step unless the caller gave them. */
export interface Transition extends Decision {
  readonly step: number;
  /** [B, O] */
  readonly observation: Float32Array;
  /** [B] */
  readonly actions: Int32Array;
  readonly rewards: Float32Array;
}

/** Arrays that a step is to be written into. */
export interface StepBuffers {
  /** [B, O] */
  readonly observation: Float32Array;
  /** [B] */
  readonly actions: Int32Array;
  /** In the order of the agent's `savedActivations`. */
  readonly activations: readonly Float32Array[];
  /** [B], of ones: 0 is written where an action is not the agent's own. */
  readonly own?: Float32Array | undefined;
  /** [B, A], where a teacher is to be asked. */
  readonly advice?: Float32Array | undefined;
  /** [B, 2, T], of zeros, where the facts that answers follow from are to be told. */
  readonly facts?: Float32Array | undefined;
}

/** How a rollout is recorded. */
export interface RolloutOptions {
  /** Arrays for each step; without them a pair of arrays is used again and again. */
  readonly buffers?: (step: number) => StepBuffers;
  /** Before the actions of a step are taken. */
  readonly onAct?: (step: number) => void;
  readonly onStep?: (transition: Transition) => void;
}

/** One episode: actions are sampled from the policy, nothing is updated. Gives the mean return of the agents. */
export async function rollout(
  actor: Actor,
  environment: Environment,
  episode: number,
  { buffers, onAct, onStep }: RolloutOptions = {},
): Promise<number> {
  const { agents } = environment;
  const noise = new Float32Array(agents);
  const spare: StepBuffers = {
    observation: new Float32Array(agents * actor.sizes.observation),
    actions: new Int32Array(agents),
    activations: [],
  };
  await actor.start();
  environment.reset(episode);
  for (let step = 0; step < environment.steps; step++) {
    const { observation, actions, activations, own: isOwn, advice, facts } = buffers?.(step) ?? spare;
    environment.observe(observation, 0);
    if (advice) environment.advise?.(advice);
    if (facts) environment.facts?.(facts);
    const decision = await actor.act(observation, activations);
    environment.noise(noise, episode, step);
    sampleActions(decision.policy, noise, actions);
    if (isOwn) environment.guide?.(actions, isOwn);
    onAct?.(step);
    const rewards = environment.step(actions);
    onStep?.({ ...decision, step, observation, actions, rewards });
  }
  return environment.meanReturn();
}

/** One action per agent: the first whose cumulated probability exceeds the agent's uniform number. */
export function sampleActions(policy: Float32Array, noise: Float32Array, into: Int32Array): void {
  const count = policy.length / noise.length;
  for (let b = 0; b < noise.length; b++) {
    let action = 0;
    let reached = policy[b * count]!;
    while (action < count - 1 && noise[b]! >= reached) reached += policy[b * count + ++action]!;
    into[b] = action;
  }
}
