/**
 * Attention by content and relative position over a memory and a window (Transformer-XL; Dai et al. 2019, section 3.3).
 *
 *   code   equation                          shape            meaning
 *   q      Q                                 [..., h, q, d]   queries: the last q of the k positions
 *   k, v   K, V                              [..., h, k, d]   keys and values, oldest first
 *   r      R W_r                             [..., h, k, d]   projected positions, distance k-1 first, 0 last
 *   u, w   u, w                              [h, 1, d]        what every query adds for content and for position
 *   S      (Q+u) Kᵀ + shift((Q+w) Rᵀ)        [..., h, q, k]   scores
 *   P      softmax(S / √d + mask)            [..., h, q, k]   attention
 *
 *   h heads, d width of a head. Projections, layer norm and the memory are the model's: they differ between programs.
 */
import {
  add,
  concat,
  constant,
  matmul,
  mul,
  pad,
  relativeShiftPadded,
  reshape,
  slice,
  softmax,
  split,
  type Tensor,
  transpose,
} from "../graph/index.ts";

/** What attention is made of; `...` broadcasts, so positions may be shared by all rows. */
export interface RelativeAttentionInputs {
  readonly q: Tensor;
  readonly k: Tensor;
  readonly v: Tensor;
  readonly r: Tensor;
  readonly u: Tensor;
  readonly w: Tensor;
  /** Added to the scores, [..., q, k] without the heads' axis or with it: `hidden` where a query must not look. */
  readonly mask: Tensor;
  /** Dropout of the attention. */
  readonly dropout?: (P: Tensor) => Tensor;
}

/** Added to a score it leaves no attention in float32 or float64, and unlike -∞ no NaN where nothing is left to see. */
export const hidden = -1e30;

/** Attended values, [..., h, q, d], and the attention, [..., h, q, k]. */
export function relativeAttention({ q, k, v, r, u, w, mask, dropout }: RelativeAttentionInputs): {
  y: Tensor;
  P: Tensor;
} {
  // The queries are the smallest tensor to scale.
  const scale = 1 / Math.sqrt(q.shape.at(-1)!);
  const content = matmul(mul(add(q, u), scale), k, { transB: true });
  // A row of zeros before r gives the column the shift needs without a copy of the scores.
  const position = matmul(mul(add(q, w), scale), pad(r, -2, 1, 0), { transB: true });
  const P = softmax(add(add(content, relativeShiftPadded(position)), mask));
  return { y: matmul(dropout ? dropout(P) : P, v), P };
}

/**
 * The attended values with the queries in `blocks`: a block meets the keys up to its last query, and none of those that
 * its mask would hide. The result is the same; of two blocks over a window without memory the scores are a quarter fewer.
 * Dropout is asked for each block by its number.
 */
export function blockedAttention(
  { q, k, v, r, mask, dropout, ...biases }: BlockedAttentionInputs,
  blocks: number,
): Tensor {
  const [queries, keys] = [q.shape.at(-2)!, k.shape.at(-2)!];
  const size = Math.ceil(queries / blocks);
  const sizes = Array.from({ length: Math.ceil(queries / size) }, (_, block) =>
    Math.min(size, queries - block * size),
  );
  const ys = split(q, sizes, -2).map((part, block) => {
    const from = block * size;
    const to = from + sizes[block]!;
    const seen = keys - queries + to;
    const { y } = relativeAttention({
      ...biases,
      q: part,
      k: slice(k, -2, 0, seen),
      v: slice(v, -2, 0, seen),
      // The longest distances come first.
      r: slice(r, -2, keys - seen),
      mask: slice(slice(mask, -2, from, to), -1, 0, seen),
      ...(dropout ? { dropout: (P) => dropout(P, block) } : {}),
    });
    return y;
  });
  return ys.length === 1 ? ys[0]! : concat(ys, -2);
}

/** What `blockedAttention` takes: the same, with dropout by block. */
export interface BlockedAttentionInputs extends Omit<RelativeAttentionInputs, "dropout"> {
  readonly dropout?: (P: Tensor, block: number) => Tensor;
}

/**
 * sinusoid(p) for the distances k-1, …, 1, 0: [k, D], sines in the first half and cosines in the second.
 *
 *   f_i = 10000^(-2i/D),   i < D/2
 */
export function sinusoid(k: number, D: number): Tensor {
  const half = Math.ceil(D / 2);
  const data = new Float64Array(k * D);
  for (let row = 0; row < k; row++) {
    for (let i = 0; i < D; i++) {
      const angle = (k - 1 - row) * 10_000 ** ((-2 * (i % half)) / D);
      data[row * D + i] = i < half ? Math.sin(angle) : Math.cos(angle);
    }
  }
  return constant(data, [k, D]);
}

/** [q, k]: 0 where the query may look, `hidden` at the keys after it. Query i stands at key k - q + i. */
export function causalMask(q: number, k: number): Tensor {
  const data = Float64Array.from({ length: q * k }, (_, at) =>
    at % k > k - q + Math.floor(at / k) ? hidden : 0,
  );
  return constant(data, [q, k]);
}

/** [..., n, h·d] → [..., h, n, d] */
export function splitHeads(x: Tensor, heads: number): Tensor {
  const [n, D] = x.shape.slice(-2) as [number, number];
  return exchangeAxes(reshape(x, [...x.shape.slice(0, -2), n, heads, D / heads]));
}

/** [..., h, n, d] → [..., n, h·d] */
export function joinHeads(x: Tensor): Tensor {
  const [h, n, d] = x.shape.slice(-3) as [number, number, number];
  return reshape(exchangeAxes(x), [...x.shape.slice(0, -3), n, h * d]);
}

/** Exchanges the third and second axes from the end. */
function exchangeAxes(x: Tensor): Tensor {
  const order = [...x.shape.keys()];
  const rank = x.rank;
  return transpose(x, [...order.slice(0, -3), rank - 2, rank - 3, rank - 1]);
}
