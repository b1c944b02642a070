/** How surprising each word of a passage is to a language model, read from an empty memory. */
import { eosWord, lineEnd, tokensOf } from "../data/text/tokens.ts";
import { DataError, UsageError } from "../errors.ts";
import { encodePrompt, type GenerationSource } from "./generate.ts";

/** A word of a passage. */
export interface PassageWord {
  /** As it was given; `<eos>` at the end of a line. */
  readonly word: string;
  /** Whether it is in the vocabulary; if not, the bits are those of `<unk>`. */
  readonly known: boolean;
  /** -log2 of the probability that the model gave it after all words before it. */
  readonly bits: number;
}

/** Longest passage, in words: every one is a step. */
export const longestPassage = 1000;

/** The bits of every word of a text. It begins a new line: before its first word stands `<eos>`. */
export async function passageBits(source: GenerationSource, text: string): Promise<PassageWord[]> {
  const { vocabulary } = source;
  const words = tokensOf(text).map((token) => (token === lineEnd ? eosWord : token));
  if (words.length === 0) throw new UsageError("the passage has no words");
  if (words.length > longestPassage) {
    throw new UsageError(`the passage has ${words.length} words`, { most: longestPassage });
  }
  const read = encodePrompt(vocabulary, text, undefined);
  // Without <eos> the first word has nothing before it and cannot be predicted.
  const predicted = words.slice(words.length - (read.length - 1));
  const program = await source.program(1);
  const result: PassageWord[] = [];
  for (const [i, word] of predicted.entries()) {
    const out = await program.run({ tokens: Int32Array.of(read[i]!) });
    const logits = (out.logits as Float32Array).subarray(0, vocabulary.size);
    result.push({ word, known: vocabulary.id(word) !== undefined, bits: bitsOf(logits, read[i + 1]!, word) });
  }
  return result;
}

function bitsOf(logits: Float32Array, id: number, word: string): number {
  let top = Number.NEGATIVE_INFINITY;
  for (const logit of logits) top = Math.max(top, logit);
  let total = 0;
  for (const logit of logits) total += Math.exp(logit - top);
  const bits = (Math.log(total) + top - logits[id]!) / Math.LN2;
  if (Number.isFinite(bits)) return Math.max(0, bits);
  throw new DataError(`the model's numbers are not finite any more before ${JSON.stringify(word)}`, {
    hint: "its weights are too large or damaged; use another checkpoint",
  });
}
