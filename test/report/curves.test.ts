/** Curves of a result file are small: few points, and values of single tasks at fewer still. */
import { expect, test } from "vitest";
import { curvesOf } from "../../src/report/result.ts";

test("values of single tasks stay at twelve points of a curve at most, the last among them", () => {
  const metrics = Array.from({ length: 300 }, (_, i) => ({
    step: i + 1,
    split: "valid",
    values: { accuracy: i / 300, task3: i / 300, share3: 1 / 20 },
  }));
  const { valid } = curvesOf(metrics, 100);
  expect(valid).toHaveLength(100);
  expect(valid!.at(-1)).toMatchObject({ step: 300, values: { task3: 0.996667, share3: 0.05 } });
  const detailed = valid!.filter(({ values }) => "task3" in values);
  expect(detailed.length).toBeGreaterThan(5);
  expect(detailed.length).toBeLessThanOrEqual(12);
  for (const { values } of valid!) expect("task3" in values).toBe("share3" in values);
  // A short curve keeps all of it.
  expect(curvesOf(metrics.slice(0, 10), 100).valid!.every(({ values }) => "task3" in values)).toBe(true);
});
