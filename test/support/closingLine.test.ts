/** The last lines of a test run. */
import { expect, test } from "vitest";
import { type ClosedTest, closingLines } from "./closingLine.ts";
import { skipUnless } from "./skip.ts";

const ended = (state: "passed" | "failed" | "skipped", skipReason?: string, note?: string) =>
  ({
    result: () => ({ state, errors: undefined, note }),
    meta: () => (skipReason === undefined ? {} : { skipReason }),
  }) as unknown as ClosedTest;

test("give each reason once with its number of tests, and the counts in the very last line", () => {
  const tests = [
    ended("passed"),
    ended("skipped", "no data"),
    ended("skipped", undefined, "no\n  browser"),
    ended("skipped", "no data"),
    ended("skipped"),
    ended("failed"),
    ended("passed"),
  ];
  expect(closingLines(tests, 1)).toEqual([
    "skipped 2: no data",
    "skipped 1: no browser",
    "skipped 1: no reason given (a filter of test names, or a skip in the test)",
    "2 passed, 2 failed, 4 skipped",
  ]);
  expect(closingLines([ended("passed")], 0)).toEqual(["1 passed, 0 failed, 0 skipped"]);
});

test("a test that can run has no reason", () => {
  expect(skipUnless(true, "no data")).toEqual({});
  expect(skipUnless(false, "no data")).toEqual({ skip: true, meta: { skipReason: "no data" } });
});
