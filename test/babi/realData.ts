/**
 * The real bAbI files for the acceptance tests, read from the archives beside the repository; the tests that
 * need them are skipped, with a note, where the archives are absent.
 */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { list } from "tar";
import { parseStories, type Story } from "../../src/babi/format.ts";

const folder = fileURLToPath(new URL("../../../shared/data/", import.meta.url));

/** Whether the archives are there. */
export const haveRealData = existsSync(`${folder}babi-en-valid-10k.tar.gz`);
if (!haveRealData) console.warn(`skipping tests on the real bAbI files: no archives in ${folder}`);

/** Every `qa*.txt` of an archive by its name, such as `qa3_test.txt`. */
export async function readArchive(name: "babi-en-valid" | "babi-en-valid-10k"): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  await list({
    file: `${folder}${name}.tar.gz`,
    onReadEntry: (entry) => {
      const file = /qa\d+_[a-z.]+\.txt$/.exec(entry.path)?.[0];
      if (file === undefined) return;
      const chunks: Buffer[] = [];
      entry.on("data", (chunk: Buffer) => chunks.push(chunk));
      entry.on("end", () => files.set(file, Buffer.concat(chunks).toString("utf8")));
    },
  });
  return files;
}

/** The stories of every file of an archive. */
export function parseArchive(files: ReadonlyMap<string, string>): Map<string, Story[]> {
  return new Map(
    [...files].map(([file, text]) => [
      file,
      parseStories(text, { file, task: Number(/\d+/.exec(file)![0]) }),
    ]),
  );
}

/** The stories of one split, all tasks in order; a missing training file's beginning stands in for it. */
export function storiesOf(parsed: ReadonlyMap<string, Story[]>, split: "train" | "valid" | "test"): Story[] {
  return Array.from({ length: 20 }, (_, index) => `qa${index + 1}_${split}`).flatMap(
    (name) => parsed.get(`${name}.txt`) ?? parsed.get(`${name}.partial.txt`) ?? [],
  );
}
