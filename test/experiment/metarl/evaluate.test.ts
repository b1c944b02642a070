/** Agents are evaluated with fixed weights: means and errors by hand, play against the trainer's, folders refused. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import metarlFwm from "../../../experiments/metarl-fwm.ts";
import { measureBaseline } from "../../../src/environment/baselines.ts";
import { randomBaseline, runBaseline, sampleGraphSets } from "../../../src/environment/index.ts";
import { makeEnvironment } from "../../../src/experiment/metarl/environments.ts";
import { baselineReturns, meanReturn } from "../../../src/experiment/metarl/evaluate.ts";
import type { MetarlEvaluation, MetarlOptions } from "../../../src/experiment/metarl/options.ts";
import { openMetarl } from "../../../src/experiment/metarl/session.ts";
import { type MetarlSettings, metarlSchema } from "../../../src/experiment/metarl/settings.ts";
import { evaluateSaved } from "../../../src/experiment/savedModel.ts";
import { trainRun } from "../../../src/experiment/trainRun.ts";
import { loadModel } from "../../../src/inference/load.ts";
import { loadModelFolder, saveModelFolder } from "../../../src/store/modelFolder.ts";

const scratch = mkdtempSync(join(tmpdir(), "fwm-agent-test-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const agent = join(scratch, "agent");
const { settings: whole } = metarlFwm;
const settings: MetarlSettings = metarlSchema.parse({
  task: { ...whole.task, length: 12, rewardInput: "last" },
  system: { ...whole.system, hidden: 16, memory: 8 },
  training: { ...whole.training, agents: 30, episodes: 6, logEvery: 2, evalEvery: 2, saveEvery: 2 },
});

beforeAll(async () => {
  await trainRun(
    { action: "start", experiment: "metarl-fwm", settings, folder: agent },
    { env: {}, command: ["fwm"], packageVersion: "0", threads: 1, signal: new AbortController().signal },
  );
});

/** Evaluates a folder on one thread. */
async function evaluate(
  folder: string,
  options: MetarlOptions & { readonly which?: "best" | "last" },
): Promise<MetarlEvaluation> {
  const { evaluation } = await evaluateSaved(folder, { ...options }, { env: {}, threads: 1 });
  return evaluation as MetarlEvaluation;
}

describe("a mean return", () => {
  test("has the errors of episodes on these graphs, and of the graphs", () => {
    // Graph 0: 1 and 3, variance 2; graph 1: 10 and 10, variance 0.
    const { mean, standardError, graphError } = meanReturn([Float64Array.of(1, 10), Float64Array.of(3, 10)]);
    expect(mean).toBe(6);
    // The mean of a graph has variance 2 / 2 and 0; that of both a quarter of the sum.
    expect(standardError).toBeCloseTo(Math.sqrt(1 / 4), 12);
    // Means 2 and 10: variance 32, over two graphs 16.
    expect(graphError).toBeCloseTo(4, 12);
  });

  test("of one episode or one graph has no such error", () => {
    expect(meanReturn([Float64Array.of(1, 3)])).toEqual({ mean: 2, standardError: null, graphError: 1 });
    expect(meanReturn([Float64Array.of(1), Float64Array.of(3)])).toEqual({
      mean: 2,
      standardError: 1,
      graphError: null,
    });
  });
});

describe("larger graphs", () => {
  test("are acted on by an agent that knows names for them, and by the baselines", async () => {
    const known = join(scratch, "ten");
    const named = metarlSchema.parse({ ...settings, task: { ...settings.task, names: 10 } });
    await trainRun(
      { action: "start", experiment: "metarl-fwm", settings: named, folder: known },
      { env: {}, command: ["fwm"], packageVersion: "0", threads: 1, signal: new AbortController().signal },
    );
    const seven = await evaluate(known, { split: "valid", episodes: 2, states: 7 });
    const [five, ten] = [
      await evaluate(known, { split: "valid", episodes: 2 }),
      await evaluate(known, { split: "valid", episodes: 2, states: 10 }),
    ];
    expect([five.states, seven.states, ten.states]).toEqual([5, 7, 10]);
    expect([five, seven, ten].map(({ behaviour }) => behaviour!.planned.length)).toEqual([4, 6, 9]);
    // The further apart things are, the less there is to be had, with the graph known or not.
    for (const of of ["explorer", "shortestPath"] as const) {
      expect(seven[of].mean).toBeLessThan(five[of].mean);
      expect(ten[of].mean).toBeLessThan(seven[of].mean);
      expect(ten[of].mean).toBeGreaterThan(ten.random.mean);
    }
  });

  test("are refused where there are too few names", async () => {
    await expect(evaluate(agent, { states: 7 })).rejects.toThrow(/names for 5 locations only/);
  });
});

describe("an agent", () => {
  test.each(["test", "valid", "train", "fresh"] as const)(
    "acts on the %s graphs as training does",
    async (split) => {
      const evaluation = await evaluate(agent, { split, episodes: 3, which: "last" });
      const { model } = await loadModelFolder(agent, { which: "last" });
      const { trainer } = openMetarl(settings, { threads: 1 });
      const graphs = sampleGraphSets(settings.task.graphSeed, settings.training.agents)[split];
      const environment = makeEnvironment(settings.task, graphs, 1, split);
      let [reached, random] = [0, 0];
      try {
        for (const [name, { data }] of Object.entries(model)) trainer.state.set(name, data as Float32Array);
        for (let i = 0; i < 3; i++) {
          reached += (await trainer.rollout(environment, 2 ** 31 + i)).meanReturn / 3;
          random += runBaseline(environment.graphs, 2 ** 31 + i, randomBaseline(1, split)) / 3;
        }
      } finally {
        await trainer.release();
      }
      expect(evaluation.return.mean).toBeCloseTo(reached, 9);
      expect(evaluation.random.mean).toBeCloseTo(random, 9);
      expect(evaluation.shortestPath.mean).toBeGreaterThan(evaluation.return.mean);
      expect(evaluation).toMatchObject({
        model: join(agent, "checkpoint-6"),
        experiment: "metarl-fwm",
        step: 6,
        split,
        graphs: 30,
        episodes: 3,
        length: 12,
        seed: 1,
        rules: { rewardInput: "last", timerOnSuccess: "kept", layout: "released" },
      });
    },
  );

  test("acts the same twice, otherwise by another seed, and from a model folder alone", async () => {
    const { config, model } = await loadModelFolder(agent);
    const shipped = await saveModelFolder(join(scratch, "shipped"), { config, model });
    const [a, b, c, d] = [
      await evaluate(agent, { episodes: 2 }),
      await evaluate(agent, { episodes: 2 }),
      await evaluate(agent, { episodes: 2, seed: 2 }),
      await evaluate(shipped, { episodes: 2 }),
    ];
    expect(b).toEqual(a);
    expect(c.return).not.toEqual(a.return);
    expect(c.random).not.toEqual(a.random);
    expect(d).toEqual({ ...a, model: shipped, step: null });
  });

  test("has no answers to score", async () => {
    await expect(loadModel(agent)).rejects.toThrow(
      /of the kind metarl; it reads no words and does not answer/,
    );
    await expect(evaluate(agent, { batch: 1 } as MetarlOptions)).rejects.toThrow(/--batch: not for models/);
  });
});

test("the baselines are those of the environment", async () => {
  const { random, shortestPath } = await baselineReturns(whole, { episodes: 5 });
  for (const [baseline, { mean, standardError, graphError }] of [
    ["random", random],
    ["shortest path", shortestPath],
  ] as const) {
    const other = measureBaseline({ baseline, timerOnSuccess: "kept", seeds: [1, 2, 3, 4], episodes: 5 });
    const sure = Math.hypot(graphError!, other.standardError);
    expect(Math.abs(mean - other.mean), baseline).toBeLessThan(4 * sure);
    // Independent episodes of 600 agents: their spread gives the same error.
    expect(standardError! / (other.episodeStd / Math.sqrt(5)), baseline).toBeGreaterThan(0.5);
    expect(standardError! / (other.episodeStd / Math.sqrt(5)), baseline).toBeLessThan(2);
  }
});
