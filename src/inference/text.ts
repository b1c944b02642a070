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

/** How many unknown words are named, with suggestions; a text in another language has thousands. */
const mostNamed = 10;

/** Words that a model's vocabulary does not have. */
export class UnknownWordError extends UsageError {
  /** The first unknown words, ten at most, each with the nearest known ones. */
  readonly suggestions: ReadonlyMap<string, readonly string[]>;

  constructor(unknown: readonly string[], known: readonly string[]) {
    const named = unknown.slice(0, mostNamed);
    const suggestions = new Map(named.map((word) => [word, nearest(word, known)]));
    const lines = [...suggestions].map(
      ([word, close]) =>
        [
          shortened(word),
          close.length > 0 ? `nearest: ${close.join(", ")}` : "nothing near it is known",
        ] as const,
    );
    const more = unknown.length - named.length;
    super(
      `the model does not know ${named.map((word) => JSON.stringify(shortened(word))).join(", ")}` +
        (more > 0 ? ` and ${more} more words` : ""),
      Object.fromEntries(lines),
    );
    this.suggestions = suggestions;
  }
}

function shortened(word: string): string {
  return word.length > 40 ? `${word.slice(0, 40)}…` : word;
}
