/**
 * Cross entropy of a linear output layer over a large vocabulary, a few rows of logits at a time.
 *
 *   code      equation                             shape       meaning
 *   x         x_n                                  [N, E]      hidden vectors
 *   W, b                                           [V, E], [V] output layer
 *   p         softmax(W x_n + b)                   [C, V]      probabilities, C rows at a time
 *   y, w      y_n, w_n                             [N]         class and weight of each row
 *   loss      Σ_n w_n (-log p_n[y_n])              []
 *   dx        w_n (p_n W - W[y_n])                 [N, E]      gradients of the loss
 *   dW, db    Σ_n w_n (p_n - 1[y_n]) (x_n, 1)      [V, E], [V]
 *
 * All N V logits at once would be the largest tensors of a language model, several times over. Here the gradients are
 * summed up in the pass that computes the loss, while a few rows of p are at hand: nothing of size N V is kept, and
 * nothing is computed twice. What needs y_n alone is done with rows of W and x instead of rows of p.
 */
import {
  add,
  classLosses,
  concat,
  div,
  exp,
  gatherRows,
  logSoftmax,
  matmul,
  max,
  mul,
  pad,
  reshape,
  scan,
  scatterAddRows,
  scoped,
  slice,
  stopGradient,
  sub,
  sum,
  type Tensor,
  unsqueeze,
  withValue,
  zeros,
} from "../graph/index.ts";

/** A linear output layer and what it is applied to. */
export interface OutputLayer {
  /** [N, E] */
  readonly x: Tensor;
  /** [V, E] */
  readonly W: Tensor;
  /** [V] */
  readonly b: Tensor;
}

/** Logits at a time: small enough for the processor's caches, large enough for its matrix products. */
const defaultLogits = 1 << 22;

/** Rows in so many equal chunks: [N, ...] → [n, C, ...], the last one filled up with zeros. */
function chunked(x: Tensor, n: number): Tensor {
  const [N, ...rest] = x.shape as [number, ...number[]];
  const C = Math.ceil(N / n);
  const extra = n * C - N;
  const full =
    extra === 0
      ? x
      : x.dtype === "f32"
        ? pad(x, 0, 0, extra)
        : concat([x, zeros([extra, ...rest], x.dtype)], 0);
  return reshape(full, [n, C, ...rest]);
}

function unchunked(x: Tensor, N: number): Tensor {
  const [n, C, ...rest] = x.shape as [number, number, ...number[]];
  const rows = reshape(x, [n * C, ...rest]);
  return n * C === N ? rows : slice(rows, 0, 0, N);
}

function chunkCount({ x, W }: OutputLayer, logits: number): number {
  const N = x.shape[0]!;
  return Math.min(N, Math.ceil((N * W.shape[0]!) / logits));
}

function logitsOf(x: Tensor, { W, b }: OutputLayer): Tensor {
  return add(matmul(x, W, { transB: true }), b);
}

/** -log p[class] of each row: classes i32 [N] → [N]. */
export function softmaxLosses(layer: OutputLayer, classes: Tensor, logits = defaultLogits): Tensor {
  const n = chunkCount(layer, logits);
  const { ys } = scan({ carry: [], xs: [chunked(layer.x, n), chunked(classes, n)] }, (_, [x, y]) => ({
    carry: [],
    ys: [classLosses(logitsOf(x!, layer), y!)],
  }));
  return unchunked(ys[0]!, layer.x.shape[0]!);
}

/** Σ w (-log p[class]), and its gradient to x, W and b: classes i32 [N], weights [N]. */
export function softmaxLoss(
  layer: OutputLayer,
  classes: Tensor,
  weights: Tensor,
  logits = defaultLogits,
): Tensor {
  return scoped("softmaxLoss", () => {
    const { x, W, b } = layer;
    const [V, E] = W.shape as [number, number];
    const N = x.shape[0]!;
    const n = chunkCount(layer, logits);
    const w = unsqueeze(weights, -1);
    const weighted = concat([mul(x, w), w]); // [N, E + 1]
    const { carry, ys } = scan(
      {
        carry: [zeros([V, E + 1]), zeros([])],
        xs: [x, classes, weights, weighted].map((t) => chunked(t, n)),
      },
      ([G, total], [xc, yc, wc, weightedc]) => {
        const z = logitsOf(xc!, layer);
        const p = exp(logSoftmax(z));
        return {
          carry: [
            add(G!, matmul(p, weightedc!, { transA: true })),
            add(total!, sum(mul(classLosses(z, yc!), wc!))),
          ],
          ys: [matmul(p, W)],
        };
      },
    );
    const dx = mul(w, sub(unchunked(ys[0]!, N), gatherRows(W, classes)));
    const d = sub(carry[0]!, scatterAddRows(classes, weighted, V)); // [V, E + 1]
    const gradients: [Tensor, Tensor][] = [
      [x, dx],
      [W, slice(d, 1, 0, E)],
      [b, reshape(slice(d, 1, E), [V])],
    ];
    // Equal to the loss, with these gradients: Σ (a - stop(a)) · stop(da) is 0.
    const linearised = gradients.reduce(
      (loss, [a, da]) => add(loss, sum(mul(sub(a, stopGradient(a)), stopGradient(da)))),
      stopGradient(carry[1]!),
    );
    return withValue(linearised, stopGradient(carry[1]!));
  });
}

/** Mean over a mask of such losses, for hidden vectors and targets that may have several axes: [..., E], [...]. */
export function meanSoftmaxLoss(layer: OutputLayer, targets: Tensor, mask: Tensor): Tensor {
  const share = div(reshape(mask, [-1]), max(sum(mask), 1));
  return softmaxLoss({ ...layer, x: rowsOf(layer.x) }, reshape(targets, [-1]), share);
}

/** Such losses at every position: [..., E], [...] → [...]. */
export function softmaxLossesAt(layer: OutputLayer, targets: Tensor): Tensor {
  return reshape(softmaxLosses({ ...layer, x: rowsOf(layer.x) }, reshape(targets, [-1])), targets.shape);
}

/** [..., E] → [N, E] */
export function rowsOf(x: Tensor): Tensor {
  return reshape(x, [-1, x.shape.at(-1)!]);
}
