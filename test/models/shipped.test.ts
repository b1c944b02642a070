/** The models that ship with the package: they load, and are as good as their cards say, on a fixed sample. */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { generatedSource } from "../../src/data/streams.ts";
import { scoreStream } from "../../src/experiment/catbabi/score.ts";
import type { MetarlEvaluation } from "../../src/experiment/metarl/options.ts";
import { evaluateSaved } from "../../src/experiment/savedModel.ts";
import { loadModel } from "../../src/inference/load.ts";
import { buildModel, type FwmModel, tokenModelConfig } from "../../src/inference/model.ts";
import { passageBits } from "../../src/inference/passage.ts";
import { nodeRuntime } from "../../src/runtime/node.ts";
import { loadModelFolder } from "../../src/store/modelFolder.ts";
import { SequenceEvaluator } from "../../src/train/sequenceEvaluator.ts";

const folder = join(import.meta.dirname, "../../models/catbabi-qa");

let model: FwmModel;
beforeAll(async () => {
  model = await loadModel(folder);
});
afterAll(() => model.release());

test("transitive inference: mice fear wolves, Gertrude is a mouse", async () => {
  const stream = model.stream();
  await stream.read(
    "mice are afraid of wolves . gertrude is a mouse . cats are afraid of sheep . winona is a sheep .",
  );
  const { answers, trace } = await stream.ask("what is gertrude afraid of ?");
  expect(answers[0]).toMatchObject({ word: "wolf" });
  expect(answers[0]!.probability).toBeGreaterThan(0.9);
  expect(trace.rows.length).toBe(3);
});

test("two facts chained: who holds it, and where she is", async () => {
  const stream = model.stream();
  await stream.read("mary took the apple . mary went to the garden . john went to the office .");
  expect((await stream.ask("where is the apple ?")).answers[0]!.word).toBe("garden");
});

test("induction: Brian is a lion, and lions are white", async () => {
  const stream = model.stream();
  await stream.read("julius is a lion . lily is a rhino . bernhard is a swan . lily is gray .");
  await stream.read(
    "bernhard is green . greg is a rhino . greg is gray . julius is white . brian is a lion .",
  );
  expect((await stream.ask("what color is brian ?")).answers[0]).toMatchObject({ word: "white" });
});

test("accuracy on 400 fixed new stories of all tasks", async () => {
  const { config, model: tensors } = await loadModelFolder(folder);
  const parsed = tokenModelConfig(config);
  const { system, weights } = buildModel(parsed.system, tensors, "model.safetensors");
  const evaluator = new SequenceEvaluator(system, { runtime: nodeRuntime });
  try {
    evaluator.load(weights);
    const source = { ...generatedSource(77), storiesPerEpoch: 400 };
    const score = await scoreStream(evaluator, source, { mode: "qa", batch: 16, window: 200 });
    console.info(
      `shipped model: ${(100 * score!.accuracy).toFixed(2)} % of ${score!.questions} generated questions`,
    );
    expect(score!.questions).toBeGreaterThan(1000);
    // 99.77 % of the real test questions; the sample's standard deviation is 0.3 %.
    expect(score!.accuracy).toBeGreaterThan(0.975);
  } finally {
    await evaluator.release();
  }
});

describe("the language model", () => {
  let text: FwmModel;
  beforeAll(async () => {
    text = await loadModel("wikitext-2");
  });
  afterAll(() => text.release());

  test("finds English likelier than its words in another order", async () => {
    const sentence = "The film was released in the United States and received mixed reviews from critics .";
    const bits = async (words: string): Promise<number> =>
      (await passageBits(text, words)).reduce((sum, word) => sum + word.bits, 0);
    const shuffled = "critics the . reviews States film mixed and received United in from was The released";
    const [likely, unlikely] = [await bits(sentence), await bits(shuffled)];
    console.info(`shipped language model: ${(2 ** (likely / 15)).toFixed(0)} a word in order`);
    // Perplexity 25 a word at most; a uniform guess over the words has 33,278.
    expect(likely / 15).toBeLessThan(Math.log2(25));
    expect(unlikely).toBeGreaterThan(1.5 * likely);
  });

  test("writes the same text with the same seed, words that it knows", async () => {
    const write = async (seed: number): Promise<string[]> => {
      const words: string[] = [];
      for await (const { word } of text.generate({ prompt: "The history of", words: 20, seed }))
        words.push(word);
      return words;
    };
    const first = await write(3);
    expect(await write(3)).toEqual(first);
    expect(await write(4)).not.toEqual(first);
    for (const word of first) expect(text.vocabulary.id(word)).toBeDefined();
    expect(first).not.toContain("<unk>");
  });
});

test("the agent on the 600 test graphs", async () => {
  const agent = join(import.meta.dirname, "../../models/metarl");
  const { evaluation } = await evaluateSaved(agent, { episodes: 3, seed: 7 });
  const { return: reached, random } = evaluation as MetarlEvaluation;
  console.info(
    `shipped agent: mean return ${reached.mean.toFixed(2)}, random actions ${random.mean.toFixed(2)}`,
  );
  expect(random.mean).toBeLessThan(50);
  expect(reached.mean).toBeGreaterThan(113);
});
