/** A small real training that must learn: from generated stories to answers about stories it has not seen. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { quickstartFwm } from "../../experiments/quickstart.ts";
import type { CatbabiEvaluation } from "../../src/experiment/catbabi/options.ts";
import { evaluateSaved } from "../../src/experiment/savedModel.ts";
import { trainRun } from "../../src/experiment/trainRun.ts";
import { loadModel } from "../../src/inference/load.ts";

test("a small memory learns where people are", { timeout: 300_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "fwm-learns-test-"));
  try {
    const run = join(folder, "run");
    const { task, system, training } = quickstartFwm.settings;
    const settings = {
      system,
      task: { ...task, tasks: "1" },
      training: {
        ...training,
        optimizer: { ...training.optimizer, learningRate: 5e-3 },
        schedule: { name: "constant", warmup: 50 },
        steps: 360,
        evalEvery: 360,
        saveEvery: 360,
      } as const,
    };
    await trainRun(
      { action: "start", experiment: "learns", settings, folder: run },
      { env: {}, signal: new AbortController().signal, command: ["test"], packageVersion: "0" },
    );
    const { evaluation } = await evaluateSaved(run, { split: "test", batch: 32 }, { env: {} });
    const { accuracy, questions } = evaluation as CatbabiEvaluation;
    expect(questions).toBeGreaterThan(1000);
    // Six places: guessing gives 17 %. Seeds 1, 2 and 3 gave 100, 99.98 and 100 %.
    expect(accuracy).toBeGreaterThan(0.95);

    const model = await loadModel(run);
    try {
      const stream = model.stream();
      await stream.read("mary went to the garden . john went to the kitchen . sandra went to the office .");
      expect((await stream.ask("where is john ?")).answers[0]!.word).toBe("kitchen");
      expect((await stream.ask("where is mary ?")).answers[0]!.word).toBe("garden");
    } finally {
      await model.release();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
