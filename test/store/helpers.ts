/** What the store's tests share: scratch folders, small checkpoints, disks that fail. */
import * as promises from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach } from "vitest";
import type { FileSystem } from "../../src/store/atomic.ts";
import type { CheckpointContent } from "../../src/store/checkpoint.ts";
import type { RunDescription } from "../../src/store/run-record.ts";

const made: string[] = [];

afterEach(async () => {
  for (const folder of made.splice(0)) await promises.rm(folder, { recursive: true, force: true });
});

/** A new empty folder, removed after the test. */
export async function scratch(): Promise<string> {
  const folder = await promises.mkdtemp(join(tmpdir(), "fwm-store-"));
  made.push(folder);
  return folder;
}

/** A number in [0, 1) that depends on a seed and an index alone. */
export function keyed(seed: number, index: number): number {
  let x = (seed * 0x9e3779b1 + index * 0x85ebca6b) >>> 0;
  x = Math.imul(x ^ (x >>> 16), 0x21f0aaad) >>> 0;
  x = Math.imul(x ^ (x >>> 15), 0x735a2d97) >>> 0;
  return ((x ^ (x >>> 15)) >>> 0) / 2 ** 32;
}

/** A small checkpoint whose every number depends on its step. */
export function sample(step: number, extra: Partial<CheckpointContent> = {}): CheckpointContent {
  const weights = Float32Array.from({ length: 6 }, (_, i) => keyed(step, i) - 0.5);
  return {
    step,
    config: { system: "fwm", hidden: 2 },
    model: { "lstm.weight": { dtype: "f32", shape: [2, 3], data: weights } },
    optimizer: { "adam.m": { dtype: "f32", shape: [6], data: weights.map((x) => x / 10) } },
    state: { step, stream: { epoch: 1, row: [step, 2, 3] }, key: [7, step], best: 0.25 },
    ...extra,
  };
}

/** A run's description with nothing special in it. */
export function description(extra: Partial<RunDescription> = {}): RunDescription {
  return {
    experiment: "catbabi-qa-fwm",
    settings: { system: { hidden: 32, memory: 8 }, tasks: [1, 2] },
    seed: 1,
    command: ["fwm", "train", "catbabi-qa-fwm"],
    packageVersion: "0.1.0",
    gitCommit: null,
    environment: {
      node: "v20.19.0",
      os: "linux 6 x64",
      cpu: "a processor",
      cores: 2,
      threads: 2,
      ort: "1.30.0",
      device: "cpu",
    },
    ...extra,
  };
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
