/** Sample statistics, against values worked out by hand. */
import { expect, test } from "vitest";
import { mean, median, standardError, std, variance } from "../src/statistics.ts";

const sample = [2, 4, 4, 4, 5, 5, 7, 9];

test("mean, variance, standard deviation and standard error of a sample", () => {
  expect(mean(sample)).toBe(5);
  // The squared differences add up to 32.
  expect(variance(sample)).toBeCloseTo(32 / 7, 12);
  expect(std(sample)).toBeCloseTo(Math.sqrt(32 / 7), 12);
  expect(standardError(sample)).toBeCloseTo(Math.sqrt(32 / 7 / 8), 12);
});

test("the median is the middle value, or the mean of the two in the middle, in any order", () => {
  expect(median([9, 1, 5])).toBe(5);
  expect(median([9, 1, 5, 2])).toBe(3.5);
  // By value, not by spelling.
  expect(median([10, 9, 100])).toBe(10);
});

test("what is not defined is NaN", () => {
  expect([mean([]), median([]), std([]), std([3]), variance([3]), standardError([3])]).toEqual(
    Array(6).fill(Number.NaN),
  );
  expect([mean([3]), median([3]), std([3, 3])]).toEqual([3, 3, 0]);
});

test("the values are left as they are", () => {
  const values = [3, 1, 2];
  median(values);
  expect(values).toEqual([3, 1, 2]);
});
