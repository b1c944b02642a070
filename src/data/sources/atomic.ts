/**
 * Folders that are there whole or not at all: written beside their place, flushed to disk, then renamed.
 */
import { access, mkdir, open, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { UsageError } from "../../errors.ts";

/**
 * Puts a folder with `files` at `path`. A folder of the same kind (one with the file `mark`) or an empty one
 * is replaced; anything else at that place is refused and left alone.
 */
export async function replaceFolder(
  path: string,
  files: ReadonlyMap<string, Uint8Array>,
  mark: string,
): Promise<void> {
  const place = resolve(path);
  const parent = dirname(place);
  await checkReplaceable(place, mark);
  await mkdir(parent, { recursive: true });
  const made = join(parent, `.${basename(place)}.new-${process.pid}-${Date.now()}`);
  const old = `${made}.old`;
  await mkdir(made);
  try {
    for (const [name, bytes] of files) await writeFlushed(join(made, name), bytes);
    await flushFolder(made);
    const hadOld = await rename(place, old).then(
      () => true,
      (error: NodeJS.ErrnoException) => {
        if (error.code === "ENOENT") return false;
        throw error;
      },
    );
    await rename(made, place).catch(async (error: unknown) => {
      if (hadOld) await rename(old, place);
      throw error;
    });
    await flushFolder(parent);
    if (hadOld) await rm(old, { recursive: true, force: true });
  } catch (error) {
    await rm(made, { recursive: true, force: true });
    throw error;
  }
}

/** Throws unless there is nothing at `path`, an empty folder, or a folder with the file `mark`. */
export async function checkReplaceable(path: string, mark: string): Promise<void> {
  const names = await readdir(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return [];
    if (error.code === "ENOTDIR")
      throw new UsageError(`${path}: there is a file, not a folder, in this place`);
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

async function writeFlushed(path: string, bytes: Uint8Array): Promise<void> {
  const handle = await open(path, "wx");
  try {
    await handle.writeFile(bytes);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function flushFolder(path: string): Promise<void> {
  // Windows cannot open a folder; its file system keeps the order of renames itself.
  if (process.platform === "win32") return;
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
