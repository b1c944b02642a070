/** Which settings of a sweep matter: known answers. */
import { expect, test } from "vitest";
import { importance } from "../../src/studio/server/sweeps.ts";

const member = (values: Record<string, string | number>, accuracy: number) => ({
  values,
  best: { accuracy },
});

test("a setting that decides everything explains everything, one that does nothing explains nothing", () => {
  const members = [0, 1, 2].flatMap((reads) =>
    ["a", "b", "c"].map((name, i) => member({ reads, name }, 0.1 * reads + 1e-6 * ((reads + i) % 3))),
  );
  const [first, second] = importance(members, ["name", "reads"], "accuracy");
  expect(first).toMatchObject({ key: "reads" });
  expect(first!.importance).toBeGreaterThan(0.999);
  expect(second).toEqual({ key: "name", importance: 0 });
});

test("half and half is half and half", () => {
  // Sum of two effects of equal size: each has about half of the variance.
  const members = [0, 1].flatMap((a) =>
    [0, 1].flatMap((b) => [0, 1, 2, 3].map(() => member({ a, b }, a + b))),
  );
  for (const { importance: share } of importance(members, ["a", "b"], "accuracy")) {
    expect(share).toBeCloseTo(1 - 4 / 14 / (8 / 15), 4);
  }
});

test("a number that is another one each time is grouped by its order, not taken for an explanation", () => {
  const noise = (i: number): number =>
    Math.sin(i * 12.9898) * 43758.5453 - Math.floor(Math.sin(i * 12.9898) * 43758.5453);
  const members = Array.from({ length: 100 }, (_, i) =>
    member({ rate: i / 100, seed: noise(i + 1000) }, i / 100 + 0.01 * noise(i)),
  );
  const [first, second] = importance(members, ["seed", "rate"], "accuracy");
  expect(first).toMatchObject({ key: "rate" });
  expect(first!.importance).toBeGreaterThan(0.9);
  expect(second!.importance).toBeLessThan(0.2);
});

test("too few members, equal results and missing ones say nothing", () => {
  expect(importance([member({ a: 1 }, 1), member({ a: 2 }, 2)], ["a"], "accuracy")).toEqual([]);
  const equal = [1, 1, 2, 2, 3].map((a) => member({ a }, 0.5));
  expect(importance(equal, ["a"], "accuracy")).toEqual([{ key: "a", importance: 0 }]);
  expect(importance(equal, ["a"], "loss")).toEqual([]);
});
