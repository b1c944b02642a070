/** `fwm train` as a person uses it: run, stop, kill, resume, misuse. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { keyOf, uniform } from "../../src/random.ts";
import { checkDevice } from "../../src/runtime/node.ts";
import { loadCheckpoint } from "../../src/store/checkpoint.ts";
import { readMetrics } from "../../src/store/metrics.ts";
import { readRun } from "../../src/store/runRecord.ts";
import { tinyFolder } from "../data/support/tiny.ts";
import { skipUnless } from "../support/skip.ts";
import { run } from "./support.ts";

const root = join(import.meta.dirname, "../..");
const binary = join(root, "dist/src/cli/main.js");
const isBuilt = existsSync(binary);

const scratch = mkdtempSync(join(tmpdir(), "fwm-train-test-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const hasCuda = ((): boolean => {
  try {
    checkDevice("cuda");
    return true;
  } catch {
    return false;
  }
})();

// One thread: ONNX Runtime promises equal bits only for equal thread counts, and the tests share the cores.
const small = [
  "train",
  "catbabi-qa-fwm",
  "--smoke",
  "--steps",
  "40",
  "--threads",
  "1",
  "--set",
  "training.saveEvery=5",
  "--set",
  "training.emaDecay=0.9",
];

interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

function start(argv: readonly string[]): {
  child: ChildProcess;
  ended: Promise<Ended>;
  saw(text: string): Promise<void>;
} {
  const child = spawn(process.execPath, [binary, ...argv], {
    stdio: ["ignore", "pipe", "pipe"],
    cwd: scratch,
  });
  let [stdout, stderr] = ["", ""];
  const waiting: { text: string; resolve: () => void }[] = [];
  child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
    for (const wait of waiting) if (stderr.includes(wait.text)) wait.resolve();
  });
  const ended = new Promise<Ended>((resolve) =>
    child.on("close", (code, signal) => resolve({ code, signal, stdout, stderr })),
  );
  const saw = (text: string): Promise<void> =>
    Promise.race([
      new Promise<void>((resolve) => waiting.push({ text, resolve })),
      ended.then(() => undefined),
    ]);
  return { child, ended, saw };
}

async function result(folder: string) {
  const metrics = await readMetrics(join(folder, "metrics.jsonl"), { withoutTimes: true });
  const { step, model, optimizer, state } = await loadCheckpoint(folder);
  return { metrics, step, model, optimizer, state };
}

let whole: Awaited<ReturnType<typeof result>>;
/** Milliseconds that it takes from the note that its stories are open. */
let wholeTime: number;

const needsBuild = skipUnless(isBuilt, "dist/ is not there; run `npm run build`");
describe("a run that is stopped and resumed equals one that never stopped", needsBuild, () => {
  test("one that never stops", async () => {
    const folder = join(scratch, "whole");
    const { ended, saw } = start([...small, "--out", folder, "--json"]);
    await saw("generated");
    const began = performance.now();
    const { code, stdout, stderr } = await ended;
    wholeTime = performance.now() - began;
    // Far more than between the note and the end of a process that said nothing.
    expect(wholeTime).toBeGreaterThan(200);
    expect(code, stderr).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ step: 40, reason: "finished", folder });
    whole = await result(folder);
    expect(whole.metrics.filter(({ split }) => split === "train").length).toBe(8);
    expect(whole.metrics.filter(({ split }) => split === "valid").map(({ step }) => step)).toEqual([25, 40]);
  });

  test("killed at random moments, again and again", async () => {
    const folder = join(scratch, "killed");
    const key = keyOf(7, "kill");
    const record = join(folder, "run.json");
    const state = () => (JSON.parse(readFileSync(record, "utf8")) as { state: string }).state;
    let kills = 0;
    for (let attempt = 0; attempt < 12; attempt++) {
      const begun = existsSync(record);
      if (begun && state() === "finished") break; // killed on its way out
      const { child, ended, saw } = start(
        begun ? ["train", "--resume", folder, "--threads", "1"] : [...small, "--out", folder],
      );
      // After the note that the stories are open; from there on anything may be under way.
      await saw("generated");
      await new Promise((resolve) => setTimeout(resolve, wholeTime * (0.1 + 0.5 * uniform(key, attempt))));
      child.kill("SIGKILL");
      const { code, signal, stderr } = await ended;
      if (signal === "SIGKILL") kills++;
      else {
        expect(code, stderr).toBe(0);
        break;
      }
    }
    expect(kills).toBeGreaterThan(0);
    if (state() !== "finished") {
      const last = await start(["train", "--resume", folder, "--threads", "1"]).ended;
      expect(last.code, last.stderr).toBe(0);
    }
    expect(await result(folder)).toEqual(whole);
  });

  test.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 143],
  ] as const)("%s saves, says how to resume and ends with %i", async (name, exit) => {
    const folder = join(scratch, name);
    const { child, ended, saw } = start([...small, "--out", folder]);
    await saw("generated");
    await new Promise((resolve) => setTimeout(resolve, 600));
    child.kill(name);
    const { code, stdout, stderr } = await ended;
    expect(code, stderr).toBe(exit);
    expect(stdout).toContain(`fwm train --resume ${folder}`);
    const again = await start(["train", "--resume", folder, "--threads", "1"]).ended;
    expect(again.code, again.stderr).toBe(0);
    expect(await result(folder)).toEqual(whole);
  });
});

describe("what a person may get wrong", () => {
  const base = ["train", "catbabi-qa-fwm", "--smoke", "--steps", "4"];
  const misuse: [string, string[], string, number][] = [
    ["an unknown experiment", ["train", "catbabi-qa-fmw"], "catbabi-qa-fwm", 2],
    ["an unknown setting", [...base, "--set", "training.bacth=3"], "batch", 2],
    ["a setting of the wrong kind", [...base, "--set", "training.batch=many"], "training.batch", 2],
    ["a setting out of range", [...base, "--set", "system.reads=0"], "system.reads", 2],
    [
      "a memory that does not fit",
      [...base, "--set", "system.memory=1024", "--batch", "4096"],
      "GiB of memory, and this machine",
      2,
    ],
    ["an unknown task", [...base, "--set", "task.tasks=21"], "21", 2],
    ["a run folder that is not there", ["train", "--resume", join(scratch, "nowhere")], "nowhere", 3],
    [
      "prepared data that is not there",
      ["train", "catbabi-qa-fwm", "--data", join(scratch, "none")],
      "none",
      3,
    ],
    ["--from without --resume", [...base, "--from", "checkpoint-1"], "--resume", 2],
    ["--init with --resume", ["train", "--resume", scratch, "--init", scratch], "--init", 2],
    ["weights that are not there", [...base, "--init", join(scratch, "nowhere")], "nowhere", 3],
  ];
  test.each(misuse)("%s", async (_, argv, named, exit) => {
    const folder = join(scratch, "never");
    const more = argv.includes("--resume") ? [] : ["--out", folder];
    const { code, stdout, stderr } = await run([...argv, ...more]);
    expect(stderr).toContain(named);
    expect(stderr).not.toContain("internal:");
    expect([code, stdout]).toEqual([exit, ""]);
    expect(existsSync(folder)).toBe(false);
  });

  test(
    "a device that is not there is refused before the run folder is made",
    skipUnless(!hasCuda, "the CUDA library is installed"),
    async () => {
      for (const experiment of ["catbabi-qa-fwm", "metarl-fwm"]) {
        const folder = join(scratch, "no-device");
        const argv = ["train", experiment, "--smoke", "--device", "cuda", "--out", folder];
        const { code, stderr } = await run(argv);
        expect([code, stderr]).toEqual([2, expect.stringContaining("device cuda")]);
        expect(existsSync(folder)).toBe(false);
      }
    },
  );

  test("a rate that makes the numbers overflow ends with 4 and keeps the last good checkpoint", async () => {
    const folder = join(scratch, "diverged");
    const good = await run([...base, "--steps", "6", "--set", "training.saveEvery=2", "--out", folder]);
    expect(good.code).toBe(0);
    const bad = await run([
      ...base,
      "--steps",
      "200",
      "--set",
      "training.optimizer.learningRate=1e37",
      "--set",
      "training.saveEvery=1",
      "--out",
      `${folder}-2`,
    ]);
    expect(bad.code).toBe(4);
    expect(bad.stderr).toContain(`or use the name again after: rm -r ${folder}-2\n`);
    const again = await run([...base, "--out", `${folder}-2`]);
    expect([again.code, again.stderr]).toEqual([2, expect.stringContaining("or remove the folder first")]);
    expect(bad.stderr).toMatch(/diverged at step \d+: \S+ .*not finite/);
    for (const name of readdirSync(`${folder}-2`).filter((entry) => entry.startsWith("checkpoint-"))) {
      const { model } = await loadCheckpoint(`${folder}-2`, { which: name });
      for (const { data } of Object.values(model)) {
        expect((data as Float32Array).every(Number.isFinite)).toBe(true);
      }
    }
  });

  test("a folder that is in use or full is refused, and nothing in it is touched", async () => {
    const folder = mkdtempSync(join(scratch, "occupied-"));
    writeFileSync(join(folder, "mine.txt"), "mine");
    const { code, stderr } = await run([...base, "--out", folder]);
    expect(code).toBe(2);
    expect(stderr).toContain("--out");
    expect(readdirSync(folder)).toEqual(["mine.txt"]);
  });

  test("a damaged checkpoint is named and the one before it used; without one, exit 3", async () => {
    const folder = join(scratch, "damaged");
    expect((await run([...base, "--set", "training.saveEvery=2", "--out", folder])).code).toBe(0);
    const newest = join(folder, "checkpoint-4", "model.safetensors");
    const bytes = readFileSync(newest);
    bytes[bytes.length - 5]! ^= 0xff;
    writeFileSync(newest, bytes);
    const { code, stderr } = await run(["train", "--resume", folder, "--steps", "6"]);
    expect(stderr).toContain("checkpoint-4");
    expect(code).toBe(0);
    const other = join(folder, "checkpoint-6", "model.safetensors");
    writeFileSync(other, readFileSync(other).subarray(0, 100));
    const explicit = await run(["train", "--resume", folder, "--from", "checkpoint-6", "--steps", "8"]);
    expect(explicit.code).toBe(3);
    expect(explicit.stderr).toContain("model.safetensors");
  });

  test("a checkpoint of other sizes does not fit the settings", async () => {
    const folder = join(scratch, "sizes");
    expect((await run([...base, "--out", folder])).code).toBe(0);
    const record = join(folder, "run.json");
    const text = readFileSync(record, "utf8");
    writeFileSync(record, text.replace('"hidden": 32', '"hidden": 48'));
    const { code, stderr } = await run(["train", "--resume", folder, "--steps", "8"]);
    expect(code).toBe(3);
    expect(stderr).toMatch(/tensor \S+ has another shape/);
  });
});

describe("--init", () => {
  const base = ["train", "catbabi-qa-fwm", "--smoke", "--threads", "1", "--set", "training.emaDecay=0.9"];
  const [first, second] = [join(scratch, "first"), join(scratch, "second")];

  test("begins with another run's weights, with a fresh optimizer, and saves them before the first step", async () => {
    expect((await run([...base, "--steps", "6", "--out", first])).code).toBe(0);
    const { code } = await run([
      ...[...base, "--init", first, "--steps", "1", "--seed", "2", "--out", second],
      ...["--set", "training.saveEvery=1"],
    ]);
    expect(code).toBe(0);
    const [from, begun] = await Promise.all([
      loadCheckpoint(first, { which: "checkpoint-6" }),
      loadCheckpoint(second, { which: "checkpoint-0" }),
    ]);
    expect(begun.model).toEqual(from.model);
    expect(Object.keys(begun.optimizer).filter((name) => !name.startsWith("raw."))).toEqual([]);
    expect((await readRun(second)).summary.initFrom).toBe("first after 6 steps");
  });

  test("of a checkpoint the run is named, and an agent is told to be one", async () => {
    const [third, agent] = [join(scratch, "third"), join(scratch, "agent")];
    const { code } = await run([
      ...[...base, "--init", join(first, "checkpoint-6"), "--steps", "1", "--out", third],
    ]);
    expect(code).toBe(0);
    expect((await readRun(third)).summary.initFrom).toBe("first after 6 steps");
    expect((await run(["train", "metarl-fwm", "--smoke", "--steps", "1", "--out", agent])).code).toBe(0);
    const refused = await run([...base, "--init", agent, "--out", join(scratch, "none")]);
    expect([refused.code, refused.stderr]).toEqual([
      2,
      expect.stringContaining("of the kind metarl, not of catbabi"),
    ]);
    expect(existsSync(join(scratch, "none"))).toBe(false);
  });

  test("weights of other sizes do not fit, and nothing is written", async () => {
    const folder = join(scratch, "unfit");
    const { code, stderr } = await run([
      ...[...base, "--init", first, "--out", folder, "--set", "system.reads=2"],
    ]);
    expect(code).toBe(2);
    expect(stderr).toMatch(/do not fit.*\n.*fwm\.read/);
    expect(existsSync(folder)).toBe(false);
  });

  test("a run that was killed before it had saved them is not begun with others", async () => {
    const folder = join(scratch, "early");
    expect((await run([...base, "--init", first, "--steps", "1", "--out", folder])).code).toBe(0);
    for (const name of readdirSync(folder)) {
      if (/^(checkpoint-|best$|last$)/.test(name)) rmSync(join(folder, name), { recursive: true });
    }
    const { code, stderr } = await run(["train", "--resume", folder, "--steps", "2"]);
    expect([code, stderr]).toEqual([
      3,
      expect.stringContaining("before the weights it starts with were saved"),
    ]);
  });

  test("weights of other equations fit by their shapes, and are refused all the same", async () => {
    const folder = join(scratch, "other");
    const { code, stderr } = await run([
      ...[...base, "--init", first, "--out", folder, "--set", "system.keys=concat"],
    ]);
    expect(code).toBe(2);
    expect(stderr).toMatch(/other equations.*\n.*system\.keys/);
    expect(existsSync(folder)).toBe(false);
  });
});

test("a run that was killed after its last step is finished by resuming it, and then refuses", async () => {
  const folder = join(scratch, "late");
  const train = ["train", "catbabi-qa-fwm", "--smoke", "--steps", "2", "--out", folder];
  expect((await run(train)).code).toBe(0);
  const path = join(folder, "run.json");
  const record = JSON.parse(readFileSync(path, "utf8")) as { state: string };
  writeFileSync(path, JSON.stringify({ ...record, state: "running" }));
  const again = ["train", "--resume", folder];
  expect((await run(again)).code).toBe(0);
  expect((await readRun(folder)).state).toBe("finished");
  const refused = await run(again);
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("has made its 2 steps")]);
});

test("resuming refuses what would make another run of it, and leaves the folder as it is", async () => {
  const folder = join(scratch, "own");
  expect((await run(["train", "catbabi-qa-fwm", "--smoke", "--steps", "3", "--out", folder])).code).toBe(0);
  const before = readFileSync(join(folder, "run.json"), "utf8");
  const again = ["train", "--resume", folder];
  for (const [words, message] of [
    [[], "has made its 3 steps"],
    [["--steps", "2"], "has made its 3 steps"],
    [["--steps", "5", "--set", "training.clip=1"], "--set: a run is resumed with its own settings"],
    [["--steps", "5", "--batch", "3"], "--batch: a run is resumed with its own settings"],
    [["--steps", "5", "--seed", "2"], "--seed: a run is resumed with its own settings"],
    [["--steps", "5", "--smoke"], "--smoke: a run is resumed with its own settings"],
    [["--steps", "5", "--out", `${folder}-2`], "--out: a run is resumed in its own folder"],
    [["--print-config"], "--print-config is for a new run"],
    [["--steps", "5", "catbabi-lm-fwm"], "the run is of catbabi-qa-fwm, not of catbabi-lm-fwm"],
  ] as const) {
    const { code, stderr } = await run([...again, ...words]);
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
    expect(readFileSync(join(folder, "run.json"), "utf8")).toBe(before);
  }
  const bare = await run(["train", "--resume", "--out", folder, "--seed", "2", "--steps", "5"]);
  expect([bare.code, bare.stderr]).toEqual([2, expect.stringContaining("--seed: a run is resumed")]);
  const other = await run([...again, "--steps", "5"], { env: { FWM_TRAINING__BATCH: "3" } });
  expect([other.code, other.stderr]).toEqual([
    2,
    expect.stringMatching(
      /variable FWM_TRAINING__BATCH: a run is resumed.*\n +training\.batch +8 in the run, 3 in/,
    ),
  ]);
  expect(readFileSync(join(folder, "run.json"), "utf8")).toBe(before);
  const record = JSON.parse(before) as { summary: object };
  const summary = { ...record.summary, identity: "prepared, train 0, valid 0" };
  writeFileSync(join(folder, "run.json"), JSON.stringify({ ...record, summary }));
  const { code, stderr } = await run([...again, "--steps", "5"]);
  expect([code, stderr]).toEqual([3, expect.stringContaining("the data is not what the run started with")]);
});

test("resuming takes settings of the environment that are the run's own, and warns of another version", async () => {
  const folder = join(scratch, "versions");
  expect((await run(["train", "catbabi-qa-fwm", "--smoke", "--steps", "2", "--out", folder])).code).toBe(0);
  const file = join(folder, "run.json");
  const record = JSON.parse(readFileSync(file, "utf8")) as object;
  writeFileSync(file, JSON.stringify({ ...record, packageVersion: "0.0.1" }));
  const env = { FWM_TRAINING__BATCH: "8" };
  const { code, stderr } = await run(["train", "--resume", folder, "--steps", "3"], { env });
  expect(code, stderr).toBe(0);
  expect(stderr).toMatch(/warning: not as when the run started.*version of fwm: 0\.0\.1 → \d/);
});

test("a bare --resume takes the folder that experiment, seed and --smoke name", needsBuild, async () => {
  const words = ["train", "catbabi-qa-fwm", "--smoke", "--seed", "3"];
  expect((await start([...words, "--steps", "1"]).ended).code).toBe(0);
  const { code, stdout } = await start([...words, "--resume", "--steps", "2", "--json"]).ended;
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({
    step: 2,
    folder: join(scratch, "runs", "catbabi-qa-fwm-smoke-seed3"),
  });
});

test("a relative --data is found again from another folder", async () => {
  const prepared = join(mkdtempSync(join(scratch, "place-")), "prepared");
  const folder = join(scratch, "relative");
  const from = ["--from", tinyFolder(), "--allow-missing", "--out", prepared];
  expect((await run(["data", "prepare", "catbabi", ...from])).code).toBe(0);
  const words = ["train", "catbabi-qa-fwm", "--smoke", "--set", "task.source=mixed", "--steps", "1"];
  const { code, stderr } = await run([
    ...[...words, "--data", relative(process.cwd(), prepared), "--out", folder],
  ]);
  expect(code, stderr).toBe(0);
  expect((await readRun(folder)).settings.task).toMatchObject({ data: prepared });
});

test("a vocabulary that is not the stories' is refused before there is a folder", async () => {
  const folder = join(scratch, "words");
  const words = ["train", "catbabi-qa-fwm", "--smoke", "--set", "system.vocabulary=210", "--out", folder];
  const { code, stderr } = await run(words);
  expect([code, stderr]).toEqual([2, expect.stringContaining("catbAbI has 200 words, not 210")]);
  expect(existsSync(folder)).toBe(false);
});

test("more steps given on resuming become the run's own", async () => {
  const folder = join(scratch, "longer");
  const train = ["train", "catbabi-qa-fwm", "--smoke", "--steps", "2", "--out", folder];
  expect((await run(train)).code).toBe(0);
  expect((await run(["train", "--resume", folder, "--steps", "3"])).code).toBe(0);
  expect((await readRun(folder)).settings.training).toMatchObject({ steps: 3 });
});

test("--print-config shows where each value came from, in the order flag, environment, file, preset", async () => {
  const file = join(scratch, "settings.yaml");
  writeFileSync(file, "training:\n  batch: 5\n  window: 60\n  optimizer:\n    learningRate: 0.5\n");
  const { code, stdout } = await run(
    ["train", "catbabi-qa-fwm", "--smoke", "--config", file, "--batch", "7", "--print-config"],
    { env: { FWM_TRAINING__OPTIMIZER__LEARNING_RATE: "0.25", FWM_TRAINING__BATCH: "6" } },
  );
  expect(code).toBe(0);
  expect(stdout).toMatch(/training\.batch = 7 +\(flag\)/);
  expect(stdout).toMatch(/training\.optimizer\.learningRate = 0\.25 +\(environment\)/);
  expect(stdout).toMatch(/training\.window = 60 +\(config file .*settings\.yaml\)/);
  expect(stdout).toMatch(/training\.evalEvery = 25 +\(--smoke\)/);
  expect(stdout).toMatch(/training\.optimizer\.beta1 = 0\.9 +\(experiment\)/);
});

test("--processor-minutes ends a run, and can be raised", async () => {
  const folder = join(scratch, "processor-minutes");
  const base = ["train", "catbabi-qa-fwm", "--smoke", "--threads", "1"];
  const { code, stdout, stderr } = await run([...base, "--processor-minutes", "0.0001", "--out", folder]);
  expect(code, stderr).toBe(0);
  expect(stdout).toContain("finished with its minutes after 1 step");
  const again = await run(["train", "--resume", folder, "--minutes", "10", "--steps", "3"]);
  expect(again.code).toBe(2);
  expect(again.stderr).toMatch(
    /the run has had its minutes[\s\S]*give more with --minutes and --processor-minutes/,
  );
  const flags = ["--processor-minutes", "10", "--steps", "3", "--threads", "1"];
  const more = await run(["train", "--resume", folder, ...flags]);
  expect(more.code, more.stderr).toBe(0);
  expect((await readRun(folder)).settings.training).toMatchObject({
    minutes: 0,
    processorMinutes: 10,
    steps: 3,
  });
});

test("--minutes ends a run with an evaluation, says so, and can be raised", async () => {
  const folder = join(scratch, "minutes");
  const base = ["train", "catbabi-qa-fwm", "--smoke", "--threads", "1", "--set", "training.logEvery=1"];
  const { code, stdout, stderr } = await run([...base, "--minutes", "0.0001", "--out", folder]);
  expect(code, stderr).toBe(0);
  expect(stdout).toContain("finished with its minutes after 1 step");
  expect(await readRun(folder)).toMatchObject({ state: "finished", step: 1 });
  const lines = await readMetrics(folder);
  expect(lines.map(({ split, step }) => `${split} ${step}`)).toEqual(["train 1", "valid 1"]);
  for (const { times } of lines) {
    expect(times!.hours).toBeGreaterThan(0);
    expect(times!.processorHours).toBeGreaterThan(0);
  }
  const again = await run(["train", "--resume", folder, "--steps", "3"]);
  expect(again.code).toBe(2);
  expect(again.stderr).toMatch(/the run has had its minutes[\s\S]*--minutes/);
  const more = await run(["train", "--resume", folder, "--minutes", "10", "--steps", "3", "--threads", "1"]);
  expect(more.code, more.stderr).toBe(0);
  const all = await readMetrics(folder);
  expect(all.at(-1)).toMatchObject({ split: "valid", step: 3 });
  expect(all.at(-1)!.times!.hours).toBeGreaterThan(lines.at(-1)!.times!.hours!);
  expect((await readRun(folder)).settings.training).toMatchObject({ minutes: 10, steps: 3 });
  const negative = await run([...base, "--minutes", "-1", "--out", join(scratch, "negative")]);
  expect(negative.code).toBe(2);
  expect(negative.stderr).toContain("training.minutes");
  expect(existsSync(join(scratch, "negative"))).toBe(false);
});
