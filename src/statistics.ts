/** Means and spreads, the one place for them. */

/** The arithmetic mean. */
export function mean(values: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i]!;
  return sum / values.length;
}

/** The variance of a sample: squares about the mean over n - 1; NaN for a single value. */
export function variance(values: ArrayLike<number>): number {
  const centre = mean(values);
  let squares = 0;
  for (let i = 0; i < values.length; i++) squares += (values[i]! - centre) ** 2;
  return squares / (values.length - 1);
}

/** The standard deviation of a sample; NaN for a single value. */
export function std(values: ArrayLike<number>): number {
  return Math.sqrt(variance(values));
}

/** The median; of an even number of values the mean of the two in the middle. */
export function median(values: ArrayLike<number>): number {
  const sorted = Array.from(values).sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
