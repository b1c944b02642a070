/**
 * Adaptive softmax with tied weights (Grave et al. 2017), as the Transformer-XL programs have it: frequent words in a
 * head, rarer ones in clusters that the head gives one logit each.
 *
 *   code      equation                                                    meaning
 *   head      softmax(Emb[0 : c_1] x + b[0 : c_1]; U x + d)               words below the first cutoff, then clusters
 *   log p(y)  log head[y]                        y < c_1
 *             log head[-i] + log tail_i[y]       c_i ≤ y < c_(i+1)        cluster i has the i-th logit from the end
 *   tail_i    softmax(Emb[c_i : c_(i+1)] x + b[c_i : c_(i+1)])
 *
 *   Words are numbered by frequency. A cluster beyond the vocabulary has no words but keeps its logit, as in the
 *   original, so that the probabilities of all words sum to less than 1.
 *
 * Departure from the original, of cost only: the tail is computed for every position, not only for those whose target
 * is in it, because the shapes of a program are fixed.
 */
import {
  add,
  cast,
  clip,
  concat,
  div,
  greater,
  logSoftmax,
  matmul,
  max,
  mul,
  reshape,
  slice,
  state,
  sub,
  sum,
  type Tensor,
} from "../graph/index.ts";
import { type OutputLayer, rowsOf, softmaxLoss, softmaxLosses } from "./softmaxLoss.ts";

/** Weights beside the embedding and its bias. */
export interface AdaptiveWeights {
  /** c_1, c_2, …: where clusters begin; ascending. */
  readonly cutoffs: readonly number[];
  /** U, [clusters, D] */
  readonly U: Tensor;
  /** d, [clusters] */
  readonly d: Tensor;
}

/** Declares the weights of the clusters. */
export function adaptiveWeights(
  name: string,
  D: number,
  cutoffs: readonly number[],
  std: number,
): AdaptiveWeights {
  return {
    cutoffs,
    U: state(`${name}.U`, [cutoffs.length, D], { kind: "normal", mean: 0, std }),
    d: state(`${name}.d`, [cutoffs.length]),
  };
}

/** The head, and the tails of the clusters that have words, each with its first word. */
function parts({ cutoffs, U, d }: AdaptiveWeights, { x, W, b }: OutputLayer) {
  const V = W.shape[0]!;
  const first = Math.min(cutoffs[0]!, V);
  const head: OutputLayer = {
    x,
    W: concat([slice(W, 0, 0, first), U], 0),
    b: concat([slice(b, 0, 0, first), d], 0),
  };
  const tails = cutoffs.flatMap((start, i) => {
    const end = Math.min(cutoffs[i + 1] ?? V, V);
    if (start >= end) return [];
    const layer: OutputLayer = { x, W: slice(W, 0, start, end), b: slice(b, 0, start, end) };
    // Cluster i + 1 has the (i + 1)-th logit from the end.
    return [{ layer, start, end, logit: first + cutoffs.length - 1 - i }];
  });
  return { head, tails };
}

/** Classes of the head for targets [N], and for each tail its class and whether the target is in it. */
function classesOf(targets: Tensor, tails: ReturnType<typeof parts>["tails"]) {
  const word = cast(targets, "f32"); // exact: a vocabulary has far fewer than 2^24 words
  let inHead = word;
  const inTails = tails.map(({ start, end, logit }) => {
    const isIn = sub(cast(greater(word, start - 0.5), "f32"), cast(greater(word, end - 0.5), "f32"));
    inHead = add(mul(inHead, sub(1, isIn)), mul(isIn, logit));
    return { isIn, classes: cast(clip(sub(word, start), 0, end - start - 1), "i32") };
  });
  return { inHead: cast(inHead, "i32"), inTails };
}

/** Mean over a mask of -log p(target): x [..., D], targets and mask [...]. */
export function adaptiveLoss(w: AdaptiveWeights, layer: OutputLayer, targets: Tensor, mask: Tensor): Tensor {
  const { head, tails } = parts(w, { ...layer, x: rowsOf(layer.x) });
  const { inHead, inTails } = classesOf(reshape(targets, [-1]), tails);
  const share = div(reshape(mask, [-1]), max(sum(mask), 1));
  return tails.reduce(
    (loss, tail, i) => add(loss, softmaxLoss(tail.layer, inTails[i]!.classes, mul(share, inTails[i]!.isIn))),
    softmaxLoss(head, inHead, share),
  );
}

/** -log p(target) at every position: x [..., D], targets [...] → [...]. */
export function adaptiveLosses(w: AdaptiveWeights, layer: OutputLayer, targets: Tensor): Tensor {
  const { head, tails } = parts(w, { ...layer, x: rowsOf(layer.x) });
  const { inHead, inTails } = classesOf(reshape(targets, [-1]), tails);
  const losses = tails.reduce(
    (total, tail, i) => add(total, mul(softmaxLosses(tail.layer, inTails[i]!.classes), inTails[i]!.isIn)),
    softmaxLosses(head, inHead),
  );
  return reshape(losses, targets.shape);
}

/** log p of every word: x [..., D] → [..., V]. */
export function adaptiveLogProbabilities(w: AdaptiveWeights, layer: OutputLayer): Tensor {
  const { head, tails } = parts(w, layer);
  const logits = (part: OutputLayer): Tensor => add(matmul(part.x, part.W, { transB: true }), part.b);
  const inHead = logSoftmax(logits(head));
  const first = head.W.shape[0]! - w.cutoffs.length;
  return concat([
    slice(inHead, -1, 0, first),
    ...tails.map(({ layer: tail, logit }) =>
      add(slice(inHead, -1, logit, logit + 1), logSoftmax(logits(tail))),
    ),
  ]);
}
