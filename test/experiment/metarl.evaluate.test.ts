/** Agents are evaluated with fixed weights: means and errors by hand, play against the trainer's, folders refused. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { metarlExperiments } from "../../experiments/index.ts";
import { measureBaseline } from "../../src/environment/baselines.ts";
import { randomBaseline, runBaseline } from "../../src/environment/index.ts";
import { makeTrainer, makeWorlds, trainMetarl } from "../../src/experiment/metarl.ts";
import { evaluateAgent, frameReward, meanReward } from "../../src/experiment/metarlEvaluate.ts";
import { type MetarlSettings, metarlSchema } from "../../src/experiment/metarlSettings.ts";
import { evaluateModel } from "../../src/inference/evaluate.ts";
import { loadModelFolder, saveModelFolder } from "../../src/store/modelFolder.ts";

const scratch = mkdtempSync(join(tmpdir(), "fwm-agent-test-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const agent = join(scratch, "agent");
const { settings: whole } = metarlExperiments["metarl-fwm"];
const settings: MetarlSettings = metarlSchema.parse({
  task: { ...whole.task, length: 12, rewardInput: "last" },
  system: { ...whole.system, hidden: 16, memory: 8 },
  training: { ...whole.training, batch: 30, steps: 6, logEvery: 2, saveEvery: 2 },
});

beforeAll(async () => {
  await trainMetarl(
    { kind: "new", experiment: "metarl-fwm", settings, folder: agent },
    { command: ["fwm"], packageVersion: "0", threads: 1, signal: new AbortController().signal },
  );
});

describe("a mean reward", () => {
  test("has the errors of episodes on these graphs, and of the graphs", () => {
    // Graph 0: 1 and 3, variance 2; graph 1: 10 and 10, variance 0.
    const { mean, standardError, graphError } = meanReward([Float64Array.of(1, 10), Float64Array.of(3, 10)]);
    expect(mean).toBe(6);
    // The mean of a graph has variance 2 / 2 and 0; that of both a quarter of the sum.
    expect(standardError).toBeCloseTo(Math.sqrt(1 / 4), 12);
    // Means 2 and 10: variance 32, over two graphs 16.
    expect(graphError).toBeCloseTo(4, 12);
  });

  test("of one episode or one graph has no such error", () => {
    expect(meanReward([Float64Array.of(1, 3)])).toEqual({ mean: 2, standardError: null, graphError: 1 });
    expect(meanReward([Float64Array.of(1), Float64Array.of(3)])).toEqual({
      mean: 2,
      standardError: 1,
      graphError: null,
    });
  });
});

describe("an agent", () => {
  test.each(["test", "train"] as const)("plays on the %s graphs what training plays there", async (split) => {
    const evaluation = await evaluateAgent(agent, { split, episodes: 3, threads: 1, which: "last" });
    const { model } = await loadModelFolder(agent, { which: "last" });
    const trainer = makeTrainer(settings, { threads: 1 });
    const world = makeWorlds(settings)[split];
    let [played, random] = [0, 0];
    try {
      for (const [name, { data }] of Object.entries(model)) trainer.state.set(name, data as Float32Array);
      for (let i = 0; i < 3; i++) {
        played += (await trainer.play(world, 2 ** 31 + i)) / 3;
        random += runBaseline(world.environment, 2 ** 31 + i, randomBaseline(1, split)) / 3;
      }
    } finally {
      await trainer.release();
    }
    expect(evaluation.reward.mean).toBeCloseTo(played, 9);
    expect(evaluation.random.mean).toBeCloseTo(random, 9);
    expect(evaluation.shortestPath.mean).toBeGreaterThan(evaluation.reward.mean);
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
  });

  test("plays the same twice, otherwise by another seed, and from a model folder alone", async () => {
    const { config, model } = await loadModelFolder(agent);
    const shipped = await saveModelFolder(join(scratch, "shipped"), { config, model });
    const [a, b, c, d] = [
      await evaluateAgent(agent, { episodes: 2, threads: 1 }),
      await evaluateAgent(agent, { episodes: 2, threads: 1 }),
      await evaluateAgent(agent, { episodes: 2, threads: 1, seed: 2 }),
      await evaluateAgent(shipped, { episodes: 2, threads: 1 }),
    ];
    expect(b).toEqual(a);
    expect(c.reward).not.toEqual(a.reward);
    expect(c.random).not.toEqual(a.random);
    expect(d).toEqual({ ...a, model: shipped, step: null });
  });

  test("has no answers to score", async () => {
    await expect(evaluateModel(agent, { split: "test" })).rejects.toThrow(
      /an agent; it plays on graphs and does not answer/,
    );
  });
});

test("the frame is that of the two players", async () => {
  const options = { graphs: 600, task: { ...whole.task } };
  const { random, shortestPath } = await frameReward(options, { episodes: 5 });
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
