/** Training on text put together: it learns, it resumes exactly, and it averages when it should. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { ColumnBatcher } from "../../../src/data/text/columns.ts";
import { openText } from "../../../src/data/text/prepared.ts";
import { reportedRun } from "../../../src/experiment/report.ts";
import { evaluateSaved } from "../../../src/experiment/savedModel.ts";
import { text } from "../../../src/experiment/text/kind.ts";
import type { TextEvaluation } from "../../../src/experiment/text/options.ts";
import { openTextSession } from "../../../src/experiment/text/session.ts";
import { lengthsOf, paddedWindows, type TextSettings } from "../../../src/experiment/text/settings.ts";
import { trainRun } from "../../../src/experiment/trainRun.ts";
import { drawFigure } from "../../../src/report/figure.ts";
import { loadCheckpoint } from "../../../src/store/checkpoint.ts";
import { readMetrics } from "../../../src/store/metrics.ts";
import { loadModelFolder } from "../../../src/store/modelFolder.ts";
import { readRun } from "../../../src/store/runRecord.ts";
import { optimizerSchema, startsAveraging } from "../../../src/train/optimizerSettings.ts";
import { emptyFolder } from "../../data/support/tiny.ts";
import { entropy, sampleSettings, sampleText } from "./sample.ts";

// One thread: ONNX Runtime promises equal bits only for equal thread counts, and the tests share the cores.
const context = { env: {}, command: ["fwm", "train"], packageVersion: "0", threads: 1 };
const never = new AbortController().signal;

let data: string;
beforeAll(async () => {
  data = await sampleText();
});

const start = (folder: string, settings: TextSettings, signal = never, callbacks = {}) =>
  trainRun({ action: "start", experiment: "sample", settings, folder }, { ...context, signal, callbacks });

describe("a small AWD-LSTM", () => {
  let run: string;
  beforeAll(async () => {
    run = join(emptyFolder(), "run");
    const schedule = { name: "cosine", warmup: 0, decayStart: 0, finalLrRatio: 0.1 } as const;
    await start(run, sampleSettings(data, { steps: 300, logEvery: 20, saveEvery: 100, schedule }));
  }, 120_000);

  test("learns what can be learned: far below the unigram's perplexity, near the text's entropy", async () => {
    const { evaluation } = await evaluateSaved(run, { split: "test" }, { env: {}, threads: 1 });
    const { loss, perplexity, bits, tokens, split } = evaluation as TextEvaluation;
    const { splits, counts, close } = await openText(data);
    const test = new Int32Array(splits.test.length);
    splits.test.read(0, test);
    close();
    const all = counts.reduce((a, b) => a + b);
    const unigram = test.reduce((sum, id) => sum - Math.log(counts[id]! / all), 0) / test.length;
    expect(split).toBe("test");
    expect(tokens).toBe(test.length - 1);
    expect(Math.exp(unigram)).toBeGreaterThan(9);
    expect(perplexity).toBeLessThan(Math.exp(unigram) / 4);
    expect(loss).toBeGreaterThan(entropy - 0.05);
    expect(loss).toBeLessThan(entropy + 0.15);
    expect(perplexity).toBeCloseTo(Math.exp(loss), 10);
    expect(bits).toBeCloseTo(Math.log2(perplexity), 10);
  });

  test("is evaluated at the end of every epoch, and the loss falls", async () => {
    const valid = (await readMetrics(run)).filter(({ split }) => split === "valid");
    const epochs = valid.map(({ values }) => values.epoch!);
    expect(epochs.slice(0, -1)).toEqual(epochs.slice(0, -1).map((_, i) => i + 1));
    const losses = valid.map(({ values }) => values.loss!);
    expect(losses.at(-1)!).toBeLessThan(losses[0]! - 0.3);
    expect((await readRun(run)).summary["best.loss"]).toBe(Math.min(...losses));
  });

  test("is evaluated, reported, packaged and drawn as a kind", async () => {
    const model = await loadModelFolder(run);
    const { evaluation } = await evaluateSaved(model, { split: "all", batch: 2 }, { env: {}, threads: 1 });
    const all = evaluation as TextEvaluation;
    expect(Object.keys(all.splits)).toEqual(["train", "valid", "test"]);
    expect(all.perplexity).toBe(all.splits.test!.perplexity);
    const shown = text.show(all, { valid: 60, test: 57.3 });
    for (const split of ["train", "valid", "test"]) expect(shown).toMatch(new RegExp(`^${split} `, "m"));
    // The text is not the paper's.
    expect(shown).not.toContain("paper");
    expect(text.show({ ...all, isOfficial: true }, { valid: 60, test: 57.3 })).toMatch(/^test .*57\.30$/m);
    expect(text.showLine(all, undefined)).toContain(`test: perplexity ${all.perplexity.toFixed(2)}`);
    const { kind, ...reported } = await reportedRun(run, ["fwm", "report"]);
    expect(kind).toBe(text);
    const paper = { test: 1, curve: [{ epoch: 2, perplexity: 3 }] };
    const theirs = { ...reported, result: { ...reported.result, paper } };
    const figure = await text.figure([theirs]);
    expect(figure.lines.map(({ name }) => name)).toEqual(["sample, seed 1", "authors, sample"]);
    expect(figure.lines[0]!.points[1]).toMatchObject({ x: 2 });
    expect(await drawFigure(figure)).toContain("authors, sample");
    const card = text.card(reported.result as never, all, { name: "m", weights: 1, step: null });
    expect(card).toContain(`| perplexity, test | **${all.perplexity.toFixed(2)}**`);
  });

  test("is evaluated with a cache and with dynamic evaluation, tuned on valid, beside the plain score", async () => {
    const options = { split: "test", temperature: 1.25, cache: "tune", dynamic: "tune" };
    const { evaluation } = await evaluateSaved(run, options, { env: {}, threads: 1 });
    const both = evaluation as TextEvaluation;
    const plain = (await evaluateSaved(run, { split: "test" }, { env: {}, threads: 1 })).evaluation;
    const { loss } = plain as TextEvaluation;
    expect(both.splits.test!.plain!.loss).toBe(loss);
    expect(both.loss).not.toBe(loss);
    expect(both.splits.test!.loss).toBe(both.loss);

    const { tuning: caches, ...cache } = both.cache!;
    expect(caches).toHaveLength(84);
    expect(caches!.find((one) => one.loss === Math.min(...caches!.map((tried) => tried.loss)))).toMatchObject(
      cache,
    );
    const { tuning: rates, segment, ...dynamic } = both.dynamic!;
    expect(segment).toBe(5);
    expect(rates!.length).toBeGreaterThan(2);
    expect(rates!.find((one) => one.loss === Math.min(...rates!.map((tried) => tried.loss)))).toMatchObject(
      dynamic,
    );

    // The tuned values are what the split was read with.
    const given = {
      ...{ split: "test", temperature: 1.25 },
      ...{
        cache: `${cache.lambda},${cache.theta},${cache.window}`,
        dynamic: `${dynamic.rate},${dynamic.decay}`,
      },
    };
    const again = (await evaluateSaved(run, given, { env: {}, threads: 1 })).evaluation as TextEvaluation;
    expect(again.splits).toEqual(both.splits);
    expect([again.cache!.tuning, again.dynamic!.tuning]).toEqual([null, null]);

    const shown = text.show(both, undefined);
    const rows = shown.split("\n\n")[1]!.split("\n");
    const { test } = both.splits;
    expect(shown).toContain(
      `cache: λ ${cache.lambda}, θ ${cache.theta}, window ${cache.window} (tuned on valid: 84 tried)`,
    );
    for (const [i, [label, score]] of [
      ["test", test!.plain],
      ["  temperature 1.25", test],
      ["  temperature 1.25 and cache", test!.cache],
      ["  dynamic evaluation", test!.dynamic],
    ].entries() as Iterable<[number, [string, { perplexity: number }]]>) {
      expect(rows[i + 1]).toMatch(new RegExp(`^${label} +419 .* ${score.perplexity.toFixed(2)} `));
    }
    expect(text.showLine(both, undefined)).toContain(`; with cache ${test!.cache!.perplexity.toFixed(2)}`);
  });

  test.each([
    ["--segment: only with --dynamic", { segment: 4 }],
    ["--dynamic: reads one column, not 4", { dynamic: "tune", batch: 4 }],
    ["expected lambda,theta,window as numbers above 0, or tune, got 0.1,1", { cache: "0.1,1" }],
    ["--dynamic 1e+36,0.001: the weights diverged on valid", { dynamic: "1e36,1e-3" }],
  ])("is not evaluated with options that make no sense: %s", async (message, options) => {
    await expect(evaluateSaved(run, options, { env: {}, threads: 1 })).rejects.toThrow(message);
  });

  test("starts another run, and a model of other words does not", async () => {
    const folder = join(emptyFolder(), "init");
    const settings = sampleSettings(data, { steps: 1 });
    await trainRun(
      { action: "start", experiment: "sample", settings, folder, init: run },
      { ...context, signal: never },
    );
    const [first] = await readMetrics(folder);
    expect(first!.values.loss).toBeLessThan(entropy + 0.4);
    const other = { ...settings, task: { ...settings.task, dataset: "generated", data: "" } };
    const wider = { ...other, system: { ...other.system, vocabulary: 200 } } as TextSettings;
    const session = await openTextSession(wider, context);
    const model = await loadModelFolder(run);
    expect(() => session.init(model)).toThrow("the model's words are not those of the data");
    await session.release();
    await expect(
      evaluateSaved(model, { data: await sampleText({ train: 4, valid: 2, test: 1 }) }, { env: {} }),
    ).rejects.toThrow("the model's words are not those of the data");
  });
});

describe("resumed, a run has the bits of one that never stopped", () => {
  const before = { name: "sgd", learningRate: 5 } as const;
  const cases = {
    "SGD, then ASGD from the second epoch on": {
      name: "asgd",
      learningRate: 3,
      weightDecay: 1.2e-6,
      before,
      switch: { when: "epoch", epoch: 1 },
    },
    "Adam, and the mean of its weights from the second epoch on": {
      name: "averagedAdam",
      learningRate: 1e-2,
      averagingLrRatio: 0.5,
      switch: { when: "epoch", epoch: 1 },
    },
    "SGD, then ASGD by the non-monotone rule": {
      name: "asgd",
      learningRate: 3,
      before: { name: "sgd", learningRate: 60 },
      switch: { when: "nonMonotone", window: 1 },
    },
  };

  test.each(Object.entries(cases))("%s", { timeout: 120_000 }, async (name, given) => {
    const optimizer = optimizerSchema.parse(given);
    // Short epochs: 180 lines in 8 columns are about nine windows.
    const short = await sampleText({ train: 180, valid: 30, test: 30 });
    const byRule = name.includes("rule");
    const settings = sampleSettings(short, {
      steps: 24,
      optimizer,
      saveEvery: 4,
      // A rate that is far too high: the loss goes up and down.
      ...(byRule ? { evalEvery: 2, clip: 0 } : {}),
    });
    const whole = join(emptyFolder(), "whole");
    await start(whole, settings);
    const metrics = await readMetrics(whole, { withoutTimes: true });
    const rates = metrics.filter(({ split }) => split === "train").map(({ values }) => values.learningRate!);
    const valid = metrics.filter(({ split }) => split === "valid");

    const stopped = join(emptyFolder(), "stopped");
    const stops = [5, 10, 13, 19];
    for (const [i, at] of stops.entries()) {
      const stopping = new AbortController();
      const callbacks = { onStep: (done: number) => done === at && stopping.abort() };
      if (i === 0) await start(stopped, settings, stopping.signal, callbacks);
      else {
        await trainRun(
          { action: "resume", folder: stopped },
          { ...context, signal: stopping.signal, callbacks },
        );
      }
    }
    await trainRun({ action: "resume", folder: stopped }, { ...context, signal: never });
    expect(await readMetrics(stopped, { withoutTimes: true })).toEqual(metrics);
    const last = "checkpoint-24";
    for (const file of readdirSync(join(whole, last)).filter((each) => each !== "manifest.json")) {
      const [a, b] = [whole, stopped].map((run) => readFileSync(join(run, last, file)));
      expect(a!.equals(b!), file).toBe(true);
    }

    // The switch was in the middle, where the settings say.
    const { optimizer: tensors } = await loadCheckpoint(join(whole, last));
    expect(Object.keys(tensors)).toEqual(expect.arrayContaining(["asgd.steps", "raw.embedding"]));
    // What was validated is what was saved: the averages.
    const { evaluation } = await evaluateSaved(whole, { which: "last", batch: 4 }, { env: {}, threads: 1 });
    expect((evaluation as TextEvaluation).loss).toBe(valid.at(-1)!.values.loss);
    if (!byRule) return;
    const losses = valid.map(({ values }) => values.loss!);
    const first = losses.findIndex((_, i) =>
      startsAveraging(optimizer, { epoch: 0, losses: losses.slice(0, i + 1) }),
    );
    expect(first).toBeGreaterThan(0);
    expect(first).toBeLessThan(losses.length - 2);
    // 60 before and 3 after, times the length of a window over 20.
    const switched = rates.findIndex((rate) => rate < 10);
    expect(switched).toBe(2 * (first + 1));
  });
});

test("an epoch starts from zero state, and the rate of a step is scaled by its length", async () => {
  const { system, ...settings } = sampleSettings(data, {
    // Nothing moves at this rate: all epochs are alike.
    optimizer: { name: "sgd", learningRate: 1e-30, weightDecay: 0 },
    lengths: { halfProbability: 0, std: 0, min: 5, max: 0 },
    batch: 100,
  });
  const still = {
    ...settings,
    system: { ...system, dropout: { word: 0, input: 0, between: 0, output: 0, weight: 0 } } as typeof system,
  };
  const session = await openTextSession(still, context);
  const losses: number[][] = [[]];
  for (let step = 0; losses.length < 4; step++) {
    const { means, endOfEpoch, latest } = await session.step(step);
    losses.at(-1)!.push(means.loss as number);
    expect(latest!.learningRate).toBe(1e-30);
    if (endOfEpoch) losses.push([]);
  }
  await session.release();
  const [first, second, third] = losses;
  expect(first!.length).toBeGreaterThan(1);
  expect(new Set(first).size).toBe(first!.length);
  expect([second, third]).toEqual([first, first]);

  const varied = sampleSettings(data, {
    optimizer: { name: "sgd", learningRate: 0.5, weightDecay: 0 },
    schedule: { name: "linear", warmup: 4, decayStart: 0, finalLrRatio: 0 },
  });
  const { training } = varied;
  const { splits, close } = await openText(data);
  const batcher = new ColumnBatcher(splits.train, {
    ...{ batch: training.batch, seed: training.seed, windows: paddedWindows(training) },
    lengths: lengthsOf(training),
  });
  const other = await openTextSession(varied, context);
  const scales: number[] = [];
  for (let step = 0; step < 6; step++) {
    const { rateScale } = batcher.next();
    scales.push(rateScale);
    const factor = step < 4 ? step / 4 : 1 - (step - 4) / 8;
    const { latest } = await other.step(step);
    expect(latest!.learningRate).toBeCloseTo(0.5 * factor * rateScale, 12);
  }
  expect(new Set(scales).size).toBeGreaterThan(2);
  await other.release();
  close();
});

test("text that is too short is refused before anything is written", async () => {
  const short = await sampleText({ train: 4, valid: 2, test: 1 });
  const folder = join(emptyFolder(), "run");
  await expect(start(folder, sampleSettings(short, { batch: 16 }))).rejects.toThrow("are too few for");
  expect(() => readdirSync(folder)).toThrow();
  const wide = sampleSettings(data);
  const narrow = { ...wide, system: { ...wide.system, vocabulary: 5 } };
  await expect(start(folder, narrow)).rejects.toThrow("the text has more words than the model");
});
