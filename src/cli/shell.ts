/** Command lines that messages print, to be pasted into a shell. */

/** A command line that a shell reads back as these words. */
export function shellLine(...words: readonly string[]): string {
  return words
    .map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`))
    .join(" ");
}
