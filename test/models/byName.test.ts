/** The shipped models by name, from a folder that knows nothing of the package. */
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { rollOut } from "../../src/experiment/rollout.ts";
import { loadSaved } from "../../src/experiment/savedModel.ts";
import { loadModel } from "../../src/inference/load.ts";
import { findModel } from "../../src/store/shippedModels.ts";
import { emptyFolder } from "../data/support/tiny.ts";

const models = join(import.meta.dirname, "../../models");
const before = process.cwd();
beforeAll(() => process.chdir(emptyFolder()));
afterAll(() => process.chdir(before));

test("loadModel without arguments, and by name", async () => {
  for (const model of [await loadModel(), await loadModel("catbabi-qa")]) {
    const stream = model.stream();
    await stream.read("mary went to the garden .");
    expect((await stream.ask("where is mary ?")).answers[0]!.word).toBe("garden");
    await model.release();
  }
});

test("loadSaved and rollOut by name", async () => {
  expect((await loadSaved("metarl")).folder.path).toBe(join(models, "metarl"));
  const { model, episodes } = await rollOut("metarl", { seed: 1, episodes: 1 });
  expect(model).toBe(join(models, "metarl"));
  expect(episodes[0]!.steps).toHaveLength(30);
});

test("only names of shipped models lead there", async () => {
  expect(findModel("models/metarl")).toBe(join(models, "metarl"));
  for (const path of ["metar", "../metarl", "/metarl", "runs/metarl", "."])
    expect(findModel(path)).toBe(path);
  await expect(loadModel("catbabi-q")).rejects.toThrow(/catbabi-q: no such folder/);
});
