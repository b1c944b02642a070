/** Stories of the generator as the pages show them. */
import { taskNames } from "../src/babi/format.ts";
import { generateStory, tasks } from "../src/babi/generator/generate.ts";

/** A story to begin with: lines as people write them, the question last with its answer behind a tab. */
export interface Example {
  readonly task: number;
  readonly index: number;
  readonly story: string;
}

/** The tasks by number and name. */
export const taskList = tasks.map((task) => ({ task, name: taskNames[task - 1]! }));

/** Seed of examples: none of these stories is trained on. */
const exampleSeed = 7_000_000;

/** Story `index` of a task, up to its first question, or to a later one if that stands too near the beginning. */
export function exampleOf(task: number, index: number): Example {
  const { lines } = generateStory({ task, seed: exampleSeed, index });
  const questions = lines.flatMap((line, at) => (line.kind === "question" ? [at] : []));
  const end = questions.find((at) => at >= 4) ?? questions.at(-1)!;
  const shown = lines.slice(0, end + 1).filter((line, at) => line.kind === "statement" || at === end);
  const story = shown.map((line) => {
    const text = sentence(line.words);
    return line.kind === "statement" ? `${text}.` : `${text}?\t${line.answer}`;
  });
  return { task, index, story: story.join("\n") };
}

function sentence(words: readonly string[]): string {
  const text = words.join(" ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** The words of a line and the mark after them, as the model counts them; what a tab separates is no part of it. */
export function replaceWord(story: string, line: number, nth: number, word: string): string {
  const lines = story.split("\n");
  const [text = "", ...rest] = (lines[line] ?? "").split("\t");
  let seen = -1;
  const changed = text.replace(/[.?!]+|[^\s.?!]+/g, (found) => (++seen === nth ? word : found));
  lines[line] = [changed, ...rest].join("\t");
  return lines.join("\n");
}
