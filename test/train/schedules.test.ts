/** Learning rates by hand. */
import { expect, test } from "vitest";
import { rateAt, type ScheduleSettings } from "../../src/train/schedules.ts";

const constant: ScheduleSettings = { learningRate: 0.1, warmup: 0, decay: "none", final: 0, decayFrom: 0 };

test("constant without a warm-up", () => {
  expect([0, 5, 99].map((step) => rateAt(step, 100, constant))).toEqual([0.1, 0.1, 0.1]);
});

test("the released trainer's warm-up: the first update has rate 0, and the rate stays one step short", () => {
  const settings = { ...constant, warmup: 4 };
  const rates = [0, 1, 2, 3, 4, 50].map((step) => rateAt(step, 100, settings));
  expect(rates.map((rate) => Math.round(rate * 1e6) / 1e6)).toEqual([0, 0.025, 0.05, 0.075, 0.075, 0.075]);
});

test("cosine and linear decay from the top to the final share", () => {
  const cosine = { ...constant, warmup: 10, decay: "cosine", final: 0.1 } as const;
  expect(rateAt(10, 110, cosine)).toBeCloseTo(0.1, 12);
  expect(rateAt(60, 110, cosine)).toBeCloseTo(0.1 * (0.1 + 0.9 * 0.5), 12);
  expect(rateAt(110, 110, cosine)).toBeCloseTo(0.01, 12);
  const linear = { ...constant, decay: "linear", decayFrom: 50 } as const;
  expect([0, 50, 75, 100].map((step) => rateAt(step, 100, linear))).toEqual([0.1, 0.1, 0.05, 0]);
});
