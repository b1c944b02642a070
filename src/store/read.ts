/**
 * Files read with suspicion: regular files only, never through a link, never more than a limit.
 */
import { constants } from "node:fs";
import { lstat, open } from "node:fs/promises";
import { basename, resolve } from "node:path";
import { DataError } from "../errors.ts";
import { errorCode, StorageError, withHandle } from "./atomic.ts";

/** Largest file that is read whole: Node reads at most 2 GiB at once. */
export const largestFile = 2 ** 31 - 1;

/** Largest JSON file of ours that is read; the largest one written holds a data stream's state. */
export const largestJson = 64 * 2 ** 20;

/**
 * A regular file's bytes, or undefined if there is no such file; anything else there is a `DataError`. A system that
 * does not let us read says nothing about the file: that is a `StorageError`.
 */
export async function readIfPresent(
  path: string,
  limit: number = largestFile,
): Promise<Uint8Array | undefined> {
  try {
    const info = await lstat(path);
    if (!info.isFile()) {
      throw new DataError(`${resolve(path)}: not a regular file`, {
        found: info.isSymbolicLink()
          ? "a symbolic link"
          : info.isDirectory()
            ? "a folder"
            : "a device or pipe",
        hint: "links inside run and model folders are refused; copy the file itself",
      });
    }
    if (info.size > limit) {
      throw new DataError(`${resolve(path)}: too large`, {
        size: `${info.size} bytes`,
        most: `${limit} bytes`,
      });
    }
    // O_NOFOLLOW, where the system has it, closes the gap between looking and opening.
    const handle = await open(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
    return await withHandle(handle, () => handle.readFile());
  } catch (error) {
    if (error instanceof DataError) throw error;
    const code = errorCode(error);
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw new StorageError(`cannot read ${basename(path)}`, path, error);
  }
}
