/** What is known of where weights come from: run after run, in result files, on cards and in model folders. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import catbabiQaFwm from "../../experiments/catbabi-qa-fwm.ts";
import { catbabiSchema } from "../../src/experiment/catbabi/settings.ts";
import { chainOf } from "../../src/experiment/lineage.ts";
import { reportedRun } from "../../src/experiment/report.ts";
import { trainRun } from "../../src/experiment/trainRun.ts";
import { chainTotals, isExact, parseChain, provenanceFile } from "../../src/report/chain.ts";
import { loadModelFolder, saveModelFolder } from "../../src/store/modelFolder.ts";
import { gitCommit } from "../../src/store/runRecord.ts";
import { run } from "../cli/support.ts";
import { emptyFolder } from "../data/support/tiny.ts";

let folder: string;

/** Trains two steps, from the weights of another if one is named. */
async function train(name: string, steps: number, init?: string): Promise<string> {
  const { settings, smoke } = catbabiQaFwm;
  const small = catbabiSchema.parse({
    task: { ...settings.task, ...smoke.task },
    system: { ...settings.system, ...smoke.system },
    training: { ...settings.training, ...smoke.training, steps, evalEvery: 4, batch: 4 },
  });
  const path = join(folder, name);
  await trainRun(
    {
      action: "start",
      experiment: "catbabi-qa-fwm",
      settings: small,
      folder: path,
      ...(init ? { init } : {}),
    },
    {
      ...{ env: {}, signal: new AbortController().signal, packageVersion: "0.0.0", threads: 1 },
      command: ["fwm", "train", name],
    },
  );
  return path;
}

beforeAll(async () => {
  folder = emptyFolder();
  const first = await train("first", 1);
  const second = await train("second", 2, first);
  await train("third", 3, second);
});

describe("a chain of --init", () => {
  test("is recorded from run to run, with commands, commits, steps and hours", async () => {
    const { result } = await reportedRun(join(folder, "third"), ["fwm", "report"]);
    expect(result.chain.map(({ name, steps, command, seed }) => [name, steps, command, seed])).toEqual([
      ["first", 1, "fwm train first", 1],
      ["second", 2, "fwm train second", 1],
    ]);
    for (const { hours, experiment } of result.chain) {
      expect(hours).toBeGreaterThanOrEqual(0);
      expect(experiment).toBe("catbabi-qa-fwm");
    }
    expect(chainTotals(result.chain).steps).toBe(3);
    expect(result.exactSource).toBe(
      [result.commit, ...result.chain.map(({ commit }) => commit)].every(isExact),
    );
    expect((await reportedRun(join(folder, "first"), ["fwm"])).result.chain).toEqual([]);
  });

  test("goes with a packaged model, and on from it; the card says it in all", async () => {
    const stretch = join(import.meta.dirname, "../../results/stretch-catbabi-qa-fwm-real.json");
    const shipped = join(folder, "shipped");
    const argv = ["package", join(folder, "third"), "--out", shipped, "--split", "valid", "--batch", "64"];
    expect((await run([...argv, "--threads", "1", "--further", stretch])).code).toBe(0);
    const model = await loadModelFolder(shipped);
    const chain = parseChain(new TextDecoder().decode(model.files[provenanceFile]));
    expect(chain.map(({ name }) => name)).toEqual(["first", "second", "third"]);
    expect(await chainOf(model)).toEqual(chain);
    const card = readFileSync(join(shipped, "README.md"), "utf8");
    expect(card).toContain("| before it: first | 1 steps, `fwm train first`");
    expect(card).toContain("after 3 of the weights it started with, this one after 6 in all");
    const { score } = JSON.parse(readFileSync(stretch, "utf8")) as {
      score: { points: { axis: string; at: number; accuracy: number; confidence: number }[] };
    };
    const { accuracy, confidence } = score.points.find(({ axis, at }) => axis === "distance" && at === 40)!;
    const [right, sure] = [accuracy, confidence].map((value) => `${(100 * value).toFixed(2)}%`);
    expect(card).toContain(
      `sentences back to the fact, 40: right ${right} of the time, and ${sure} sure of it`,
    );
    expect(card).toContain("| objects carried: how many, what? | 1 |");
    const fourth = await train("fourth", 1, shipped);
    const { result } = await reportedRun(fourth, ["fwm"]);
    expect(result.chain.map(({ name }) => name)).toEqual(["first", "second", "third"]);
  });

  test("of a model without provenance has what its folder says", async () => {
    const { config, model, files } = await loadModelFolder("catbabi-qa");
    const { [provenanceFile]: provenance, ...rest } = files;
    expect(parseChain(new TextDecoder().decode(provenance))).toHaveLength(2);
    const bare = await saveModelFolder(join(folder, "bare"), { config, model, files: rest, step: 321 });
    const [only, ...others] = await chainOf(await loadModelFolder(bare));
    expect(others).toEqual([]);
    expect(only).toMatchObject({ name: "bare", steps: 321, command: null, hours: null });
  });
});

test("a further evaluation that is none is bad data, and nothing is written", async () => {
  const argv = ["package", join(folder, "first"), "--out", join(folder, "never"), "--batch", "64"];
  const { code, stderr } = await run([...argv, "--further", join(folder, "first/run.json")]);
  expect(code).toBe(3);
  expect(stderr).toContain("no evaluation is here");
});

test("a text that is no chain is none", () => {
  for (const text of [undefined, null, 3, "", "[", '[{"name": 1}]']) expect(parseChain(text)).toEqual([]);
});

test("training warns of uncommitted changes, a smoke run does not", async () => {
  const sizes = ["embedding=4", "hidden=4", "memory=2"].map((size) => `system.${size}`);
  const settings = ["task.source=generated", "task.tasks=15", "training.window=10", ...sizes];
  const argv = ["train", "catbabi-qa-fwm", "--steps", "1", "--batch", "2", "--threads", "1"];
  const set = settings.flatMap((setting) => ["--set", setting]);
  const isChanged = gitCommit()?.endsWith("-dirty") ?? false;
  const real = await run([...argv, ...set, "--out", join(folder, "real")]);
  expect(real.stderr.includes("uncommitted changes")).toBe(isChanged);
  const smoke = await run([...argv, ...set, "--smoke", "--out", join(folder, "smoke")]);
  expect([real.code, smoke.code]).toEqual([0, 0]);
  expect(smoke.stderr).not.toContain("uncommitted changes");
  const { result } = await reportedRun(join(folder, "real"), ["fwm"]);
  expect(result.exactSource).toBe(result.commit !== null && !isChanged);
});
