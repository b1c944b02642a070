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
 * Where agents are told the facts, facts_t[0, i] is 1 for a write i that the last read should find, and facts_t[1, i] for one
 * that the read before it should; share is the share of a write in what a read gives. Then there is a term
 *
 *   factCoef · 1/T Σ_t mean_b( -log Σ_i facts_t[0, i] share_last(i) - log Σ_i facts_t[1, i] share_before(i) ), where there are any
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
  max,
  mean,
  min,
  mul,
  neg,
  oneHot,
  softmax,
  split,
  squeeze,
  stopGradient,
  sub,
  sum,
  type Tensor,
  transpose,
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
  /** Where agents with a memory are told which writes answers follow from, [T, B, 2, T], and the weight of it. */
  readonly facts?: { readonly facts: Tensor; readonly coef: number } | undefined;
}

/** The loss and its parts, averaged over steps and agents. */
export function a2cLoss(
  { logits, value: V, matches }: AgentOutput,
  actions: Tensor,
  G: Tensor,
  { valueCoef, advantage }: Pick<A2cSettings, "valueCoef" | "advantage">,
  entropyCoef: Tensor | number,
  { means, own, teaching, facts }: A2cExtras = {},
): Record<"loss" | "policyLoss" | "valueLoss" | "entropy", Tensor> &
  Partial<Record<"teacherLoss" | "factLoss", Tensor>> {
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
  let loss = sub(add(policyLoss, mul(valueLoss, valueCoef)), mul(uncertainty, entropyCoef));
  const parts: ReturnType<typeof a2cLoss> = { loss, policyLoss, valueLoss, entropy: uncertainty };
  if (teaching) {
    parts.teacherLoss = neg(mean(log(sum(mul(pi, teaching.advice), { axes: -1 }))));
    loss = add(loss, mul(parts.teacherLoss, teaching.coef));
  }
  if (facts && matches) {
    parts.factLoss = factLoss(matches(), facts.facts);
    loss = add(loss, mul(parts.factLoss, facts.coef));
  }
  return { ...parts, loss };
}

/** Shares below this count as this much. */
const leastShare = 1e-6;

/** How far the last two reads, or the only one, are from the writes they should find, [T, B, 2, T]; 0 where none are told. */
function factLoss(matches: readonly Tensor[], facts: Tensor): Tensor {
  const losses = split(facts, 2, 2).flatMap((wanted, i) => {
    const shares = matches.at(-1 - i);
    if (!shares) return [];
    const told = transpose(squeeze(wanted, 2), [1, 0, 2]);
    const found = sum(mul(shares, told), { axes: -1 });
    const isTold = min(sum(told, { axes: -1 }), 1);
    return [neg(mean(log(max(add(found, sub(1, isTold)), leastShare))))];
  });
  return losses.reduce(add);
}
