/**
 * The real bAbI files: archives in the folder that the environment variable FWM_TEST_DATA names, or in
 * `../shared/data` beside the repository. Tests that need them are skipped, with this reason, where they are absent.
 */
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseStories, type Story } from "../../src/babi/format.ts";
import type { Variant } from "../../src/data/catbabi.ts";
import { readCopy } from "../../src/data/sources/folders.ts";
import { skipUnless } from "./skip.ts";

const repository = resolve(import.meta.dirname, "../..");

/** The folder with `babi-en-valid-10k.tar.gz` and `babi-en-valid.tar.gz`. */
export const realData = resolve(repository, process.env.FWM_TEST_DATA || "../shared/data");

/** Whether both archives are there. */
const hasRealData = ["babi-en-valid-10k.tar.gz", "babi-en-valid.tar.gz"].every((name) =>
  existsSync(join(realData, name)),
);

/** Options of a test or suite that reads the real files. */
export const needsRealData = skipUnless(
  hasRealData,
  `the bAbI archives are not in ${realData} (FWM_TEST_DATA names another folder)`,
);

/** One task file as it was read. */
export interface RealFile {
  readonly task: number;
  readonly split: "train" | "valid" | "test";
  readonly text: string;
  readonly stories: readonly Story[];
}

/** Every task file of a variant, by its name, such as `qa3_test.txt`. */
export async function readRealFiles(variant: Variant): Promise<Map<string, RealFile>> {
  const { files } = await readCopy(realData, variant);
  return new Map(
    [...files].map(([file, { bytes }]) => {
      const [, number, split] = /^qa(\d+)_(train|valid|test)\.txt$/.exec(file)!;
      const task = Number(number);
      const text = Buffer.from(bytes).toString("utf8");
      const stories = parseStories(text, { file, task });
      return [file, { task, split: split as RealFile["split"], text, stories }];
    }),
  );
}

/** The stories of one split, tasks in order. */
export function storiesOf(files: ReadonlyMap<string, RealFile>, split: RealFile["split"]): Story[] {
  return [...files.values()]
    .filter((file) => file.split === split)
    .sort((a, b) => a.task - b.task)
    .flatMap(({ stories }) => stories);
}
