/** Curves of many points made fit for a screen: which points to keep, and a smoothed line. For the server and for pages. */

/**
 * Indices of at most `most` of the values, such that a line through them has every minimum and maximum of the whole: of
 * each stretch of neighbours the lowest and the highest stay, in their order, and the first and the last point always.
 * Where a stretch has no finite value one point stays, so that a gap stays one.
 */
export function keptIndices(values: ArrayLike<number>, most: number): number[] {
  const count = values.length;
  if (count <= most) return Array.from({ length: count }, (_, i) => i);
  const kept: number[] = [0];
  // Both ends are kept anyway; each stretch between them gives at most two.
  const stretches = Math.max(1, Math.floor((most - 2) / 2));
  for (let stretch = 0; stretch < stretches; stretch++) {
    const from = 1 + Math.floor((stretch * (count - 2)) / stretches);
    const to = 1 + Math.floor(((stretch + 1) * (count - 2)) / stretches);
    let [low, high] = [-1, -1];
    for (let i = from; i < to; i++) {
      const value = values[i]!;
      if (!Number.isFinite(value)) continue;
      if (low < 0 || value < values[low]!) low = i;
      if (high < 0 || value > values[high]!) high = i;
    }
    if (low < 0) {
      if (from < to) kept.push(from);
    } else if (low === high) kept.push(low);
    else kept.push(Math.min(low, high), Math.max(low, high));
  }
  kept.push(count - 1);
  return kept;
}

/**
 * The exponential moving average of values, debiased as Adam's moments are: the first point is itself, a constant stays
 * one. `weight` is what the past counts for, 0 (nothing) to below 1. Values that are not finite are passed over, and have
 * none of their own.
 */
export function smoothed(values: ArrayLike<number>, weight: number): Float64Array {
  const result = new Float64Array(values.length);
  let [average, past] = [0, 1];
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    if (!Number.isFinite(value)) {
      result[i] = Number.NaN;
      continue;
    }
    average = weight * average + (1 - weight) * value;
    past *= weight;
    result[i] = average / (1 - past);
  }
  return result;
}
