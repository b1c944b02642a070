/** A small text with something to learn, prepared in a folder, and settings of a small model of it. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { prepareText } from "../../../src/data/text/prepare.ts";
import { openText } from "../../../src/data/text/prepared.ts";
import { findText } from "../../../src/data/text/sources.ts";
import { type TextSettings, textSchema } from "../../../src/experiment/text/settings.ts";
import { awdLstmPtb } from "../../../src/model/awdLstm.ts";
import type { SystemSettings } from "../../../src/model/registry.ts";
import { integer, keyOf } from "../../../src/random.ts";
import { saveModelFolder } from "../../../src/store/modelFolder.ts";
import { emptyFolder } from "../../data/support/tiny.ts";
import { textModel } from "../../support/textModel.ts";

const animals = ["cat", "dog", "cow", "hen", "pig", "fox"];
const sounds = ["meows", "barks", "moos", "clucks", "grunts", "yelps"];
const verbs = ["sees", "hears", "likes", "feeds", "follows"];

/**
 * Sentences "the fox hears the cow moos": two animals and a verb are free, all else is certain, if one knows whether the
 * verb has been: an animal is followed by a verb before it, and by its sound after it.
 */
function sentences(count: number, seed: number): string {
  const key = keyOf(seed, "sentences");
  const lines = Array.from({ length: count }, (_, i) => {
    const [first, verb, second] = [animals, verbs, animals].map((words, j) =>
      integer(key, 3 * i + j, words.length),
    ) as [number, number, number];
    return `the ${animals[first]} ${verbs[verb]} the ${animals[second]} ${sounds[second]}`;
  });
  return `${lines.join("\n")}\n`;
}

/** Nats per token that nobody can save: two of six animals and one of five verbs in every seven tokens. */
export const entropy = (2 * Math.log(animals.length) + Math.log(verbs.length)) / 7;

/** Prepares the text; gives its folder. */
export async function sampleText(lines = { train: 600, valid: 60, test: 60 }): Promise<string> {
  const folder = emptyFolder();
  for (const [i, split] of (["train", "valid", "test"] as const).entries()) {
    writeFileSync(join(folder, `${split}.txt`), sentences(lines[split], i));
  }
  const path = join(folder, "prepared");
  const found = await findText(folder, { valid: 0.1, test: 0.1 });
  await prepareText(path, "text", found, { kind: "train", minCount: 1, maxWords: 100 });
  return path;
}

/** A model folder with drawn weights of a small system, which reads the text. */
export async function sampleModel(
  data: string,
  { seed = 0, system = sampleSettings(data).system }: { seed?: number; system?: SystemSettings } = {},
): Promise<string> {
  const { header, vocabulary, close } = await openText(data);
  close();
  const settings = { ...sampleSettings(data), system: { ...system, vocabulary: header.vocabulary.size } };
  const content = textModel(settings.system, { words: vocabulary.words, seed, settings });
  return saveModelFolder(join(emptyFolder(), `model-${seed}`), content);
}

/** A small AWD-LSTM of the text, with `training` changed. */
export function sampleSettings(data: string, training: Partial<TextSettings["training"]> = {}): TextSettings {
  return textSchema.parse({
    task: { name: "text", dataset: "text-sample", data },
    system: {
      ...awdLstmPtb,
      vocabulary: 20,
      embedding: 24,
      hidden: 32,
      layers: 2,
      embeddingRange: 0.5,
      dropout: { word: 0, input: 0.05, between: 0.05, output: 0.05, weight: 0.1 },
      ar: 0.1,
      tar: 0.1,
    },
    training: {
      seed: 1,
      batch: 8,
      window: 20,
      lengths: { halfProbability: 0.2, std: 2, min: 5, max: 24 },
      steps: 12,
      optimizer: { name: "adam", learningRate: 2e-2 },
      schedule: { name: "constant" },
      clip: 0.25,
      emaDecay: 0,
      logEvery: 1,
      evalEvery: 0,
      saveEvery: 5,
      patience: 0,
      minutes: 0,
      processorMinutes: 0,
      evalBatch: 4,
      evalWindow: 20,
      ...training,
    },
  });
}
