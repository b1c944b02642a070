/** Learning rates by hand, and when averaging begins. */
import { describe, expect, test } from "vitest";
import {
  baseRate,
  type OptimizerSettings,
  optimizerSchema,
  type ScheduleSettings,
  scheduleSchema,
  startsAveraging,
} from "../../src/train/optimizerSettings.ts";
import { scheduleFactor } from "../../src/train/schedules.ts";

const at = (schedule: ScheduleSettings, steps: number) => (step: number) =>
  scheduleFactor(schedule, { step, steps });

test("constant without a warm-up", () => {
  expect([0, 5, 99].map(at({ name: "constant", warmup: 0 }, 100))).toEqual([1, 1, 1]);
});

test("the released trainer's warm-up: the first step has rate 0, and the rate stays one step short", () => {
  const factors = [0, 1, 2, 3, 4, 50].map(at({ name: "constant", warmup: 4 }, 100));
  expect(factors).toEqual([0, 0.25, 0.5, 0.75, 0.75, 0.75]);
});

test("cosine and linear decay from the top to the final ratio", () => {
  const cosine = at({ name: "cosine", warmup: 10, decayStart: 0, finalLrRatio: 0.1 }, 110);
  expect(cosine(10)).toBeCloseTo(1, 12);
  expect(cosine(60)).toBeCloseTo(0.1 + 0.9 * 0.5, 12);
  expect(cosine(110)).toBeCloseTo(0.1, 12);
  const linear = at({ name: "linear", warmup: 0, decayStart: 50, finalLrRatio: 0 }, 100);
  expect([0, 50, 75, 100].map(linear)).toEqual([1, 1, 0.5, 0]);
});

test("a decay that ends before training does stays at the final ratio", () => {
  const cosine = at({ name: "cosine", warmup: 10, decayStart: 0, decayEnd: 60, finalLrRatio: 0.2 }, 110);
  expect(cosine(35)).toBeCloseTo(0.2 + 0.8 * 0.5, 12);
  expect([60, 61, 109].map(cosine)).toEqual([0.2, 0.2, 0.2]);
});

test("by epoch: a factor at the start of each", () => {
  const schedule: ScheduleSettings = { name: "epochs", warmup: 0, epochs: [2, 4], factor: 0.5 };
  const factors = [0, 1, 2, 3, 4, 9].map((epoch) => scheduleFactor(schedule, { step: 7, steps: 9, epoch }));
  expect(factors).toEqual([1, 1, 0.5, 0.5, 0.25, 0.25]);
});

describe("settings", () => {
  test("leave out what has a default", () => {
    expect(optimizerSchema.parse({ name: "adam", learningRate: 1e-3 })).toEqual({
      name: "adam",
      learningRate: 1e-3,
      beta1: 0.9,
      beta2: 0.999,
      eps: 1e-8,
      weightDecay: 0,
    });
    expect(scheduleSchema.parse({ name: "cosine" })).toEqual({
      name: "cosine",
      warmup: 0,
      decayStart: 0,
      finalLrRatio: 0,
    });
  });

  test.each([
    ["beta1 of 1, which never forgets", { name: "adam", learningRate: 1, beta1: 1 }],
    ["no rate", { name: "sgd" }],
    ["a rate of 0", { name: "sgd", learningRate: 0 }],
    ["another optimizer's setting", { name: "sgd", learningRate: 1, beta1: 0.9 }],
    ["asgd without its switch", { name: "asgd", learningRate: 1, before: { name: "sgd", learningRate: 1 } }],
  ])("refuse %s", (_, given) => {
    expect(optimizerSchema.safeParse(given).success).toBe(false);
  });
});

describe("averaging", () => {
  const before = { name: "sgd", learningRate: 30 };
  const byEpoch = optimizerSchema.parse({
    name: "asgd",
    learningRate: 10,
    before,
    switch: { when: "epoch", epoch: 3 },
  });
  const byRule = optimizerSchema.parse({
    name: "asgd",
    learningRate: 10,
    before,
    switch: { when: "nonMonotone", window: 2 },
  });

  test("begins at its epoch, with its own rate", () => {
    expect([0, 2, 3, 4].map((epoch) => startsAveraging(byEpoch, { epoch, losses: [] }))).toEqual([
      false,
      false,
      true,
      true,
    ]);
    expect([baseRate(byEpoch, false), baseRate(byEpoch, true)]).toEqual([30, 10]);
  });

  test("begins when the loss is above the best but the last ones", () => {
    const starts = (...losses: number[]): boolean => startsAveraging(byRule, { epoch: 0, losses });
    // Before each validation AWD-LSTM compares with the best of all but the last `window` before it.
    expect(starts()).toBe(false);
    expect(starts(5, 4, 3)).toBe(false);
    expect(starts(3, 4, 5)).toBe(false); // two earlier ones are not more than the window
    expect(starts(3, 4, 5, 6)).toBe(true); // 6 > 3
    expect(starts(9, 4, 5, 6)).toBe(false); // 6 < 9: the better ones are too recent
    expect(starts(9, 4, 5, 6, 4.5)).toBe(true); // 4.5 > 4
  });

  test("of Adam's weights begins at its epoch, with a part of its rate", () => {
    const settings = optimizerSchema.parse({
      name: "averagedAdam",
      learningRate: 0.4,
      averagingLrRatio: 0.5,
      switch: { when: "epoch", epoch: 2 },
    });
    expect([1, 2].map((epoch) => startsAveraging(settings, { epoch, losses: [] }))).toEqual([false, true]);
    expect([baseRate(settings, false), baseRate(settings, true)]).toEqual([0.4, 0.2]);
  });

  test("never begins with another optimizer", () => {
    const adam: OptimizerSettings = optimizerSchema.parse({ name: "adam", learningRate: 1 });
    expect(startsAveraging(adam, { epoch: 99, losses: [1, 2, 3, 4, 5, 6, 7, 8, 9] })).toBe(false);
  });
});
