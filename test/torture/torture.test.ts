/**
 * Torture: kills and refusals of the disk at random calls, damaged and hostile files, readers beside a writer that
 * prunes. Every case is made by a seed of its own, which a failure names:
 *
 *   FWM_TORTURE_SEED=<seed>        the first case has this seed, the next one the seed after it
 *   FWM_TORTURE_MINUTES=<minutes>  for how long; half a minute by default
 *
 * A line at the end says how much was done.
 */
import { createHash } from "node:crypto";
import { cp, mkdir, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { catbabiVocabulary } from "../../src/data/vocabulary.ts";
import { FwmError, printable } from "../../src/errors.ts";
import { loadModel } from "../../src/inference/load.ts";
import { isTemporary } from "../../src/store/atomic.ts";
import { loadCheckpoint, newestValid, readPointer, saveCheckpoint } from "../../src/store/checkpoint.ts";
import { lockFile } from "../../src/store/lock.ts";
import { describeFiles, encodeManifest, manifestFile } from "../../src/store/manifest.ts";
import { metricsFile, readMetrics } from "../../src/store/metrics.ts";
import { loadModelFolder } from "../../src/store/modelFolder.ts";
import { createRun, resumeRun } from "../../src/store/run.ts";
import { listRuns, readRun, runFile } from "../../src/store/runRecord.ts";
import { modelBytes, smallFwm, weightsOf } from "../inference/support.ts";
import { scratch } from "../store/helpers.ts";
import { orphan } from "../store/orphan.ts";
import { description, recordsAt, sample } from "../store/samples.ts";
import { callsMade, interruptedAt, killedAt, refusedAt } from "../support/mortalDisk.ts";
import { mutateBytes, mutateJson, mutateSafetensors } from "./mutate.ts";
import { Choices } from "./random.ts";

vi.mock("node:fs", async (original) => {
  const { mortal } = await import("../support/mortalDisk.ts");
  return mortal(await original<object>());
});
vi.mock("node:fs/promises", async (original) => {
  const { mortal } = await import("../support/mortalDisk.ts");
  return mortal(await original<object>());
});

const firstSeed = Number(process.env.FWM_TORTURE_SEED ?? 1);
const budget = 60_000 * Number(process.env.FWM_TORTURE_MINUTES ?? 0.5);
const counts = new Map<string, number>();

function count(what: string, by = 1): void {
  counts.set(what, (counts.get(what) ?? 0) + by);
}

afterAll(() => {
  const figures = [...counts].map(([what, number]) => `${number} ${what}`).join(", ");
  process.stdout.write(`torture from seed ${firstSeed}: ${figures}\n`);
});

/** Runs cases for a share of the time, at least one. A failure names the seed of its case. */
async function forAWhile(share: number, torment: (seed: number) => Promise<void>): Promise<void> {
  const end = performance.now() + share * budget;
  for (let seed = firstSeed; seed === firstSeed || performance.now() < end; seed++) {
    try {
      await torment(seed);
    } catch (error) {
      throw new Error(`FWM_TORTURE_SEED=${seed}: ${(error as Error).message}`, { cause: error });
    }
  }
}

/** What a refusal looks like: an error a person can act on, of a bearable length, that cannot harm a terminal. */
function expectRefusal(error: unknown): void {
  if (!(error instanceof FwmError)) throw error;
  expect(error.message).toBe(printable(error.message));
  expect(error.message.length).toBeLessThan(20_000);
}

describe("a run whose process is killed, or whose disk refuses, at random calls", () => {
  const steps = 6;

  /** One command line: goes on with the run or begins it; every choice depends on the step alone. */
  async function trainTo(folder: string, seed: number): Promise<void> {
    const begun = (await readdir(folder).catch((): string[] => [])).includes(runFile);
    const { run, checkpoint } = begun
      ? await resumeRun(folder, description())
      : { run: await createRun(folder, description()), checkpoint: undefined };
    try {
      for (let step = checkpoint?.step ?? 0; step < steps; ) {
        for (const record of recordsAt(step)) run.log(record);
        step++;
        const choices = new Choices(seed * 100 + step, "step");
        if (choices.chance(0.7) || step === steps)
          await run.save({ ...sample(step), best: choices.chance(0.4) });
      }
    } catch (error) {
      await run.close("failed").catch(() => undefined);
      throw error;
    }
    await run.close("finished");
  }

  /** What holds at every moment, however the process ended. */
  async function expectWhole(folder: string, before: number): Promise<number> {
    const found =
      (await readdir(folder).catch((): string[] => [])).length > 0 ? await newestValid(folder) : undefined;
    if (!found) {
      expect(before).toBe(0);
      return 0;
    }
    expect(found.skipped).toEqual([]);
    expect({ ...found.checkpoint.model }).toEqual(sample(found.checkpoint.step).model);
    expect(found.checkpoint.step).toBeGreaterThanOrEqual(before);
    if ((await readPointer(folder, "best")) !== undefined) await loadCheckpoint(folder, { which: "best" });
    return found.checkpoint.step;
  }

  test("goes on with the same line, and ends as if nothing had happened", {
    timeout: budget + 60_000,
  }, async () => {
    await forAWhile(0.4, async (seed) => {
      const choices = new Choices(seed, "kills");
      const folder = join(await scratch(), "run");
      let reached = 0;
      for (let finished = false, rounds = 0; !finished; rounds++) {
        // Later rounds get further, so that a case comes to its end.
        const call = choices.below(60 * (rounds + 1));
        if (choices.chance(0.5)) {
          finished = await killedAt(call, () => trainTo(folder, seed));
          if (!finished) count("kills");
          await orphan(folder);
        } else {
          const code = choices.of(["ENOSPC", "EIO", "EROFS", "EACCES", "EMFILE", "EPERM"]);
          const error = await refusedAt(call, code, () => trainTo(folder, seed));
          if (callsMade() > call) count("refusals of the disk");
          if (error !== undefined) expectRefusal(error);
          await orphan(folder);
          finished = error === undefined && (await readRun(folder)).state === "finished";
        }
        reached = await expectWhole(folder, reached);
      }
      expect(reached).toBe(steps);
      const wanted = Array.from({ length: steps }, (_, step) => recordsAt(step)).flat();
      expect(await readMetrics(folder, { withoutTimes: true })).toEqual(wanted);
      const { run } = await resumeRun(folder, description());
      await run.close("finished");
      expect((await readdir(folder)).filter((name) => isTemporary(name) || name === lockFile)).toEqual([]);
      await rm(folder, { recursive: true });
    });
  });
});

describe("a run with a damaged or hostile file", () => {
  let base: string;

  beforeAll(async () => {
    base = join(await scratch(), "run");
    const { config } = modelBytes(smallFwm);
    const run = await createRun(base, description());
    for (const step of [1, 2, 3]) {
      for (let i = 0; i < 8; i++) for (const record of recordsAt(step - 1)) run.log(record);
      await run.save({
        ...sample(step),
        config: JSON.parse(config) as Record<string, unknown>,
        model: weightsOf(smallFwm),
        files: { "vocab.json": JSON.stringify(catbabiVocabulary.words), "README.md": "# A model\n" },
        best: step === 2,
      });
    }
    await run.close("interrupted");
  });

  /** Writes the manifest anew, as one would who means harm. */
  async function sign(folder: string, step: number): Promise<void> {
    const entries = await readdir(folder, { withFileTypes: true });
    const files = new Map<string, Uint8Array>();
    for (const entry of entries) {
      if (entry.isFile() && entry.name !== manifestFile) {
        files.set(entry.name, await readFile(join(folder, entry.name)));
      }
    }
    const manifest = describeFiles(files, { kind: "checkpoint", step, best: "checkpoint-2" });
    await writeFile(join(folder, manifestFile), encodeManifest(manifest));
  }

  /** Damages a file; `unsigned` has the checkpoints whose manifest tells of it. */
  async function damage(choices: Choices, folder: string, unsigned: Set<string>): Promise<void> {
    count("damaged or hostile files");
    const checkpoint = choices.of(["checkpoint-2", "checkpoint-3"]);
    const inside = [
      "config.json",
      "model.safetensors",
      "optimizer.safetensors",
      "trainer_state.json",
      "vocab.json",
    ];
    const name = choices.of([
      runFile,
      metricsFile,
      "last",
      "best",
      lockFile,
      manifestFile,
      ...inside,
      ...inside,
    ]);
    const isInside = inside.includes(name) || name === manifestFile;
    const path = isInside ? join(folder, checkpoint, name) : join(folder, name);
    const bytes = await readFile(path).catch(() => Buffer.from('{"token":"t"}'));
    if (choices.chance(0.06)) {
      await rm(path, { recursive: true, force: true });
      if (choices.chance(0.3)) await mkdir(path);
      else if (choices.chance(0.5)) await symlink(join(folder, "..", "outside"), path);
      if (isInside && name !== manifestFile) unsigned.add(checkpoint);
      else unsigned.delete(checkpoint);
      return;
    }
    const changed = choices.chance(0.4)
      ? mutateBytes(choices, bytes)
      : name.endsWith(".safetensors")
        ? mutateSafetensors(choices, bytes)
        : Buffer.from(
            bytes
              .toString()
              .split("\n")
              .map((line) => (name === metricsFile && choices.chance(0.5) ? line : mutateJson(choices, line)))
              .join("\n"),
          );
    // Never through a link, and not into a folder, that an earlier damage put there.
    await rm(path, { recursive: true, force: true });
    await writeFile(path, changed, { flag: "wx" });
    if (!isInside || Buffer.compare(changed, bytes) === 0) return;
    if (name !== manifestFile && choices.chance(0.4)) {
      unsigned.add(checkpoint);
      return;
    }
    // A manifest that was changed may have lost what it told.
    unsigned.delete(checkpoint);
    if (name !== manifestFile) await sign(join(folder, checkpoint), Number(checkpoint.at(-1)));
  }

  /** Everything a program reads of a run, each on its own. */
  const readers: Readonly<Record<string, (folder: string) => Promise<unknown>>> = {
    readRun,
    readMetrics: (folder) => readMetrics(folder),
    listRuns: (folder) => listRuns(join(folder, "..")),
    last: (folder) => loadCheckpoint(folder),
    best: (folder) => loadCheckpoint(folder, { which: "best" }),
    newestValid,
    loadModelFolder: (folder) => loadModelFolder(folder),
    async ask(folder) {
      const model = await loadModel(folder);
      try {
        const { answers } = await model.stream().ask([...known(model.vocabulary.words), "?"], { top: 200 });
        expect(answers.every(({ probability }) => probability >= 0 && probability <= 1)).toBe(true);
      } finally {
        await model.release();
      }
    },
  };

  function known(words: readonly string[]): string[] {
    return words.filter((word) => word === "mary" || word === "where");
  }

  test("is read, or refused with a message, and never harmed by a refusal", {
    timeout: budget + 60_000,
  }, async () => {
    await forAWhile(0.45, async (seed) => {
      const choices = new Choices(seed, "damage");
      const folder = join(await scratch(), "run");
      await cp(base, folder, { recursive: true });
      await writeFile(join(folder, "..", "outside"), "not of this run");
      const unsigned = new Set<string>();
      do await damage(choices, folder, unsigned);
      while (choices.chance(0.4));
      for (const [name, read] of Object.entries(readers)) {
        const begin = performance.now();
        try {
          await read(folder);
          count("reads that went through");
        } catch (error) {
          expectRefusal(error);
          count("reads refused");
        }
        expect(performance.now() - begin, name).toBeLessThan(20_000);
      }
      for (const name of unsigned) {
        await expect(loadCheckpoint(join(folder, name)), name).rejects.toThrow(FwmError);
      }
      await expectHarmlessResumption(folder);
      expect(await readFile(join(folder, "..", "outside"), "utf8")).toBe("not of this run");
      await rm(folder, { recursive: true, force: true });
    });
  });

  /** Resuming goes on from a whole checkpoint, or is refused and leaves every file as it was. */
  async function expectHarmlessResumption(folder: string): Promise<void> {
    const before = await fingerprint(folder);
    try {
      const { run, checkpoint } = await resumeRun(folder, description());
      await run.close("interrupted");
      if (checkpoint) await loadCheckpoint(checkpoint.path);
      count("resumed");
    } catch (error) {
      expectRefusal(error);
      expect(await fingerprint(folder)).toEqual(before);
      count("resumptions refused");
    }
  }
});

/** Paths and contents of everything in a folder but its lock. */
async function fingerprint(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const lines = entries
    .filter(({ name }) => name !== lockFile)
    .map(async (entry) => {
      const path = join(entry.parentPath, entry.name);
      const content = entry.isFile()
        ? createHash("sha256")
            .update(await readFile(path))
            .digest("hex")
        : "";
      return `${path.slice(folder.length)} ${content}`;
    });
  return (await Promise.all(lines)).sort();
}

describe("readers beside a writer that prunes", () => {
  test("always find a whole checkpoint", { timeout: budget + 60_000 }, async () => {
    await forAWhile(0.15, async (seed) => {
      const choices = new Choices(seed, "readers");
      const run = await scratch();
      let step = 0;
      const save = () =>
        saveCheckpoint(run, { ...sample(++step), best: step === 1 || choices.chance(0.5), keepLast: 1 });
      await save();
      for (let round = 0; round < 20; round++) {
        const load = choices.of([
          () => loadCheckpoint(run),
          () => loadCheckpoint(run, { which: "best" }),
          () => loadModelFolder(run),
          () => loadModelFolder(run, { which: "last" }),
        ]);
        const meanwhile = async (): Promise<void> => {
          for (let saves = choices.below(4); saves >= 0; saves--) await save();
        };
        const { result } = await interruptedAt<{ step: number | undefined; model: object }>(
          choices.below(40),
          meanwhile,
          load,
        );
        expect({ ...result.model }).toEqual(sample(result.step!).model);
        count("reads beside a writer");
      }
      await rm(run, { recursive: true });
    });
  });
});
