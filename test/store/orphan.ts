/** After a simulated kill: the files name this process, which lives on. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { lockFile } from "../../src/store/lock.ts";
import { runFile } from "../../src/store/runRecord.ts";

/** Gives a run folder's files an owner that is gone. */
export async function orphan(folder: string): Promise<void> {
  for (const name of [lockFile, runFile]) {
    const text = await readFile(join(folder, name), "utf8").catch(() => undefined);
    // No process has an id that large.
    if (text) await writeFile(join(folder, name), text.replace(/("pid": ?)\d+/, `$1${2 ** 30}`));
  }
}
