/**
 * Supporting facts: statements that an answer follows from, told to a memory that does not find them by itself.
 *
 *   s_r(f)   share of fact f, that is of all writes of its tokens, in what read r gives
 *   found    1 - Π_r (1 - s_r(f)): some read gives it, whichever
 *
 *   loss = mean over the facts of -log found
 *
 * Which read is to find which fact is left open: the loss of the answers settles it.
 */
import { div, log, max, min, mul, neg, reshape, sub, sum, type Tensor, unsqueeze } from "../graph/index.ts";

/** A fact that is found less than this counts as found this much. */
const leastFound = 1e-6;

/** The loss of shares [B, Q, T] for each read, and facts [B, Q, N, T] with a 1 at each token of one; 0 without any. */
export function factLoss(shares: readonly Tensor[], facts: Tensor): Tensor {
  const missed = shares
    .map((share) => sub(1, sum(mul(unsqueeze(share, 2), facts), { axes: -1 })))
    .reduce(mul);
  const isFact = min(sum(facts, { axes: -1 }), 1);
  const losses = neg(log(max(sub(1, missed), leastFound)));
  const all = (x: Tensor): Tensor => sum(reshape(x, [-1]));
  return div(all(mul(losses, isFact)), max(all(isFact), 1));
}
