/** A story of text under other names. */
import type { Line, Story } from "../../src/babi/format.ts";
import { renameToken } from "../../src/babi/rename.ts";

/** The story with its words, and its answers, renamed. */
export function renamed(story: Story, names: ReadonlyMap<string, string>): Story {
  const word = (token: string): string => renameToken(token, names);
  const lines = story.lines.map((line): Line => {
    const words = line.words.map(word);
    return line.kind === "question" ? { ...line, words, answer: word(line.answer) } : { ...line, words };
  });
  return { ...story, lines };
}
