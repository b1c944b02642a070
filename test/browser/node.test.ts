/** The shared cases on `onnxruntime-node`; browser.test.ts runs the same ones in Chromium. */
import { describe, expect, test } from "vitest";
import { nodeRuntime } from "../../src/runtime/node.ts";
import { cases, expectedOf, runCase } from "../support/cases.ts";
import { expectCase } from "./expectCase.ts";

describe("onnxruntime-node", () => {
  test.each(cases.map((each) => [each.name, each] as const))("%s", async (_, each) => {
    expectCase(each, await runCase(each, nodeRuntime, { threads: 1 }));
  });
});

describe("the cases themselves", () => {
  const named = (part: string) => cases.find(({ name }) => name.includes(part))!;

  test("an empty mask gives a loss and a gradient of exactly 0", () => {
    const want = expectedOf(named("empty mask"));
    expect(want["run 0/loss"]).toEqual([0]);
    expect(want["run 0/dlogits"]!.every((x) => x === 0)).toBe(true);
    expect(want["run 1/loss"]![0]).toBeGreaterThan(0);
  });

  test("dropout draws another mask at every run, and keeps about what it should", () => {
    const want = expectedOf(named("dropout"));
    const masks = [0, 1, 2].map((step) => want[`run ${step}/mask`]!);
    expect(new Set(masks.map((mask) => mask.join(""))).size).toBe(3);
    const kept = masks.flat().reduce((total, x) => total + x, 0) / masks.flat().length;
    // 189 draws at 0.75: four standard deviations are 0.126
    expect(Math.abs(kept - 0.75)).toBeLessThan(0.126);
  });

  test.each(["LSTM", "FWM"])("training steps of the %s move every weight", (part) => {
    const each = named(part);
    const { spec } = each.build();
    const [first, ...rest] = each.build().runs;
    const before = expectedOf({ ...each, build: () => ({ spec, runs: [first!] }) });
    const after = expectedOf({ ...each, build: () => ({ spec, runs: [first!, ...rest] }) });
    const weights = Object.keys(after).filter((name) => !/^state\/(adam|train)\.|^run/.test(name));
    expect(weights.length).toBeGreaterThan(5);
    for (const name of weights) expect(after[name], name).not.toEqual(before[name]);
  });
});
