/** Run folders: begun once, locked, resumed exactly, listed quickly. */
import { spawn } from "node:child_process";
import * as promises from "node:fs/promises";
import { mkdir, readdir, readFile, rm, symlink, truncate, utimes, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { DataError, FwmError, UsageError } from "../../src/errors.ts";
import { type FileSystem, StorageError, temporaryBeside } from "../../src/store/atomic.ts";
import { listCheckpoints } from "../../src/store/checkpoint.ts";
import { acquireLock, isRunning, lockFile, thisProcess } from "../../src/store/lock.ts";
import { MetricsWriter, readMetrics } from "../../src/store/metrics.ts";
import { createRun, type Run, resumeRun } from "../../src/store/run.ts";
import {
  describeEnvironment,
  effectiveState,
  gitCommit,
  listRuns,
  newRecord,
  provenanceDifferences,
  readRun,
} from "../../src/store/runRecord.ts";
import { skipUnless } from "../support/skip.ts";
import { rejection, scratch, systemError, watchedDisk } from "./helpers.ts";
import { decodeRecords } from "./records.ts";
import { description, recordsAt, sample } from "./samples.ts";

async function freshPath(): Promise<string> {
  return join(await scratch(), "runs", "one");
}

/** Trains from one step up to another, saving at every fourth. */
async function train(run: Run, from: number, to: number): Promise<void> {
  for (let step = from; step < to; step++) {
    for (const record of recordsAt(step)) run.log(record);
    if ((step + 1) % 4 === 0) await run.save({ ...sample(step + 1), best: step + 1 === 4 });
  }
}

/** A process that has ended: its id is free, or belongs to somebody else by now. */
async function endedProcess(): Promise<number> {
  const child = spawn(process.execPath, ["-e", ""]);
  await new Promise((resolve) => child.on("exit", resolve));
  return child.pid!;
}

describe("a new run", () => {
  it("is described on the disk before its first step", async () => {
    const path = await freshPath();
    const run = await createRun(path, description());
    const record = await readRun(path);
    expect(record).toMatchObject({
      ...description(),
      state: "running",
      step: 0,
      process: thisProcess(),
      resumed: [],
    });
    expect(Date.parse(record.created)).toBeGreaterThan(Date.now() - 60_000);
    await run.close("finished");
    expect(await readRun(path)).toMatchObject({ state: "finished", process: null });
    expect((await readdir(path)).some((name) => name === lockFile)).toBe(false);
  });

  it("refuses a folder that holds anything, and says what to do", async () => {
    const path = await freshPath();
    await (await createRun(path, description())).close("finished");
    const error = await rejection(createRun(path, description()));
    expect(error).toBeInstanceOf(UsageError);
    expect(error.message).toContain(path);
    expect(error.message).toMatch(/not empty[\s\S]*--resume[\s\S]*--out/);
    const other = await scratch();
    await writeFile(join(other, "thesis.txt"), "");
    await expect(createRun(other, description())).rejects.toThrow(
      /not empty[\s\S]*thesis\.txt[\s\S]*another --out/,
    );
    expect(await readdir(other)).toEqual(["thesis.txt"]);
    await expect(createRun(join(other, "thesis.txt"), description())).rejects.toThrow(/not a folder/);
    await expect(createRun(join(other, "thesis.txt", "x"), description())).rejects.toThrow(/not a folder/);
  });

  it("may use an empty folder, or one in which a run crashed before it was described", async () => {
    const path = await scratch();
    await writeFile(join(path, ".fwm-tmp-1-0-run.json"), "{");
    const process = { pid: await endedProcess(), host: hostname(), started: "long ago" };
    await writeFile(join(path, lockFile), JSON.stringify({ token: "t", process }));
    await (await createRun(path, description())).close("finished");
    expect((await readdir(path)).filter((name) => name.startsWith("."))).toEqual([]);
  });

  it.each(["ENOSPC", "EROFS", "EPERM"])(
    "that the disk refuses with %s leaves nothing behind",
    async (code) => {
      const path = await freshPath();
      for (const failing of ["mkdir", "open", "write", "rename"]) {
        const fs = watchedDisk(([name, on]) => {
          if (name === failing && on !== join(path, "..")) throw systemError(code);
        });
        const error = await rejection(createRun(path, description(), { fs }));
        expect(error).toBeInstanceOf(StorageError);
        expect(error.message).toContain(path);
        await expect(readdir(path)).rejects.toThrow(/ENOENT/);
      }
    },
  );

  it("writes metrics, TensorBoard points and hyper-parameters", async () => {
    const path = await freshPath();
    const run = await createRun(path, description());
    await train(run, 0, 6);
    await run.close("finished");
    expect(await readMetrics(path, { withoutTimes: true })).toEqual([0, 1, 2, 3, 4, 5].flatMap(recordsAt));
    const events = async (folder: string): Promise<string> => {
      const names = (await readdir(folder)).filter((name) => name.startsWith("events.out.tfevents."));
      expect(names.length).toBe(1);
      const records = decodeRecords(await readFile(join(folder, names[0]!)));
      return records.map((record) => new TextDecoder().decode(record)).join("\n");
    };
    expect((await events(join(path, "train"))).match(/loss\/train/g)!.length).toBe(6);
    expect((await events(join(path, "valid"))).match(/accuracy\/valid/g)!.length).toBe(2);
    expect(await events(path)).toMatch(/_hparams_\/session_start_info[\s\S]*system\.memory/);
  });

  it("has its metrics on the disk before the checkpoint that counts on them appears", async () => {
    const path = await freshPath();
    const order: string[] = [];
    const fs = watchedDisk(([name, on]) => {
      if (name === "rename" && on.endsWith("checkpoint-1")) order.push("checkpoint");
    });
    const run = await createRun(path, description(), { fs });
    const sync = vi
      .spyOn(MetricsWriter.prototype, "sync")
      .mockImplementation(() => void order.push("metrics"));
    run.log({ step: 0, split: "train", values: { loss: 1 } });
    await run.save(sample(1));
    sync.mockRestore();
    expect(order).toEqual(["metrics", "checkpoint"]);
    await run.close("finished");
  });

  it("keeps its numbers for lists, its note and its heartbeat", async () => {
    const path = await freshPath();
    const run = await createRun(path, description());
    const before = (await readRun(path)).updated;
    await run.heartbeat(1);
    expect((await readRun(path)).step).toBe(0);
    await new Promise((resolve) => setTimeout(resolve, 5));
    await run.update({ step: 7, summary: { accuracy: 0.5 } });
    const record = await readRun(path);
    expect(record).toMatchObject({ step: 7, summary: { accuracy: 0.5 } });
    expect(record.updated > before).toBe(true);
    await run.close("diverged", "loss is NaN at step 8");
    expect(await readRun(path)).toMatchObject({ state: "diverged", note: "loss is NaN at step 8" });
    await expect(run.close("finished")).rejects.toThrow(/closed already/);
  });
});

describe("resuming", () => {
  it("gives the files of a run that never stopped", async () => {
    const whole = await freshPath();
    const straight = await createRun(whole, description());
    await train(straight, 0, 12);
    await straight.close("finished");

    const path = await freshPath();
    const first = await createRun(path, description());
    await train(first, 0, 7);
    await first.close("interrupted");
    const second = await resumeRun(path, description());
    expect(second.checkpoint!.step).toBe(4);
    await train(second.run, 4, 12);
    await second.run.close("finished");

    const options = { withoutTimes: true };
    expect(await readMetrics(path, options)).toEqual(await readMetrics(whole, options));
    const names = (await listCheckpoints(whole)).map(({ name }) => name);
    expect((await listCheckpoints(path)).map(({ name }) => name)).toEqual(names);
    for (const name of names) {
      const file = join(name, "manifest.json");
      expect(await readFile(join(path, file))).toEqual(await readFile(join(whole, file)));
    }
    for (const pointer of ["last", "best"]) {
      expect(await readFile(join(path, pointer))).toEqual(await readFile(join(whole, pointer)));
    }
    const { resumed } = await readRun(path);
    expect(resumed).toMatchObject([{ step: 4, command: description().command }]);
  });

  it("passes a damaged checkpoint over, names it and goes on from the one before", async () => {
    const path = await freshPath();
    const run = await createRun(path, description());
    await train(run, 0, 9);
    await run.close("interrupted");
    await truncate(join(path, "checkpoint-8", "model.safetensors"), 100);
    const resumed = await resumeRun(path, description());
    expect(resumed.checkpoint!.step).toBe(4);
    expect(resumed.skipped).toMatchObject([{ path: join(path, "checkpoint-8") }]);
    expect((await readMetrics(path)).at(-1)!.step).toBe(3);
    await train(resumed.run, 4, 8);
    await resumed.run.close("finished");
    expect((await listCheckpoints(path)).map(({ name }) => name)).toEqual(["checkpoint-4", "checkpoint-8"]);
  });

  it("begins again when there was no checkpoint yet", async () => {
    const path = await freshPath();
    const run = await createRun(path, description());
    await train(run, 0, 3);
    await run.close("interrupted");
    const { run: again, checkpoint } = await resumeRun(path, description());
    expect(checkpoint).toBeUndefined();
    expect(await readMetrics(path)).toEqual([]);
    await again.close("interrupted");
  });

  it("voids TensorBoard's later points in every split at once", async () => {
    const path = await freshPath();
    const run = await createRun(path, description());
    await train(run, 0, 7);
    await run.close("interrupted");
    await (await resumeRun(path, description())).run.close("interrupted");
    for (const split of ["train", "valid"]) {
      const names = (await readdir(join(path, split))).sort();
      expect(names.length).toBe(2);
      const records = decodeRecords(await readFile(join(path, split, names[1]!)));
      // step 4, SessionLog START
      expect(Buffer.from(records[1]!.subarray(9)).toString("hex")).toBe("10043a020801");
    }
  });

  it("lets the caller say which step comes first, for steps counted from one", async () => {
    const path = await freshPath();
    const run = await createRun(path, description());
    for (const step of [1, 2, 3]) run.log({ step, split: "train", values: {} });
    await run.save(sample(2));
    await run.close("interrupted");
    const resumed = await resumeRun(path, description(), { firstStep: ({ step }) => step + 1 });
    expect((await readMetrics(path)).map(({ step }) => step)).toEqual([1, 2]);
    await resumed.run.close("interrupted");
  });

  it("takes back the records of one split from an earlier step on than those of another", async () => {
    const path = await freshPath();
    const run = await createRun(path, description());
    for (const split of ["train", "valid"]) run.log({ step: 2, split, values: {} });
    await run.save(sample(2));
    await run.close("interrupted");
    const firstStep = ({ step }: { step: number }, split: string) => (split === "valid" ? step : step + 1);
    const resumed = await resumeRun(path, description(), { firstStep });
    expect((await readMetrics(path)).map(({ split }) => split)).toEqual(["train"]);
    await resumed.run.close("interrupted");
  });

  it("changes nothing where the caller refuses the checkpoint", async () => {
    const path = await freshPath();
    const run = await createRun(path, description());
    await run.save(sample(2));
    run.log({ step: 3, split: "train", values: {} });
    await run.close("interrupted");
    const before = await readRun(path);
    const check = (checkpoint: { step: number } | undefined) => {
      throw new Error(`not from ${checkpoint?.step}`);
    };
    await expect(resumeRun(path, description(), { check })).rejects.toThrow("not from 2");
    expect(await readRun(path)).toEqual(before);
    expect(await readMetrics(path)).toHaveLength(1);
  });

  it("removes no checkpoint where the metrics are damaged before records to be kept", async () => {
    const path = await freshPath();
    const run = await createRun(path, description());
    for (const step of [1, 2, 3]) {
      for (let i = 0; i < 3; i++) run.log({ step: step - 1, split: "train", values: {} });
      await run.save(sample(step));
    }
    await run.close("interrupted");
    const text = await readFile(join(path, "metrics.jsonl"), "utf8");
    await writeFile(join(path, "metrics.jsonl"), `{"step":\n${text}`);
    const before = await readdir(path);
    await expect(resumeRun(path, description(), { from: "checkpoint-2" })).rejects.toThrow(
      /metrics\.jsonl:1/,
    );
    expect(await readdir(path)).toEqual(before);
    expect(await readFile(join(path, "last"), "utf8")).toBe("checkpoint-3\n");
  });

  it("tells what differs from the machine it began on", async () => {
    const path = await freshPath();
    await (await createRun(path, description())).close("interrupted");
    const environment = { ...description().environment, threads: 1, ort: null };
    const { run, differences } = await resumeRun(path, { ...description(), environment });
    expect(differences).toEqual(["threads: 2 → 1", "ort: 1.30.0 → unknown"]);
    await run.close("interrupted");
  });

  it("refuses what is not a run, a checkpoint of another run, and a damaged run.json", async () => {
    const path = await freshPath();
    await expect(resumeRun(path, description())).rejects.toThrow(/not a run folder[\s\S]*run\.json/);
    const run = await createRun(path, description());
    await train(run, 0, 4);
    await run.close("interrupted");
    const foreign = await freshPath();
    const other = await createRun(foreign, description());
    await train(other, 0, 4);
    await other.close("interrupted");
    const from = join(foreign, "checkpoint-4");
    await expect(resumeRun(path, description(), { from })).rejects.toThrow(/not a checkpoint of this run/);
    await expect(resumeRun(path, description(), { from: "checkpoint-5" })).rejects.toThrow(/no such folder/);
    const text = await readFile(join(path, "run.json"), "utf8");
    const damages: [string, RegExp][] = [
      [text.slice(0, 50), /run\.json: not valid JSON/],
      [text.replace('"version": 1', '"version": 9'), /format version 9/],
      [text.replace('"seed"', '"sead"'), /not a run record/],
      [text.replace('"settings": {', '"settings": {"__proto__": {},'), /"__proto__" is not allowed/],
    ];
    for (const [damaged, problem] of damages) {
      await writeFile(join(path, "run.json"), damaged);
      const error = await rejection(resumeRun(path, description()));
      expect(error).toBeInstanceOf(DataError);
      expect(error.message).toMatch(problem);
    }
    expect((await readdir(path)).includes(lockFile)).toBe(false);
  });
});

describe("a disk that fails", () => {
  it("is reported as it failed first, whatever tidying up meets", async () => {
    for (const failing of ["open", "write", "sync", "rename"] as const) {
      const path = await freshPath();
      const fs = watchedDisk(([name, at]) => {
        if (name === failing && /run\.json|\.fwm-tmp/.test(at)) throw systemError("EROFS");
        if (name === "rm") throw systemError("EIO");
      });
      const error = await rejection(createRun(path, description(), { fs }));
      expect(error).toBeInstanceOf(StorageError);
      expect((error as StorageError).code, failing).toBe("EROFS");
      expect(error.message).toMatch(/read-only[\s\S]*mount it for writing/);
    }
  });

  it("that is read-only is not taken for a missing folder", async () => {
    const path = await freshPath();
    const fs = {
      ...promises,
      // As Node does on a read-only file system.
      mkdir: (_path: string, options?: { recursive?: boolean }) =>
        Promise.reject(systemError(options?.recursive ? "ENOENT" : "EROFS")),
    } as unknown as FileSystem;
    await expect(createRun(path, description(), { fs })).rejects.toMatchObject({ code: "EROFS" });
  });

  it("at the end of a run is reported, and the lock is released all the same", async () => {
    const path = await freshPath();
    let full = false;
    const fs = watchedDisk(([name]) => {
      if (full && name === "write") throw systemError("ENOSPC");
    });
    const run = await createRun(path, description(), { fs });
    full = true;
    await expect(run.close("finished")).rejects.toThrow(/the disk is full/);
    expect(await readdir(path)).not.toContain(lockFile);
  });
});

describe("the lock", () => {
  it("keeps a second process out, naming the first", async () => {
    const path = await freshPath();
    const run = await createRun(path, description());
    const error = await rejection(resumeRun(path, description()));
    expect(error).toBeInstanceOf(UsageError);
    expect(error.message).toMatch(new RegExp(`another process is training[\\s\\S]*${process.pid} on`));
    await run.close("interrupted");
    await (await resumeRun(path, description())).run.close("interrupted");
  });

  it("is taken by exactly one of many at once, also from a dead owner", async () => {
    for (let round = 0; round < 20; round++) {
      const folder = await scratch();
      if (round > 0) {
        const owner = { pid: await endedProcess(), host: hostname(), started: "then" };
        await writeFile(join(folder, lockFile), JSON.stringify({ token: "t", process: owner }));
      }
      const results = await Promise.allSettled(Array.from({ length: 12 }, () => acquireLock(folder)));
      expect(results.filter(({ status }) => status === "fulfilled").length).toBe(1);
      expect(await readdir(folder)).toEqual([lockFile]);
    }
  });

  it(
    "is not held by a later process with the same id",
    skipUnless(process.platform === "linux", "it needs Linux"),
    async () => {
      const folder = await scratch();
      const owner = { ...thisProcess(), started: "another boot/1" };
      expect(isRunning(owner)).toBe(false);
      expect(isRunning(thisProcess())).toBe(true);
      await writeFile(join(folder, lockFile), JSON.stringify({ token: "t", process: owner }));
      await (await acquireLock(folder)).release();
    },
  );

  const elsewhere = JSON.stringify({ token: "t", process: { pid: 1, host: "elsewhere", started: null } });

  it.each([-11, 11])(
    "of another host is honoured until its last sign is %i minutes away",
    async (minutes) => {
      const folder = await scratch();
      await writeFile(join(folder, lockFile), elsewhere);
      await expect(acquireLock(folder)).rejects.toThrow(/another process is training/);
      // Ahead of the clock: it was set back since.
      const sign = new Date(Date.now() + minutes * 60_000);
      await utimes(join(folder, lockFile), sign, sign);
      await (await acquireLock(folder)).release();
    },
  );

  it.each(["", "{", elsewhere.slice(0, 40)])(
    "that was cut (%j) is taken once it has had time",
    async (cut) => {
      const folder = await scratch();
      await writeFile(join(folder, lockFile), cut);
      // Whatever the clock says.
      const ahead = new Date(Date.now() + 86_400_000);
      await utimes(join(folder, lockFile), ahead, ahead);
      const begin = performance.now();
      await (await acquireLock(folder)).release();
      expect(performance.now() - begin).toBeGreaterThan(900);
      expect(await readdir(folder)).toEqual([]);
    },
  );

  it("that is still being written is waited for", async () => {
    const folder = await scratch();
    await writeFile(join(folder, lockFile), "{");
    const second = acquireLock(folder);
    await new Promise((resolve) => setTimeout(resolve, 200));
    await writeFile(join(folder, lockFile), JSON.stringify({ token: "t", process: thisProcess() }));
    await expect(second).rejects.toThrow(new RegExp(`another process is training[\\s\\S]*${process.pid} on`));
    expect(await readdir(folder)).toEqual([lockFile]);
  });

  it("is taken although a crash left somebody's turn, whatever the clock says", async () => {
    const folder = await scratch();
    const owner = { pid: await endedProcess(), host: hostname(), started: "then" };
    await writeFile(join(folder, lockFile), JSON.stringify({ token: "t", process: owner }));
    const turn = temporaryBeside(join(folder, lockFile), "turn");
    await mkdir(turn);
    const ahead = new Date(Date.now() + 86_400_000);
    await utimes(turn, ahead, ahead);
    await (await acquireLock(folder)).release();
    expect(await readdir(folder)).toEqual([]);
  });

  it("that is a folder or a link is refused with a message, and left", async () => {
    const folder = await scratch();
    await mkdir(join(folder, lockFile));
    await expect(acquireLock(folder)).rejects.toThrow(/run\.lock: not a regular file[\s\S]*a folder/);
    await rm(join(folder, lockFile), { recursive: true });
    await symlink("nowhere", join(folder, lockFile));
    const error = await rejection(acquireLock(folder));
    expect(error).toBeInstanceOf(UsageError);
    expect(error.message).toMatch(/a symbolic link/);
    expect(await readdir(folder)).toEqual([lockFile]);
  });

  it("tells its owner whether the folder or only the lock was removed", async () => {
    const path = await freshPath();
    const run = await createRun(path, description());
    await rm(join(path, lockFile));
    expect((await rejection(run.update({}))).message).toMatch(/the lock was removed/);
    await rm(path, { recursive: true });
    expect((await rejection(run.save(sample(1)))).message).toMatch(/the run folder is gone/);
    expect((await rejection(run.close("failed"))).message).toMatch(/the run folder is gone/);
  });

  it("that was lost stops its former owner, and is not released by it", async () => {
    const path = await freshPath();
    const run = await createRun(path, description());
    const thief = JSON.stringify({ token: "mine", process: thisProcess() });
    await writeFile(join(path, lockFile), thief);
    const error = await rejection(run.update({}));
    expect(error).toBeInstanceOf(FwmError);
    expect(error.message).toMatch(/another process has taken this run over/);
    await expect(run.save(sample(1))).rejects.toThrow(/taken this run over/);
    expect(await listCheckpoints(path)).toEqual([]);
    await expect(run.close("finished")).rejects.toThrow(/taken this run over/);
    expect(await readFile(join(path, lockFile), "utf8")).toBe(thief);
  });
});

describe("lists", () => {
  it("show whole runs, name damaged ones, and read run.json alone", async () => {
    const root = await scratch();
    for (const name of ["b", "a", "c"])
      await (await createRun(join(root, name), description())).close("finished");
    await rm(join(root, "c", "metrics.jsonl"), { force: true });
    await writeFile(join(root, "c", "last"), "nonsense");
    await mkdir(join(root, "empty"));
    await mkdir(join(root, "broken"));
    await writeFile(join(root, "broken", "run.json"), "{");
    await writeFile(join(root, "readme.txt"), "");
    await mkdir(join(root, ".hidden"));
    const { runs, damaged } = await listRuns(root);
    expect(runs.map(({ name }) => name)).toEqual(["b", "a", "c"]);
    expect(runs[0]).toMatchObject({ path: join(root, "b"), state: "finished" });
    expect(damaged.map(({ path }) => path)).toEqual([join(root, "broken"), join(root, "empty")]);
    expect(damaged[0]!.problem).toMatch(/not valid JSON/);
    expect(damaged[1]!.problem).toMatch(/not a run folder/);
    expect(await listRuns(join(root, "nowhere"))).toEqual({ runs: [], damaged: [] });
  });

  it("call a run interrupted when its process is gone", async () => {
    const record = newRecord(description(), new Date().toISOString());
    const ended = { pid: await endedProcess(), host: hostname(), started: null };
    expect(effectiveState({ ...record, process: thisProcess() })).toBe("running");
    expect(effectiveState({ ...record, process: ended })).toBe("interrupted");
    expect(effectiveState({ ...record, process: ended, state: "finished" })).toBe("finished");
    const elsewhere = { pid: 1, host: "elsewhere", started: null };
    expect(effectiveState({ ...record, process: elsewhere })).toBe("running");
    for (const minutes of [-11, 11]) {
      const updated = new Date(Date.now() + minutes * 60_000).toISOString();
      expect(effectiveState({ ...record, process: elsewhere, updated })).toBe("interrupted");
    }
  });

  it("of a thousand runs cost less than two seconds of a core", async () => {
    const root = await scratch();
    const text = JSON.stringify(newRecord(description(), new Date().toISOString()));
    for (let i = 0; i < 1000; i++) {
      await mkdir(join(root, `run-${i}`));
      await writeFile(join(root, `run-${i}`, "run.json"), text);
    }
    const begin = process.cpuUsage();
    expect((await listRuns(root)).runs.length).toBe(1000);
    // About 0.2 s, however long the machine makes it wait.
    const { user, system } = process.cpuUsage(begin);
    expect((user + system) / 1e6).toBeLessThan(2);
  });
});

describe("the environment", () => {
  it("names this machine and what the engine told", () => {
    const environment = describeEnvironment({ threads: 2, ort: "1.30.0", device: "cpu" });
    expect(environment).toMatchObject({ node: process.version, threads: 2, ort: "1.30.0", device: "cpu" });
    expect(environment.cores).toBeGreaterThan(0);
    const before = { packageVersion: "1.0.0", gitCommit: `${"a".repeat(40)}-dirty`, environment };
    const elsewhere = { ...before, environment: { ...environment, os: "other", cores: 99 } };
    expect(provenanceDifferences(before, elsewhere)).toEqual([]);
    const later = {
      packageVersion: "1.1.0",
      gitCommit: "b".repeat(40),
      environment: { ...environment, threads: 1 },
    };
    expect(provenanceDifferences(before, later)).toEqual([
      "version of fwm: 1.0.0 → 1.1.0",
      "commit: aaaaaaaaaaaa-dirty → bbbbbbbbbbbb",
      "threads: 2 → 1",
    ]);
    expect(provenanceDifferences({ ...before, gitCommit: null }, before)).toEqual([
      "commit: unknown → aaaaaaaaaaaa-dirty",
    ]);
    expect(describeEnvironment({})).toMatchObject({ threads: null, ort: null, device: null });
  });

  it("has a commit inside a repository and none outside", async () => {
    expect(gitCommit(await scratch())).toBeNull();
    expect(gitCommit(join(await scratch(), "nowhere"))).toBeNull();
    const here = gitCommit(import.meta.dirname);
    if (here !== null) expect(here).toMatch(/^[0-9a-f]{40}(-dirty)?$/);
  });
});
