/**
 * The symbolic reader over the files of a local copy.
 */

import { parseStories } from "../../babi/format.ts";
import { type Solution, solveStories } from "../../babi/reader/solve.ts";
import { DataError } from "../../errors.ts";
import { decodeText, type SplitName, type Variant } from "../catbabi.ts";
import { readCopy } from "./folders.ts";

/** Which files are solved. */
export interface SolveOptions {
  readonly variant: Variant;
  readonly splits: readonly SplitName[];
  readonly tasks: readonly number[];
  /** Called after each file with the number of files done. */
  readonly onFile?: (done: number) => void;
}

/** Answers every question of the chosen files; each file's last story counts too. */
export async function solveFiles(from: string, options: SolveOptions): Promise<Solution> {
  const { files } = await readCopy(from, options.variant);
  const whole: Solution = { questions: 0, correct: 0, perTask: {}, exceptions: [] };
  let done = 0;
  for (const split of options.splits) {
    for (const task of options.tasks) {
      const file = files.get(`qa${task}_${split}.txt`);
      if (file !== undefined) {
        const stories = parseStories(decodeText(file.bytes, file.path), { file: file.path, task });
        addSolution(whole, solveStories(stories));
      }
      options.onFile?.(++done);
      // The reader holds the thread; a turn of the event loop lets the bar and ^C through.
      await new Promise((turn) => setImmediate(turn));
    }
  }
  if (whole.questions === 0) {
    throw new DataError(`${from}: no questions in ${options.splits.join(" and ")} of the chosen tasks`, {
      hint: "choose other tasks or another --split",
    });
  }
  return whole;
}

function addSolution(whole: Solution, part: Solution): void {
  whole.questions += part.questions;
  whole.correct += part.correct;
  whole.exceptions.push(...part.exceptions);
  for (const [task, { questions, correct }] of Object.entries(part.perTask)) {
    const score = (whole.perTask[Number(task)] ??= { questions: 0, correct: 0 });
    score.questions += questions;
    score.correct += correct;
  }
}
