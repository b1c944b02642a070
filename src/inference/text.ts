/** What a person types becomes the words a model knows: lower case, "." and "?" as words of their own. */
import type { Vocabulary } from "../data/vocabulary.ts";
import { nearest, UsageError } from "../errors.ts";

/** The words of a text: lower case, split at blanks, "." and "?" apart. */
export function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[.?]|[^\s.?]+/g) ?? [];
}

/** Words that may be typed: no marks such as `<eos>`. */
export function plainWords({ words }: Pick<Vocabulary, "words">): string[] {
  return words.filter((word) => !word.startsWith("<"));
}

/** Numbers of the words of a text. Every unknown word is named with the nearest known ones, in a `UsageError`. */
export function encodeText(vocabulary: Vocabulary, text: string | readonly string[]): number[] {
  const words = typeof text === "string" ? wordsOf(text) : text;
  const known = new Set(plainWords(vocabulary));
  const unknown = [...new Set(words.filter((word) => !known.has(word)))];
  if (unknown.length > 0) throw new UnknownWordError(unknown, [...known]);
  return words.map((word) => vocabulary.id(word)!);
}

/** Words that a model's vocabulary does not have. */
export class UnknownWordError extends UsageError {
  /** Each unknown word with the nearest known ones. */
  readonly suggestions: ReadonlyMap<string, readonly string[]>;

  constructor(unknown: readonly string[], known: readonly string[]) {
    const suggestions = new Map(unknown.map((word) => [word, nearest(word, known)]));
    const lines = [...suggestions].map(
      ([word, close]) =>
        [word, close.length > 0 ? `nearest: ${close.join(", ")}` : "nothing near it is known"] as const,
    );
    super(
      `the model does not know ${unknown.map((word) => JSON.stringify(word)).join(", ")}`,
      Object.fromEntries(lines),
    );
    this.suggestions = suggestions;
  }
}
