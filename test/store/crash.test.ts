/**
 * Crashes at every moment. First in order: the disk goes dead at the first call, the second, and so on through
 * a whole save or resumption. Then at random: a process that trains is killed again and again.
 */
import { spawn } from "node:child_process";
import { cp, readdir, utimes } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { isTemporary } from "../../src/store/atomic.ts";
import {
  type LoadedCheckpoint,
  loadCheckpoint,
  newestValid,
  readPointer,
  saveCheckpoint,
} from "../../src/store/checkpoint.ts";
import { readMetrics } from "../../src/store/metrics.ts";
import { createRun, resumeRun } from "../../src/store/run.ts";
import { scratch, watchedDisk } from "./helpers.ts";
import { description, keyed, recordsAt, sample } from "./samples.ts";

class Crash extends Error {}

/** Runs `act` on copies of a folder, the disk going dead at call 0, 1, 2 …, until it once comes through. */
async function atEveryCall(
  base: string,
  act: (folder: string, fs: ReturnType<typeof watchedDisk>) => Promise<unknown>,
  check: (folder: string, call: number) => Promise<void>,
): Promise<number> {
  for (let dead = 0; ; dead++) {
    const folder = join(await scratch(), "run");
    await cp(base, folder, { recursive: true });
    let calls = 0;
    const fs = watchedDisk(() => {
      if (calls++ >= dead) throw new Crash();
    });
    const finished = await act(folder, fs).then(
      () => true,
      () => false,
    );
    expect(finished).toBe(calls <= dead);
    await check(folder, dead);
    if (finished) return dead;
  }
}

function expectContent(checkpoint: LoadedCheckpoint): void {
  const wanted = sample(checkpoint.step);
  expect({ ...checkpoint.model }).toEqual(wanted.model);
  expect({ ...checkpoint.optimizer }).toEqual(wanted.optimizer);
  expect(checkpoint.state).toEqual(wanted.state);
}

describe("a disk that goes dead at any call", () => {
  it("during a save leaves the old checkpoint or the new one, both pointers true, and room for the next", async () => {
    const base = await scratch();
    for (const step of [1, 2]) await saveCheckpoint(base, { ...sample(step), best: step === 1 });
    const seen = new Set<number>();
    const calls = await atEveryCall(
      base,
      (run, fs) => saveCheckpoint(run, { ...sample(3), best: true, keepLast: 1, fs }),
      async (run) => {
        const { checkpoint, skipped } = (await newestValid(run))!;
        expect(skipped).toEqual([]);
        expectContent(checkpoint);
        seen.add(checkpoint.step);
        expectContent(await loadCheckpoint(run, { which: "best" }));
        expectContent(await loadCheckpoint(run, { which: "last" }));
        await saveCheckpoint(run, { ...sample(4), best: true, keepLast: 1 });
        const left = (await readdir(run)).filter((name) => !isTemporary(name));
        expect(left.sort()).toEqual(["best", "checkpoint-4", "last"]);
      },
    );
    expect([...seen].sort()).toEqual([2, 3]);
    expect(calls).toBeGreaterThan(30);
  });

  it("during a resumption leaves a run that can be resumed to the same state", async () => {
    const base = join(await scratch(), "run");
    const run = await createRun(base, description(), { keepLast: 10 });
    for (let step = 0; step < 8; step++) {
      for (const record of recordsAt(step)) run.log(record);
      if (step % 2 === 1) await run.save({ ...sample(step + 1), best: step === 1 || step === 7 });
    }
    await run.close("interrupted");
    await atEveryCall(
      base,
      async (folder, fs) => {
        const resumed = await resumeRun(folder, description(), { from: "checkpoint-4", fs });
        await resumed.run.close("interrupted");
      },
      async (folder) => {
        // The crash lies a minute back: a lock that was cut while it was written is known to be abandoned.
        const past = new Date(Date.now() - 60_000);
        await utimes(join(folder, "run.lock"), past, past).catch(() => undefined);
        const { run, checkpoint } = await resumeRun(folder, description(), { from: "checkpoint-4" });
        await run.close("interrupted");
        expectContent(checkpoint!);
        expect(await readPointer(folder, "best")).toBe("checkpoint-2");
        expect(await readMetrics(folder, { withoutTimes: true })).toEqual([0, 1, 2, 3].flatMap(recordsAt));
        expect((await readdir(folder)).filter(isTemporary)).toEqual([]);
      },
    );
  });
});

describe("a process killed at random moments", () => {
  const rounds = 12;
  /** On a busy machine a child takes long to start; fewer rounds then. */
  const budget = 10_000;

  it("always leaves a whole newest checkpoint, and goes on as if never stopped", async () => {
    const folder = join(await scratch(), "run");
    const reached: number[] = [];
    const begin = performance.now();
    for (let round = 0; round < rounds && performance.now() - begin < budget; round++) {
      // From at once to a few saves later; every fifth is killed even before it says it is ready.
      await runAndKill(folder, keyed(3, round) * 120, round % 5 === 4);
      const found = await newestValid(folder);
      if (found) {
        expect(found.skipped).toEqual([]);
        expectContent(found.checkpoint);
      }
      const step = found?.checkpoint.step ?? 0;
      expect(step).toBeGreaterThanOrEqual(reached.at(-1) ?? 0);
      reached.push(step);
    }
    expect(reached.length).toBeGreaterThan(2);
    expect(reached.at(-1)).toBeGreaterThan(0);

    const { run, checkpoint, skipped } = await resumeRun(folder, description());
    await run.close("interrupted");
    expect(skipped).toEqual([]);
    const steps = Array.from({ length: checkpoint!.step }, (_, i) => i);
    expect(await readMetrics(folder, { withoutTimes: true })).toEqual(steps.flatMap(recordsAt));
  }, 30_000);
});

/** Starts the child, waits until it is ready (or not), then kills it after some milliseconds. */
async function runAndKill(folder: string, milliseconds: number, early: boolean): Promise<void> {
  const script = join(import.meta.dirname, "crashChild.ts");
  const child = spawn(process.execPath, ["--import", "tsx", script, folder], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let complaint = "";
  child.stderr.on("data", (data: Buffer) => {
    complaint += data.toString();
  });
  const ended = new Promise<NodeJS.Signals | null>((resolve) =>
    child.on("exit", (_code, signal) => resolve(signal)),
  );
  const ready = new Promise<void>((resolve) => child.stdout.once("data", () => resolve()));
  if (early) await new Promise((resolve) => setTimeout(resolve, 200 + 4 * milliseconds));
  else await Promise.race([ready, ended]);
  await new Promise((resolve) => setTimeout(resolve, milliseconds));
  child.kill("SIGKILL");
  expect(await ended, complaint).toBe("SIGKILL");
}
