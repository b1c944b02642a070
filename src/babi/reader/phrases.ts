/**
 * Walking along the words of a sentence: take a phrase, or one of several, longest first, or say what was expected.
 */

/** Why a sentence or an event could not be understood; the reader adds where it stands. */
export class NotUnderstood extends Error {
  override readonly name = "NotUnderstood";
}

/** A walk along the words of one sentence. */
export class Phrases {
  private readonly words: readonly string[];
  private next = 0;

  constructor(words: readonly string[]) {
    this.words = words;
  }

  /** Whether `phrase` comes next. */
  is(phrase: string, from = this.next): boolean {
    return phrase.split(" ").every((word, index) => this.words[from + index] === word);
  }

  /** Whether one of `phrases` comes next. */
  isOneOf(phrases: readonly string[]): boolean {
    return phrases.some((phrase) => this.is(phrase));
  }

  /** Whether `phrase` comes after the next word. */
  followed(phrase: string): boolean {
    return this.is(phrase, this.next + 1);
  }

  /** Takes `phrase` if it comes next. */
  has(phrase: string): boolean {
    return this.take([phrase]) !== null;
  }

  /** Takes the longest of `phrases` that comes next. */
  take(phrases: readonly string[]): string | null {
    let longest: string | null = null;
    for (const phrase of phrases) {
      if (phrase.length > (longest?.length ?? 0) && this.is(phrase)) longest = phrase;
    }
    if (longest !== null) this.next += longest.split(" ").length;
    return longest;
  }

  /** Takes one of `phrases`, which must come next. */
  one(what: string, phrases: readonly string[]): string {
    const found = this.take(phrases);
    if (found === null) throw this.unexpected(what);
    return found;
  }

  /** Takes `phrase`, which must come next. */
  need(phrase: string): void {
    if (!this.has(phrase)) throw this.unexpected(`'${phrase}'`);
  }

  /** All words must have been taken. */
  end(): void {
    if (this.next < this.words.length) throw this.unexpected("the end of the sentence");
  }

  unexpected(expected: string): NotUnderstood {
    const found = this.words[this.next];
    const after = this.words.slice(0, this.next).join(" ");
    return new NotUnderstood(
      `expected ${expected}${after === "" ? "" : ` after '${after}'`}, found ${found === undefined ? "the end" : `'${found}'`}`,
    );
  }
}
