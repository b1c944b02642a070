/**
 * bAbI's file format: lines of text become stories, and stories become the same lines again.
 *
 *   1 Mary moved to the bathroom.                 a statement: ID, words, "."
 *   3 Where is Mary? <TAB>bathroom<TAB>1          a question: ID, words, "?", answer, supporting IDs
 *
 * A story begins wherever the ID is 1 again. Words are kept in lower case; what the files capitalise (the
 * first word and proper names, except names in the questions of tasks 15 and 20) follows from the task and
 * the word, so `formatStories(parseStories(text))` gives back every real file byte for byte.
 */
import { DataError } from "../errors.ts";

/** The names of bAbI's tasks, task 1 first. */
export const taskNames: readonly string[] = [
  "single supporting fact",
  "two supporting facts",
  "three supporting facts",
  "two-argument relations",
  "three-argument relations",
  "yes/no questions",
  "counting",
  "lists and sets",
  "simple negation",
  "indefinite knowledge",
  "basic coreference",
  "conjunction",
  "compound coreference",
  "time reasoning",
  "basic deduction",
  "basic induction",
  "positional reasoning",
  "size reasoning",
  "path finding",
  "agent's motivations",
];

/** One sentence that says something about the story's world; lower-case words, without the ".". */
export interface Statement {
  readonly kind: "statement";
  readonly id: number;
  readonly words: readonly string[];
}

/** One question with its answer (always one token: `n,w`, `apple,milk`); words without the "?". */
export interface Question {
  readonly kind: "question";
  readonly id: number;
  readonly words: readonly string[];
  readonly answer: string;
  /** IDs of the statements the answer follows from, in the order of the file. */
  readonly supports: readonly number[];
}

/** One line of a story. */
export type Line = Statement | Question;

/** Where a story was read: its file, and the number of its first line there, counted from 1. */
export interface SourceLocation {
  readonly file: string;
  readonly line: number;
}

/** A story of one of the 20 tasks. `source` is there when it was read from a file. */
export interface Story {
  readonly task: number;
  readonly lines: readonly Line[];
  readonly source?: SourceLocation;
}

/** The people and animals that have names, in lower case; the files write them with a capital letter. */
const properNames: ReadonlySet<string> = new Set(
  (
    "antoine bernhard bill brian daniel emily fred gertrude greg jason jeff jessica john julie julius " +
    "lily mary sandra sumit winona yann"
  ).split(" "),
);

// The files of tasks 15 and 20 write names in questions with a small letter.
const smallNamesInQuestions: ReadonlySet<number> = new Set([15, 20]);
// The files of these tasks have no blank between "?" and the tab.
const noBlankAfterMark: ReadonlySet<number> = new Set([4, 15, 16, 17, 18, 19, 20]);

/**
 * What stories are made of: bAbI's words, which are letters, and its supporting IDs; or any words, where a question may
 * have no supporting IDs.
 */
export type Dialect = "babi" | "any";

/** Reads every story of a bAbI file, the last one too. A malformed line throws a `DataError` that names it. */
export function parseStories(
  text: string,
  where: { file: string; task: number },
  dialect: Dialect = "babi",
): Story[] {
  const stories: Story[] = [];
  const rows = text.split("\n");
  if (rows.at(-1) === "") rows.pop();
  let lines: Line[] = [];
  let firstRow = 1;
  const finish = (nextRow: number) => {
    if (lines.length > 0)
      stories.push({ task: where.task, lines, source: { file: where.file, line: firstRow } });
    lines = [];
    firstRow = nextRow;
  };
  rows.forEach((row, index) => {
    const number = index + 1;
    const line = parseLine(
      row.endsWith("\r") ? row.slice(0, -1) : row,
      { file: where.file, line: number },
      dialect,
    );
    if (line.id === 1) finish(number);
    else if (line.id !== lines.length + 1) {
      throw malformed(
        `expected ID 1 (a new story) or ${lines.length + 1}, got ${line.id}`,
        { file: where.file, line: number },
        row,
      );
    }
    lines.push(line);
  });
  finish(rows.length + 1);
  return stories;
}

/** Reads one line of a bAbI file; `where` is only used to say where a malformed line stands. */
function parseLine(text: string, where: SourceLocation, dialect: Dialect): Line {
  const match = /^([1-9][0-9]{0,5}) (.*)$/.exec(text.toLowerCase());
  if (match === null) throw malformed("expected an ID, a blank and a sentence", where, text);
  const id = Number(match[1]);
  const fields = match[2]!.split("\t");
  const sentence = fields[0]!.trimEnd();
  if (fields.length === 1) {
    if (!sentence.endsWith("."))
      throw malformed("a statement ends in '.', a question has an answer", where, text);
    return { kind: "statement", id, words: wordsOf(sentence.slice(0, -1), where, text, dialect) };
  }
  if (fields.length !== 3 && !(dialect === "any" && fields.length === 2)) {
    throw malformed("a question is 'ID words?', a tab, the answer, a tab, supporting IDs", where, text);
  }
  if (!sentence.endsWith("?")) throw malformed("a line with an answer must end in '?'", where, text);
  const answer = fields[1]!.trim();
  const oneToken = dialect === "babi" ? /^[a-z]+(,[a-z]+)*$/ : anyWord;
  if (!oneToken.test(answer)) throw malformed("the answer is not one token", where, text);
  const supports = (fields[2] ?? "")
    .trim()
    .split(" ")
    .filter((field) => dialect === "babi" || field !== "")
    .map((field) => Number(/^[1-9][0-9]*$/.test(field) ? field : Number.NaN));
  if (supports.some((support) => !(support < id))) {
    throw malformed("supporting IDs must be numbers of earlier lines", where, text);
  }
  const words = wordsOf(sentence.slice(0, -1), where, text, dialect);
  return { kind: "question", id, words, answer, supports };
}

/** Any word: nothing that ends a sentence, and no mark such as <eos>. */
const anyWord = /^[^\s.?!<][^\s.?!]*$/u;

function wordsOf(sentence: string, where: SourceLocation, text: string, dialect: Dialect): string[] {
  if (dialect === "any") {
    const words = sentence.trim().split(/\s+/u);
    const bad = words.find((word) => !anyWord.test(word) || /[,;]$/.test(word));
    if (bad === undefined) return words;
    throw malformed(
      bad === ""
        ? "a sentence has no words"
        : `${JSON.stringify(bad)}: a word has no ".", "?" or "!", does not begin with "<" or end in "," or ";"`,
      where,
      text,
    );
  }
  if (!/^[a-z]+(?: [a-z]+)*$/.test(sentence)) {
    throw malformed("a sentence is words of letters with one blank between them", where, text);
  }
  return sentence.split(" ");
}

function malformed(what: string, where: SourceLocation, text: string): DataError {
  return new DataError(`${where.file}:${where.line}: not a bAbI line: ${what}`, {
    line: JSON.stringify(text.length > 200 ? text.slice(0, 200) + "…" : text),
    hint: "each line is 'ID text.' or 'ID text?<TAB>answer<TAB>supporting IDs'; get the original file again",
  });
}

/** Writes stories in the files' own form, with a line end after every line. */
export function formatStories(stories: readonly Story[]): string {
  const rows: string[] = [];
  for (const story of stories) {
    for (const line of story.lines) rows.push(formatLine(line, story.task));
  }
  return rows.length === 0 ? "" : rows.join("\n") + "\n";
}

/** Writes one line in the form of the files of `task`, without a line end. */
function formatLine(line: Line, task: number): string {
  if (line.kind === "statement") return `${line.id} ${sentence(line.words, true)}.`;
  const mark = noBlankAfterMark.has(task) ? "?" : "? ";
  const asked = sentence(line.words, !smallNamesInQuestions.has(task));
  return `${line.id} ${asked}${mark}\t${written(line.answer)}\t${line.supports.join(" ")}`;
}

function sentence(words: readonly string[], namesAreCapital: boolean): string {
  const [first = "", ...rest] = words;
  return [capital(first), ...(namesAreCapital ? rest.map(written) : rest)].join(" ");
}

function written(word: string): string {
  return properNames.has(word) ? capital(word) : word;
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

/** Tokens of a statement that the answer at a token follows from: the first, and the first after it. */
export interface Fact {
  readonly answer: number;
  readonly from: number;
  readonly to: number;
}

/**
 * The story as a model reads it: words, ".", "?" and each answer as one token; `answers` marks the answers, `facts` says
 * what they follow from.
 */
export function storyTokens(story: Story): { tokens: string[]; answers: boolean[]; facts: Fact[] } {
  const tokens: string[] = [];
  const answers: boolean[] = [];
  const facts: Fact[] = [];
  const statements = new Map<number, Pick<Fact, "from" | "to">>();
  for (const line of story.lines) {
    const from = tokens.length;
    for (const word of line.words) {
      tokens.push(word);
      answers.push(false);
    }
    tokens.push(line.kind === "statement" ? "." : "?");
    answers.push(false);
    if (line.kind === "statement") statements.set(line.id, { from, to: tokens.length });
    else {
      for (const id of new Set(line.supports)) {
        const statement = statements.get(id);
        if (statement) facts.push({ answer: tokens.length, ...statement });
      }
      tokens.push(line.answer);
      answers.push(true);
    }
  }
  return { tokens, answers, facts };
}
