/**
 * Sample statistics: one definition of each, for every table, figure and check.
 */

/** The arithmetic mean; NaN of nothing. */
export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** The variance of a sample, with n - 1 in the denominator; NaN of fewer than two values. */
export function variance(values: readonly number[]): number {
  if (values.length < 2) return Number.NaN;
  const center = mean(values);
  return values.reduce((sum, value) => sum + (value - center) ** 2, 0) / (values.length - 1);
}

/** The standard deviation of a sample: the root of its variance. */
export function std(values: readonly number[]): number {
  return Math.sqrt(variance(values));
}

/** The standard error of the mean, std / √n; NaN of fewer than two values. */
export function standardError(values: readonly number[]): number {
  return std(values) / Math.sqrt(values.length);
}

/** The median; of an even number of values the mean of the two in the middle, NaN of nothing. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
