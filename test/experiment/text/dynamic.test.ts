/**
 * Dynamic evaluation against the plain update rule in float64: losses token by token through the system's step, gradients
 * by central differences, weights changed in a loop.
 */
import { describe, expect, test } from "vitest";
import { evaluationBatches } from "../../../src/data/text/columns.ts";
import type { TokenStream } from "../../../src/data/text/prepared.ts";
import {
  DynamicEvaluator,
  type DynamicSettings,
  dynamicGrid,
  scoreDynamic,
  statisticsBatches,
  tuneDynamic,
} from "../../../src/experiment/text/dynamic.ts";
import { scoreText } from "../../../src/experiment/text/score.ts";
import { input } from "../../../src/graph/index.ts";
import type { Value } from "../../../src/graph/op.ts";
import { awdFwmPtb } from "../../../src/model/awdFwm.ts";
import { lstmDefaults } from "../../../src/model/lstmModel.ts";
import { buildSystem, type SystemSettings } from "../../../src/model/registry.ts";
import { nodeRuntime } from "../../../src/runtime/node.ts";
import { interpret } from "../../../src/runtime/oracle.ts";
import { SequenceEvaluator } from "../../../src/train/sequenceEvaluator.ts";
import { namedWeights, textSystems, textWeights } from "../../support/textModel.ts";

const compile = { runtime: nodeRuntime, threads: 1 };
const V = 4;
const ids = (length: number, seed: number): Int32Array =>
  Int32Array.from({ length }, (_, i) => (i * i * 3 + i * seed + seed) % V);

function streamOf(tokens: Int32Array): TokenStream {
  return {
    name: "text",
    length: tokens.length,
    read: (start, into) => into.set(tokens.subarray(start, start + into.length)),
  };
}

const noDropout = { word: 0, input: 0, between: 0, output: 0, weight: 0 };
const tiny = {
  lstm: { ...lstmDefaults, vocabulary: V, embedding: 2, hidden: 2 },
  "awd-fwm": {
    ...awdFwmPtb,
    ...{
      vocabulary: V,
      embedding: 2,
      hidden: 2,
      layers: 1,
      dropout: noDropout,
      memory: 2,
      reads: 1,
      chunk: 2,
    },
  },
} as const satisfies Record<string, SystemSettings>;

/** A text in the float64 oracle: losses of next tokens and the state after them, by the system's step. */
function plainModel(system: SystemSettings) {
  const model = buildSystem(system);
  const token = input("token", [1], "i32");
  const before = model.recurrent.map(({ name, shape }) => input(name, shape(1)));
  const { logits, state } = model.step(token, before);
  return {
    start: (): Value[] =>
      before.map(({ shape }) => ({ shape, data: new Float64Array(shape.reduce((a, b) => a * b, 1)) })),
    read(weights: readonly Float64Array[], tokens: ArrayLike<number>, from: readonly Value[]) {
      let values = [...from];
      const losses: number[] = [];
      for (let i = 0; i + 1 < tokens.length; i++) {
        const given = new Map([
          ...model.parameters.map((p, j) => [p, { shape: p.shape, data: weights[j]! }] as const),
          ...before.map((tensor, j) => [tensor, values[j]!] as const),
          [token, { shape: [1], data: Float64Array.of(tokens[i]!) }] as const,
        ]);
        const [scores, ...after] = interpret([logits, ...state], given);
        values = after;
        const all = Math.log(scores!.data.reduce((sum, z) => sum + Math.exp(Number(z)), 0));
        losses.push(all - Number(scores!.data[tokens[i + 1]!]));
      }
      return { losses, state: values };
    },
  };
}

/** Gradients of a mean loss by central differences. */
function differences(
  weights: readonly Float64Array[],
  loss: (at: readonly Float64Array[]) => number,
): Float64Array[] {
  return weights.map((values, k) =>
    values.map((_, i) => {
      const moved = (by: number): number =>
        loss(weights.map((other, j) => (j === k ? other.with(i, other[i]! + by) : other)));
      return (moved(1e-5) - moved(-1e-5)) / 2e-5;
    }),
  );
}

const mean = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0) / values.length;

/** The published rule in loops: root mean squares of training gradients, then segment by segment. */
function reference(
  system: SystemSettings,
  {
    train,
    columns,
    test,
    segment,
  }: { train: Int32Array; columns: number; test: Int32Array; segment: number },
  { rate, decay }: DynamicSettings,
): { losses: number[]; limited: number } {
  const { start, read } = plainModel(system);
  const trained = textWeights(system).map(({ data }) => Float64Array.from(data));

  const rows = Math.floor(train.length / columns);
  const squares = trained.map((values) => new Float64Array(values.length));
  let states = Array.from({ length: columns }, start);
  let windows = 0;
  for (let at = 0; at + 1 < rows; at += segment) {
    const length = Math.min(segment, rows - 1 - at);
    const part = (b: number) => train.subarray(b * rows + at, b * rows + at + length + 1);
    const lossOf = (weights: readonly Float64Array[]): number =>
      mean(states.flatMap((state, b) => read(weights, part(b), state).losses));
    for (const [k, g] of differences(trained, lossOf).entries()) {
      for (const [i, x] of g.entries()) squares[k]![i]! += x * x;
    }
    states = states.map((state, b) => read(trained, part(b), state).state);
    windows++;
  }
  const rms = squares.map((values) => values.map((x) => Math.sqrt(x / windows)));
  const middle = mean(rms.map((values) => mean([...values])));

  let weights = trained;
  let state = start();
  let limited = 0;
  const losses: number[] = [];
  for (let at = 0; at + 1 < test.length; at += segment) {
    const part = test.subarray(at, at + segment + 1);
    const now = read(weights, part, state);
    losses.push(...now.losses);
    const gradients = differences(weights, (moved) => mean(read(moved, part, state).losses));
    weights = weights.map((values, k) => {
      const steps = values.map((_, i) => gradients[k]![i]! / (rms[k]![i]! + 2e-5));
      const size = Math.sqrt(mean([...steps.map((s) => s * s)]));
      limited += size > 100 ? 1 : 0;
      return values.map((w, i) => {
        const back = Math.min((decay * rms[k]![i]!) / middle, 1) * (trained[k]![i]! - w);
        return w + back - rate * steps[i]! * Math.min(1, 100 / size);
      });
    });
    state = now.state;
  }
  return { losses, limited };
}

describe.each(Object.entries(tiny))("%s", (name, system) => {
  test("losses are those of the plain rule", async () => {
    const text = { train: ids(26, 2), columns: 2, test: ids(12, 5), segment: 3 };
    const settings = { rate: 0.05, decay: 0.3 };
    const { losses: want, limited } = reference(system, text, settings);
    // Words that the training text lacks have no gradient there, unless the output shares their row: both cases occur.
    expect(limited > 0).toBe(name === "lstm");

    const evaluator = new DynamicEvaluator(buildSystem(system), namedWeights(system), compile);
    await evaluator.measure(evaluationBatches(streamOf(text.train), { batch: 2, window: 3 }));
    const got: number[] = [];
    evaluator.start(settings);
    for (const cut of evaluationBatches(streamOf(text.test), { batch: 1, window: 3 })) {
      got.push(...Array.from(await evaluator.run(cut)).slice(0, cut.length));
    }
    expect(got).toHaveLength(11);
    // Float32 against float64 over four updates.
    for (const [i, loss] of got.entries()) expect(loss).toBeCloseTo(want[i]!, 3);
    // The rule did something: without it the losses are others.
    const { start, read } = plainModel(system);
    const fixed = read(
      textWeights(system).map(({ data }) => Float64Array.from(data)),
      text.test,
      start(),
    ).losses;
    expect(Math.max(...fixed.map((loss, i) => Math.abs(loss - want[i]!)))).toBeGreaterThan(0.05);
    await evaluator.release();
  });
});

const streams = { train: streamOf(ids(400, 3)), test: streamOf(ids(50, 5)) };

async function measured(system: SystemSettings): Promise<DynamicEvaluator> {
  const evaluator = new DynamicEvaluator(buildSystem(system), namedWeights(system), compile);
  await evaluator.measure(statisticsBatches(streams.train, 5));
  return evaluator;
}

describe.each(Object.entries(textSystems))("%s", (_, system) => {
  test("at a rate that is next to nothing the losses are those of a plain evaluation", async () => {
    const evaluator = await measured(system);
    const plain = new SequenceEvaluator(buildSystem(system), compile);
    plain.load(namedWeights(system));
    const want = await scoreText(plain, streams.test, { batch: 1, window: 5 });
    const still = await scoreDynamic(evaluator, streams.test, {
      segment: 5,
      settings: { rate: 1e-12, decay: 1 },
    });
    expect(still.tokens).toBe(49);
    expect(still.loss).toBeCloseTo(want!.loss, 4);
    // A text with a period is learned while it is read.
    const settings = { rate: 0.005, decay: 1e-3 };
    const followed = await scoreDynamic(evaluator, streams.test, { segment: 5, settings });
    expect(followed.loss).toBeLessThan(want!.loss - 0.05);
    // And a text starts with the trained weights, whatever was read before.
    expect((await scoreDynamic(evaluator, streams.test, { segment: 5, settings })).loss).toBe(followed.loss);
    await evaluator.release();
    await plain.release();
  });
});

test("nothing is learned from the future: later words do not change earlier losses", async () => {
  const evaluator = await measured(textSystems["awd-fwm"]);
  const losses = async (tokens: Int32Array): Promise<number[]> => {
    const found: number[] = [];
    evaluator.start({ rate: 0.01, decay: 0.01 });
    for (const cut of evaluationBatches(streamOf(tokens), { batch: 1, window: 5 })) {
      const now = await evaluator.run(cut);
      found.push(...Array.from(now).slice(0, cut.length));
    }
    return found;
  };
  const tokens = ids(40, 5);
  const before = await losses(tokens);
  const changed = tokens.map((id, i) => (i < 23 ? id : (id + 1) % V));
  const after = await losses(changed);
  // Loss i is that of word i + 1.
  expect(after.slice(0, 22)).toEqual(before.slice(0, 22));
  expect(after[22]).not.toBe(before[22]);
  await evaluator.release();
});

describe("tuning", () => {
  const { rate: rates, decay: decays } = dynamicGrid;
  const published = { rate: 5e-5, decay: 2e-3 };
  const distance = (one: DynamicSettings, other: DynamicSettings): number =>
    Math.abs(Math.log(one.rate / other.rate)) + Math.abs(Math.log(one.decay / other.decay));

  test.each([
    { rate: 1e-4, decay: 5e-3 },
    { rate: 1e-6, decay: 0.2 },
    { rate: 4e-4, decay: 5e-4 },
    published,
  ])("finds $rate, $decay from the published settings on", async (wanted) => {
    const { best, tried } = await tuneDynamic(5, async (settings) => distance(settings, wanted));
    expect(best).toEqual(wanted);
    expect(tried[0]).toMatchObject(published);
    expect(tried.length).toBeLessThan(rates.length + decays.length);
    // Nothing is tried twice.
    expect(new Set(tried.map(({ rate, decay }) => `${rate} ${decay}`)).size).toBe(tried.length);
  });

  test("comes close to the best where a stronger decay wants a higher rate", async () => {
    const loss = ({ rate, decay }: DynamicSettings): number => {
      const [x, y] = [Math.log10(rate / 1e-4), Math.log10(decay / 0.02)];
      return x * x + y * y - x * y;
    };
    const { best, tried } = await tuneDynamic(5, async (settings) => loss(settings));
    expect(tried[0]!.loss).toBeGreaterThan(0.7);
    expect(loss(best)).toBeLessThan(0.1);
  });

  test("settings go by the length of a segment", async () => {
    const { tried } = await tuneDynamic(20, async () => 1);
    expect(tried[0]).toMatchObject({ rate: 2e-4, decay: 8e-3 });
  });

  test("weights that diverge are not the best", async () => {
    const { best, tried } = await tuneDynamic(5, async ({ rate }) => (rate > 3e-5 ? Number.NaN : rate));
    expect(best.rate).toBe(rates[0]);
    expect(tried.every(({ loss }) => !Number.isNaN(loss))).toBe(true);
  });
});
