/**
 * From text to prepared text in two passes: count the words, then write their ids. Only the vocabulary is held in
 * memory, never the text.
 */
import { resolve } from "node:path";
import { DataError } from "../../errors.ts";
import { type SplitName, splitNames } from "../catbabi.ts";
import { checkReplaceable } from "../sources/replace.ts";
import { readTextHeader, readVocabulary, type TextHeader, textHeaderName, writeText } from "./prepared.ts";
import type { FoundText } from "./sources.ts";
import { eosWord, lineEnd, unknownWord } from "./tokens.ts";
import { type ReadOptions, readPieces, type TextPart } from "./words.ts";

/** Which words get an id of their own. */
export type VocabularyRule =
  /** Every word of every split, as for the published corpora, whose rare words are `<unk>` already. */
  | { readonly kind: "all" }
  /** Words of the training split that occur at least `minCount` times, the `maxWords` most frequent of them. */
  | { readonly kind: "train"; readonly minCount: number; readonly maxWords: number }
  /** The vocabulary of another prepared folder, so that a model trained on it can read this text. */
  | { readonly kind: "of"; readonly folder: string };

// More would not fit a Map, and no model has a row for each.
const mostWords = 1 << 23;

/** Counts, encodes and writes text that was found. Nothing is left behind when something is wrong with it. */
export async function prepareText(
  path: string,
  dataset: TextHeader["dataset"],
  found: FoundText,
  rule: VocabularyRule,
  options: ReadOptions = {},
): Promise<TextHeader> {
  const place = resolve(path);
  await checkReplaceable(place, textHeaderName);
  const known = rule.kind === "of" ? await vocabularyOf(rule.folder) : undefined;
  const counts = new Map<string, number>();
  const totals = {} as Record<SplitName, { tokens: number; lines: number }>;
  for (const split of splitNames) {
    const isCounted = rule.kind === "all" || (rule.kind === "train" && split === "train");
    totals[split] = await countSplit(split, found.splits[split], isCounted ? counts : undefined, options);
  }
  const vocabulary = known ?? chooseWords(rule as Exclude<VocabularyRule, { kind: "of" }>, counts);
  const ids = new Map([...vocabulary.keys()].map((word, id) => [word, id]));
  const content = (split: SplitName) => ({
    ...totals[split],
    ids: () => encodeSplit(found.splits[split], ids, totals[split].tokens, options.signal),
  });
  return writeText(place, { dataset, origin: found.origin, files: [...found.files] }, vocabulary, {
    train: content("train"),
    valid: content("valid"),
    test: content("test"),
  });
}

async function countSplit(
  split: SplitName,
  parts: readonly TextPart[],
  counts: Map<string, number> | undefined,
  options: ReadOptions,
): Promise<{ tokens: number; lines: number }> {
  let [tokens, lines] = [0, 0];
  for (const part of parts) {
    for await (const piece of readPieces(part, options)) {
      tokens += piece.tokens.length;
      for (const token of piece.tokens) {
        if (token === lineEnd) lines++;
        counts?.set(token, (counts.get(token) ?? 0) + 1);
      }
      if (counts && counts.size > mostWords) {
        throw new DataError(`${await piece.where(0)}: more than ${mostWords} different words`, {
          hint: "is this text, with white space between its words?",
        });
      }
    }
  }
  if (tokens === lines) {
    throw new DataError(`${parts[0]!.path}: the ${split} split has no words`, { lines });
  }
  return { tokens, lines };
}

/** Words and their counts in the order of their ids; the line ends counted are `<eos>`. */
function chooseWords(
  rule: Exclude<VocabularyRule, { kind: "of" }>,
  counts: ReadonlyMap<string, number>,
): Map<string, number> {
  const chosen = new Map<string, number>();
  const increase = (word: string, by: number) => chosen.set(word, (chosen.get(word) ?? 0) + by);
  if (rule.kind === "all") {
    for (const [word, times] of counts) increase(word === lineEnd ? eosWord : word, times);
    return chosen;
  }
  increase(unknownWord, 0);
  increase(eosWord, 0);
  const frequent = [...counts.keys()]
    .filter((word) => !isSpecial(word) && counts.get(word)! >= rule.minCount)
    .sort((a, b) => counts.get(b)! - counts.get(a)!) // stable: of equal ones the earlier stay
    .slice(0, Math.max(0, rule.maxWords - chosen.size));
  const kept = new Set(frequent);
  for (const [word, times] of counts) {
    increase(word === lineEnd ? eosWord : kept.has(word) || isSpecial(word) ? word : unknownWord, times);
  }
  return chosen;
}

function isSpecial(word: string): boolean {
  return word === lineEnd || word === eosWord || word === unknownWord;
}

async function vocabularyOf(folder: string): Promise<Map<string, number>> {
  const { words, counts } = await readVocabulary(folder, await readTextHeader(folder));
  return new Map(words.map((word, id) => [word, counts[id]!]));
}

async function* encodeSplit(
  parts: readonly TextPart[],
  ids: ReadonlyMap<string, number>,
  expected: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<ArrayLike<number>, number> {
  const [eos, unknown] = [ids.get(eosWord), ids.get(unknownWord)];
  let [tokens, missing] = [0, 0];
  for (const part of parts) {
    for await (const piece of readPieces(part, { signal })) {
      const encoded = new Int32Array(piece.tokens.length);
      for (const [i, token] of piece.tokens.entries()) {
        const id = (token === lineEnd ? eos : ids.get(token)) ?? unknown;
        if (id === undefined) {
          throw new DataError(
            `${await piece.where(i)}: the vocabulary has no word ${JSON.stringify(token)}, and no ${unknownWord}`,
          );
        }
        if (id === unknown) missing++;
        encoded[i] = id;
      }
      tokens += encoded.length;
      yield encoded;
    }
  }
  if (tokens !== expected) throw new DataError(`${parts[0]!.path}: the text changed while it was prepared`);
  return missing;
}
