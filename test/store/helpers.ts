/** What the store's tests share: scratch folders, small checkpoints, disks that fail. */
import { existsSync } from "node:fs";
import * as promises from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach } from "vitest";
import type { FileSystem } from "../../src/store/atomic.ts";

const made: string[] = [];

afterEach(async () => {
  for (const folder of made.splice(0)) await promises.rm(folder, { recursive: true, force: true });
});

/** A disk in memory where there is one: tests force thousands of files to it. */
const place = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

/** A new empty folder, removed after the test. */
export async function scratch(): Promise<string> {
  const folder = await promises.mkdtemp(join(place, "fwm-store-"));
  made.push(folder);
  return folder;
}

/** An operating system's error with its code. */
export function systemError(code: string): Error {
  return Object.assign(new Error(`${code}: simulated`), { code });
}

/** A call that changes the disk: which one, on which path. */
export type Operation = readonly [
  name: "mkdir" | "open" | "write" | "sync" | "rename" | "rm" | "readdir",
  path: string,
];

/** The real disk, asking `before` ahead of every call; whatever that throws, the call throws. */
export function watchedDisk(before: (operation: Operation) => void): FileSystem {
  const disk = {
    async mkdir(path: string, options?: { recursive: boolean }) {
      before(["mkdir", path]);
      return promises.mkdir(path, options);
    },
    async rename(from: string, to: string) {
      before(["rename", to]);
      return promises.rename(from, to);
    },
    async rm(path: string, options: object) {
      before(["rm", path]);
      return promises.rm(path, options);
    },
    async readdir(path: string) {
      before(["readdir", path]);
      return promises.readdir(path);
    },
    async open(path: string, flags: string) {
      before(["open", path]);
      const handle = await promises.open(path, flags);
      return {
        async writeFile(content: Uint8Array | string) {
          // Half of it reaches the file before the disk refuses, as with a disk that fills up.
          try {
            before(["write", path]);
          } catch (error) {
            await handle.writeFile(content.slice(0, content.length / 2));
            throw error;
          }
          return handle.writeFile(content);
        },
        async sync() {
          before(["sync", path]);
          return handle.sync();
        },
        close: () => handle.close(),
      };
    },
  };
  return disk as unknown as FileSystem;
}

/** The error a promise is rejected with. */
export async function rejection(promise: Promise<unknown>): Promise<Error> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof Error) return error;
  }
  throw new Error("expected a rejection with an Error");
}
