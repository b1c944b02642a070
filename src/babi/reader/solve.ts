/**
 * Solving whole files: every question is answered by the reader and compared with the file's answer.
 */
import { DataError } from "../../errors.ts";
import type { Story } from "../format.ts";
import { StoryReader } from "./reader.ts";

/** How many questions there are, and how many the reader answered as the file does. */
export interface AnswerCounts {
  questions: number;
  correct: number;
}

/** A question the reader answered differently from the file, or could not answer. */
export interface Exception {
  readonly task: number;
  /** `file:line`, or `line N of story M` for stories that come from no file. */
  readonly where: string;
  readonly question: string;
  readonly expected: string;
  /** The reader's answer; `null` when it gave none. */
  readonly got: string | null;
  /** Why there is no answer, or none that agrees. */
  readonly reason: string;
}

/** What came of solving stories. */
export interface Solution extends AnswerCounts {
  perTask: Record<number, AnswerCounts>;
  exceptions: Exception[];
}

/**
 * Answers every question of the stories. A question answered wrongly or not at all is counted and listed under
 * `exceptions`; so are the remaining questions of a story with a statement the reader cannot understand. With
 * `strict`, such a statement is thrown as the `DataError` it is.
 */
export function solveStories(stories: readonly Story[], options: { strict?: boolean } = {}): Solution {
  const solution: Solution = { questions: 0, correct: 0, perTask: {}, exceptions: [] };
  stories.forEach((story, index) => {
    solveStory(story, index, solution, options.strict ?? false);
  });
  return solution;
}

function solveStory(story: Story, index: number, solution: Solution, strict: boolean): void {
  const reader = new StoryReader(story.source);
  const score = (solution.perTask[story.task] ??= { questions: 0, correct: 0 });
  let broken: string | null = null;
  for (const line of story.lines) {
    let got: string | null = null;
    let reason = broken;
    try {
      const answer = broken === null ? reader.read(line) : null;
      got = answer?.answer ?? null;
      if (answer?.alternatives?.includes(line.kind === "question" ? line.answer : "")) {
        reason = `ambiguous: the story supports ${[...answer.alternatives, answer.answer].join(" and ")}; the last one was taken`;
      }
    } catch (error) {
      if (strict || !(error instanceof DataError)) throw error;
      reason = error.message;
      if (line.kind === "statement") broken = error.message;
    }
    if (line.kind === "statement") continue;
    score.questions++;
    solution.questions++;
    if (got === line.answer) {
      score.correct++;
      solution.correct++;
      continue;
    }
    solution.exceptions.push({
      task: story.task,
      where: story.source
        ? `${story.source.file}:${story.source.line + line.id - 1}`
        : `line ${line.id} of story ${index + 1}`,
      question: line.words.join(" "),
      expected: line.answer,
      got,
      reason: reason ?? "the reader draws another conclusion from the story",
    });
  }
}
