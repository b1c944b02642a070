/** Text as people type it becomes the sentences of a story: statements, and questions with or without their answers. */
import { UsageError } from "../errors.ts";
import { wordsOf } from "./text.ts";

/** A sentence of a line, its mark ("." or "?") the last word. */
export interface Sentence {
  readonly kind: "statement" | "question";
  readonly words: readonly string[];
  /** Whether it had no "?" and is a question by its first word. */
  readonly isTaken: boolean;
}

/** One line of a story. */
export interface StoryLine {
  readonly sentences: readonly Sentence[];
  /** The true answer, which a line may give behind a tab. */
  readonly answer: string | undefined;
  /** The number that a line of a bAbI file begins with; 1 begins a story. */
  readonly number: string | undefined;
}

/** A line as `fwm ask` and bAbI's files have it: "3 Where is Mary?<TAB>kitchen<TAB>1", where all but the words may be missing. */
export function parseLine(line: string): StoryLine {
  const [, number, rest] = /^(?:(\d+)\s+)?(.*)$/s.exec(line.trim())!;
  const [text = "", answer] = rest!.split("\t").map((field) => field.trim());
  return { sentences: sentencesOf(text), answer: answer ? answer.toLowerCase() : undefined, number };
}

/** Words that begin questions, and no statement of bAbI. */
const questionWords: ReadonlySet<string> = new Set(
  "where what who whom whose which when why how is are was were do does did can".split(" "),
);

/** The sentences of a line as people type them: "??" and "?!" are "?", "!" is ".", and commas between words go. */
export function sentencesOf(text: string): Sentence[] {
  const marked = text
    .replace(/[?!.]*\?[?!.]*/g, "? ")
    .replace(/[!.]+/g, ". ")
    .replace(/[,;]+(?=\s|$)/g, "");
  const sentences: Sentence[] = [];
  let words: string[] = [];
  const end = (mark: string): void => {
    if (words.length === 0) {
      if (mark === "?")
        throw new UsageError('a "?" alone is not a question', { hint: "for example: Where is Mary?" });
      return;
    }
    const isTaken = mark !== "?" && questionWords.has(words[0]!);
    const kind = mark === "?" || isTaken ? "question" : "statement";
    sentences.push({ kind, words: [...words, kind === "question" ? "?" : "."], isTaken });
    words = [];
  };
  for (const word of wordsOf(marked)) {
    if (word === "." || word === "?") end(word);
    else words.push(word);
  }
  end(".");
  return sentences;
}
