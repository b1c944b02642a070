/**
 * Text word by word: each word is drawn from what a language model predicts after all words before it. Works with every
 * system by its streaming step, in Node and in a browser.
 */
import { eosWord, lineEnd, tokensOf, unknownWord } from "../data/text/tokens.ts";
import type { Vocabulary } from "../data/vocabulary.ts";
import { DataError, UsageError } from "../errors.ts";
import { keyOf, uniform } from "../random.ts";
import type { Program } from "../runtime/program.ts";
import { UnknownWordError } from "./text.ts";

/** How text is generated. */
export interface GenerateOptions {
  /** Text to continue: words between white space, a line end is `<eos>`. Without it the text begins with a new line. */
  readonly prompt?: string;
  /** Words to generate, line ends included; 100 by default. */
  readonly words?: number;
  /** Divides the logits; 0: always the most probable word. 1 by default. */
  readonly temperature?: number;
  /** Draws among so many of the most probable words; all by default. */
  readonly topK?: number;
  /** Seed of the draws; 1 by default. The same seed gives the same text. */
  readonly seed?: number;
  /** Whether `<unk>` may be drawn; by default it is left out. */
  readonly allowUnknown?: boolean;
  /** Told which words of the prompt are not in the vocabulary, before anything is read; they are read as `<unk>`. */
  readonly onUnknown?: (words: readonly string[]) => void;
}

/** A word that was drawn. */
export interface GeneratedWord {
  /** `<eos>` at the end of a line. */
  readonly word: string;
  /** What the model gave it, before temperature and top-k. */
  readonly probability: number;
}

/** What generation needs of a model. */
export interface GenerationSource {
  readonly vocabulary: Vocabulary;
  /** The compiled step for a number of rows, over a state of its own. */
  program(rows: number): Promise<Program>;
}

/** How a word is chosen. */
export interface DrawOptions {
  readonly temperature: number;
  /** 0: all words. */
  readonly topK: number;
}

/** Generates text; options are checked at once, words come as they are asked for. */
export function generateText(
  source: GenerationSource,
  options: GenerateOptions = {},
): AsyncGenerator<GeneratedWord, void, undefined> {
  const { prompt = "", words = 100, temperature = 1, topK = 0, seed = 1, allowUnknown = false } = options;
  checkWhole("words", words, 1);
  checkWhole("topK", topK, 0);
  checkWhole("seed", seed, 0);
  if (!(temperature >= 0 && Number.isFinite(temperature))) {
    throw new UsageError(`temperature: expected a number of at least 0, got ${temperature}`, {
      hint: "1 draws as the model predicts, less prefers the probable words, 0 always takes the first",
    });
  }
  const { vocabulary } = source;
  const read = encodePrompt(vocabulary, prompt, options.onUnknown);
  const unknown = vocabulary.id(unknownWord);
  const excluded = allowUnknown || unknown === undefined ? [] : [unknown];
  return draws(source, read, excluded, { words, temperature, topK, seed });
}

async function* draws(
  source: GenerationSource,
  read: readonly number[],
  excluded: readonly number[],
  { words, seed, ...how }: DrawOptions & { readonly words: number; readonly seed: number },
): AsyncGenerator<GeneratedWord, void, undefined> {
  const { vocabulary } = source;
  const program = await source.program(1);
  const key = keyOf(seed, "generate");
  let logits = new Float64Array(0);
  const step = async (token: number): Promise<void> => {
    const out = await program.run({ tokens: Int32Array.of(token) });
    // A model may have rows for more words than its text had; none of them is a word.
    logits = Float64Array.from((out.logits as Float32Array).subarray(0, vocabulary.size));
    if (logits.every(Number.isFinite)) return;
    throw new DataError(
      `the model's numbers are not finite any more at ${JSON.stringify(vocabulary.word(token))}`,
      { hint: "its weights are too large or damaged; use another checkpoint" },
    );
  };
  for (const token of read) await step(token);
  for (let i = 0; i < words; i++) {
    const id = drawWord(logits, excluded, how, uniform(key, i));
    yield { word: vocabulary.word(id), probability: softmaxAt(logits, id) };
    if (i + 1 < words) await step(id);
  }
}

/** The number of a word drawn with a uniform number in [0, 1). Among equally probable words the first come first. */
export function drawWord(
  logits: Float64Array,
  excluded: readonly number[],
  { temperature, topK }: DrawOptions,
  u: number,
): number {
  const ids = Array.from(logits.keys()).filter((id) => !excluded.includes(id));
  if (ids.length === 0) throw new UsageError("the vocabulary has no word that may be drawn");
  const count = temperature === 0 ? 1 : topK === 0 ? ids.length : Math.min(topK, ids.length);
  const order = count === ids.length ? ids : ids.sort((a, b) => logits[b]! - logits[a]! || a - b);
  const kept = order.slice(0, count);
  if (count === 1) return kept[0]!;
  const top = kept.reduce((most, id) => Math.max(most, logits[id]!), Number.NEGATIVE_INFINITY);
  const shares = kept.map((id) => Math.exp((logits[id]! - top) / temperature));
  let left = u * shares.reduce((a, b) => a + b, 0);
  const found = shares.findIndex((share) => (left -= share) < 0);
  // Rounding may leave a crumb behind the last word.
  return kept[found < 0 ? count - 1 : found]!;
}

function softmaxAt(logits: Float64Array, id: number): number {
  const top = logits.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  return Math.exp(logits[id]! - top) / logits.reduce((sum, logit) => sum + Math.exp(logit - top), 0);
}

/** Numbers of a prompt's words behind the `<eos>` of the line before it. */
export function encodePrompt(
  vocabulary: Vocabulary,
  prompt: string,
  onUnknown: GenerateOptions["onUnknown"],
): number[] {
  const words = tokensOf(prompt).map((token) => (token === lineEnd ? eosWord : token));
  const missing = [...new Set(words.filter((word) => vocabulary.id(word) === undefined))];
  const unknown = vocabulary.id(unknownWord);
  if (missing.length > 0) {
    if (unknown === undefined) throw new UnknownWordError(missing, vocabulary.words);
    onUnknown?.(missing);
  }
  const eos = vocabulary.id(eosWord);
  if (eos === undefined && words.length === 0) {
    throw new UsageError(`the vocabulary has no ${eosWord} to begin with`, { hint: "give a prompt" });
  }
  return [...(eos === undefined ? [] : [eos]), ...words.map((word) => vocabulary.id(word) ?? unknown!)];
}

function checkWhole(name: string, value: number, least: number): void {
  if (Number.isSafeInteger(value) && value >= least) return;
  throw new UsageError(`${name}: expected an integer of at least ${least}, got ${value}`);
}
