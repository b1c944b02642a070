/** Every registered experiment: its settings are those of its kind, whole and small, and systems have their weights. */
import { describe, expect, test } from "vitest";
import "../../experiments/index.ts";
import { experimentNames, kindOf, requireExperiment } from "../../src/experiment/registry.ts";

describe.each(experimentNames())("%s", (name) => {
  const { settings, smoke, description } = requireExperiment(name);
  const kind = kindOf(settings);

  test("passes its schema, whole and as a smoke run", () => {
    expect(description).not.toBe("");
    expect(kind.schema.parse(settings)).toEqual(settings);
    const small = kind.schema.parse({
      task: { ...settings.task, ...smoke.task },
      system: { ...settings.system, ...smoke.system },
      training: { ...settings.training, ...smoke.training },
    });
    expect(kind.steps(small)).toBeLessThan(kind.steps(settings));
    expect(kind.countWeights(small)).toBeLessThanOrEqual(kind.countWeights(settings));
  });
});

test("the systems have the paper's weights, and the small ones the memory's, within 3 %", () => {
  const weights = (name: string): number => {
    const { settings } = requireExperiment(name);
    return kindOf(settings).countWeights(settings);
  };
  expect(weights("catbabi-qa-fwm")).toBe(693_985);
  expect(weights("catbabi-qa-lstm")).toBe(8_026_112);
  expect(weights("catbabi-qa-txl")).toBe(10_552_008);
  expect(weights("catbabi-qa-mnm")).toBe(1_109_929);
  expect(weights("catbabi-qa-jbfw")).toBe(548_352);
  for (const name of ["lstm-small", "txl-small", "mnm-small", "jbfw-small", "delta-net"]) {
    for (const mode of ["qa", "lm"]) {
      const share = weights(`catbabi-${mode}-${name}`) / 693_985;
      expect(Math.abs(share - 1), name).toBeLessThan(0.03);
    }
  }
});
