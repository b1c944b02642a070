/** Every system of the comparison through the command line and the library: trained, evaluated, asked, exported, reported. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { requireExperiment } from "../../src/experiment/registry.ts";
import { loadModel } from "../../src/inference/load.ts";
import { decodeModel, type Fed, faults, runFile } from "../compile/onnxFile.ts";
import { expectClose } from "../support/check.ts";
import { run } from "./support.ts";

const scratch = mkdtempSync(join(tmpdir(), "fwm-systems-test-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const small = ["--smoke", "--threads", "1", "--batch", "2", "--set", "training.window=12"];
const quick = [...small, "--set", "training.evalBatch=32", "--steps", "2"];

/** Runs a command that has to succeed and gives what it prints as JSON. */
async function json<T>(...argv: string[]): Promise<T> {
  const { code, stdout, stderr } = await run([...argv, "--json"]);
  expect(code, stderr).toBe(0);
  return JSON.parse(stdout) as T;
}

const question = ["mary went to the kitchen .", "where is mary ?"] as const;

/** Experiments, and how many rows a trace of each smoke model has: reads, or layers times heads. */
const systems = [
  ["catbabi-qa-fwm", 3],
  ["catbabi-qa-lstm", 0],
  ["catbabi-qa-txl", 4],
  ["catbabi-qa-mnm", 3],
  ["catbabi-qa-jbfw", 1],
  ["catbabi-qa-delta-net", 4],
] as const;

describe.each(systems)("%s", (experiment, rows) => {
  const folder = join(scratch, experiment);

  beforeAll(async () => {
    await json("train", experiment, ...quick, "--out", folder);
  });

  test("is evaluated", async () => {
    const evaluation = await json<{ questions: number; accuracy: number }>(
      ...["eval", folder, "--split", "valid", "--batch", "32", "--threads", "1"],
    );
    expect(evaluation.questions).toBeGreaterThan(0);
    expect(evaluation.accuracy).toBeGreaterThanOrEqual(0);
  });

  test("answers through the library, with a trace, as its exported file does", async () => {
    const model = await loadModel(folder);
    const stream = model.stream();
    await stream.read(question[0]);
    const reply = await stream.ask(question[1]);
    expect(reply.answers.length).toBeGreaterThan(0);
    expect(reply.trace.rows).toHaveLength(rows);
    for (const { values } of reply.trace.rows) expect(values).toHaveLength(reply.trace.words.length);

    const file = join(scratch, `${experiment}.onnx`);
    const { inputs } = await json<{ inputs: { name: string; shape: number[] }[] }>(
      ...["export", folder, "--onnx", file],
    );
    const bytes = readFileSync(file);
    expect(faults(decodeModel(bytes))).toEqual([]);
    let state = Object.fromEntries(
      inputs
        .filter(({ name }) => name !== "tokens")
        .map(({ name, shape }): [string, Fed] => [
          name,
          { dtype: "f32", shape, data: new Float64Array(shape.reduce((a, b) => a * b, 1)) },
        ]),
    );
    let logits: ArrayLike<number> = [];
    for (const word of reply.trace.words) {
      const tokens: Fed = { dtype: "i32", shape: [1], data: [model.vocabulary.id(word)!] };
      const out = await runFile(bytes, { tokens, ...state });
      logits = out.logits!;
      state = Object.fromEntries(
        Object.entries(state).map(([name, fed]) => [name, { ...fed, data: out[`next_${name}`]! }]),
      );
    }
    const most = Math.max(...Array.from(logits));
    const exps = Array.from(logits, (logit) => Math.exp(logit - most));
    const total = exps.reduce((a, b) => a + b, 0);
    for (const { word, probability } of reply.answers) {
      const got = exps[model.vocabulary.id(word)!]! / total;
      expectClose([got], [probability], { rtol: 1e-3, atol: 1e-6, label: word });
    }
    await model.release();
  });

  test("is asked on the command line", async () => {
    const { code, stdout, stderr } = await run(["ask", folder, "--json"], {
      typed: `${question.join("\n")}\n`,
    });
    expect(code, stderr).toBe(0);
    const { answers, reads } = JSON.parse(stdout.trim().split("\n").at(-1)!) as {
      answers: unknown[];
      reads: number[][];
    };
    expect(answers.length).toBeGreaterThan(0);
    expect(reads).toHaveLength(rows);
  });
});

describe("reports", () => {
  const folderOf = (experiment: string): string => join(scratch, experiment);
  const results = join(scratch, "results");
  const report = (experiment: string, ...more: string[]) =>
    run([
      ...["report", folderOf(experiment), "--split", "valid", "--batch", "32", "--threads", "1"],
      ...["--out", results, ...more],
    ]);

  test("the file counts weights and state, and a figure can be over hours", async () => {
    const [figure, tasks] = [join(scratch, "hours.svg"), join(scratch, "tasks.svg")];
    const missing = await report(
      "catbabi-qa-lstm",
      ...["--also", folderOf("catbabi-qa-mnm"), "--tasks", tasks],
    );
    expect([missing.code, missing.stderr]).toEqual([3, expect.stringContaining("no result file yet")]);
    expect(existsSync(tasks)).toBe(false);
    expect(existsSync(results)).toBe(false);

    const first = await report("catbabi-qa-mnm");
    expect(first.code, first.stderr).toBe(0);
    const weights = 200 * 16 + 64 * (16 + 8 + 16 + 2) + 10 * 8 * 17 + 3 * 8 * 9 + 9 + 24 * 16 + 16 + 16 * 200;
    expect(first.stdout).toContain(`${weights.toLocaleString("en-US")} weights`);
    const result = JSON.parse(readFileSync(join(results, "catbabi-qa-mnm.json"), "utf8")) as {
      weights: number;
      stateVariables: number;
      paper: { weights: number; stateVariables: number };
      curves: { valid: { hours: number; processorHours: number }[] };
    };
    expect(result).toMatchObject({ weights, stateVariables: 16 + 16 + 8 + 3 * 8 * 8 });
    expect(result.paper).toMatchObject({ weights: 1.1e6, stateVariables: 30.5e3 });
    expect(result.curves.valid[0]!.hours).toBeGreaterThan(0);

    for (const [over, ...more] of [
      ["hours", "--tasks", tasks],
      ["processor-hours", "--curves-only"],
    ] as const) {
      const drawn = await report(
        "catbabi-qa-lstm",
        ...["--also", folderOf("catbabi-qa-mnm"), "--figure", figure, "--over", over, ...more],
      );
      expect(drawn.code, drawn.stderr).toBe(0);
      const svg = readFileSync(figure, "utf8");
      for (const text of ["hours of training", "catbabi-qa-lstm", "catbabi-qa-mnm"])
        expect(svg).toContain(text);
    }
    const bars = readFileSync(tasks, "utf8");
    for (const text of ["Accuracy by task, valid", "catbabi-qa-lstm", "catbabi-qa-mnm"])
      expect(bars).toContain(text);
  });

  test("bars need an evaluation; hours need a log that has them", async () => {
    const tasks = join(scratch, "none.svg");
    const bare = await report("catbabi-qa-mnm", "--tasks", tasks, "--curves-only");
    expect([bare.code, bare.stderr]).toEqual([2, expect.stringContaining("--curves-only")]);
    const log = join(folderOf("catbabi-qa-jbfw"), "metrics.jsonl");
    const lines = readFileSync(log, "utf8");
    writeFileSync(log, lines.replaceAll(/,"hours":[^,]*,"processorHours":[^}]*/g, ""));
    const old = await report("catbabi-qa-jbfw", "--curves-only", "--figure", tasks, "--over", "hours");
    expect([old.code, old.stderr]).toEqual([2, expect.stringContaining("does not have the time")]);
    expect(existsSync(tasks)).toBe(false);
  });
});

describe("settings that do not fit, and ones that look as if they did not", () => {
  const train = (experiment: string, folder: string, ...more: string[]) =>
    run(["train", experiment, ...quick, ...more, "--out", folder]);

  test.each([
    ["one head", "catbabi-qa-txl", ["system.heads=1"]],
    ["no cached memory", "catbabi-qa-txl", ["system.memory=0"]],
    ["a window longer than the cached memory", "catbabi-qa-txl", ["system.memory=5"]],
    ["one head", "catbabi-qa-delta-net", ["system.heads=1"]],
  ] as const)("works: %s of %s", async (what, experiment, set) => {
    const folder = join(scratch, `works ${what} ${experiment}`);
    const { code, stderr } = await train(experiment, folder, ...set.flatMap((one) => ["--set", one]));
    expect(code, stderr).toBe(0);
    const model = await loadModel(folder);
    expect((await model.stream().ask(question[1])).answers.length).toBeGreaterThan(0);
    await model.release();
  });

  test.each([
    ["catbabi-qa-txl", "system.heads=3", "3 heads do not divide a hidden width of 16"],
    ["catbabi-qa-delta-net", "system.heads=5", "5 heads do not divide a hidden width of 16"],
    ["catbabi-qa-txl", "system.heads=0", "system.heads"],
    ["catbabi-qa-txl", "system.memory=-1", "system.memory"],
    ["catbabi-qa-mnm", "system.memory=0", "system.memory"],
    ["catbabi-qa-mnm", "system.heads=0", "system.heads"],
    ["catbabi-qa-jbfw", "system.decay=0", "system.decay"],
  ])("%s with %s: one message, nothing written", async (experiment, set, says) => {
    const folder = join(scratch, `refused ${experiment} ${set}`);
    const { code, stderr } = await train(experiment, folder, "--set", set);
    expect(code).toBe(2);
    expect(stderr).toContain(says);
    expect(stderr).not.toContain("internal:");
    expect(existsSync(folder)).toBe(false);
  });

  test("a checkpoint of another system is refused, to start with and to resume from", async () => {
    const folder = join(scratch, "other");
    const lstm = join(scratch, "catbabi-qa-lstm");
    const init = await train("catbabi-qa-txl", folder, "--init", lstm);
    expect(init.code).toBe(2);
    expect(init.stderr).toContain("a model of the system lstm, not of transformer-xl");
    expect(existsSync(folder)).toBe(false);

    const txl = join(scratch, "catbabi-qa-txl");
    const record = readFileSync(join(txl, "run.json"), "utf8");
    const from = await run(["train", "--resume", txl, "--from", join(lstm, "checkpoint-2"), "--steps", "3"]);
    expect([2, 3]).toContain(from.code);
    expect(from.stderr).toContain("checkpoint-2");
    expect(from.stderr).not.toContain("internal:");
    expect(readFileSync(join(txl, "run.json"), "utf8")).toBe(record);
  });
});

test.each(["fwm", "lstm", "txl", "mnm", "jbfw"])(
  "%s: its numbers are the paper's, rounded as there",
  (name) => {
    for (const mode of ["qa", "lm"]) {
      const { paper } = requireExperiment(`catbabi-${mode}-${name}`);
      const { weights, stateVariables } = paper as { weights: number; stateVariables: number };
      // Digits that the paper gives.
      const digits = { fwm: [3, 3], lstm: [1, 4], txl: [3, 2], mnm: [2, 3], jbfw: [3, 3] }[name]!;
      const counted = {
        fwm: [693_985, 32 ** 3 + 512],
        lstm: [8_026_112, 4096],
        // It counts keys and values of all tokens that the last one of a window sees; ours caches their inputs.
        txl: [10_523_136, 2 * 512 * 3 * (1200 + 199)],
        // Without r.
        mnm: [1_109_929, 30_512],
        jbfw: [548_352, 262_656],
      }[name]!;
      expect(counted.map((count, i) => Number(count.toPrecision(digits[i])))).toEqual([
        weights,
        stateVariables,
      ]);
    }
  },
);
