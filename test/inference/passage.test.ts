/** Bits of a passage's words, against the step in float64. */
import { expect, test } from "vitest";
import { modelFromBytes } from "../../src/inference/model.ts";
import { longestPassage, passageBits } from "../../src/inference/passage.ts";
import type { SystemSettings } from "../../src/model/registry.ts";
import { nodeRuntime } from "../../src/runtime/node.ts";
import { plainReader, textModel, textSystems, textWords } from "../support/textModel.ts";

function open(system: SystemSettings) {
  const { config, model, files } = textModel(system);
  return modelFromBytes({ config, safetensors: model, vocab: files["vocab.json"] }, { runtime: nodeRuntime });
}

const indexOf = (word: string): number => textWords.indexOf(word);

test.each(Object.entries(textSystems))("%s", async (_, system) => {
  const words = ["c", "a", "<eos>", "d", "zebra"];
  const model = open(system);
  const passage = await passageBits(model, "c a\n d zebra");
  expect(passage.map(({ word }) => word)).toEqual(words);
  expect(passage.map(({ known }) => known)).toEqual([true, true, true, true, false]);
  const read = plainReader(system);
  let logits = read(indexOf("<eos>"));
  for (const [i, word] of words.entries()) {
    const id = word === "zebra" ? indexOf("<unk>") : indexOf(word);
    const total = logits.reduce((sum, z) => sum + Math.exp(z), 0);
    expect(passage[i]!.bits).toBeCloseTo(-Math.log2(Math.exp(logits[id]!) / total), 3);
    logits = read(id);
  }
  await model.release();
});

test("no words, and too many, are refused", async () => {
  const model = open(Object.values(textSystems)[0]!);
  await expect(passageBits(model, " ")).rejects.toThrow("no words");
  await expect(passageBits(model, "a ".repeat(longestPassage + 1))).rejects.toThrow("1001 words");
  await model.release();
});
