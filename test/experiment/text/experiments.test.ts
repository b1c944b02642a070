/** The experiments on text: published settings that pass their schema, weights as claimed, and small ones that run. */
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import "../../../experiments/index.ts";
import { ColumnBatcher } from "../../../src/data/text/columns.ts";
import { experimentNames, kindOf, requireExperiment } from "../../../src/experiment/registry.ts";
import { evaluateSaved } from "../../../src/experiment/savedModel.ts";
import { text } from "../../../src/experiment/text/kind.ts";
import {
  lengthsOf,
  paddedWindows,
  type TextExperiment,
  type TextSettings,
  textSchema,
} from "../../../src/experiment/text/settings.ts";
import { trainRun } from "../../../src/experiment/trainRun.ts";
import { readRun } from "../../../src/store/runRecord.ts";
import { emptyFolder } from "../../data/support/tiny.ts";

const names = experimentNames().filter((name) => kindOf(requireExperiment(name).settings).name === "text");
const named = (name: string) => requireExperiment(name) as TextExperiment;

function smokeOf(name: string): TextSettings {
  const { settings, smoke } = named(name);
  const part = (key: keyof TextSettings) => ({ ...settings[key], ...smoke[key] });
  return textSchema.parse({ task: part("task"), system: part("system"), training: part("training") });
}

test("have the weights they claim", () => {
  expect(Object.fromEntries(names.map((name) => [name, text.countWeights(named(name).settings)]))).toEqual({
    "ptb-awd-lstm": 24_221_600,
    "ptb-awd-fwm": 24_325_025,
    "ptb-awd-txl": 24_040_400,
    "wt2-awd-lstm": 33_556_078,
    "wt2-awd-fwm": 33_659_503,
    "wt2-awd-txl": 37_712_881,
    "ptb-lstm-small": 3_014_000,
    "ptb-fwm-small": 3_065_825,
    "ptb-txl-small": 2_974_200,
    "wt2-fwm-small": 6_324_703,
  });
});

test.each(names)("%s passes its schema", (name) => {
  expect(textSchema.parse(named(name).settings)).toEqual(named(name).settings);
});

test.each([
  ["ptb-awd-lstm", 929_589, 500],
  ["ptb-awd-fwm", 929_589, 900],
  ["ptb-awd-txl", 929_589, 175],
  ["wt2-awd-lstm", 2_088_628, 750],
  ["wt2-awd-fwm", 2_088_628, 1600],
])("%s trains for as many steps as its epochs have", (name, tokens, epochs) => {
  const { training } = named(name).settings;
  const batcher = new ColumnBatcher(
    { name, length: tokens, read: () => undefined },
    { ...training, lengths: lengthsOf(training), windows: paddedWindows(training) },
  );
  const counted = 10;
  let steps = 0;
  for (let done = 0; done < counted; steps++) {
    batcher.next();
    if (batcher.endOfEpoch) done++;
  }
  // Lengths are drawn: the mean over ten epochs has a standard error of 0.2 %.
  const ratio = training.steps / ((steps / counted) * epochs);
  expect(Math.abs(ratio - 1)).toBeLessThan(0.005);
});

test("windows are padded to few sizes", () => {
  const sizes = Object.fromEntries(names.map((name) => [name, paddedWindows(named(name).settings.training)]));
  expect(sizes["ptb-awd-fwm"]).toEqual([40, 70, 80]);
  expect(sizes["ptb-awd-lstm"]).toEqual([40, 70, 80]);
  expect(sizes["wt2-awd-txl"]).toEqual([150]);
});

test("a setting of another system is refused", () => {
  const { settings } = named("ptb-awd-lstm");
  const given = { ...settings, training: { ...settings.training, evalContext: 10 } };
  expect(() => textSchema.parse(given)).toThrow("only for awd-txl with a context");
});

describe("small", () => {
  test.each(names)("%s trains and is evaluated without any files", { timeout: 60_000 }, async (name) => {
    const settings = smokeOf(name);
    const folder = join(emptyFolder(), "run");
    const training = { ...settings.training, steps: 3, evalEvery: 3 };
    await trainRun(
      { action: "start", experiment: name, settings: { ...settings, training }, folder },
      { env: {}, command: ["fwm", "train"], packageVersion: "0", threads: 1, signal: AbortSignal.any([]) },
    );
    const { summary } = await readRun(folder);
    expect(summary.identity).toBe("generated");
    const { evaluation } = await evaluateSaved(folder, { batch: 10 }, { env: {}, threads: 1 });
    // As in training; the same columns and windows.
    expect((evaluation as unknown as { loss: number }).loss).toBe(summary["best.loss"]);
    expect(text.showLine(evaluation as never, named(name).paper)).not.toContain("paper");
  });
});

test("is benched without any files, in windows of one length", async () => {
  const settings = smokeOf("ptb-awd-fwm");
  const [row] = text.benchRows(settings, { steps: 1 });
  expect(row!.label).toEqual({ system: "awd-fwm", batch: 4, window: 20 });
  const { perSecond, stepMs, gflops, shareOfPeak, parts } = await text.bench(row!, { steps: 2, threads: 1 });
  expect(perSecond).toBeCloseTo((1000 * 4 * 20) / stepMs, 6);
  expect(gflops).toBeGreaterThan(0);
  expect(shareOfPeak!.most).toBeLessThan(1);
  // Where the time goes: among others to the LSTM, the memory's writes and reads, the softmax and the optimizer.
  expect(Object.keys(parts)).toEqual(expect.arrayContaining(["write", "read", "output", "optimizer"]));
  const all = Object.values(parts).reduce((a, b) => a + b, 0);
  expect(all).toBeCloseTo(stepMs, 6);
});
