/** Files that commands leave for people: results and figures, in folders that are made where they are missing. */
import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import type { Reporter } from "../experiment/evaluationFile.ts";
import { errorCode, makeFolders, StorageError, writeFileAtomically } from "../store/atomic.ts";
import { packageVersion } from "./version.ts";

/**
 * Refuses a place where nothing can be written, before the work whose result goes there is done. Folders that are
 * missing are made later, unless `makesFolders` says otherwise.
 */
export async function checkWritable(path: string, { makesFolders = true } = {}): Promise<void> {
  const target = resolve(path);
  // The nearest folder that exists is where the first missing one would be made.
  let folder = dirname(target);
  try {
    for (;;) {
      const info = await stat(folder).catch((error: unknown) => {
        if (errorCode(error) === "ENOENT" && makesFolders && dirname(folder) !== folder) return undefined;
        throw error;
      });
      if (info?.isDirectory() === false) throw Object.assign(new Error("not a folder"), { code: "ENOTDIR" });
      if (info) break;
      folder = dirname(folder);
    }
    await access(folder, constants.W_OK);
  } catch (error) {
    throw new StorageError(`cannot write ${basename(target)}`, target, error);
  }
}

/** Writes a file, whole or not at all, and the folder it is in. */
export async function writeResult(path: string, content: string | Uint8Array): Promise<void> {
  await makeFolders(resolve(dirname(path))).catch((error: unknown) => {
    throw new StorageError(`cannot make the folder of ${basename(path)}`, dirname(path), error);
  });
  await writeFileAtomically(path, content);
}

/** This command as result files name it. */
export function reporter(threads: number | undefined): Reporter {
  const reportedBy = ["fwm", ...process.argv.slice(2)];
  return { reportedBy, packageVersion: packageVersion(), ...(threads ? { threads } : {}) };
}

/** Writes a value as readable JSON. */
export async function writeJson(path: string, value: unknown): Promise<void> {
  await writeResult(path, `${JSON.stringify(value, null, 1)}\n`);
}
