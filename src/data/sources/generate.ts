/**
 * New task files from the generator, in bAbI's own format.
 */
import { access, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { formatStories } from "../../babi/format.ts";
import { generateStories } from "../../babi/generator/generate.ts";
import { UsageError } from "../../errors.ts";
import { writeFileAtomically } from "../../store/atomic.ts";
import { type SplitName, splitNames } from "../catbabi.ts";

/** What is written, and where. */
export interface GenerateOptions {
  readonly tasks: readonly number[];
  /** Stories per task. */
  readonly stories: number;
  readonly seed: number;
  readonly split: SplitName;
  readonly out: string;
  /** Called after each file with the number of files done. */
  readonly onFile?: (done: number) => void;
}

/** One file that was written. */
export interface GeneratedFile {
  readonly name: string;
  readonly task: number;
  readonly stories: number;
  readonly questions: number;
  readonly bytes: number;
}

// Each split draws from its own stretch of the stream, so that no story of one stands in another.
const storiesApart = 1_000_000_000;

/** Writes `qa<task>_<split>.txt` for each task. A file that is already there is an error, and nothing is written. */
export async function generateFiles(options: GenerateOptions): Promise<GeneratedFile[]> {
  const { tasks, stories: count, seed, split, out, onFile } = options;
  if (count > storiesApart) throw new UsageError(`--stories: at most ${storiesApart} per task, not ${count}`);
  const nameOf = (task: number) => `qa${task}_${split}.txt`;
  for (const task of tasks) await refuseExisting(join(out, nameOf(task)));
  await mkdir(out, { recursive: true });
  const first = splitNames.indexOf(split) * storiesApart;
  const written: GeneratedFile[] = [];
  for (const task of tasks) {
    const stories = generateStories({ task, seed, count, first });
    const text = formatStories(stories);
    await writeFileAtomically(join(out, nameOf(task)), text);
    const questions = stories.reduce(
      (sum, { lines }) => sum + lines.filter(({ kind }) => kind === "question").length,
      0,
    );
    written.push({ name: nameOf(task), task, stories: count, questions, bytes: Buffer.byteLength(text) });
    onFile?.(written.length);
  }
  return written;
}

async function refuseExisting(path: string): Promise<void> {
  const exists = await access(path).then(
    () => true,
    () => false,
  );
  if (exists) throw new UsageError(`${path}: the file exists`, { hint: "give another folder with --out" });
}
