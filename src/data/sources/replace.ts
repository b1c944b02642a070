/**
 * Where prepared data may be written, and how it takes the place of earlier prepared data.
 */
import { access, readdir } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { UsageError } from "../../errors.ts";
import {
  errorCode,
  type FileContent,
  type FileSystem,
  nodeFileSystem,
  StorageError,
  syncFolder,
  temporaryBeside,
  writeFolderAtomically,
} from "../../store/atomic.ts";

/**
 * Puts a folder with `files` at `path`, whole or not at all. A folder of the same kind (one with the file
 * `mark`) or an empty one is replaced; anything else at that place is refused and left alone.
 */
export async function replaceFolder(
  path: string,
  files: ReadonlyMap<string, FileContent>,
  mark: string,
  fs: FileSystem = nodeFileSystem,
): Promise<void> {
  const place = resolve(path);
  await checkReplaceable(place, mark);
  const [fresh, aside] = [temporaryBeside(place), temporaryBeside(place)];
  try {
    await fs.mkdir(dirname(place), { recursive: true });
  } catch (error) {
    throw new StorageError("cannot prepare the folder", place, error);
  }
  // Whole beside the old one first: until the two renames a crash leaves the old one where it is.
  await writeFolderAtomically(fresh, files, fs);
  let hasOld = false;
  try {
    hasOld = await fs.rename(place, aside).then(
      () => true,
      (error: unknown) => {
        if (errorCode(error) === "ENOENT") return false;
        throw error;
      },
    );
    await fs.rename(fresh, place);
    await syncFolder(dirname(place), fs);
  } catch (error) {
    if (hasOld) await fs.rename(aside, place).catch(() => undefined);
    await fs.rm(fresh, { recursive: true, force: true }).catch(() => undefined);
    throw new StorageError(`cannot write the folder ${basename(place)}`, place, error);
  }
  if (hasOld) await fs.rm(aside, { recursive: true, force: true });
}

/** Throws unless there is nothing at `path`, an empty folder, or a folder with the file `mark`. */
export async function checkReplaceable(path: string, mark: string): Promise<void> {
  const names = await readdir(path).catch((error: unknown): string[] => {
    if (errorCode(error) === "ENOENT") return [];
    if (errorCode(error) === "ENOTDIR")
      throw new UsageError(`${path}: a file, not a folder, is in this place`);
    throw error;
  });
  const isOurs = await access(join(path, mark)).then(
    () => true,
    () => false,
  );
  if (names.length > 0 && !isOurs) {
    throw new UsageError(`${path}: the folder exists and holds something else`, {
      found: names.slice(0, 5).join(", "),
      hint: "give a new or empty folder with --out",
    });
  }
}
