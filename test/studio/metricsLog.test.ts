/** Curves: read on, never again; downsampled without losing a peak; smoothed without a bias. */
import { appendFileSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { hoursOf } from "../../src/report/result.ts";
import { readMetrics } from "../../src/store/metrics.ts";
import { keptIndices, smoothed } from "../../src/studio/series.ts";
import { MetricsLog, MetricsLogs } from "../../src/studio/server/metricsLog.ts";
import { type Line, logOf, scratch } from "./support.ts";

const root = scratch("metrics");
let count = 0;

function runFolder(content: string): { folder: string; file: string } {
  const folder = join(root, `run${count++}`);
  mkdirSync(folder);
  const file = join(folder, "metrics.jsonl");
  writeFileSync(file, content);
  return { folder, file };
}

const values = fc.array(
  fc.oneof(fc.double({ noNaN: true, min: -1e6, max: 1e6 }), fc.constant(Number.NaN), fc.constant(0)),
  { minLength: 1, maxLength: 300 },
);

describe("downsampling", () => {
  test("keeps ends, minimum and maximum, in order, and no more points than asked", () => {
    fc.assert(
      fc.property(values, fc.integer({ min: 4, max: 60 }), (all, most) => {
        const kept = keptIndices(all, most);
        expect(kept.length).toBeLessThanOrEqual(Math.max(most, 4));
        expect(kept[0]).toBe(0);
        expect(kept.at(-1)).toBe(all.length - 1);
        expect(kept.every((index, i) => i === 0 || index > kept[i - 1]!)).toBe(true);
        const finite = all.filter(Number.isFinite);
        const shown = kept.map((i) => all[i]!).filter(Number.isFinite);
        if (finite.length === 0) return;
        expect(Math.max(...shown)).toBe(Math.max(...finite));
        expect(Math.min(...shown)).toBe(Math.min(...finite));
      }),
    );
  });

  test("a single peak among thousands of points stays", () => {
    const flat = Array<number>(10_000).fill(1);
    flat[7_321] = 50;
    expect(keptIndices(flat, 100)).toContain(7_321);
  });

  test("few points stay as they are", () => {
    expect(keptIndices([3, 1, 2], 4)).toEqual([0, 1, 2]);
    expect(keptIndices([], 4)).toEqual([]);
  });
});

describe("smoothing", () => {
  test("is the debiased moving average", () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ noNaN: true, min: -1e3, max: 1e3 }), { minLength: 1, maxLength: 40 }),
        fc.double({ min: 0, max: 0.99, noNaN: true }),
        (all, weight) => {
          const got = smoothed(all, weight);
          // Plainly: every value by its weight, over the sum of the weights.
          const weights = all.map((_, i) => weight ** (all.length - 1 - i));
          const total = weights.reduce((a, b) => a + b, 0);
          const want = all.reduce((sum, value, i) => sum + weights[i]! * value, 0) / total;
          expect(got.at(-1)!).toBeCloseTo(want, 6);
          expect(got[0]).toBeCloseTo(all[0]!, 9);
        },
      ),
    );
  });

  test("a constant stays one from its first point to its last, and a gap stays a gap", () => {
    for (const value of smoothed([5, 5, 5, 5], 0.99)) expect(value).toBeCloseTo(5, 12);
    const [first, gap, last] = smoothed([2, Number.NaN, 2], 0.9);
    expect([first, gap, last!.toFixed(6)]).toEqual([2, Number.NaN, "2.000000"]);
  });
});

describe("a log", () => {
  const line = (step: number, more: Partial<Line> = {}): Line => ({
    step,
    values: { loss: step / 10 },
    ...more,
  });
  const steps = (log: MetricsLog, cursor?: string, name = "train/loss"): readonly number[] | undefined =>
    log.points({ points: 100, cursor }).series[name]?.steps;

  test("is sent once: after that only what is new", async () => {
    const { folder, file } = runFolder(logOf([line(1), line(2), line(2, { split: "valid" })]));
    const log = new MetricsLog(folder);
    await log.refresh();
    const first = log.points({ points: 100 });
    expect(first.reset).toBe(true);
    expect(first.series["train/loss"]).toEqual({ steps: [1, 2], values: [0.1, 0.2], hours: [0, 0.00028] });
    expect(log.available).toEqual(["train/loss", "valid/loss"]);
    await log.refresh();
    expect(log.points({ points: 100, cursor: first.cursor })).toEqual({ ...first, reset: false, series: {} });
    appendFileSync(file, logOf([line(3)]));
    await log.refresh();
    const next = log.points({ points: 100, cursor: first.cursor });
    expect([next.reset, Object.keys(next.series)]).toEqual([false, ["train/loss"]]);
    expect(next.series["train/loss"]!.steps).toEqual([3]);
    // Another studio over the same file understands the cursor: it was restarted.
    const again = new MetricsLog(folder);
    await again.refresh();
    expect(steps(again, first.cursor)).toEqual([3]);
  });

  test("a line that is being written waits for its end; damaged ones are passed over", async () => {
    const whole = logOf([line(1)]);
    const { folder, file } = runFolder(`${whole}not json\n{"step":1}\n${logOf([line(2)]).slice(0, 20)}`);
    const log = new MetricsLog(folder);
    await log.refresh();
    expect(steps(log)).toEqual([1]);
    appendFileSync(file, logOf([line(2)]).slice(20));
    await log.refresh();
    expect(steps(log)).toEqual([1, 2]);
  });

  test("a run that was rewound is sent again", async () => {
    const { folder, file } = runFolder(logOf([line(1), line(2), line(3)]));
    const log = new MetricsLog(folder);
    await log.refresh();
    const { cursor } = log.points({ points: 100 });
    writeFileSync(`${file}.new`, logOf([line(1), line(2, { values: { loss: 7 } })]));
    renameSync(`${file}.new`, file);
    await log.refresh();
    const rewound = log.points({ points: 100, cursor });
    expect(rewound.reset).toBe(true);
    expect(rewound.series["train/loss"]).toMatchObject({ steps: [1, 2], values: [0.1, 7] });
  });

  test("NaN and infinities are gaps, in the raw line and in the smoothed one", async () => {
    const { folder } = runFolder(
      logOf([
        line(1),
        line(2, { values: { loss: "NaN" } }),
        line(3, { values: { loss: "Infinity" } }),
        line(4),
      ]),
    );
    const log = new MetricsLog(folder);
    await log.refresh();
    const { series } = log.points({ points: 100, smoothing: 0.5 });
    expect(series["train/loss"]!.values).toEqual([0.1, null, null, 0.4]);
    expect(series["train/loss"]!.smoothed).toEqual([0.1, null, null, 0.3]);
  });

  test("the smoothed line is that of all points, however few are sent, and however late", async () => {
    const all = Array.from({ length: 500 }, (_, i) =>
      line(i + 1, { values: { loss: Math.sin(i * 12.9898) } }),
    );
    const { folder } = runFolder(logOf(all));
    const log = new MetricsLog(folder);
    await log.refresh();
    const want = smoothed(
      all.map(({ values: { loss } }) => Number(loss)),
      0.95,
    );
    const { series, cursor } = log.points({ points: 20, smoothing: 0.95 });
    const sent = series["train/loss"]!;
    expect(sent.steps.length).toBeLessThanOrEqual(20);
    sent.steps.forEach((step, i) => {
      expect(sent.smoothed![i]).toBeCloseTo(want[step - 1]!, 5);
    });
    const half = log.points({ points: 500, smoothing: 0.95, cursor: cursor.replace(/\d+$/, "250") });
    expect(half.series["train/loss"]!.smoothed![0]).toBeCloseTo(want[250]!, 5);
  });

  test("hours leave out the time between sittings, as reports do", async () => {
    const at = (step: number): number => step * 60 + (step > 20 ? 40 * 3600 : 0);
    const { folder } = runFolder(logOf(Array.from({ length: 40 }, (_, i) => line(i + 1, { at: at(i + 1) }))));
    const log = new MetricsLog(folder);
    await log.refresh();
    const { hours } = log.points({ points: 100 }).series["train/loss"]!;
    expect(hours.at(-1)).toBeCloseTo(38 / 60, 4);
    expect(log.totalHours).toBe(hoursOf(await readMetrics(folder)));
  });

  test("gives the tasks at the best step, and leaves them out of the curves", async () => {
    const valid = (step: number, task1: number): Line =>
      line(step, { split: "valid", values: { loss: 1, task1 } });
    const { folder } = runFolder(logOf([valid(1, 0.2), valid(2, 0.9), valid(3, 0.5)]));
    const log = new MetricsLog(folder);
    await log.refresh();
    expect(log.at("valid", 2)).toEqual({ step: 2, values: { loss: 1, task1: 0.9 } });
    expect(log.at("valid")).toMatchObject({ step: 3 });
    expect(log.at("test")).toBeUndefined();
    expect(Object.keys(log.points({ points: 10 }).series)).toEqual(["valid/loss"]);
    expect(Object.keys(log.points({ points: 10, series: ["valid/task1", "none"] }).series)).toEqual([
      "valid/task1",
    ]);
  });

  test("logs that nobody looks at are let go", async () => {
    const folders = [1, 2, 3].map(() => runFolder(logOf([line(1), line(2)])).folder);
    const logs = new MetricsLogs(10);
    const [first] = await Promise.all([logs.of(folders[0]!)]);
    await logs.of(folders[1]!);
    expect(await logs.of(folders[0]!)).not.toBe(first);
    expect(steps(await logs.of(folders[2]!))).toEqual([1, 2]);
  });

  test("a run without a log has no curves yet", async () => {
    const log = new MetricsLog(join(root, "absent"));
    await log.refresh();
    expect(log.points({ points: 10 })).toMatchObject({ series: {}, reset: true });
  });
});
