/**
 * Advantage actor-critic (A2C) on whole episodes: act, store, learn.
 *
 *   code         meaning                                                                    shape
 *   π            policy: softmax(logits) + 1e-8, made to sum to 1 again                     [T, B, A]
 *   V            the critic's estimate of the return                                        [T, B]
 *   G            return: G_t = r_t + γ (λ G_{t+1} + (1-λ) V_{t+1}), and 0 after the last step [T, B]
 *   advantage    "a2c": G - V, each agent its own critic;  "broadcast": G - mean_b V        [T, B]
 *
 *   loss = 1/T Σ_t [ -mean_b( log π_t(a_t) · advantage_t ) + value · VL_t - entropy · mean_b H(π_t) ]
 *   VL   = mean_b (G - V)²   for "a2c";   mean over all pairs (i, j) of agents of (G_j - V_i)²   for "broadcast"
 *
 *   T steps per episode, B agents, A actions
 *
 * "broadcast" is what the authors' program computes: it subtracts V [B, 1] from G [B], and the difference is
 * [B, B]. In effect every V_i is pulled to the mean return of its step, a baseline that all agents share.
 */
import {
  add,
  div,
  log,
  mean,
  mul,
  neg,
  oneHot,
  softmax,
  stopGradient,
  sub,
  sum,
  type Tensor,
} from "../graph/index.ts";
import type { AgentOutput } from "../model/agents.ts";
import { DivergedError, type LoopRun } from "./loop.ts";

/** Where agents act: all of them take a step together. */
export interface World {
  readonly agents: number;
  readonly steps: number;
  reset(episode: number): void;
  /** Writes what the agents see, [B, O], from `offset` on. */
  observe(into: Float32Array, offset: number): void;
  /** One action per agent; gives one reward per agent. */
  step(actions: Int32Array): Float32Array;
  /** Mean over the agents of the episode's rewards so far. */
  meanTotal(): number;
  /** Fills in one uniform number in [0, 1) per agent: what actions are sampled with. */
  draw(into: Float32Array, episode: number, step: number): void;
}

/** What the loss weighs, and how. */
export interface A2cSettings {
  /** γ */
  readonly discount: number;
  /** λ: 1 sums rewards to the end of the episode; less trusts the critic with what is further away. */
  readonly lambda: number;
  /** Weight of the critic's loss. */
  readonly value: number;
  readonly advantage: "a2c" | "broadcast";
}

/** Returns G of rewards and the critic's estimates V, both [T, B]; with λ = 1 discounted sums of the rewards. */
export function returnsOf(
  rewards: Float32Array,
  V: Float32Array,
  agents: number,
  { discount, lambda }: Pick<A2cSettings, "discount" | "lambda">,
): Float32Array {
  const returns = Float32Array.from(rewards);
  for (let i = returns.length - agents - 1; i >= 0; i--) {
    const next = i + agents;
    returns[i]! += discount * (lambda * returns[next]! + (1 - lambda) * V[next]!);
  }
  return returns;
}

/** Probabilities of the actions; none is ever 0. */
export function policyOf(logits: Tensor): Tensor {
  return div(add(softmax(logits), 1e-8), 1 + 1e-8 * logits.shape.at(-1)!);
}

/** The loss and its three parts, averaged over steps and agents; `entropy` is the weight of the policy's. */
export function a2cLoss(
  { logits, value: V }: AgentOutput,
  actions: Tensor,
  G: Tensor,
  { value, advantage }: Pick<A2cSettings, "value" | "advantage">,
  entropy: Tensor | number,
): { loss: Tensor; policyLoss: Tensor; valueLoss: Tensor; entropy: Tensor } {
  const logPi = log(policyOf(logits));
  const chosen = sum(mul(logPi, oneHot(actions, logits.shape.at(-1)!)), { axes: -1 });
  const overAgents = (x: Tensor): Tensor => mean(x, { axes: 1, keep: true });
  const baseline = advantage === "a2c" ? V : overAgents(V);
  const policyLoss = neg(mean(mul(chosen, stopGradient(sub(G, baseline)))));
  const spread = sub(G, overAgents(G));
  const error = sub(advantage === "a2c" ? G : overAgents(G), V);
  // mean_ij (G_j - V_i)² = mean_i (mean_j G_j - V_i)² + the variance of G
  const squares = mean(mul(error, error));
  const valueLoss = advantage === "a2c" ? squares : add(squares, mean(mul(spread, spread)));
  const uncertainty = neg(mean(sum(mul(policyOf(logits), logPi), { axes: -1 })));
  const loss = sub(add(policyLoss, mul(valueLoss, value)), mul(uncertainty, entropy));
  return { loss, policyLoss, valueLoss, entropy: uncertainty };
}

/** What learns: plays episodes, and makes updates from the one it played last. */
export interface Learner {
  /** Acts in a whole episode and stores it; gives the mean total reward of the agents. */
  play(world: World, episode: number): Promise<number>;
  /** One update from the stored episode. */
  learn(rates: LearnRates): Promise<LearnResult>;
}

/** What may change from update to update. */
export interface LearnRates {
  readonly learningRate: number;
  /** Weight of the policy's entropy. */
  readonly entropy: number;
}

/** What one update tells. */
export interface LearnResult {
  readonly loss: number;
  readonly policyLoss: number;
  readonly valueLoss: number;
  readonly entropy: number;
  readonly gradNorm: number;
  /** Set when something was not finite: the weights were left as they had been. */
  readonly refused?: string;
}

/** How long to train, and what to do on the way. */
export interface A2cLoopSettings {
  /** Episodes, each followed by one update. */
  readonly steps: number;
  readonly rates: (episode: number) => LearnRates;
  /** Episodes between lines of the log, each with a test episode. */
  readonly logEvery: number;
  readonly saveEvery: number;
}

/** Where a run stands, besides its tensors. */
export interface A2cProgress {
  /** Mean training reward of the last line of the log; the saved step at which it was highest is the best. */
  readonly reward: number | null;
  readonly bestReward: number | null;
  readonly bestStep: number | null;
  /** Episodes since the last line of the log, and sums over them. */
  readonly episodes: number;
  readonly sums: Readonly<Record<string, number>>;
}

/** The beginning of a run. */
export const freshA2cProgress: A2cProgress = {
  reward: null,
  bestReward: null,
  bestStep: null,
  episodes: 0,
  sums: {},
};

/** Where the loop writes. */
export type A2cRun = LoopRun<A2cProgress>;

/** What a person is shown while it runs. */
export interface A2cWatch {
  onEpisode?(episode: number, reward: number, episodesPerSecond: number): void;
  /** After a test episode; `train` is the mean training reward of the same line of the log. */
  onTest?(step: number, rewards: { train: number | null; test: number }): void;
}

/** How a run ended. */
export interface A2cEnd {
  readonly step: number;
  readonly reason: "finished" | "interrupted";
  readonly progress: A2cProgress;
}

/** Act, store, learn; look and save now and then. `signal` ends it after the episode at hand, all saved. */
export async function trainA2c(
  learner: Learner,
  worlds: { readonly train: World; readonly test: World },
  run: A2cRun,
  settings: A2cLoopSettings,
  from: { readonly firstStep: number; readonly progress: A2cProgress },
  signal: AbortSignal,
  watch: A2cWatch = {},
): Promise<A2cEnd> {
  let progress = from.progress;
  let saved = from.firstStep;
  const speed = new Speed();
  if (from.firstStep === 0) await test(0);
  for (let i = from.firstStep; i < settings.steps; i++) {
    if (signal.aborted) return interrupted(i);
    const reward = await learner.play(worlds.train, i);
    const rates = settings.rates(i);
    const { refused, ...values } = await learner.learn(rates);
    if (refused !== undefined) throw diverged(i, refused, values, rates.learningRate, saved);
    const done = i + 1;
    progress = counted(progress, { reward, ...values });
    watch.onEpisode?.(i, reward, speed.add());
    // The event loop gets a turn, so that ^C and the progress bar are alive between blocking steps.
    await new Promise((resolve) => setImmediate(resolve));
    await run.heartbeat(done);
    if (done % settings.logEvery === 0 || done === settings.steps) {
      const means = meansOf(progress);
      run.log({ step: done, split: "train", values: means, times: { episodesPerSecond: speed.rate } });
      progress = { ...progress, reward: means.reward!, episodes: 0, sums: {} };
      await test(done);
    }
    if (done % settings.saveEvery === 0 || done === settings.steps) {
      const best = progress.reward !== null && !(progress.reward <= (progress.bestReward ?? -Infinity));
      if (best) progress = { ...progress, bestReward: progress.reward, bestStep: done };
      await save(done, best);
    }
  }
  return { step: settings.steps, reason: "finished", progress };

  /** One episode on the test graphs: actions are sampled, nothing is learned. */
  async function test(step: number): Promise<void> {
    const reward = await learner.play(worlds.test, step);
    run.log({ step, split: "test", values: { reward } });
    watch.onTest?.(step, { train: progress.reward, test: reward });
    speed.pause();
  }

  async function save(step: number, best: boolean): Promise<void> {
    await run.save(step, { best, progress });
    saved = step;
    speed.pause();
  }

  async function interrupted(step: number): Promise<A2cEnd> {
    if (step > saved) await save(step, false);
    return { step, reason: "interrupted", progress };
  }
}

function diverged(
  step: number,
  refused: string,
  values: Omit<LearnResult, "refused">,
  learningRate: number,
  saved: number,
): DivergedError {
  return new DivergedError(`training diverged at episode ${step}: ${refused} is not finite`, {
    loss: values.loss,
    "gradient norm": values.gradNorm,
    "learning rate": learningRate,
    "last good checkpoint": `after episode ${saved}`,
    hint: "begin again with a lower learning rate: --set training.learningRate=5e-4",
  });
}

function counted(progress: A2cProgress, values: Readonly<Record<string, number>>): A2cProgress {
  const sums = Object.entries(values).map(
    ([name, value]) => [name, (progress.sums[name] ?? 0) + value] as const,
  );
  return { ...progress, episodes: progress.episodes + 1, sums: Object.fromEntries(sums) };
}

function meansOf({ episodes, sums }: A2cProgress): Record<string, number> {
  return Object.fromEntries(Object.entries(sums).map(([name, sum]) => [name, sum / episodes]));
}

/** Episodes per second since the last pause; tests and saving are left out. */
class Speed {
  rate = 0;
  private since = performance.now();
  private episodes = 0;

  add(): number {
    this.rate = (1000 * ++this.episodes) / (performance.now() - this.since);
    return this.rate;
  }

  pause(): void {
    this.since = performance.now();
    this.episodes = 0;
  }
}
