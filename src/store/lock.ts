/**
 * One process per run folder: `run.lock` names the process that trains there.
 *
 * A lock whose process is gone is taken over: a process is known by its id, its host and the moment it began,
 * since ids are used again. Of another host nothing can be asked, so its lock counts as abandoned once the
 * owner has not touched it for ten minutes.
 */

import { randomUUID } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { mkdir, readFile, rm, utimes } from "node:fs/promises";
import { hostname } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout } from "node:timers/promises";
import { z } from "zod";
import { FwmError, UsageError } from "../errors.ts";
import { errorCode, type FileSystem, nodeFileSystem, StorageError, temporaryBeside } from "./atomic.ts";

/** Name of the file in a run folder. */
export const lockFile = "run.lock";

/** After this silence, in milliseconds, a process on another host counts as gone. */
export const silenceLimit = 10 * 60_000;

/** A lock that cannot be read was cut while it was written; that takes no longer than this. */
const writingTime = 5_000;

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
  for (let attempt = 0; attempt < 3; attempt++) {
    if (await create(path, token, fs)) return heldLock(path, token);
    await takeAway(path);
  }
  throw inUse(path, undefined);
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
    await handle.writeFile(`${JSON.stringify({ token, process: thisProcess() })}\n`);
    return true;
  } catch (error) {
    await fs.rm(path, { force: true }).catch(() => undefined);
    throw refuse(error);
  } finally {
    await handle.close();
  }
}

/**
 * Takes an abandoned lock away; a lock in use is an error. One at a time, and each looks again when it is its turn:
 * nobody takes away the fresh lock of one who was quicker.
 */
async function takeAway(path: string): Promise<void> {
  await refuseInUse(path);
  const turn = temporaryBeside(path, "turn");
  try {
    await mkdir(turn);
  } catch (error) {
    if (errorCode(error) !== "EEXIST")
      throw new StorageError("cannot take the abandoned lock away", path, error);
    // Somebody is at it, for a moment; or was, and crashed.
    await setTimeout(20);
    if (ageOf(turn) > writingTime) await rm(turn, { recursive: true, force: true });
    return;
  }
  try {
    await refuseInUse(path);
    await rm(path, { force: true });
  } finally {
    await rm(turn, { recursive: true, force: true });
  }
}

async function refuseInUse(path: string): Promise<void> {
  const text = await textAt(path);
  if (text === undefined) return;
  const owner = parseLock(text)?.process;
  if (!isAbandoned(path, owner)) throw inUse(path, owner);
}

function isAbandoned(path: string, owner: ProcessIdentity | undefined): boolean {
  const running = owner && isRunning(owner);
  if (running !== undefined) return !running;
  return ageOf(path) > (owner ? silenceLimit : writingTime);
}

/** Milliseconds since something was last changed; what is not there is old. */
function ageOf(path: string): number {
  return Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0);
}

function heldLock(path: string, token: string): RunLock {
  return {
    async touch() {
      if ((await tokenAt(path)) !== token) {
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
      if ((await tokenAt(path)) === token) await rm(path, { force: true });
    },
  };
}

function inUse(path: string, owner: ProcessIdentity | undefined): UsageError {
  return new UsageError(`${path}: another process is training in this folder`, {
    process: owner ? `${owner.pid} on ${owner.host}` : "unknown",
    hint: "wait for it or stop it; choose another --out; or remove the file if you are sure nothing runs",
  });
}

async function tokenAt(path: string): Promise<string | undefined> {
  return parseLock((await textAt(path)) ?? "")?.token;
}

async function textAt(path: string): Promise<string | undefined> {
  return readFile(path, "utf8").catch(() => undefined);
}

function parseLock(text: string): z.infer<typeof lockSchema> | undefined {
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
