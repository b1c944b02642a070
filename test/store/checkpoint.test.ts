/** Checkpoints and model folders: saved whole, read back exactly, pruned with care, refused when damaged. */
import {
  cp,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  symlink,
  truncate,
  writeFile,
} from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DataError, UsageError } from "../../src/errors.ts";
import { StorageError } from "../../src/store/atomic.ts";
import {
  listCheckpoints,
  loadCheckpoint,
  newestValid,
  readPointer,
  rewindCheckpoints,
  saveCheckpoint,
} from "../../src/store/checkpoint.ts";
import { loadModelFolder, saveModelFolder } from "../../src/store/modelFolder.ts";
import { NonFiniteError } from "../../src/store/safetensors.ts";
import { skipUnless } from "../support/skip.ts";
import { rejection, scratch, systemError, watchedDisk } from "./helpers.ts";
import { sample } from "./samples.ts";

async function namesIn(run: string): Promise<string[]> {
  return (await listCheckpoints(run)).map(({ name }) => name);
}

/** A run folder with checkpoints at some steps; the given one is best. */
async function runWith(steps: readonly number[], best?: number): Promise<string> {
  const run = await scratch();
  for (const step of steps) await saveCheckpoint(run, { ...sample(step), best: step === best, keepLast: 10 });
  return run;
}

describe("saving", () => {
  it("gives back every value", async () => {
    const run = await scratch();
    const files = { "vocab.json": '["a","b"]', "notes.bin": Uint8Array.of(0, 255) };
    const saved = await saveCheckpoint(run, { ...sample(500, { files }), best: true });
    const loaded = await loadCheckpoint(run);
    const { model, optimizer, config, state } = sample(500);
    expect(loaded).toMatchObject({
      path: saved.path,
      name: "checkpoint-500",
      step: 500,
      best: "checkpoint-500",
    });
    expect(loaded.config).toEqual(config);
    expect(loaded.state).toEqual(state);
    expect({ ...loaded.model }).toEqual(model);
    expect({ ...loaded.optimizer }).toEqual(optimizer);
    expect(new TextDecoder().decode(loaded.files["vocab.json"])).toBe(files["vocab.json"]);
    expect([...loaded.files["notes.bin"]!]).toEqual([0, 255]);
  });

  it("writes the documented files and nothing else", async () => {
    const run = await runWith([1]);
    expect((await readdir(run)).sort()).toEqual(["checkpoint-1", "last"]);
    expect((await readdir(join(run, "checkpoint-1"))).sort()).toEqual([
      "config.json",
      "manifest.json",
      "model.safetensors",
      "optimizer.safetensors",
      "trainer_state.json",
    ]);
    expect(await readFile(join(run, "last"), "utf8")).toBe("checkpoint-1\n");
  });

  it("gives equal bytes for equal states", async () => {
    const [a, b] = [await runWith([7]), await runWith([7])];
    for (const name of await readdir(join(a, "checkpoint-7"))) {
      expect(await readFile(join(a, "checkpoint-7", name))).toEqual(
        await readFile(join(b, "checkpoint-7", name)),
      );
    }
  });

  it("of NaN is refused, and the earlier checkpoint stays the last", async () => {
    const run = await runWith([1]);
    const data = Float32Array.of(1, Number.NaN);
    const bad = sample(2, { optimizer: { "adam.v": { dtype: "f32", shape: [2], data } } });
    const error = await rejection(saveCheckpoint(run, { ...bad, keepLast: 1 }));
    expect(error).toBeInstanceOf(NonFiniteError);
    expect((error as NonFiniteError).exitCode).toBe(4);
    expect(error.message).toMatch(/optimizer\.safetensors: adam\.v\[1\] is NaN/);
    expect((await loadCheckpoint(run)).step).toBe(1);
  });

  it("of a number JSON would change is refused", async () => {
    const run = await scratch();
    const state = { best: Number.POSITIVE_INFINITY };
    await expect(saveCheckpoint(run, sample(1, { state }))).rejects.toThrow(
      /trainer_state.json.*best = Infinity/,
    );
    const poison = JSON.parse('{"__proto__":{"polluted":true}}') as Record<string, unknown>;
    await expect(saveCheckpoint(run, sample(1, { state: poison }))).rejects.toThrow(
      /"__proto__" is not allowed/,
    );
    expect(await readdir(run)).toEqual([]);
  });

  it.each(["../escape", "a/b", "", ".hidden", "config.json", "manifest.json"])(
    "of a further file named %j is refused",
    async (name) => {
      const run = await scratch();
      await expect(saveCheckpoint(run, sample(1, { files: { [name]: "" } }))).rejects.toThrow(
        /internal:.*further file/,
      );
    },
  );

  it("of one step twice keeps the folder if nothing changed, and adds a revision if something did", async () => {
    const run = await runWith([5]);
    expect((await saveCheckpoint(run, sample(5))).name).toBe("checkpoint-5");
    const changed = await saveCheckpoint(run, sample(5, { state: { step: 5, best: 0.5 } }));
    expect(changed.name).toBe("checkpoint-5-r2");
    expect((await loadCheckpoint(run)).state).toEqual({ step: 5, best: 0.5 });
    expect((await newestValid(run))!.checkpoint.name).toBe("checkpoint-5-r2");
    expect((await saveCheckpoint(run, { ...sample(6), keepLast: 1 })).pruned).toEqual([
      "checkpoint-5",
      "checkpoint-5-r2",
    ]);
  });

  it("over a damaged folder of the same step does not trust it", async () => {
    const run = await runWith([5]);
    await truncate(join(run, "checkpoint-5", "model.safetensors"), 10);
    expect((await saveCheckpoint(run, sample(5))).name).toBe("checkpoint-5-r2");
    expect((await loadCheckpoint(run)).step).toBe(5);
  });
});

describe("pruning", () => {
  it("keeps the newest N and the best", async () => {
    const run = await scratch();
    for (const step of [1, 2, 3, 4, 5, 10]) {
      await saveCheckpoint(run, { ...sample(step), best: step === 2, keepLast: 2 });
    }
    expect(await namesIn(run)).toEqual(["checkpoint-2", "checkpoint-5", "checkpoint-10"]);
    expect((await loadCheckpoint(run, { which: "best" })).step).toBe(2);
    expect((await loadCheckpoint(run, { which: "last" })).step).toBe(10);
  });

  it("lets the former best go when there is a better one", async () => {
    const run = await scratch();
    for (const step of [1, 2, 3, 4])
      await saveCheckpoint(run, { ...sample(step), best: step < 3, keepLast: 1 });
    expect(await namesIn(run)).toEqual(["checkpoint-2", "checkpoint-4"]);
  });

  it.each(["mkdir", "write", "sync", "rename"] as const)("does not happen when %s fails", async (failing) => {
    const run = await runWith([1, 2], 1);
    const fs = watchedDisk(([name, path]) => {
      if (name === failing && path.includes("checkpoint-3")) throw systemError("ENOSPC");
    });
    const error = await rejection(saveCheckpoint(run, { ...sample(3), keepLast: 1, fs }));
    expect(error).toBeInstanceOf(StorageError);
    expect(error.message).toContain(join(run, "checkpoint-3"));
    expect((await readdir(run)).sort()).toEqual(["best", "checkpoint-1", "checkpoint-2", "last"]);
    expect((await loadCheckpoint(run)).step).toBe(2);
  });

  it("does not happen when the new one cannot be read back whole", async () => {
    const run = await runWith([1]);
    // A disk that claims to have written and loses a byte.
    const real = watchedDisk(() => undefined);
    const lossy = {
      ...real,
      open: async (path: string, flags: string) => {
        const handle = await open(path, flags);
        const cut = (content: Uint8Array) =>
          path.endsWith("model.safetensors") ? content.slice(0, -1) : content;
        return {
          writeFile: (content: Uint8Array) => handle.writeFile(cut(content)),
          sync: () => handle.sync(),
          close: () => handle.close(),
        };
      },
    } as unknown as typeof real;
    await expect(saveCheckpoint(run, { ...sample(2), keepLast: 1, fs: lossy })).rejects.toThrow(/cut short/);
    const found = await newestValid(run);
    expect(found!.checkpoint.step).toBe(1);
    expect(found!.skipped).toMatchObject([{ path: join(run, "checkpoint-2") }]);
  });
});

describe("damage", () => {
  const parts = ["config.json", "model.safetensors", "optimizer.safetensors", "trainer_state.json"];

  it.each(parts)("of %s is named: missing, cut, longer, flipped", async (part) => {
    const run = await runWith([1]);
    const path = join(run, "checkpoint-1", part);
    const whole = await readFile(path);
    const expectProblem = async (problem: RegExp): Promise<void> => {
      const error = await rejection(loadCheckpoint(run));
      expect(error).toBeInstanceOf(DataError);
      expect(error.message).toMatch(problem);
      expect(error.message).toContain(part);
      expect(error.message).toContain(join(run, "checkpoint-1"));
    };
    await writeFile(path, whole.subarray(0, whole.length - 1));
    await expectProblem(/cut short/);
    await writeFile(path, Buffer.concat([whole, Buffer.of(0)]));
    await expectProblem(/too long/);
    for (const at of [0, whole.length >> 1, whole.length - 1]) {
      const flipped = Buffer.from(whole);
      flipped[at]! ^= 1;
      await writeFile(path, flipped);
      await expectProblem(/checksum mismatch/);
    }
    await rm(path);
    await expectProblem(/is missing/);
    await mkdir(path);
    await expectProblem(/not a regular file[\s\S]*a folder/);
  });

  it(
    "by symbolic links is refused, wherever they lead",
    skipUnless(process.platform !== "win32", "it needs symbolic links"),
    async () => {
      const run = await runWith([1, 2]);
      const model = join(run, "checkpoint-2", "model.safetensors");
      await rename(model, join(run, "elsewhere"));
      await symlink("../elsewhere", model);
      await expect(loadCheckpoint(run)).rejects.toThrow(/model\.safetensors is a symbolic link/);
      expect((await newestValid(run))!.checkpoint.step).toBe(1);
      await rm(join(run, "checkpoint-2"), { recursive: true });
      await symlink("checkpoint-1", join(run, "checkpoint-2"));
      expect(await namesIn(run)).toEqual(["checkpoint-1"]);
    },
  );

  it("makes resumption fall back to the newest whole one, naming the others", async () => {
    const run = await runWith([1, 2, 3, 4]);
    await truncate(join(run, "checkpoint-4", "optimizer.safetensors"), 3);
    await rm(join(run, "checkpoint-3", "manifest.json"));
    const { checkpoint, skipped } = (await newestValid(run))!;
    expect(checkpoint.step).toBe(2);
    expect(skipped.map(({ path }) => path)).toEqual([join(run, "checkpoint-4"), join(run, "checkpoint-3")]);
    expect(skipped[0]!.problem).toMatch(/optimizer\.safetensors is cut short/);
    expect(skipped[1]!.problem).toMatch(/manifest\.json is missing/);
  });

  it("of every checkpoint is an error that lists them", async () => {
    const run = await runWith([1, 2]);
    for (const name of await namesIn(run)) await rm(join(run, name, "config.json"));
    const error = await rejection(newestValid(run));
    expect(error).toBeInstanceOf(DataError);
    expect(error.message).toMatch(/no checkpoint is whole[\s\S]*checkpoint-2[\s\S]*checkpoint-1/);
    expect(await newestValid(await scratch())).toBeUndefined();
  });

  it("of a pointer is named, and leads nowhere", async () => {
    const run = await runWith([1]);
    for (const bad of [
      "../../etc",
      "/etc",
      "checkpoint-1/../..",
      "",
      "checkpoint-01",
      "checkpoint-1-r1",
      "x".repeat(999),
    ]) {
      await writeFile(join(run, "last"), bad);
      await expect(loadCheckpoint(run), bad).rejects.toThrow(/last: does not name a checkpoint/);
    }
    await writeFile(join(run, "last"), "x".repeat(5000));
    await expect(loadCheckpoint(run)).rejects.toThrow(/too large/);
    expect((await newestValid(run))!.checkpoint.step).toBe(1);
    await rm(join(run, "last"));
    expect((await loadCheckpoint(run)).step).toBe(1);
    await expect(loadCheckpoint(run, { which: "best" })).rejects.toThrow(/no best checkpoint here/);
  });
});

describe("manifests", () => {
  /** Loads a checkpoint after changing its manifest's text. */
  async function loadWith(change: (text: string) => string | Uint8Array): Promise<unknown> {
    const run = await runWith([1]);
    const path = join(run, "checkpoint-1", "manifest.json");
    await writeFile(path, change(await readFile(path, "utf8")));
    return loadCheckpoint(run);
  }
  const edit = (change: (manifest: Record<string, unknown>) => void) => (text: string) => {
    const manifest = JSON.parse(text) as Record<string, unknown>;
    change(manifest);
    return JSON.stringify(manifest);
  };
  const addFile = (name: string, entry: unknown) =>
    edit((manifest) => {
      manifest.files = { ...(manifest.files as object), [name]: entry };
    });
  const entry = { size: 1, sha256: "0".repeat(64) };

  const cases: [string, (text: string) => string | Uint8Array, RegExp][] = [
    ["another version", edit((m) => (m.version = 2)), /format version 2[\s\S]*another version of fwm/],
    ["a version of another type", edit((m) => (m.version = "1")), /format version "1"/],
    ["no version", edit((m) => delete m.version), /format version undefined/],
    ["another format", edit((m) => (m.format = "zip")), /not a manifest/],
    ["an unknown field", edit((m) => (m.extra = 1)), /Unrecognized key[\s\S]*extra/],
    ["an unknown field of a file", addFile("a.txt", { ...entry, mode: 1 }), /Unrecognized key[\s\S]*mode/],
    ["a negative step", edit((m) => (m.step = -1)), /step/],
    ["a best that leads out", edit((m) => (m.best = "../other")), /best/],
    ["a path that leads out", addFile("../../etc/passwd", entry), /not a plain file name|Invalid/],
    ["an absolute path", addFile("/etc/passwd", entry), /not a plain file name|Invalid/],
    ["a Windows path", addFile("..\\x", entry), /not a plain file name|Invalid/],
    ["a hidden file", addFile(".env", entry), /not a plain file name|Invalid/],
    ["a file that is not there", addFile("vocab.json", entry), /vocab\.json is missing/],
    ["a huge size", addFile("a.txt", { ...entry, size: 1e300 }), /size/],
    ["a wrong huge size", (t) => t.replace(/"size": \d+/, `"size": ${2 ** 53 - 1}`), /cut short/],
    ["a short checksum", addFile("a.txt", { size: 1, sha256: "00" }), /sha256/],
    ["__proto__ as a file", (t) => t.replace('"config.json"', '"__proto__"'), /"__proto__" is not allowed/],
    ["constructor as a field", (t) => t.replace('"step"', '"constructor"'), /"constructor" is not allowed/],
    [
      "a file twice",
      (t) => t.replace('"trainer_state.json"', '"config.json"'),
      /"config\.json" appears twice/,
    ],
    [
      "no config",
      edit((m) => delete (m.files as Record<string, unknown>)["config.json"]),
      /config\.json is not in its manifest/,
    ],
    ["an array", () => "[]", /expected a JSON object/],
    ["nothing", () => "", /not valid JSON/],
    ["bytes that are no text", () => Uint8Array.of(0xff, 0xfe), /not UTF-8/],
    ["megabytes", () => `{"a":"${"x".repeat(2 ** 20)}"}`, /too large/],
    ["a model's manifest", edit((m) => (m.kind = "model")), /not a checkpoint/],
  ];
  it.each(cases)("with %s are refused", async (_what, change, problem) => {
    const error = await rejection(loadWith(change));
    expect(error).toBeInstanceOf(DataError);
    expect(error.message).toMatch(problem);
    expect(error.message).toContain("checkpoint-1");
    expect(({} as Record<string, unknown>).size).toBeUndefined();
  });

  it("with random damage never cause anything but a DataError", async () => {
    const run = await runWith([1]);
    const path = join(run, "checkpoint-1", "manifest.json");
    const whole = await readFile(path);
    const change = fc.tuple(fc.nat(whole.length - 1), fc.nat(255));
    await fc.assert(
      fc.asyncProperty(
        fc.array(change, { minLength: 1, maxLength: 4 }),
        fc.nat(whole.length),
        async (changes, cut) => {
          const bytes = Buffer.from(whole);
          for (const [at, value] of changes) bytes[at] = value;
          await writeFile(path, cut % 3 === 0 ? bytes.subarray(0, cut) : bytes);
          try {
            const { step } = await loadCheckpoint(run);
            expect(Number.isSafeInteger(step)).toBe(true);
          } catch (error) {
            if (!(error instanceof DataError)) throw error;
          }
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe("rewinding", () => {
  it("removes later checkpoints and restores both pointers", async () => {
    const run = await scratch();
    for (const step of [1, 2, 3, 4]) {
      await saveCheckpoint(run, { ...sample(step), best: step === 1 || step === 4, keepLast: 10 });
    }
    expect(await readPointer(run, "best")).toBe("checkpoint-4");
    await rewindCheckpoints(run, await loadCheckpoint(run, { which: "checkpoint-2" }));
    expect(await namesIn(run)).toEqual(["checkpoint-1", "checkpoint-2"]);
    expect(await readPointer(run, "last")).toBe("checkpoint-2");
    expect(await readPointer(run, "best")).toBe("checkpoint-1");
  });

  it("leaves no best pointer to a folder that is gone", async () => {
    const run = await runWith([1, 2], 1);
    const checkpoint = await loadCheckpoint(run);
    await rm(join(run, "checkpoint-1"), { recursive: true });
    await rewindCheckpoints(run, checkpoint);
    expect(await readPointer(run, "best")).toBeUndefined();
    await rewindCheckpoints(run, undefined);
    expect(await readdir(run)).toEqual([]);
  });
});

describe("model folders", () => {
  const content = { config: { system: "fwm" }, model: sample(3).model };

  it("are read from a run (best, else last), a checkpoint and a model folder alike", async () => {
    const run = await runWith([1, 2, 3], 2);
    const model = await saveModelFolder(join(await scratch(), "deep", "model"), {
      ...content,
      step: 3,
      files: { "vocab.json": "[]" },
    });
    expect(await loadModelFolder(run)).toMatchObject({
      kind: "run",
      step: 2,
      path: join(run, "checkpoint-2"),
    });
    expect(await loadModelFolder(run, { which: "last" })).toMatchObject({ kind: "run", step: 3 });
    expect(await loadModelFolder(join(run, "checkpoint-1"))).toMatchObject({ kind: "checkpoint", step: 1 });
    const loaded = await loadModelFolder(model);
    expect(loaded).toMatchObject({ kind: "model", step: 3, path: model, config: content.config });
    expect({ ...loaded.model }).toEqual(content.model);
    expect(Object.keys(loaded.files)).toEqual(["vocab.json"]);
    await rm(join(run, "best"));
    expect((await loadModelFolder(run)).step).toBe(3);
  });

  it("put together by hand need no manifest; a checkpoint without its training state still answers", async () => {
    const model = await saveModelFolder(join(await scratch(), "model"), content);
    await rm(join(model, "manifest.json"));
    expect(await loadModelFolder(model)).toMatchObject({ kind: "model", step: undefined });
    const run = await runWith([1]);
    const copy = join(await scratch(), "copy");
    await cp(join(run, "checkpoint-1"), copy, { recursive: true });
    await rm(join(copy, "optimizer.safetensors"));
    await rm(join(copy, "trainer_state.json"));
    expect((await loadModelFolder(copy)).step).toBe(1);
  });

  it("with damage are refused like checkpoints", async () => {
    const model = await saveModelFolder(join(await scratch(), "model"), content);
    const path = join(model, "model.safetensors");
    const whole = await readFile(path);
    whole[whole.length - 1]! ^= 1;
    await writeFile(path, whole);
    await expect(loadModelFolder(model)).rejects.toThrow(/checksum mismatch/);
    await rm(join(model, "manifest.json"));
    await truncate(path, whole.length - 1);
    await expect(loadModelFolder(model)).rejects.toThrow(/reaches beyond the file/);
    await rm(path);
    await expect(loadModelFolder(model)).rejects.toThrow(/model\.safetensors is missing/);
    await writeFile(join(model, "config.json"), '{"a":1,"a":2}');
    await expect(loadModelFolder(model)).rejects.toThrow(/"a" appears twice/);
  });

  it("that are not there are named by absolute path, with what was looked for", async () => {
    const folder = await scratch();
    await expect(loadModelFolder(join(folder, "nowhere"))).rejects.toThrow(
      `${join(folder, "nowhere")}: no such folder`,
    );
    const error = await rejection(loadModelFolder(folder));
    expect(error.message).toContain(`${folder}: no model here`);
    expect(error.message).toMatch(
      /config\.json and model\.safetensors[\s\S]*best and last[\s\S]*checkpoint-<step>/,
    );
  });

  it("are not written over something else, nor half", async () => {
    const folder = await scratch();
    await writeFile(join(folder, "precious"), "");
    await expect(saveModelFolder(folder, content)).rejects.toThrow(UsageError);
    await expect(saveModelFolder(join(folder, "precious"), content)).rejects.toThrow(UsageError);
    const fs = watchedDisk(([name]) => {
      if (name === "write") throw systemError("EROFS");
    });
    await expect(saveModelFolder(join(folder, "m"), { ...content, fs })).rejects.toThrow(/read-only/);
    expect(await readdir(folder)).toEqual(["precious"]);
    await mkdir(join(folder, "empty"));
    await saveModelFolder(join(folder, "empty"), content);
    expect((await loadModelFolder(join(folder, "empty"))).kind).toBe("model");
  });
});
