/**
 * One process per run folder: `run.lock` names the process that trains there.
 *
 * A lock whose process is gone is taken over: a process is known by its id, its host and the moment it began,
 * since ids are used again. Of another host nothing can be asked, so its lock counts as abandoned once the
 * owner has not touched it for ten minutes. No clock is trusted further than that: it may have been set back.
 */

import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { lstat, readFile, stat, utimes } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname, join, resolve } from "node:path";
import { setTimeout } from "node:timers/promises";
import { z } from "zod";
import { FwmError, UsageError } from "../errors.ts";
import {
  errorCode,
  type FileSystem,
  nodeFileSystem,
  StorageError,
  temporaryBeside,
  withHandle,
} from "./atomic.ts";

/** Name of the file in a run folder. */
export const lockFile = "run.lock";

/** After this silence, in milliseconds, a process on another host counts as gone. */
const silenceLimit = 10 * 60_000;

/** Writing a lock takes no longer than this, in milliseconds; one that stays unreadable was cut by a crash. */
const writingTime = 1_000;

/** How long, in milliseconds, others may be busy taking an abandoned lock away. */
const patience = 5 * writingTime;

const largestLock = 10_000;

/** Which process this is, such that a later one with the same id is not mistaken for it. */
export const processSchema = z.strictObject({
  pid: z.int().positive(),
  host: z.string(),
  /** The boot and the moment the process began, where the system tells. */
  started: z.string().nullable(),
});

/** A process, told apart from all others. */
export type ProcessIdentity = z.infer<typeof processSchema>;

const lockSchema = z.strictObject({ token: z.string(), process: processSchema });

/** This process. */
export function thisProcess(): ProcessIdentity {
  return { pid: process.pid, host: hostname(), started: startOf(process.pid) };
}

/** Whether a process still runs; undefined if it belongs to another host. */
export function isRunning({ pid, host, started }: ProcessIdentity): boolean | undefined {
  if (host !== hostname()) return undefined;
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (errorCode(error) === "ESRCH") return false;
  }
  const now = startOf(pid);
  return now === null || started === null || now === started;
}

/**
 * Whether a sign of life is too old to count, in milliseconds since 1970. One that lies as far ahead was given before
 * the clock was set back, and counts as little.
 */
export function isSilent(lastSign: number): boolean {
  return Math.abs(Date.now() - lastSign) > silenceLimit;
}

/** A lock that is held until it is released. */
export interface RunLock {
  /** Says that the owner lives, and fails if somebody else took the lock over meanwhile. */
  touch(): Promise<void>;
  /** Gives the lock up. */
  release(): Promise<void>;
}

/** Takes a run folder's lock, or fails naming the process that holds it. */
export async function acquireLock(folder: string, fs: FileSystem = nodeFileSystem): Promise<RunLock> {
  const path = join(resolve(folder), lockFile);
  const token = randomUUID();
  const begin = performance.now();
  while (!(await create(path, token, fs))) {
    const waited = performance.now() - begin;
    if (waited > patience) throw inUse(path, undefined);
    await takeAway(path, waited, fs);
  }
  return heldLock(path, token, fs);
}

async function create(path: string, token: string, fs: FileSystem): Promise<boolean> {
  const refuse = (error: unknown): StorageError =>
    new StorageError("cannot lock the run folder", path, error);
  const handle = await fs.open(path, "wx").catch((error: unknown) => {
    if (errorCode(error) === "EEXIST") return undefined;
    throw refuse(error);
  });
  if (!handle) return false;
  try {
    await withHandle(handle, () =>
      handle.writeFile(`${JSON.stringify({ token, process: thisProcess() })}\n`),
    );
    return true;
  } catch (error) {
    await fs.rm(path, { force: true }).catch(() => undefined);
    throw refuse(error);
  }
}

/**
 * Takes an abandoned lock away; a lock in use is an error. One at a time, and each looks again when it is its turn:
 * nobody takes away the fresh lock of one who was quicker.
 */
async function takeAway(path: string, waited: number, fs: FileSystem): Promise<void> {
  const early = await lockAt(path);
  if (early === "gone") return;
  if (early !== "unreadable") await refuseInUse(path, early.process);
  const turn = temporaryBeside(path, "turn");
  try {
    if (!(await takeTurn(turn, waited, fs))) return;
    try {
      const lock = await settledLock(path);
      if (lock !== "gone" && lock !== "unreadable") await refuseInUse(path, lock.process);
      await fs.rm(path, { force: true });
    } finally {
      await fs.rm(turn, { recursive: true, force: true }).catch(() => undefined);
    }
  } catch (error) {
    if (error instanceof FwmError) throw error;
    throw new StorageError("cannot take the abandoned lock away", path, error);
  }
}

/** Whether it is ours to take the lock away now. A turn that stays was left by a crash; no clock is asked. */
async function takeTurn(turn: string, waited: number, fs: FileSystem): Promise<boolean> {
  try {
    await fs.mkdir(turn);
    return true;
  } catch (error) {
    if (errorCode(error) !== "EEXIST") throw error;
  }
  if (waited > 2 * writingTime) await fs.rm(turn, { recursive: true, force: true });
  await setTimeout(20);
  return false;
}

/** The lock, once whoever is writing it has had the time to. */
async function settledLock(path: string): ReturnType<typeof lockAt> {
  const end = performance.now() + writingTime;
  let lock = await lockAt(path);
  while (lock === "unreadable" && performance.now() < end) {
    await setTimeout(50);
    lock = await lockAt(path);
  }
  return lock;
}

async function refuseInUse(path: string, owner: ProcessIdentity): Promise<void> {
  if (isRunning(owner) ?? !(await isSilentLock(path))) throw inUse(path, owner);
}

async function isSilentLock(path: string): Promise<boolean> {
  return stat(path).then(
    ({ mtimeMs }) => isSilent(mtimeMs),
    () => true,
  );
}

function heldLock(path: string, token: string, fs: FileSystem): RunLock {
  return {
    async touch() {
      const lock = await lockAt(path);
      if (lock === "gone") throw await lostLock(path);
      if (lock === "unreadable" || lock.token !== token) {
        throw new FwmError(`${path}: another process has taken this run over`, {
          hint: "this process stops so that two do not write into one folder",
        });
      }
      const now = new Date();
      await utimes(path, now, now).catch((error: unknown) => {
        throw new StorageError("cannot renew the lock", path, error);
      });
    },
    async release() {
      const lock = await lockAt(path);
      if (lock === "gone" || lock === "unreadable" || lock.token !== token) return;
      await fs.rm(path, { force: true }).catch((error: unknown) => {
        throw new StorageError("cannot release the lock", path, error);
      });
    },
  };
}

/** Why a lock that we held is not there any more. */
async function lostLock(path: string): Promise<FwmError> {
  const folder = dirname(path);
  try {
    await stat(folder);
  } catch (error) {
    if (errorCode(error) !== "ENOENT") return new StorageError("cannot find the lock", path, error);
    return new FwmError(`${folder}: the run folder is gone`, {
      hint: "it was removed, renamed or unmounted while the run was training",
    });
  }
  return new FwmError(`${path}: the lock was removed while the run was training`, {
    hint: "this process stops, since another may train here now; the run goes on with --resume",
  });
}

function inUse(path: string, owner: ProcessIdentity | undefined): UsageError {
  return new UsageError(`${path}: another process is training in this folder`, {
    process: owner ? `${owner.pid} on ${owner.host}` : "unknown",
    hint: "wait for it or stop it; choose another --out; or remove the file if you are sure nothing runs",
  });
}

type Lock = z.infer<typeof lockSchema>;

/** What the lock file says; `unreadable` while it is being written, or if it was cut. */
async function lockAt(path: string): Promise<Lock | "gone" | "unreadable"> {
  try {
    const info = await lstat(path);
    if (!info.isFile()) {
      throw new UsageError(`${path}: not a regular file, and no lock of ours`, {
        found: info.isDirectory()
          ? "a folder"
          : info.isSymbolicLink()
            ? "a symbolic link"
            : "a device or pipe",
        hint: "remove it, or choose another --out",
      });
    }
    if (info.size > largestLock) return "unreadable";
    return parseLock(await readFile(path, "utf8")) ?? "unreadable";
  } catch (error) {
    if (error instanceof UsageError) throw error;
    if (errorCode(error) === "ENOENT") return "gone";
    throw new StorageError("cannot read the lock", path, error);
  }
}

function parseLock(text: string): Lock | undefined {
  try {
    return lockSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/** Boot and start time of a process on Linux (field 22 of /proc/<pid>/stat); null where there is no such file. */
function startOf(pid: number): string | null {
  try {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The second field is the command in parentheses and may itself hold spaces.
    const start = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
    return start === undefined ? null : `${boot}/${start}`;
  } catch {
    return null;
  }
}
