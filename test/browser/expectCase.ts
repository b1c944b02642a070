/** What a runtime made of a case against what the oracle makes of it. */
import { expect } from "vitest";
import { type Case, type CaseValues, expectedOf } from "../support/cases.ts";
import { expectClose } from "../support/check.ts";

/** Demands the oracle's names and values. */
export function expectCase(each: Case, got: CaseValues): void {
  const want = expectedOf(each);
  expect(Object.keys(got).sort()).toEqual(Object.keys(want).sort());
  for (const [name, values] of Object.entries(want)) {
    expectClose(got[name]!, values, { rtol: each.rtol, atol: each.atol, label: name });
  }
}
