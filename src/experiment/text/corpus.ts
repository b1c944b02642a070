/** The text of a language-modelling experiment: a prepared folder, or generated stories where no files are wanted. */
import { join } from "node:path";
import type { SplitName } from "../../data/catbabi.ts";
import { dataRoot } from "../../data/sources/prepare.ts";
import { generatedSource } from "../../data/streams.ts";
import { checkVocabularyFits, openText, type TokenStream } from "../../data/text/prepared.ts";
import { catbabiVocabulary, eosId } from "../../data/vocabulary.ts";
import { UsageError } from "../../errors.ts";
import type { Env, SessionData } from "../kind.ts";
import { generatedDataset, type TextSettings } from "./settings.ts";

/** A text that is open: its splits as streams of word numbers. Close it when it is no longer needed. */
export interface Corpus extends SessionData {
  readonly identity: string;
  readonly words: readonly string[];
  readonly splits: Readonly<Record<SplitName, TokenStream>>;
  /** Whether the text is one of the published corpora, every file of it as published. */
  readonly isOfficial: boolean;
  close(): void;
}

/** Opens the text that settings name; one with more words than the system has is refused. */
export async function openCorpus({ task, system }: TextSettings, env: Env): Promise<Corpus> {
  if (task.dataset === generatedDataset && task.data === "") return generatedCorpus(system.vocabulary);
  const path = task.data || join(dataRoot(env), task.dataset);
  // An adaptive softmax has its frequent words first.
  const order = system.name === "awd-txl" && system.cutoffs.length > 0 ? "frequency" : "appearance";
  const text = await openText(path, order);
  const { header, vocabulary, splits } = text;
  try {
    checkVocabularyFits(header, path, system.vocabulary);
  } catch (error) {
    text.close();
    throw error;
  }
  const digests = (["train", "valid"] as const).map(
    (name) => `${name} ${header.splits[name].sha256.slice(0, 12)}`,
  );
  const changed = header.files.filter(({ isOfficial }) => isOfficial === false);
  return {
    identity: `${header.dataset}, ${digests.join(", ")}, words by ${order}`,
    notes: changed.map(({ name }) => `${name} is not the published file of ${header.dataset}`),
    words: vocabulary.words,
    splits,
    isOfficial: header.dataset !== "text" && changed.length === 0,
    close: () => text.close(),
  };
}

/** What to do about a text whose words are not the model's. */
export const textHint =
  "prepare the text with the words of the text it was trained on: fwm data prepare text --vocabulary";

/** Tokens of the generated splits: enough for a few windows of 80 columns. */
const generatedTokens = { train: 60_000, valid: 5_000, test: 5_000 } as const;

function generatedCorpus(modelWords: number): Corpus {
  const { words, size } = catbabiVocabulary;
  if (modelWords < size) {
    throw new UsageError(`system.vocabulary: the generated text has ${size} words, not ${modelWords}`, {
      hint: `use at least ${size}, or a prepared text`,
    });
  }
  const split = (name: SplitName, seed: number): TokenStream =>
    streamOf(name, generateTokens(seed, generatedTokens[name]));
  return {
    identity: generatedDataset,
    notes: ["the text is generated: stories like those of bAbI"],
    words,
    splits: { train: split("train", 1), valid: split("valid", 2), test: split("test", 3) },
    isOfficial: false,
    close: () => undefined,
  };
}

/** Stories one after the other, each with `<eos>` at its end. */
function generateTokens(seed: number, length: number): Int32Array {
  const source = generatedSource(seed);
  const tokens = new Int32Array(length);
  let done = 0;
  for (let position = 0; done < length; position++) {
    const story = [...source.story(0, position).tokens, eosId].slice(0, length - done);
    tokens.set(story, done);
    done += story.length;
  }
  return tokens;
}

function streamOf(name: string, tokens: Int32Array): TokenStream {
  return {
    name: `generated ${name} split`,
    length: tokens.length,
    read: (start, into) => into.set(tokens.subarray(start, start + into.length)),
  };
}
