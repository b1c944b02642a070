/** Scores of text against a plain computation token by token, and how the temperature is tuned. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { prepareText } from "../../../src/data/text/prepare.ts";
import type { TokenStream } from "../../../src/data/text/prepared.ts";
import { corpora, findCorpus } from "../../../src/data/text/sources.ts";
import { openCorpus } from "../../../src/experiment/text/corpus.ts";
import { bestTemperature, tuneTemperature } from "../../../src/experiment/text/evaluate.ts";
import { scoreText } from "../../../src/experiment/text/score.ts";
import { input, stateAttrs } from "../../../src/graph/index.ts";
import type { Value } from "../../../src/graph/op.ts";
import { awdFwmPtb } from "../../../src/model/awdFwm.ts";
import { awdLstmPtb } from "../../../src/model/awdLstm.ts";
import { awdTxlPtb } from "../../../src/model/awdTxl.ts";
import { lstmDefaults } from "../../../src/model/lstmModel.ts";
import { buildSystem } from "../../../src/model/registry.ts";
import { nodeRuntime } from "../../../src/runtime/node.ts";
import { interpret } from "../../../src/runtime/oracle.ts";
import { SequenceEvaluator } from "../../../src/train/sequenceEvaluator.ts";
import { emptyFolder } from "../../data/support/tiny.ts";
import { normals } from "../../support/check.ts";
import { realData } from "../../support/realData.ts";
import { skipUnless } from "../../support/skip.ts";
import { sampleSettings } from "./sample.ts";

const V = 11;
const tokens = Int32Array.from({ length: 24 }, (_, i) => (i * i * 3 + i) % V);
const stream: TokenStream = {
  name: "text",
  length: tokens.length,
  read: (start, into) => into.set(tokens.subarray(start, start + into.length)),
};

const noDropout = { word: 0, input: 0, between: 0, output: 0, weight: 0 };
const sizes = { vocabulary: V, embedding: 4, hidden: 5, layers: 2, dropout: noDropout };
const systems = {
  "awd-lstm": { ...awdLstmPtb, ...sizes },
  "awd-fwm": { ...awdFwmPtb, ...sizes, memory: 3, chunk: 3 },
  "awd-txl": {
    ...awdTxlPtb,
    ...{ vocabulary: V, embedding: 4, layers: 2, heads: 2, headSize: 3, inner: 5, context: 30 },
  },
};

/** Losses of all next tokens, one token at a time in the float64 oracle. */
function plainLosses(system: (typeof systems)[keyof typeof systems], weights: readonly Value[], T: number) {
  const model = buildSystem(system);
  const token = input("token", [1], "i32");
  const before = model.recurrent.map(({ name, shape }) => input(name, shape(1)));
  const { logits, state } = model.step(token, before);
  const bias = weights[model.parameters.findIndex((p) => stateAttrs(p)!.name === "output.b")]!.data;
  let values: Value[] = before.map(({ shape }) => ({
    shape,
    data: new Float64Array(shape.reduce((a, b) => a * b, 1)),
  }));
  return Array.from(tokens.subarray(0, -1), (now, i) => {
    const given = new Map([
      ...model.parameters.map((parameter, j) => [parameter, weights[j]!] as const),
      ...before.map((tensor, j) => [tensor, values[j]!] as const),
      [token, { shape: [1], data: Float64Array.of(now) }] as const,
    ]);
    const [scores, ...after] = interpret([logits, ...state], given);
    values = after;
    // The released programs divide the hidden vector of the LSTMs, and the logits of the Transformer-XL.
    const soft = Array.from(scores!.data, (z, word) => {
      const b = Number(bias[word]);
      return system.name === "awd-txl" ? Number(z) / T : (Number(z) - b) / T + b;
    });
    const total = soft.reduce((sum, z) => sum + Math.exp(z), 0);
    return Math.log(total) - soft[tokens[i + 1]!]!;
  });
}

describe.each(Object.entries(systems))("%s", (_, system) => {
  const model = buildSystem(system);
  const weights = model.parameters.map(({ shape }, i) => normals(shape, i + 1, 0.7));
  const evaluator = new SequenceEvaluator(model, { runtime: nodeRuntime, threads: 1 });
  evaluator.load(
    new Map(
      model.parameters.map((parameter, i) => [stateAttrs(parameter)!.name, weights[i]!.data as Float64Array]),
    ),
  );
  afterAll(() => evaluator.release());

  test.each([
    { window: 7, temperature: 1 },
    { window: 23, temperature: 1 },
    { window: 7, temperature: 1.3 },
  ])("one column in windows of $window at temperature $temperature", async ({ window, temperature }) => {
    const losses = plainLosses(system, weights, temperature);
    const mean = losses.reduce((a, b) => a + b) / losses.length;
    const how = { batch: 1, window, ...(temperature === 1 ? {} : { temperature }) };
    // Twice: a split starts from zeros whatever was read before.
    for (let i = 0; i < 2; i++) {
      const score = await scoreText(evaluator, stream, how);
      expect(score!.tokens).toBe(23);
      expect(score!.loss).toBeCloseTo(mean, 4);
      expect(score!.perplexity).toBeCloseTo(Math.exp(score!.loss), 10);
      expect(score!.bits).toBeCloseTo(score!.loss / Math.log(2), 10);
    }
  });
});

test("an evaluation that is stopped has no score", async () => {
  const model = buildSystem(systems["awd-lstm"]);
  const evaluator = new SequenceEvaluator(model, { runtime: nodeRuntime, threads: 1 });
  const stopping = new AbortController();
  let windows = 0;
  const score = await scoreText(evaluator, stream, {
    batch: 1,
    window: 5,
    signal: stopping.signal,
    onWindow: () => void (++windows === 2 && stopping.abort()),
  });
  expect([score, windows]).toEqual([undefined, 2]);
  await evaluator.release();
});

test("a temperature is refused by a system that has none", async () => {
  const plain = { ...lstmDefaults, vocabulary: V, embedding: 3, hidden: 4 };
  const model = buildSystem(plain);
  const evaluator = new SequenceEvaluator(model, { runtime: nodeRuntime, threads: 1 });
  const how = { batch: 1, window: 5, temperature: 1.2 };
  await expect(scoreText(evaluator, stream, how)).rejects.toThrow("temperature: the system has none");
  await evaluator.release();
});

describe("tuning the temperature", () => {
  /** The released search: 0.80, 0.81, … up to the first increase. */
  function scanned(lossAt: (temperature: number) => number): number {
    let hundredths = 80;
    while (lossAt((hundredths + 1) / 100) <= lossAt(hundredths / 100)) hundredths++;
    return hundredths / 100;
  }

  test.each([0.5, 0.8, 0.804, 0.816, 0.95, 0.996, 1, 1.004, 1.034, 1.07, 1.113, 1.5, 2.13])(
    "a loss that is lowest at %d has the temperature of the released search, in far fewer passes",
    async (lowest) => {
      // Convex in 1 / temperature, as the loss of a softmax is.
      const lossAt = (temperature: number): number => 5 + (1 / temperature - 1 / lowest) ** 2;
      let passes = 0;
      const tried = await tuneTemperature(async (temperature) => {
        passes++;
        return lossAt(temperature);
      });
      expect(bestTemperature(tried)).toBe(scanned(lossAt));
      expect(passes).toBe(tried.length);
      expect(passes).toBeLessThan(lowest < 1.2 ? 12 : 26);
      expect(tried.map(({ temperature }) => temperature)).toContain(1);
    },
  );

  test("the loss of a softmax is convex in 1 / temperature, with a bias that is not divided too", () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.tuple(fc.double({ min: -9, max: 9, noNaN: true }), fc.double({ min: -9, max: 9, noNaN: true })),
          {
            minLength: 2,
            maxLength: 6,
          },
        ),
        (words) => {
          const lossAt = (inverse: number): number => {
            const logits = words.map(([logit, bias]) => logit * inverse + bias);
            const most = Math.max(...logits);
            return most + Math.log(logits.reduce((sum, one) => sum + Math.exp(one - most), 0)) - logits[0]!;
          };
          for (const [a, b] of [
            [0.4, 1],
            [0.9, 1.2],
          ] as const)
            expect(lossAt((a + b) / 2)).toBeLessThanOrEqual((lossAt(a) + lossAt(b)) / 2 + 1e-9);
        },
      ),
    );
  });
});

describe(
  "the published corpora",
  skipUnless(
    existsSync(join(realData, "ptb.tar.gz")),
    `ptb.tar.gz is not in ${realData} (FWM_TEST_DATA names another folder)`,
  ),
  () => {
    test("Penn Treebank is found under FWM_DATA by its name, and known as official", async () => {
      const root = emptyFolder();
      const found = await findCorpus("ptb", { from: join(realData, "ptb.tar.gz"), downloads: root });
      await prepareText(join(root, "ptb"), "ptb", found, { kind: "all" });
      const { task, system, ...rest } = sampleSettings("");
      const ptb = {
        ...rest,
        task: { ...task, dataset: "ptb" },
        system: { ...system, vocabulary: corpora.ptb.vocabulary },
      };
      const corpus = await openCorpus(ptb, { FWM_DATA: root });
      expect(corpus.splits.valid.length).toBe(73_760);
      expect([corpus.isOfficial, corpus.notes]).toEqual([true, []]);
      corpus.close();
    });
  },
);
