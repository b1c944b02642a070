/** Two language models word by word: against the float64 oracle, and the search against brute force. */
import { beforeAll, describe, expect, test } from "vitest";
import { openText } from "../../../src/data/text/prepared.ts";
import { bestPassages, compareModels } from "../../../src/experiment/text/compare.ts";
import { awdFwmPtb } from "../../../src/model/awdFwm.ts";
import { keyOf, normal } from "../../../src/random.ts";
import { plainReader, textWeights } from "../../support/textModel.ts";
import { sampleModel, sampleSettings, sampleText } from "./sample.ts";

const context = { env: {}, threads: 1 };
const fwm = {
  ...awdFwmPtb,
  ...{ vocabulary: 20, embedding: 6, hidden: 7, layers: 2, memory: 3, chunk: 4 },
} as const;

let data: string;
let models: [string, string];
let words: string[];
let ids: Int32Array;

beforeAll(async () => {
  data = await sampleText({ train: 60, valid: 6, test: 8 });
  models = [await sampleModel(data, { seed: 1 }), await sampleModel(data, { seed: 2, system: fwm })];
  const { splits, vocabulary, close } = await openText(data);
  ids = new Int32Array(splits.test.length);
  splits.test.read(0, ids);
  words = Array.from(ids, (id) => vocabulary.word(id));
  close();
});

/** Bits of every word but the first, word by word in float64. */
function plainBits(which: 0 | 1): number[] {
  const system = { ...(which === 0 ? sampleSettings(data).system : fwm), vocabulary: 20 };
  const read = plainReader(system, textWeights(system, which + 1));
  return Array.from(ids.subarray(0, -1), (now, i) => {
    const logits = read(now);
    const total = logits.reduce((sum, z) => sum + Math.exp(z), 0);
    return Math.log2(total) - logits[ids[i + 1]!]! / Math.LN2;
  });
}

test("the bits of a passage are those of both models, with everything before it read", async () => {
  const {
    tokens,
    passages,
    models: about,
  } = await compareModels(models, { split: "test", at: 30, words: 12, data }, context);
  expect(tokens).toBe(41);
  expect(passages).toHaveLength(1);
  const [passage] = passages;
  expect(passage!.at).toBe(30);
  expect(passage!.words).toEqual(words.slice(30, 42));
  for (const which of [0, 1] as const) {
    const want = plainBits(which);
    for (const [i, bits] of passage!.bits[which].entries()) expect(bits).toBeCloseTo(want[30 - 1 + i]!, 3);
    const mean = want.slice(0, 41).reduce((a, b) => a + b) / 41;
    expect(about[which].bits).toBeCloseTo(mean, 3);
  }
  for (const [i, difference] of passage!.difference.entries()) {
    expect(difference).toBe(passage!.bits[0][i]! - passage!.bits[1][i]!);
  }
});

test("a passage at the end is cut there; a search reads the whole split", async () => {
  const end = await compareModels(models, { split: "test", at: 50, words: 60, data }, context);
  expect(end.passages[0]!.words).toEqual(words.slice(50));
  const found = await compareModels(models, { split: "test", words: 5, search: 3, data }, context);
  expect(found.tokens).toBe(words.length - 1);
  expect(found.passages).toHaveLength(3);
  const sums = found.passages.map(({ difference }) => difference.reduce((a, b) => a + b));
  expect(sums).toEqual([...sums].sort((a, b) => b - a));
});

test("the best passages are those of brute force, and none overlap", () => {
  for (const [length, size, most] of [
    [40, 5, 3],
    [40, 1, 7],
    [17, 4, 9],
  ] as const) {
    const key = keyOf(length, "values");
    const values = Float64Array.from({ length }, (_, i) => (i === 0 ? 99 : normal(key, i)));
    const left = new Set(Array.from({ length: length - size }, (_, i) => i + 1));
    const want: number[] = [];
    const sumAt = (start: number): number => values.subarray(start, start + size).reduce((a, b) => a + b);
    while (left.size > 0 && want.length < most) {
      const best = [...left].reduce((a, b) => (sumAt(b) > sumAt(a) ? b : a));
      want.push(best);
      for (let start = best - size + 1; start < best + size; start++) left.delete(start);
    }
    expect(bestPassages(values, size, most)).toEqual(want);
  }
  expect(bestPassages(Float64Array.of(0, 1, 2), 60, 3)).toEqual([1]);
  expect(bestPassages(Float64Array.of(0), 60, 3)).toEqual([]);
});

describe("refused", () => {
  test("models of different texts", async () => {
    const other = await sampleText({ train: 60, valid: 6, test: 3 });
    const stranger = await sampleModel(other);
    await expect(
      compareModels([models[0], stranger], { split: "test", words: 5, search: 1 }, context),
    ).rejects.toThrow("the two models read different texts");
  });

  test("a place behind the end, and a model of another kind", async () => {
    await expect(compareModels(models, { split: "test", at: 900, words: 5, data }, context)).rejects.toThrow(
      "--at 900: the test split has words 1 to 55 to predict",
    );
    await expect(
      compareModels([models[0], "models/catbabi-qa"], { split: "test", words: 5, data }, context),
    ).rejects.toThrow("models/catbabi-qa: a model of the kind catbabi, not of text");
  });
});
