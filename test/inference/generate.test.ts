/** Generated text against the float64 oracle, and how words are drawn. */
import { describe, expect, test } from "vitest";
import { drawWord } from "../../src/inference/generate.ts";
import type { GenerateOptions } from "../../src/inference/index.ts";
import { type FwmModel, modelFromBytes } from "../../src/inference/model.ts";
import type { SystemSettings } from "../../src/model/registry.ts";
import { nodeRuntime } from "../../src/runtime/node.ts";
import { plainReader, textModel, textSystems, textWords } from "../support/textModel.ts";

function open(system: SystemSettings, how: Parameters<typeof textModel>[1] = {}): FwmModel {
  const { config, model, files } = textModel(system, how);
  return modelFromBytes(
    { config, safetensors: model, vocab: files["vocab.json"] },
    { runtime: nodeRuntime, name: "my-model" },
  );
}

async function generated(model: FwmModel, options: GenerateOptions): Promise<string[]> {
  const words = [];
  for await (const { word } of model.generate(options)) words.push(word);
  return words;
}

const indexOf = (word: string): number => textWords.indexOf(word);

describe.each(Object.entries(textSystems))("%s", (_, system) => {
  test("the most probable words are those of the step in float64, with their probabilities", async () => {
    const read = plainReader(system);
    let logits = read(indexOf("<eos>"));
    for (const word of ["c", "a", "<eos>", "d"]) logits = read(indexOf(word));
    const model = open(system);
    let count = 0;
    for await (const { word, probability } of model.generate({
      prompt: "c a\n d",
      words: 9,
      temperature: 0,
    })) {
      // <unk>, number 0, is left out.
      const best = logits.indexOf(Math.max(...logits.subarray(1)));
      expect(word).toBe(textWords[best]);
      const total = logits.reduce((sum, z) => sum + Math.exp(z), 0);
      expect(probability).toBeCloseTo(Math.exp(logits[best]!) / total, 4);
      logits = read(best);
      count++;
    }
    expect(count).toBe(9);
    await model.release();
  });
});

describe("a seed", () => {
  const model = open(textSystems["awd-fwm"]);

  test("decides the text", async () => {
    const first = await generated(model, { words: 30, seed: 3 });
    expect(await generated(model, { words: 30, seed: 3 })).toEqual(first);
    expect(await generated(model, { words: 30, seed: 4 })).not.toEqual(first);
    expect(new Set(first).size).toBeGreaterThan(3);
  });

  test("a shorter text is the beginning of a longer one", async () => {
    const long = await generated(model, { words: 12, seed: 5 });
    expect(await generated(model, { words: 5, seed: 5 })).toEqual(long.slice(0, 5));
  });

  test("texts that are generated at the same time do not disturb each other", async () => {
    const alone = await generated(model, { prompt: "b", words: 8, seed: 6 });
    const [one, other] = [
      model.generate({ prompt: "b", words: 8, seed: 6 }),
      model.generate({ prompt: "c h" }),
    ];
    const mixed = [];
    for (let i = 0; i < 8; i++) {
      const next = await one.next();
      mixed.push((next.value as { word: string }).word);
      await other.next();
    }
    expect(mixed).toEqual(alone);
  });
});

describe("drawing", () => {
  const logits = Float64Array.of(1, 3, 0, 2, 2);
  const all = { temperature: 1, topK: 0 };
  // Every interval of u belongs to a word: counting a fine grid gives the probabilities.
  const shares = (excluded: number[], how: { temperature: number; topK: number }): number[] => {
    const counts = new Array<number>(logits.length).fill(0);
    const n = 20_000;
    for (let i = 0; i < n; i++) counts[drawWord(logits, excluded, how, (i + 0.5) / n)]! += 1 / n;
    return counts;
  };
  const softmax = (values: readonly number[]): number[] => {
    const total = values.reduce((sum, z) => sum + Math.exp(z), 0);
    return values.map((z) => Math.exp(z) / total);
  };
  const close = (got: number[], want: number[]): void => {
    for (const [i, share] of got.entries()) expect(share).toBeCloseTo(want[i]!, 3);
  };

  test("is by the softmax of the logits", () => close(shares([], all), softmax([...logits])));

  test("a temperature divides the logits", () =>
    close(shares([], { ...all, temperature: 0.5 }), softmax(Array.from(logits, (z) => 2 * z))));

  test("top-k leaves the k most probable; of equal words the first", () => {
    const none = Number.NEGATIVE_INFINITY;
    close(shares([], { ...all, topK: 2 }), softmax([none, 3, none, 2, none]));
    close(shares([], { ...all, topK: 99 }), softmax([...logits]));
  });

  test("excluded words are never drawn", () => {
    const none = Number.NEGATIVE_INFINITY;
    close(shares([1], all), softmax([1, none, 0, 2, 2]));
    expect(drawWord(logits, [1], { ...all, temperature: 0 }, 0.99)).toBe(3);
  });
});

describe("words", () => {
  test("of the prompt that are not known are read as <unk>, and told", async () => {
    const model = open(textSystems["awd-lstm"]);
    const told: string[][] = [];
    const onUnknown = (words: readonly string[]): void => void told.push([...words]);
    const text = await generated(model, { prompt: "a zebra b zebra gnu", words: 6, onUnknown });
    expect(told).toEqual([["zebra", "gnu"]]);
    expect(await generated(model, { prompt: "a <unk> b <unk> <unk>", words: 6 })).toEqual(text);
  });

  test("of the prompt are an error where there is no <unk>", () => {
    const model = open(textSystems.lstm, { words: [..."abcdefghijk"] });
    expect(() => model.generate({ prompt: "a zebra" })).toThrow('does not know "zebra"');
    expect(() => model.generate({})).toThrow("has no <eos> to begin with");
  });

  test("<unk> is drawn only where it is allowed", async () => {
    const model = open(textSystems.lstm);
    expect(await generated(model, { words: 200 })).not.toContain("<unk>");
    expect(await generated(model, { words: 200, allowUnknown: true })).toContain("<unk>");
  });

  test("are those of the text where the model has rows for more", async () => {
    const model = open(textSystems.lstm, { words: textWords.slice(0, 5) });
    const drawn = await generated(model, { words: 60 });
    expect(new Set(drawn)).toEqual(new Set(textWords.slice(1, 5)));
  });
});

test.each<[string, GenerateOptions]>([
  ["words: expected an integer of at least 1, got 0", { words: 0 }],
  ["temperature: expected a number of at least 0, got -1", { temperature: -1 }],
  ["temperature: expected a number of at least 0, got NaN", { temperature: Number.NaN }],
  ["topK: expected an integer of at least 0, got 1.5", { topK: 1.5 }],
  ["seed: expected an integer of at least 0, got -2", { seed: -2 }],
])("%s", (message, options) => {
  const model = open(textSystems.lstm);
  expect(() => model.generate(options)).toThrow(message);
});

test("a model says what kind it is and what to use it with", () => {
  const text = open(textSystems.lstm);
  expect(() => text.stream()).toThrow(
    /my-model: a model of the kind text: it continues text\n.*fwm generate/,
  );
  expect(() => text.streams(2)).toThrow("fwm generate, model.generate()");
  const stories = open(textSystems.lstm, { kind: "catbabi" });
  expect(() => stories.generate()).toThrow(
    /my-model: a model of the kind catbabi: it answers questions about a story\n.*fwm ask/,
  );
});

test("a vocabulary that is larger than the model's is refused", () => {
  expect(() => open(textSystems.lstm, { words: [...textWords, "j"] })).toThrow(
    /vocab.json: the vocabulary does not fit the model\n.*at most 11 different words/,
  );
});
