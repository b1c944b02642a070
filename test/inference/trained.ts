/** A run of a few steps on generated stories, trained once per test file: what commands are tried on. */
import { join } from "node:path";
import { experiments } from "../../experiments/index.ts";
import { trainCatbabi } from "../../src/experiment/catbabi.ts";
import { settingsSchema } from "../../src/experiment/settings.ts";

/** Trains the smoke settings for a few steps into `folder`; returns the run's path. */
export async function trainSmall(folder: string, name = "small"): Promise<string> {
  const { settings, smoke } = experiments["catbabi-qa-fwm"];
  const small = settingsSchema.parse({
    task: { ...settings.task, ...smoke.task },
    system: { ...settings.system, ...smoke.system },
    training: { ...settings.training, ...smoke.training, steps: 4, validEvery: 4 },
  });
  const path = join(folder, name);
  await trainCatbabi(
    { kind: "new", experiment: "catbabi-qa-fwm", settings: small, folder: path },
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
