/**
 * Advantage actor-critic (A2C) on whole episodes: returns, policy and loss.
 *
 *   code         meaning                                                                    shape
 *   π            policy: softmax(logits) + 1e-8, made to sum to 1 again                     [T, B, A]
 *   V            the critic's estimate of the return                                        [T, B]
 *   G            return: G_t = r_t + γ (λ G_{t+1} + (1-λ) V_{t+1}), and 0 after the last step [T, B]
 *   advantage    "a2c": G - V, each agent its own critic;  "broadcast": G - mean_b V        [T, B]
 *
 *   loss = 1/T Σ_t [ -mean_b( log π_t(a_t) · advantage_t ) + valueCoef · VL_t - entropyCoef · mean_b H(π_t) ]
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

/** The loss and its three parts, averaged over steps and agents; `means`, where these are not all agents of the run. */
export function a2cLoss(
  { logits, value: V }: AgentOutput,
  actions: Tensor,
  G: Tensor,
  { valueCoef, advantage }: Pick<A2cSettings, "valueCoef" | "advantage">,
  entropyCoef: Tensor | number,
  means?: StepMeans,
): { loss: Tensor; policyLoss: Tensor; valueLoss: Tensor; entropy: Tensor } {
  const logPi = log(policyOf(logits));
  const chosen = sum(mul(logPi, oneHot(actions, logits.shape.at(-1)!)), { axes: -1 });
  const overAgents = (x: Tensor): Tensor => mean(x, { axes: 1, keep: true });
  const meanReturn = means?.returns ?? overAgents(G);
  const baseline = advantage === "a2c" ? V : (means?.values ?? overAgents(V));
  const policyLoss = neg(mean(mul(chosen, stopGradient(sub(G, baseline)))));
  const spread = sub(G, meanReturn);
  const error = sub(advantage === "a2c" ? G : meanReturn, V);
  // mean_ij (G_j - V_i)² = mean_i (mean_j G_j - V_i)² + the variance of G
  const squares = mean(mul(error, error));
  const valueLoss = advantage === "a2c" ? squares : add(squares, mean(mul(spread, spread)));
  const uncertainty = neg(mean(sum(mul(policyOf(logits), logPi), { axes: -1 })));
  const loss = sub(add(policyLoss, mul(valueLoss, valueCoef)), mul(uncertainty, entropyCoef));
  return { loss, policyLoss, valueLoss, entropy: uncertainty };
}
