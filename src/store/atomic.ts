/**
 * Files and folders that appear whole or not at all.
 *
 * Everything is written under a temporary name beside its target, forced to the disk, and renamed into place;
 * then the parent folder is forced to the disk, because that is where the new name lives. A failure is never
 * swallowed: the temporary is removed and a `StorageError` says which path failed and what to do. What a
 * crash leaves behind carries a name that `isTemporary` knows and `removeLeftovers` clears away.
 */
import { rmSync } from "node:fs";
import * as promises from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { FwmError } from "../errors.ts";

/** The calls that change the disk; tests replace them to see a full, read-only or dying one. */
export type FileSystem = Pick<typeof promises, "mkdir" | "open" | "rename" | "rm" | "readdir">;

/** The disk itself. */
export const nodeFileSystem: FileSystem = promises;

/** A call that the operating system refused; `code` is its reason, such as ENOSPC. */
export class StorageError extends FwmError {
  override readonly name = "StorageError";
  readonly code: string;

  constructor(action: string, path: string, cause: unknown) {
    const code = errorCode(cause);
    const reason = systemReason(code)?.[0] ?? (cause instanceof Error ? cause.message : String(cause));
    super(`${action}: ${reason}`, { path: resolve(path), code, hint: systemReason(code)?.[1] });
    this.code = code;
  }
}

const freeSpace = "free some space or choose a folder on another disk; a run goes on with --resume";
const fewerFiles = "close other programs, run less at once, or raise the limit (ulimit -n)";

/** What the operating system means, and what to do about it. */
const reasons: ReadonlyMap<string, readonly [reason: string, hint: string]> = new Map([
  ["ENOSPC", ["the disk is full", freeSpace]],
  ["EDQUOT", ["the disk quota is used up", freeSpace]],
  [
    "EROFS",
    [
      "the file system is read-only",
      "mount it for writing or choose a folder on another one; a run goes on with --resume",
    ],
  ],
  [
    "EPERM",
    [
      "not permitted, whatever the permissions say",
      "the folder or file may be immutable (lsattr shows it); choose a folder you may write to",
    ],
  ],
  ["EACCES", ["permission denied", "choose a folder of your own, or change its permissions or owner"]],
  ["EIO", ["the disk reports an input/output error", "copy what you need elsewhere, and check the disk"]],
  [
    "ENOENT",
    [
      "no such file or folder",
      "check the path; if it was there before, it was removed, renamed or unmounted meanwhile",
    ],
  ],
  ["ENOTDIR", ["a part of the path is not a folder", "check the path"]],
  ["EISDIR", ["it is a folder", "give the path of a file"]],
  ["EEXIST", ["it exists already", "choose another path, or remove it first"]],
  ["ENOTEMPTY", ["the folder is not empty", "choose another path, or remove it first"]],
  ["ENAMETOOLONG", ["the name is too long", "choose a shorter path"]],
  ["ELOOP", ["too many symbolic links", "give the path that the links lead to"]],
  ["EBUSY", ["it is in use", "close what uses it, or choose another path"]],
  ["EMFILE", ["too many open files", fewerFiles]],
  ["ENFILE", ["too many open files on the whole system", fewerFiles]],
]);

/** What an operating system's code means and what to do about it; undefined for one that is not known. */
export function systemReason(code: string): readonly [reason: string, hint: string] | undefined {
  return reasons.get(code);
}

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

/**
 * Makes a folder and those above it; gives whether it was absent. One by one, because Node's own recursion reports a
 * read-only file system as a missing folder.
 */
export async function makeFolders(path: string, fs: FileSystem = nodeFileSystem): Promise<boolean> {
  try {
    return await makeFolder(path, fs);
  } catch (error) {
    if (errorCode(error) !== "ENOENT" || dirname(path) === path) throw error;
    await makeFolders(dirname(path), fs);
    return makeFolder(path, fs);
  }
}

/** Makes one folder; false if it is there, also if another process was faster. */
async function makeFolder(path: string, fs: FileSystem): Promise<boolean> {
  try {
    await fs.mkdir(path);
    return true;
  } catch (error) {
    const isFolder = await promises.stat(path).then(
      (info) => info.isDirectory(),
      () => false,
    );
    if (isFolder) return false;
    throw error;
  }
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
  await withHandle(await fs.open(path, "r"), (handle) => handle.sync());
}

let temporaries = 0;

/** A temporary name beside a path, on the same disk, so that renaming is atomic; a new one unless `tag` is given. */
export function temporaryBeside(path: string, tag = `${process.pid}-${temporaries++}`): string {
  return join(dirname(path), `${prefix}${tag}-${basename(path)}`);
}

async function writeSynced(path: string, content: FileContent | string, fs: FileSystem): Promise<void> {
  await withHandle(await fs.open(path, "wx"), async (handle) => {
    // On an open handle each call goes on where the last one stopped.
    if (typeof content === "string" || content instanceof Uint8Array) await handle.writeFile(content);
    else for await (const piece of content) await handle.writeFile(piece);
    await handle.sync();
  });
}

/** Uses a file and closes it; where both fail, the first error is the one to report. */
export async function withHandle<T>(
  handle: promises.FileHandle,
  use: (handle: promises.FileHandle) => Promise<T>,
): Promise<T> {
  let result: T;
  try {
    result = await use(handle);
  } catch (error) {
    await handle.close().catch(() => undefined);
    throw error;
  }
  await handle.close();
  return result;
}

const unfinished = new Set<string>();

/** Removes the temporaries of writes that are under way: for a program that ends in the middle of them. */
export function removeUnfinished(): void {
  for (const path of unfinished) rmSync(path, { recursive: true, force: true });
}

async function guarded(
  action: string,
  path: string,
  temporary: string,
  fs: FileSystem,
  write: () => Promise<void>,
): Promise<void> {
  unfinished.add(temporary);
  try {
    await write();
  } catch (error) {
    // A disk that refuses writes may refuse this too; the first error is the one to report, and the
    // leftover is cleared at the next start.
    await fs.rm(temporary, { recursive: true, force: true }).catch(() => undefined);
    // What makes a file's pieces has its own reasons to stop.
    if (error instanceof FwmError || (error as Error).name === "AbortError") throw error;
    throw new StorageError(action, path, error);
  } finally {
    unfinished.delete(temporary);
  }
}
