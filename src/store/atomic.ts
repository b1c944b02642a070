/**
 * Files and folders that appear whole or not at all.
 *
 * Everything is written under a temporary name beside its target, forced to the disk, and renamed into place;
 * then the parent folder is forced to the disk, because that is where the new name lives. A failure is never
 * swallowed: the temporary is removed and a `StorageError` says which path failed and what to do. What a
 * crash leaves behind carries a name that `isTemporary` knows and `removeLeftovers` clears away.
 */
import * as promises from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { FwmError } from "../errors.ts";

/** The calls that change the disk; tests replace them to see a full, read-only or dying one. */
export type FileSystem = Pick<typeof promises, "mkdir" | "open" | "rename" | "rm" | "readdir">;

/** The disk itself. */
export const nodeFileSystem: FileSystem = promises;

/** A write that the operating system refused; `code` is its reason, such as ENOSPC. */
export class StorageError extends FwmError {
  override readonly name = "StorageError";
  readonly code: string;

  constructor(action: string, path: string, cause: unknown) {
    const code = errorCode(cause);
    super(`${action}: ${reasons[code] ?? (cause instanceof Error ? cause.message : String(cause))}`, {
      path: resolve(path),
      code,
      hint: hints[code] ?? "nothing half-written was left behind; earlier checkpoints are untouched",
    });
    this.code = code;
  }
}

const reasons: Readonly<Record<string, string>> = {
  ENOSPC: "the disk is full",
  EDQUOT: "the disk quota is used up",
  EROFS: "the file system is read-only",
  EPERM: "the operation is not permitted",
  EACCES: "permission denied",
  EIO: "the disk reports an input/output error",
  ENOENT: "the folder does not exist",
  ENOTDIR: "a part of the path is not a folder",
};

const freeSpace = "free some space or choose a folder on another disk; a run goes on with --resume";
const elsewhere = "choose a folder you may write to, or change its permissions; a run goes on with --resume";

const hints: Readonly<Record<string, string>> = {
  ENOSPC: freeSpace,
  EDQUOT: freeSpace,
  EROFS: elsewhere,
  EPERM: elsewhere,
  EACCES: elsewhere,
};

/** The operating system's code of an error, or "" if it carries none. */
export function errorCode(error: unknown): string {
  const code = typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : "";
}

/** Writes a file that is either the old one or the new one, whole, whatever happens meanwhile. */
export async function writeFileAtomically(
  path: string,
  content: Uint8Array | string,
  fs: FileSystem = nodeFileSystem,
): Promise<void> {
  const temporary = temporaryBeside(path);
  await guarded(`cannot write ${basename(path)}`, path, temporary, fs, async () => {
    await writeSynced(temporary, content, fs);
    await fs.rename(temporary, path);
    await syncFolder(dirname(path), fs);
  });
}

/** A file's bytes: whole, or piece by piece as they are made. */
export type FileContent = Uint8Array | AsyncIterable<Uint8Array>;

/**
 * Makes a folder of plain files that is either absent or whole; the target must be absent or empty. The files are
 * written in the order given, each one's pieces taken only then.
 */
export async function writeFolderAtomically(
  path: string,
  files: ReadonlyMap<string, FileContent>,
  fs: FileSystem = nodeFileSystem,
): Promise<void> {
  const temporary = temporaryBeside(path);
  await guarded(`cannot write the folder ${basename(path)}`, path, temporary, fs, async () => {
    await fs.mkdir(temporary);
    for (const [name, bytes] of files) await writeSynced(join(temporary, name), bytes, fs);
    await syncFolder(temporary, fs);
    await fs.rename(temporary, path);
    await syncFolder(dirname(path), fs);
  });
}

/** Removes a file or folder in one step as seen from outside: it is renamed away first. */
export async function removeAtomically(path: string, fs: FileSystem = nodeFileSystem): Promise<void> {
  const temporary = temporaryBeside(path);
  try {
    await fs.rename(path, temporary);
    await syncFolder(dirname(path), fs);
    await fs.rm(temporary, { recursive: true, force: true });
  } catch (error) {
    throw new StorageError(`cannot remove ${basename(path)}`, path, error);
  }
}

const prefix = ".fwm-tmp-";

/** Whether a name is one of our temporaries: unfinished, never to be read. */
export function isTemporary(name: string): boolean {
  return name.startsWith(prefix);
}

/**
 * Clears away what crashed writers left in a folder and returns the names. Call it only while nobody else
 * writes there (a run folder: while holding its lock).
 */
export async function removeLeftovers(folder: string, fs: FileSystem = nodeFileSystem): Promise<string[]> {
  try {
    const leftovers = (await fs.readdir(folder)).filter(isTemporary);
    for (const name of leftovers) await fs.rm(join(folder, name), { recursive: true, force: true });
    return leftovers;
  } catch (error) {
    throw new StorageError("cannot clear unfinished files away", folder, error);
  }
}

/** Forces a folder's list of names to the disk. */
export async function syncFolder(path: string, fs: FileSystem = nodeFileSystem): Promise<void> {
  // Windows cannot open a folder, and needs no such call: NTFS journals names itself.
  if (process.platform === "win32") return;
  const handle = await fs.open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

let temporaries = 0;

/** A temporary name beside a path, on the same disk, so that renaming is atomic; a new one unless `tag` is given. */
export function temporaryBeside(path: string, tag = `${process.pid}-${temporaries++}`): string {
  return join(dirname(path), `${prefix}${tag}-${basename(path)}`);
}

async function writeSynced(path: string, content: FileContent | string, fs: FileSystem): Promise<void> {
  const handle = await fs.open(path, "wx");
  try {
    // On an open handle each call goes on where the last one stopped.
    if (typeof content === "string" || content instanceof Uint8Array) await handle.writeFile(content);
    else for await (const piece of content) await handle.writeFile(piece);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function guarded(
  action: string,
  path: string,
  temporary: string,
  fs: FileSystem,
  write: () => Promise<void>,
): Promise<void> {
  try {
    await write();
  } catch (error) {
    // A disk that refuses writes may refuse this too; the first error is the one to report, and the
    // leftover is cleared at the next start.
    await fs.rm(temporary, { recursive: true, force: true }).catch(() => undefined);
    // What makes a file's pieces has its own reasons to stop.
    if (error instanceof FwmError || (error as Error).name === "AbortError") throw error;
    throw new StorageError(action, path, error);
  }
}
