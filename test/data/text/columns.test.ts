/** Columns and windows: every token once and in order, lengths as drawn, the same after a resume. */
import { describe, expect, test } from "vitest";
import {
  ColumnBatcher,
  type ColumnSettings,
  columnRows,
  evaluationBatches,
  releasedLengths,
} from "../../../src/data/text/columns.ts";
import type { TokenStream } from "../../../src/data/text/prepared.ts";

/** A text whose token i is i. */
function counting(length: number): TokenStream {
  return {
    name: "text",
    length,
    read(start, into) {
      if (start + into.length > length) throw new RangeError("beyond the text");
      into.forEach((_, i) => {
        into[i] = start + i;
      });
    },
  };
}

const settings: ColumnSettings = { batch: 4, seed: 7, lengths: releasedLengths, windows: [40, 70, 80] };

test("an epoch runs down every column once, and each target is the next token", () => {
  const text = counting(4003);
  const batcher = new ColumnBatcher(text, settings);
  let position = 0;
  do {
    const cut = batcher.next();
    expect(cut.isFirst).toBe(position === 0);
    expect(cut.epoch).toBe(0);
    for (let t = 0; t < cut.window; t++) {
      for (let b = 0; b < 4; b++) {
        const at = t * 4 + b;
        const isText = t < cut.length;
        expect(cut.mask[at]).toBe(isText ? 1 : 0);
        expect(cut.tokens[at]).toBe(isText ? b * 1000 + position + t : 0);
        expect(cut.targets[at]).toBe(isText ? b * 1000 + position + t + 1 : 0);
      }
    }
    position += cut.length;
  } while (!batcher.endOfEpoch);
  // The last token is only a target; a window of it alone is left out, as in the original.
  expect(position === 999 || position === 998).toBe(true);
  expect(batcher.next()).toMatchObject({ epoch: 1, isFirst: true });
});

test("lengths are drawn as published, and padded to few sizes", () => {
  const batcher = new ColumnBatcher(counting(40_000_000), settings);
  const drawn = Array.from({ length: 20_000 }, () => batcher.next());
  const lengths = drawn.map(({ length }) => length);
  expect(Math.max(...lengths)).toBe(80);
  expect(Math.min(...lengths)).toBeGreaterThanOrEqual(5);
  const long = lengths.filter((length) => length > 52);
  const mean = long.reduce((a, b) => a + b) / long.length;
  const std = Math.sqrt(long.reduce((sum, x) => sum + (x - mean) ** 2, 0) / long.length);
  // floor takes half a token off the mean of 70, and the cap at 80 a little of the spread
  expect(mean).toBeCloseTo(69.5, 0);
  expect(std).toBeGreaterThan(4.6);
  expect(std).toBeLessThan(5.1);
  expect(1 - long.length / lengths.length).toBeCloseTo(0.05, 2);
  const half = lengths.filter((length) => length <= 52);
  expect(half.reduce((a, b) => a + b) / half.length).toBeCloseTo(34.5, 0);
  expect([...new Set(drawn.map(({ window }) => window))].sort()).toEqual([40, 70, 80]);
  for (const { length, rateScale } of drawn) expect(rateScale).toBeCloseTo(length / 70, 12);
});

test("without an upper limit a longer window gets a size of its own", () => {
  const lengths = { ...releasedLengths, max: 0 };
  const batcher = new ColumnBatcher(counting(40_000_000), { ...settings, lengths });
  const longest = Array.from({ length: 20_000 }, () => batcher.next()).reduce((a, b) =>
    a.length > b.length ? a : b,
  );
  expect(longest.length).toBeGreaterThan(80);
  expect(longest.window).toBe(90);
});

test("the rate goes by the drawn length even where the text ends sooner", () => {
  const batcher = new ColumnBatcher(counting(40), settings);
  const cut = batcher.next();
  expect(cut.length).toBe(9);
  expect(cut.rateScale).toBeGreaterThan(30 / 70);
});

test("a resumed batcher goes on with the same windows, over the end of an epoch", () => {
  const text = counting(2000);
  const whole = new ColumnBatcher(text, settings);
  const expected = Array.from({ length: 30 }, () => whole.next());
  expect(expected.at(-1)!.epoch).toBeGreaterThan(1);
  for (const stop of [0, 1, 7, 8, 20]) {
    const first = new ColumnBatcher(text, settings);
    for (let i = 0; i < stop; i++) first.next();
    const state = JSON.parse(JSON.stringify(first.state())) as ReturnType<ColumnBatcher["state"]>;
    const second = ColumnBatcher.resume(text, settings, state);
    for (let i = stop; i < 30; i++) expect(second.next()).toEqual(expected[i]);
  }
});

test("seeds and epochs differ in their lengths", () => {
  const lengthsOf = (seed: number) => {
    const batcher = new ColumnBatcher(counting(4000), { ...settings, seed });
    return Array.from({ length: 12 }, () => batcher.next().length);
  };
  expect(lengthsOf(1)).not.toEqual(lengthsOf(2));
  const batcher = new ColumnBatcher(counting(4000), settings);
  const epochs: number[][] = [[], []];
  for (let cut = batcher.next(); cut.epoch < 2; cut = batcher.next()) epochs[cut.epoch]!.push(cut.length);
  expect(epochs[0]!.slice(0, 5)).not.toEqual(epochs[1]!.slice(0, 5));
});

test("a state of other text or settings is refused", () => {
  const state = new ColumnBatcher(counting(2000), settings).state();
  expect(() => ColumnBatcher.resume(counting(2001), settings, state)).toThrow(
    /tokens was 2000, now it is 2001/,
  );
  expect(() => ColumnBatcher.resume(counting(2000), { ...settings, batch: 5 }, state)).toThrow(/batch was 4/);
  expect(() => ColumnBatcher.resume(counting(2000), settings, { ...state, position: -1 })).toThrow(
    /position -1/,
  );
});

describe("evaluation", () => {
  test("every target once; the last window is padded", () => {
    const cuts = [...evaluationBatches(counting(52), { batch: 2, window: 10 })];
    expect(cuts.map(({ length, window }) => [length, window])).toEqual([
      [10, 10],
      [10, 10],
      [5, 10],
    ]);
    const targets = cuts.flatMap(({ targets, length }) => [...targets.slice(0, 2 * length)]);
    expect(targets.filter((_, i) => i % 2 === 0)).toEqual(Array.from({ length: 25 }, (_, i) => i + 1));
    expect(targets.filter((_, i) => i % 2 === 1)).toEqual(Array.from({ length: 25 }, (_, i) => i + 27));
    expect(columnRows(counting(52), 2)).toBe(26);
  });
});

test("too little text, and lengths that mean nothing, are refused", () => {
  expect(() => new ColumnBatcher(counting(11), settings)).toThrow(/11 tokens are too few for 4 columns/);
  expect(() => [...evaluationBatches(counting(3), { batch: 2, window: 5 })]).toThrow(/too few/);
  for (const wrong of [{ base: 1 }, { min: 1 }, { min: 90 }, { std: -1 }]) {
    const lengths = { ...releasedLengths, ...wrong };
    expect(() => new ColumnBatcher(counting(4000), { ...settings, lengths })).toThrow(/do not fit together/);
  }
});
