/**
 * Dropout, inverted: kept entries are divided by the probability of keeping them, so that evaluation needs nothing.
 *
 *   kind      mask                    what it erases
 *   element   as the tensor           entries, each by itself
 *   locked    [1, B, F] for [T, B, F] features of a row, the same at all times of a window
 *   word      [V, 1] for [V, E]       whole rows of an embedding: every occurrence of a word in a window
 *   weight    as the matrix           connections, one draw for all rows and times of a window
 *
 * Each mask is drawn anew at every run, under the run's seed and step and the mask's name.
 */
import { ShapeError } from "../errors.ts";
import { where } from "./ops/compare.ts";
import { mul } from "./ops/elementwise.ts";
import { randomMask } from "./ops/source.ts";
import type { Shape, Tensor } from "./tensor.ts";

function dropped(x: Tensor, rate: number, name: string, mask: Shape): Tensor {
  if (!(rate >= 0 && rate < 1))
    throw new ShapeError(`dropout ${name}: the rate must be in [0, 1), got ${rate}`);
  if (rate === 0) return x;
  const keep = 1 - rate;
  // Not x times a mask of floats: that would have to be kept for the gradient, and is four times as large.
  return where(randomMask(name, mask, keep), mul(x, 1 / keep), 0);
}

/** Erases entries, each by itself. */
export function elementDropout(x: Tensor, rate: number, name: string): Tensor {
  return dropped(x, rate, name, x.shape);
}

/** Erases features of a row at all times of a window: x [T, B, …]. */
export function lockedDropout(x: Tensor, rate: number, name: string): Tensor {
  if (x.rank < 2) throw new ShapeError(`dropout ${name}: needs [T, B, …], got [${x.shape.join(", ")}]`);
  return dropped(x, rate, name, [1, ...x.shape.slice(1)]);
}

/** Erases whole rows of a table, e.g. words of an embedding: table [V, E]. */
export function wordDropout(table: Tensor, rate: number, name: string): Tensor {
  return dropped(table, rate, name, [table.shape[0]!, ...table.shape.slice(1).map(() => 1)]);
}

/** Erases connections: one draw of a weight matrix for a whole window. */
export function weightDropout(W: Tensor, rate: number, name: string): Tensor {
  return dropped(W, rate, name, W.shape);
}
