/** The neural cache against brute force in float64, one token at a time. */
import { describe, expect, test } from "vitest";
import type { TokenStream } from "../../../src/data/text/prepared.ts";
import {
  type CacheSettings,
  cacheCandidates,
  cacheGrid,
  mixedLoss,
  NeuralCache,
  scoreCaches,
} from "../../../src/experiment/text/cache.ts";
import { readText } from "../../../src/experiment/text/score.ts";
import { stateAttrs } from "../../../src/graph/index.ts";
import { buildSystem } from "../../../src/model/registry.ts";
import { nodeRuntime } from "../../../src/runtime/node.ts";
import { SequenceEvaluator } from "../../../src/train/sequenceEvaluator.ts";
import { namedWeights, textSystems } from "../../support/textModel.ts";

const compile = { runtime: nodeRuntime, threads: 1 };
const V = 11;
const tokens = Int32Array.from({ length: 41 }, (_, i) => (i * i * 3 + i) % V);

function streamOf(ids: Int32Array): TokenStream {
  return {
    name: "text",
    length: ids.length,
    read: (start, into) => into.set(ids.subarray(start, start + into.length)),
  };
}

function open(system: (typeof textSystems)[keyof typeof textSystems]): SequenceEvaluator {
  const evaluator = new SequenceEvaluator(buildSystem(system), compile);
  evaluator.load(namedWeights(system));
  return evaluator;
}

/** What the model says of every token: its loss and the hidden vector it was predicted from. */
async function predictions(
  evaluator: SequenceEvaluator,
  ids: Int32Array,
  { batch = 1, window = 7 } = {},
): Promise<{ loss: number; hidden: number[]; target: number }[][]> {
  const columns: { loss: number; hidden: number[]; target: number }[][] = Array.from(
    { length: batch },
    () => [],
  );
  for await (const { cut, losses, hidden } of readText(evaluator, streamOf(ids), {
    batch,
    window,
    hidden: true,
  })) {
    const E = hidden.length / (cut.window * batch);
    for (let at = 0; at < cut.length * batch; at++) {
      const vector = Array.from(hidden.subarray(at * E, (at + 1) * E));
      columns[at % batch]!.push({ loss: losses[at]!, hidden: vector, target: cut.targets[at]! });
    }
  }
  return columns;
}

/** The definition: every pair of tokens, in float64. */
function bruteForce(
  column: readonly { loss: number; hidden: number[]; target: number }[],
  { lambda, theta, window }: CacheSettings,
): number[] {
  return column.map(({ loss, hidden, target }, t) => {
    const past = column.slice(Math.max(0, t - window), t);
    if (past.length === 0) return loss;
    const weights = past.map((one) =>
      Math.exp(theta * one.hidden.reduce((sum, x, i) => sum + x * hidden[i]!, 0)),
    );
    const all = weights.reduce((a, b) => a + b);
    const hits = weights.filter((_, i) => past[i]!.target === target).reduce((a, b) => a + b, 0);
    return -Math.log((1 - lambda) * Math.exp(-loss) + (lambda * hits) / all);
  });
}

const mean = (values: readonly number[]): number => values.reduce((a, b) => a + b) / values.length;

describe.each(["awd-lstm", "awd-fwm", "awd-txl with a context", "awd-txl with a memory"] as const)(
  "%s",
  (name) => {
    test.each([1, 3])("scores are those of brute force, %i columns", async (batch) => {
      const evaluator = open(textSystems[name]);
      const columns = await predictions(evaluator, tokens, { batch });
      const settings: CacheSettings[] = [
        { lambda: 0.1, theta: 1, window: 500 },
        { lambda: 0.4, theta: 0.3, window: 4 },
        { lambda: 0.4, theta: 0.3, window: 1 },
        { lambda: 0.25, theta: 1, window: 500 },
      ];
      const how = { batch, window: 7, compile };
      const { plain, cached } = await scoreCaches(evaluator, streamOf(tokens), settings, how);
      expect(plain.loss).toBeCloseTo(mean(columns.flat().map(({ loss }) => loss)), 6);
      for (const [i, one] of settings.entries()) {
        expect(cached[i]!.loss).toBeCloseTo(mean(columns.flatMap((column) => bruteForce(column, one))), 5);
        expect(cached[i]!.tokens).toBe(plain.tokens);
      }
      await evaluator.release();
    });
  },
);

test("how the text is cut into windows does not matter", async () => {
  const evaluator = open(textSystems["awd-fwm"]);
  const settings = [{ lambda: 0.3, theta: 0.5, window: 9 }];
  const losses = [];
  for (const window of [1, 6, 40]) {
    const { cached } = await scoreCaches(evaluator, streamOf(tokens), settings, {
      batch: 1,
      window,
      compile,
    });
    losses.push(cached[0]!.loss);
  }
  expect(losses[1]).toBeCloseTo(losses[0]!, 5);
  expect(losses[2]).toBeCloseTo(losses[0]!, 5);
  await evaluator.release();
});

test("nothing of the future is in the cache: later words do not change earlier losses", async () => {
  const evaluator = open(textSystems["awd-lstm"]);
  const losses = async (ids: Int32Array): Promise<number[]> => {
    const cache = new NeuralCache([{ theta: 1, window: 20 }], compile);
    const found: number[] = [];
    for await (const { cut, losses, hidden } of readText(evaluator, streamOf(ids), {
      batch: 1,
      window: 8,
      hidden: true,
    })) {
      const probabilities = await cache.probabilities(cut, hidden);
      for (let t = 0; t < cut.length; t++) found.push(mixedLoss(losses[t]!, probabilities[t]!, 0.5));
    }
    await cache.release();
    return found;
  };
  const before = await losses(tokens);
  const changed = tokens.slice();
  for (let i = 20; i < changed.length; i++) changed[i] = (changed[i]! + 1 + (i % 3)) % V;
  const after = await losses(changed);
  // Loss i is that of word i + 1.
  expect(after.slice(0, 19)).toEqual(before.slice(0, 19));
  expect(after[19]).not.toBe(before[19]);
  await evaluator.release();
});

test("a text that repeats itself is predicted better", async () => {
  const evaluator = open(textSystems["awd-lstm"]);
  const repeated = Int32Array.from({ length: 60 }, (_, i) => [3, 7, 2, 9, 5][i % 5]!);
  const settings = [{ lambda: 0.5, theta: 1, window: 100 }];
  const { plain, cached } = await scoreCaches(evaluator, streamOf(repeated), settings, {
    batch: 1,
    window: 10,
    compile,
  });
  expect(cached[0]!.perplexity).toBeLessThan(plain.perplexity / 2);
  await evaluator.release();
});

test("a system without hidden vectors is refused", async () => {
  const evaluator = open(textSystems.lstm);
  const how = { batch: 1, window: 7, compile };
  await expect(scoreCaches(evaluator, streamOf(tokens), [cacheCandidates()[0]!], how)).rejects.toThrow(
    "the system shows no hidden vectors",
  );
  expect(stateAttrs(buildSystem(textSystems.lstm).parameters[0]!)!.name).toBe("embedding");
  await evaluator.release();
});

test("the grid is every combination once", () => {
  const { lambda, theta, window } = cacheGrid;
  const all = cacheCandidates();
  expect(all).toHaveLength(lambda.length * theta.length * window.length);
  expect(new Set(all.map((one) => JSON.stringify(one))).size).toBe(all.length);
});
