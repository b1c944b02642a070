/**
 * Advantage actor-critic (A2C) on whole episodes: returns, policy and loss.
 *
 *   code         meaning                                                                    shape
 *   π            policy: softmax(logits) + 1e-8, made to sum to 1 again                     [T, B, A]
 *   V            the critic's estimate of the return                                        [T, B]
 *   G            return: G_t = r_t + γ (λ G_{t+1} + (1-λ) V_{t+1}), and 0 after the last step [T, B]
 *   advantage    "a2c": G - V, each agent its own critic;  "broadcast": G - mean_b V        [T, B]
 *   own          1 where the action was the agent's own choice; 0 where a lesson took it    [T, B]
 *
 *   loss = 1/T Σ_t [ -mean_b( own_t · log π_t(a_t) · advantage_t ) + valueCoef · VL_t - entropyCoef · mean_b H(π_t) ]
 *   VL   = mean_b (G - V)²   for "a2c";   mean over all pairs (i, j) of agents of (G_j - V_i)²   for "broadcast"
 *
 * With a teacher, whose advice [T, B, A] has a 1 for every action it might take, the loss has one more term:
 *
 *   teacherCoef · 1/T Σ_t mean_b( -log Σ_a advice_t[a] π_t(a) )
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

/** What the loss weighs, and how. */
export interface A2cSettings {
  /** γ */
  readonly discount: number;
  /** λ: 1 sums rewards to the end of the episode; less trusts the critic with what is further away. */
  readonly lambda: number;
  /** Weight of the critic's loss. */
  readonly valueCoef: number;
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

/** Means over all agents of a run, [T, 1] each: of the returns, and of the critic's estimates. */
export interface StepMeans {
  readonly returns: Tensor;
  readonly values: Tensor;
}

/** What a loss may depend on besides. */
export interface A2cExtras {
  /** Where these are not all agents of the run. */
  readonly means?: StepMeans | undefined;
  /** Where not all actions were the agents' own. */
  readonly own?: Tensor | undefined;
  /** Where there is a teacher: its advice and the weight of it. */
  readonly teaching?: { readonly advice: Tensor; readonly coef: Tensor | number } | undefined;
}

/** The loss and its parts, averaged over steps and agents. */
export function a2cLoss(
  { logits, value: V }: AgentOutput,
  actions: Tensor,
  G: Tensor,
  { valueCoef, advantage }: Pick<A2cSettings, "valueCoef" | "advantage">,
  entropyCoef: Tensor | number,
  { means, own, teaching }: A2cExtras = {},
): { loss: Tensor; policyLoss: Tensor; valueLoss: Tensor; entropy: Tensor; teacherLoss?: Tensor } {
  const pi = policyOf(logits);
  const logPi = log(pi);
  const chosen = sum(mul(logPi, oneHot(actions, logits.shape.at(-1)!)), { axes: -1 });
  const overAgents = (x: Tensor): Tensor => mean(x, { axes: 1, keep: true });
  const meanReturn = means?.returns ?? overAgents(G);
  const baseline = advantage === "a2c" ? V : (means?.values ?? overAgents(V));
  const difference = stopGradient(sub(G, baseline));
  const policyLoss = neg(mean(mul(chosen, own ? mul(own, difference) : difference)));
  const spread = sub(G, meanReturn);
  const error = sub(advantage === "a2c" ? G : meanReturn, V);
  // mean_ij (G_j - V_i)² = mean_i (mean_j G_j - V_i)² + the variance of G
  const squares = mean(mul(error, error));
  const valueLoss = advantage === "a2c" ? squares : add(squares, mean(mul(spread, spread)));
  const uncertainty = neg(mean(sum(mul(pi, logPi), { axes: -1 })));
  const loss = sub(add(policyLoss, mul(valueLoss, valueCoef)), mul(uncertainty, entropyCoef));
  const parts = { policyLoss, valueLoss, entropy: uncertainty };
  if (!teaching) return { loss, ...parts };
  const teacherLoss = neg(mean(log(sum(mul(pi, teaching.advice), { axes: -1 }))));
  return { loss: add(loss, mul(teacherLoss, teaching.coef)), ...parts, teacherLoss };
}
