/**
 * Crashes at every moment. First in order: the process is killed at its first call to the disk, the second, and so on
 * through all that a run does. Then at random: a process that trains is killed again and again.
 */
import { spawn } from "node:child_process";
import { cp, mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { isTemporary, StorageError } from "../../src/store/atomic.ts";
import {
  type LoadedCheckpoint,
  loadCheckpoint,
  newestValid,
  readPointer,
  saveCheckpoint,
} from "../../src/store/checkpoint.ts";
import { lockFile } from "../../src/store/lock.ts";
import { readMetrics } from "../../src/store/metrics.ts";
import { loadModelFolder } from "../../src/store/modelFolder.ts";
import { createRun, resumeRun } from "../../src/store/run.ts";
import { readRun, runFile } from "../../src/store/runRecord.ts";
import type { Tensors } from "../../src/store/safetensors.ts";
import { interruptedAt, killedAt } from "../support/mortalDisk.ts";
import { scratch } from "./helpers.ts";
import { orphan } from "./orphan.ts";
import { description, keyed, recordsAt, sample } from "./samples.ts";

vi.mock("node:fs", async (original) => {
  const { mortal } = await import("../support/mortalDisk.ts");
  return mortal(await original<object>());
});
vi.mock("node:fs/promises", async (original) => {
  const { mortal } = await import("../support/mortalDisk.ts");
  return mortal(await original<object>());
});

/** Runs `act` on copies of a folder, killed at call 0, 1, 2 …, until it once comes through. Gives the number of kills. */
async function atEveryCall(
  base: string | undefined,
  act: (folder: string) => Promise<unknown>,
  check: (folder: string) => Promise<void>,
): Promise<number> {
  for (let call = 0; ; call++) {
    const folder = join(await scratch(), "run");
    if (base) await cp(base, folder, { recursive: true });
    const finished = await killedAt(call, () => act(folder));
    await orphan(folder);
    await check(folder);
    if (finished) return call;
  }
}

/** What one command line does, at first and after every kill: goes on with the run, or begins it. */
async function trainTo(folder: string, steps: number): Promise<void> {
  const begun = (await readdir(folder).catch((): string[] => [])).includes(runFile);
  const { run, checkpoint } = begun
    ? await resumeRun(folder, description())
    : { run: await createRun(folder, description()), checkpoint: undefined };
  for (let step = checkpoint?.step ?? 0; step < steps; ) {
    for (const record of recordsAt(step)) run.log(record);
    step++;
    await run.save({ ...sample(step), best: step === 1 });
  }
  await run.close("finished");
}

function expectContent(checkpoint: LoadedCheckpoint): void {
  const wanted = sample(checkpoint.step);
  expect({ ...checkpoint.model }).toEqual(wanted.model);
  expect({ ...checkpoint.optimizer }).toEqual(wanted.optimizer);
  expect(checkpoint.state).toEqual(wanted.state);
}

describe("a process killed at any call to the disk", () => {
  it("during a save leaves the old checkpoint or the new one, both pointers true, and room for the next", async () => {
    const base = await scratch();
    for (const step of [1, 2]) await saveCheckpoint(base, { ...sample(step), best: step === 1 });
    const seen = new Set<number>();
    const kills = await atEveryCall(
      base,
      (run) => saveCheckpoint(run, { ...sample(3), best: true, keepLast: 1 }),
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
    expect(kills).toBeGreaterThan(50);
  });

  it("of a run, from its first to its last, leaves a folder that the same line goes on with", async () => {
    const steps = 3;
    const kills = await atEveryCall(
      undefined,
      (folder) => trainTo(folder, steps),
      async (folder) => {
        await trainTo(folder, steps + 1);
        expect(await readRun(folder)).toMatchObject({ state: "finished", step: steps + 1, process: null });
        expect(await readMetrics(folder, { withoutTimes: true })).toEqual([0, 1, 2, 3].flatMap(recordsAt));
        expectContent(await loadCheckpoint(folder));
        expect(await readPointer(folder, "best")).toBe("checkpoint-1");
        const names = await readdir(folder);
        expect(names.filter((name) => name.startsWith("checkpoint-")).sort()).toEqual([
          "checkpoint-1",
          "checkpoint-3",
          "checkpoint-4",
        ]);
        expect(names.filter((name) => isTemporary(name) || name === lockFile)).toEqual([]);
        expect(names.some((name) => name.startsWith("events.out"))).toBe(true);
      },
    );
    expect(kills).toBeGreaterThan(200);
  });

  it("in a folder that was there before, empty, does the same", async () => {
    const base = join(await scratch(), "empty");
    await mkdir(base);
    await atEveryCall(
      base,
      (folder) => createRun(folder, description()),
      (folder) => trainTo(folder, 1),
    );
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
      async (folder) => {
        const resumed = await resumeRun(folder, description(), { from: "checkpoint-4" });
        await resumed.run.close("interrupted");
      },
      async (folder) => {
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

describe("a disk that cannot be read at some call", () => {
  it("is not taken for a damaged checkpoint: nothing is passed over, nothing removed", async () => {
    const base = await scratch();
    for (const step of [1, 2]) await saveCheckpoint(base, sample(step));
    let failed = 0;
    for (let finished = false; !finished; ) {
      const outcomes: unknown[] = [];
      finished = await killedAt(failed, () =>
        newestValid(base).then(
          (found) => outcomes.push(found?.skipped),
          (error: unknown) => {
            outcomes.push(error);
            throw error;
          },
        ),
      );
      if (finished) expect(outcomes).toEqual([[]]);
      else expect(outcomes[0]).toBeInstanceOf(StorageError);
      failed++;
    }
    expect(failed).toBeGreaterThan(10);
  });
});

describe("a run that saves and prunes while it is read", () => {
  type Reader = (run: string) => Promise<{ step: number | undefined; model: Tensors }>;
  const readers: Readonly<Record<string, Reader>> = {
    "the last checkpoint": (run) => loadCheckpoint(run),
    "the best checkpoint": (run) => loadCheckpoint(run, { which: "best" }),
    "the best model": (run) => loadModelFolder(run),
    "the last model": (run) => loadModelFolder(run, { which: "last" }),
  };

  it.each(Object.entries(readers))("between any two calls gives %s whole", async (_what, load) => {
    const run = await scratch();
    let step = 0;
    const save = () => saveCheckpoint(run, { ...sample(++step), best: true, keepLast: 1 });
    await save();
    for (let call = 0, interrupted = true; interrupted; call++) {
      const read = await interruptedAt(call, save, () => load(run));
      ({ interrupted } = read);
      expect({ ...read.result.model }).toEqual(sample(read.result.step!).model);
      expect(step - read.result.step!).toBeLessThanOrEqual(1);
    }
    expect(step).toBeGreaterThan(10);
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
