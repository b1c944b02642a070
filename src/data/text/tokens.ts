/** How text is split into tokens: what stands between white space, in any script, and the end of each line. */

/** The end of a line among tokens; no word contains it. */
export const lineEnd = "\n";

/** The word that ends every line. */
export const eosWord = "<eos>";
/** The word for all words that a vocabulary does not have. */
export const unknownWord = "<unk>";

// Not \s, which takes U+FEFF for white space: WikiText-2 has it as a word.
const token = /[^\p{White_Space}]+|\n/gu;

/** The tokens of a text: its words, and `lineEnd` at the end of each line. */
export function tokensOf(text: string): string[] {
  return text.match(token) ?? [];
}
