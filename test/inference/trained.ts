/** A run of a few steps on generated stories, trained once per test file: what commands are tried on. */
import { join } from "node:path";
import catbabiQaFwm from "../../experiments/catbabi-qa-fwm.ts";
import { catbabiSchema } from "../../src/experiment/catbabi/settings.ts";
import { trainRun } from "../../src/experiment/trainRun.ts";

/** Trains the smoke settings for a few steps into `folder`; returns the run's path. */
export async function trainSmall(folder: string, name = "small"): Promise<string> {
  const { settings, smoke } = catbabiQaFwm;
  const small = catbabiSchema.parse({
    task: { ...settings.task, ...smoke.task },
    system: { ...settings.system, ...smoke.system },
    training: { ...settings.training, ...smoke.training, steps: 4, evalEvery: 4 },
  });
  const path = join(folder, name);
  await trainRun(
    { action: "start", experiment: "catbabi-qa-fwm", settings: small, folder: path },
    {
      env: {},
      signal: new AbortController().signal,
      command: ["test"],
      packageVersion: "0.0.0",
      threads: 1,
    },
  );
  return path;
}
