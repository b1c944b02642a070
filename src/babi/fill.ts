/**
 * Filling a gap honestly: a training file that is missing or partial is completed with generated stories, and
 * the result says how many are not real.
 */
import type { Story } from "./format.ts";
import { generateStory } from "./generator/generate.ts";

/** Stories and questions of a file. */
export interface FileSize {
  readonly stories: number;
  readonly questions: number;
}

/** What each `qaN_train.txt` of `en-valid-10k` holds, its last story included. */
export const officialTrainingSize: Readonly<Record<number, FileSize>> = {
  ...Object.fromEntries(
    [1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14].map((task) => [task, { stories: 1800, questions: 9000 }]),
  ),
  ...Object.fromEntries([4, 16, 19].map((task) => [task, { stories: 9000, questions: 9000 }])),
  15: { stories: 2250, questions: 9000 },
  17: { stories: 1125, questions: 9000 },
  18: { stories: 1781, questions: 8996 },
  20: { stories: 840, questions: 9002 },
};

/** A completed training set, and what of it was generated: every report of a run that uses it must say so. */
export interface FilledTask {
  readonly task: number;
  /** The real stories, then the generated ones. */
  readonly stories: readonly Story[];
  readonly realStories: number;
  readonly generatedStories: number;
  readonly realQuestions: number;
  readonly generatedQuestions: number;
  /** The seed of the generated stories. */
  readonly seed: number;
}

/**
 * Completes a task to `officialStories` with generated stories after those at hand. `officialQuestions` ends
 * it earlier should the questions be complete before; in tasks 18 and 20, where stories differ in their number
 * of questions, the last story may go beyond it. (Before the rule that drops a file's last story.)
 */
export function fillMissing(
  task: number,
  officialStories: number,
  officialQuestions: number,
  have: readonly Story[],
  seed: number,
): FilledTask {
  const stories = [...have];
  const realQuestions = have.reduce((sum, story) => sum + questionsOf(story), 0);
  let questions = realQuestions;
  while (stories.length < officialStories && questions < officialQuestions) {
    const story = generateStory({ task, seed, index: stories.length });
    stories.push(story);
    questions += questionsOf(story);
  }
  return {
    task,
    stories,
    realStories: have.length,
    generatedStories: stories.length - have.length,
    realQuestions,
    generatedQuestions: questions - realQuestions,
    seed,
  };
}

/** The sentence a report or model card carries for a filled task; empty when nothing was generated. */
export function describeFilling(filled: FilledTask): string {
  if (filled.generatedStories === 0) return "";
  return (
    `task ${filled.task}: ${filled.generatedStories} of ${filled.stories.length} training stories ` +
    `(${filled.generatedQuestions} of ${filled.realQuestions + filled.generatedQuestions} questions) ` +
    `were generated with seed ${filled.seed}, not taken from the bAbI files`
  );
}

function questionsOf(story: Story): number {
  return story.lines.filter((line) => line.kind === "question").length;
}
