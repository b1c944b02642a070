/**
 * A kind of experiment that the program has never heard of, through the functions that the commands use: trained, killed,
 * resumed, started from another run, evaluated, swept, reported and packaged.
 */
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Kind, Session } from "../../src/experiment/kind.ts";
import { kindOf, registerKind, requireExperiment } from "../../src/experiment/registry.ts";
import { reportedRun } from "../../src/experiment/report.ts";
import { evaluateSaved } from "../../src/experiment/savedModel.ts";
import { withSetting } from "../../src/experiment/settings.ts";
import { sweepMembers } from "../../src/experiment/sweep/members.ts";
import { runSweep } from "../../src/experiment/sweep/run.ts";
import { type RunPlan, trainRun } from "../../src/experiment/trainRun.ts";
import { drawFigure } from "../../src/report/figure.ts";
import { collectSweep } from "../../src/report/sweep.ts";
import { readMetrics } from "../../src/store/metrics.ts";
import { loadModelFolder } from "../../src/store/modelFolder.ts";
import { readRun } from "../../src/store/runRecord.ts";
import { registerToy, toy } from "./toyKind.ts";

const scratch = mkdtempSync(join(tmpdir(), "fwm-kind-test-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

registerToy();
const { settings } = requireExperiment("toy-weight");
const context = {
  env: {},
  command: ["fwm", "train", "toy-weight"],
  packageVersion: "0",
  signal: new AbortController().signal,
};
const start = (folder: string, change = settings): RunPlan => ({
  action: "start",
  experiment: "toy-weight",
  settings: change,
  folder,
});

const whole = join(scratch, "whole");
beforeAll(() => trainRun(start(whole), context));

test("is declared in under 80 lines", () => {
  const text = readFileSync(join(import.meta.dirname, "toyKind.ts"), "utf8");
  expect(text.trimEnd().split("\n").length).toBeLessThan(80);
});

test("trains to its end, with its measures in the log and the record", async () => {
  const { state, step, summary } = await readRun(whole);
  expect([state, step]).toEqual(["finished", 60]);
  const valid = (await readMetrics(whole)).filter(({ split }) => split === "valid");
  expect(valid.map(({ step: at }) => at)).toEqual([20, 40, 60]);
  const errors = valid.map(({ values }) => values.error!);
  expect(summary["best.error"]).toBe(Math.min(...errors));
  expect(summary["last.error"]).toBe(errors.at(-1));
  expect(Math.min(...errors)).toBeLessThan(0.3);
});

test("killed in the middle and resumed, it has the numbers and the bytes of one that never stopped", async () => {
  const killed = join(scratch, "killed");
  const script = fileURLToPath(new URL("./toyChild.ts", import.meta.url));
  const child = spawn(process.execPath, ["--import", "tsx", script, killed], { stdio: "inherit" });
  const ended = new Promise((resolve) => child.on("close", resolve));
  while (!(existsSync(killed) && readdirSync(killed).some((name) => name === "checkpoint-30"))) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(child.exitCode).toBeNull();
  }
  child.kill("SIGKILL");
  await ended;
  expect((await readRun(killed)).step).toBeLessThan(60);
  // The child's steps take longer; all else is the same.
  const end = await trainRun({ action: "resume", folder: killed }, context);
  expect(end).toMatchObject({ step: 60, reason: "finished" });
  expect(await readMetrics(killed, { withoutTimes: true })).toEqual(
    await readMetrics(whole, { withoutTimes: true }),
  );
  const bytes = (folder: string, file: string) => readFileSync(join(folder, "checkpoint-60", file));
  for (const file of ["model.safetensors", "trainer_state.json"]) {
    expect(bytes(killed, file).equals(bytes(whole, file)), file).toBe(true);
  }
});

test("starts with the weights of another run, and says so", async () => {
  const folder = join(scratch, "init");
  await trainRun({ ...start(folder), init: whole } as RunPlan, context);
  expect((await readRun(folder)).summary.initFrom).toMatch(/^whole after \d+ steps$/);
  const [first] = await readMetrics(folder);
  const [fresh] = await readMetrics(whole);
  expect(first!.values.error).toBeLessThan(fresh!.values.error! / 3);
});

test("is evaluated by its kind, and presented from its measures", async () => {
  const { kind, evaluation } = await evaluateSaved(whole, { split: "test" });
  expect(kind).toBe(toy);
  const { error } = evaluation as unknown as { error: number };
  expect(error).toBe((await readRun(whole)).summary["best.error"]);
  expect(kind.showLine(evaluation, undefined)).toBe(`test: error ${error.toFixed(4)}`);
  expect(kind.show(evaluation, undefined)).toMatch(new RegExp(`^error +${error.toFixed(4)}$`, "m"));
  await expect(evaluateSaved(whole, { batch: 3 })).rejects.toThrow("--batch: not for models of the kind toy");
  await expect(evaluateSaved(whole, { toString: 3 } as never)).rejects.toThrow(
    "--toString: not for models of the kind toy",
  );
  await expect(evaluateSaved(whole, { split: "train" })).rejects.toThrow("--split train");
});

test("is swept, and the sweep compared by its measures", async () => {
  const members = sweepMembers(
    { vary: [{ key: "training.rate", values: ["0.1", "0.3"] }], each: [], seeds: [1, 2] },
    { experiment: "toy-weight", out: join(scratch, "sweep") },
    (changes) => changes.reduce((now, { key, value }) => withSetting(now, key, Number(value)), settings),
  );
  const { states } = await runSweep(members, context);
  expect(states).toEqual(["finished", "finished", "finished", "finished"]);
  const about = {
    experiment: "toy-weight",
    description: "rates",
    command: ["fwm", "sweep"],
    commit: null,
    packageVersion: "0",
    state: "finished",
    steps: 60,
    settings,
    paper: undefined,
  };
  const result = await collectSweep(
    members.map((member, i) => ({ ...member, state: states[i]! })),
    kindOf(settings),
    about,
  );
  expect(result.kind).toBe("toy");
  expect(result.seeds.map(({ name }) => name)).toEqual(["rate=0.1", "rate=0.3"]);
  expect(result.members[0]!.best.error!.value).toBeGreaterThan(0);
});

test("is reported: result, card and figure", async () => {
  const { kind, ...run } = await reportedRun(whole, ["fwm", "report"]);
  expect(run.result).toMatchObject({
    experiment: "toy-weight",
    description: "a weight",
    steps: 60,
    changed: {},
  });
  expect(await drawFigure(await kind.figure([run]))).toContain("toy-weight, seed 1");
  const model = await loadModelFolder(whole);
  const { evaluation } = await evaluateSaved(model, {});
  const card = kind.card(run.result, evaluation, { name: "m", weights: 1, step: model.step ?? null });
  expect(card).toMatch(/\| error, valid \| \*\*0\.\d{4}\*\* \|/);
});

test("is benched", async () => {
  const [row] = toy.benchRows(toy.schema.parse(settings), { steps: 2 });
  const { perSecond, stepMs } = await toy.bench(row!, { steps: 2 });
  expect(perSecond).toBeCloseTo(1000 / stepMs, 6);
});

describe("whatever fails, the run is closed and the session released", () => {
  /** The toy with one part of its session replaced. */
  function broken(name: string, change: (session: Session, released: () => void) => Partial<Session>) {
    let released = 0;
    const kind: Kind = {
      ...toy,
      name,
      schema: toy.schema.clone() as never,
      async open(given, of) {
        const session = await (toy as Kind).open(given, of);
        const counted = { ...session, release: async () => void released++ };
        return { ...counted, ...change(counted, () => void released++) };
      },
    } as Kind;
    registerKind({ ...kind, schema: { safeParse: (data: unknown) => ({ success: true, data }) } as never });
    return { released: () => released, settings: withSetting(settings, "task.name", name) };
  }
  const failure = new Error("the cat pulled the plug");

  test.each([
    ["step", () => ({ step: () => Promise.reject(failure) })],
    ["evaluate", () => ({ evaluate: () => Promise.reject(failure) })],
    [
      "snapshot",
      () => ({
        snapshot: () => {
          throw failure;
        },
      }),
    ],
    [
      "release",
      (_: Session, released: () => void) => ({
        release: () => {
          released();
          return Promise.reject(failure);
        },
      }),
    ],
  ])("%s", async (name, change) => {
    const folder = join(scratch, `broken-${name}`);
    const kind = broken(`broken-${name}`, change);
    await expect(trainRun(start(folder, kind.settings), context)).rejects.toThrow(failure.message);
    const { state, note, process: owner } = await readRun(folder);
    expect([state, owner]).toEqual([name === "release" ? "finished" : "failed", null]);
    if (name !== "release") expect(note).toBe(failure.message);
    expect(kind.released()).toBe(1);
    // The lock is free: the folder can be opened again.
    if (name !== "release") {
      await expect(trainRun({ action: "resume", folder }, context)).rejects.toThrow(failure.message);
    }
  });

  test("a checkpoint whose training state is not one", async () => {
    const kind = broken("broken-restore", () => ({ restore: () => Promise.reject(failure) }));
    const folder = join(scratch, "broken-restore");
    const stopping = new AbortController();
    await trainRun(start(folder, kind.settings), {
      ...context,
      signal: stopping.signal,
      callbacks: { onStep: (done) => done === 7 && stopping.abort() },
    });
    await expect(trainRun({ action: "resume", folder }, context)).rejects.toThrow(failure.message);
    expect((await readRun(folder)).state).toBe("failed");
    expect(kind.released()).toBe(2);
  });
});
