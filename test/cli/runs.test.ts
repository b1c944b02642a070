/** `fwm runs`: what the list says of runs that are whole, of runs that crashed, and of folders that are none. */
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createRun } from "../../src/store/run.ts";
import { describeEnvironment } from "../../src/store/runRecord.ts";
import { emptyFolder } from "../data/support/tiny.ts";
import { run } from "./support.ts";

async function makeRun(folder: string, name: string, best: { loss: number; accuracy: number } | undefined) {
  const made = await createRun(join(folder, name), {
    experiment: "catbabi-qa-fwm",
    settings: { task: { name: "catbabi" }, training: { steps: 1000 } },
    seed: 3,
    command: ["fwm"],
    packageVersion: "0.0.0",
    gitCommit: null,
    environment: describeEnvironment({}),
  });
  if (best) {
    for (const step of [100, 200]) {
      const worse = step === 200 ? 1 : 0;
      const values = { loss: best.loss + worse, accuracy: best.accuracy - 0.1 * worse };
      made.log({ step, split: "train", values: { loss: 9, accuracy: 0 } });
      made.log({ step, split: "valid", values });
    }
    await made.update({
      step: 200,
      summary: { bestStep: 100, "best.loss": best.loss, "best.accuracy": best.accuracy },
    });
  }
  return made;
}

test("lists runs with their state, step and best validation, and names what is no run", async () => {
  const folder = emptyFolder();
  await (await makeRun(folder, "run-2", { loss: 0.5, accuracy: 0.8 })).close("finished");
  await (await makeRun(folder, "run-10", { loss: 0.25, accuracy: 0.75 })).close("diverged", "loss is NaN");
  const going = await makeRun(folder, "run-1", undefined);
  mkdirSync(join(folder, "other"));
  mkdirSync(join(folder, "broken"));
  writeFileSync(join(folder, "broken", "run.json"), "{");
  const list = async (...argv: string[]) => {
    const { code, stdout, stderr } = await run(["runs", folder, ...argv, "--json"]);
    expect(code).toBe(0);
    expect(stderr).toContain(`${join(folder, "other")}: not a run folder`);
    expect(stderr).toContain(`${join(folder, "broken", "run.json")}: not valid JSON`);
    return JSON.parse(stdout) as { runs: { name: string }[]; damaged: unknown[] };
  };
  const { runs, damaged } = await list("--sort", "name");
  expect(damaged).toHaveLength(2);
  expect(runs).toMatchObject([
    { name: "run-1", state: "running", step: 0, steps: 1000, best: {} },
    {
      name: "run-2",
      state: "finished",
      step: 200,
      bestStep: 100,
      best: { loss: 0.5, accuracy: 0.8 },
      seed: 3,
    },
    { name: "run-10", state: "diverged", best: { loss: 0.25, accuracy: 0.75 }, note: "loss is NaN" },
  ]);
  const order = async (by: string) => (await list("--sort", by)).runs.map(({ name }) => name);
  expect(await order("accuracy")).toEqual(["run-2", "run-10", "run-1"]);
  expect(await order("loss")).toEqual(["run-10", "run-2", "run-1"]);
  expect(await order("created")).toEqual(["run-1", "run-10", "run-2"]);
  const { stdout } = await run(["runs", folder]);
  expect(stdout).toMatch(/^run-2 +catbabi-qa-fwm +finished +200\/1,000 +0\.5000 +80\.00% +100 +just now$/m);
  expect(stdout).toMatch(/^run-1 +catbabi-qa-fwm +running +0\/1,000 +- +- +- +just now$/m);
  await going.close("interrupted");
});

test("a folder without runs has none, and a run is no folder of runs", async () => {
  const folder = emptyFolder();
  expect(await run(["runs", folder])).toMatchObject({
    code: 0,
    stdout: `no runs in ${folder}\n`,
    stderr: "",
  });
  expect((await run(["runs", join(folder, "absent")])).code).toBe(3);
  const made = await makeRun(folder, "one", undefined);
  await made.save({ step: 1, config: {}, model: {}, optimizer: {}, state: {} });
  await made.close("finished");
  const { code, stderr } = await run(["runs", join(folder, "one")]);
  expect(code).toBe(2);
  expect(stderr).toContain("this is a run; give the folder that holds it");
});

test("members of a sweep are listed with its name, damaged ones are named", async () => {
  const folder = emptyFolder();
  await (await makeRun(folder, "alone", undefined)).close("finished");
  await (await makeRun(join(folder, "ablation"), "base", undefined)).close("finished");
  await (await makeRun(join(folder, "ablation"), "reads=1", { loss: 1, accuracy: 0.5 })).close("finished");
  mkdirSync(join(folder, "ablation", "reads=2"));
  mkdirSync(join(folder, "empty"));
  const { code, stdout, stderr } = await run(["runs", folder, "--sort", "name"]);
  expect(code).toBe(0);
  const names = stdout.split("\n").map((line) => line.split(" ")[0]);
  expect(names.slice(1, 4)).toEqual(["ablation/base", "ablation/reads=1", "alone"]);
  expect(stdout).toMatch(/^ablation\/reads=1 .* 50\.00% /m);
  expect(stderr.trim().split("\n")).toEqual([
    `warning: ${join(folder, "ablation", "reads=2")}: not a run folder`,
    `warning: ${join(folder, "empty")}: not a run folder`,
  ]);
});

test("hundreds of runs are listed in a moment", async () => {
  const folder = emptyFolder();
  await (await makeRun(folder, "first", { loss: 1, accuracy: 0.5 })).close("finished");
  for (let i = 0; i < 300; i++) cpSync(join(folder, "first"), join(folder, `copy-${i}`), { recursive: true });
  const begun = performance.now();
  const { stdout } = await run(["runs", folder, "--json"]);
  expect((JSON.parse(stdout) as { runs: unknown[] }).runs).toHaveLength(301);
  // About 0.1 s alone; the bound leaves room for a machine that does other things too.
  expect(performance.now() - begun).toBeLessThan(5000);
});
