/** Meta-reinforcement learning put together: acting and learning agree, runs resume exactly, agents learn. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { benchMetarl } from "../../bench/metarl.ts";
import { metarlExperiments } from "../../experiments/index.ts";
import {
  graphRules,
  randomBaseline,
  runBaseline,
  shortestPathBaseline,
} from "../../src/environment/index.ts";
import { buildAgent, makeTrainer, makeWorlds, trainMetarl } from "../../src/experiment/metarl.ts";
import { type MetarlSettings, metarlSchema } from "../../src/experiment/metarlSettings.ts";
import { input, sizeOf } from "../../src/graph/index.ts";
import { nodeRuntime } from "../../src/runtime/node.ts";
import { compile } from "../../src/runtime/program.ts";
import { State } from "../../src/runtime/state.ts";
import { loadCheckpoint } from "../../src/store/checkpoint.ts";
import { readMetrics } from "../../src/store/metrics.ts";
import { readRun } from "../../src/store/runRecord.ts";
import type { A2cWatch } from "../../src/train/a2c.ts";
import { Actor } from "../../src/train/actor.ts";
import { expectClose, normals } from "../support/check.ts";

const scratch = mkdtempSync(join(tmpdir(), "fwm-metarl-test-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

type Change = { [Part in keyof MetarlSettings]?: Partial<MetarlSettings[Part]> };

/** Settings of an experiment with its smoke settings and some more laid over them. */
const metarlNames = Object.keys(metarlExperiments) as (keyof typeof metarlExperiments)[];

function settingsOf(name: keyof typeof metarlExperiments, change: Change = {}): MetarlSettings {
  const { settings, smoke } = metarlExperiments[name];
  const part = (key: keyof MetarlSettings) => ({ ...settings[key], ...smoke[key], ...change[key] });
  return metarlSchema.parse({ task: part("task"), system: part("system"), training: part("training") });
}

// One thread: ONNX Runtime promises equal bits only for equal thread counts, and the tests share the cores.
const context = { command: ["fwm", "train"], packageVersion: "0", threads: 1 };
const never = new AbortController().signal;

describe("experiments", () => {
  test.each(metarlNames)("%s passes its schema, small and whole", (name) => {
    expect(metarlSchema.parse(metarlExperiments[name].settings)).toEqual(metarlExperiments[name].settings);
    expect(settingsOf(name).training.steps).toBeLessThan(100);
  });

  test("have the weights they claim", () => {
    const weights = metarlNames.map((name) => [
      name,
      buildAgent(metarlExperiments[name].settings.system).parameters.reduce(
        (total, { shape }) => total + sizeOf(shape),
        0,
      ),
    ]);
    expect(Object.fromEntries(weights)).toEqual({
      "metarl-fwm": 10_933,
      "metarl-fwm-corrected": 10_933,
      "metarl-fwm-tuned": 10_933,
      "metarl-lstm-512": 1_089_540,
      "metarl-lstm-512-tuned": 1_089_540,
      "metarl-lstm-1024": 4_276_228,
      "metarl-lstm-2048": 16_941_060,
      "metarl-lstm-4096": 67_436_548,
    });
  });

  test("released and corrected differ in the rules and the advantage alone", () => {
    const { "metarl-fwm": released, "metarl-fwm-corrected": corrected } = metarlExperiments;
    expect(corrected.settings).toEqual({
      ...released.settings,
      task: { ...released.settings.task, rules: "paper" },
      training: { ...released.settings.training, advantage: "a2c" },
    });
    expect(makeWorlds(released.settings).train.environment.rules).toEqual(graphRules.released);
    expect(makeWorlds(corrected.settings).train.environment.rules).toEqual(graphRules.paper);
  });

  test("a rule given by name wins over the set", () => {
    const settings = settingsOf("metarl-fwm", { task: { rewardInput: "last" } });
    const { train, test: held } = makeWorlds(settings);
    for (const { environment } of [train, held]) {
      expect(environment.rules).toEqual({ ...graphRules.released, rewardInput: "last" });
      expect(environment.agents).toBe(settings.training.batch);
    }
    expect(train.environment.graphs.next).not.toEqual(held.environment.graphs.next);
  });
});

describe("acting and learning compute the same policy on ONNX Runtime", () => {
  test.each([
    ["FWM", { name: "fwm", hidden: 32, memory: 16, reads: 3, variant: "releasedMetaRl" }],
    ["LSTM", { name: "lstm", hidden: 40 }],
  ] as const)("%s, 30 steps", async (_, system) => {
    const [T, B, O] = [30, 8, 17];
    const agent = buildAgent(system);
    const state = new State(3);
    const options = { runtime: nodeRuntime, threads: 1 };
    const actor = new Actor(agent, { agents: B, steps: T, observation: O }, state, options);
    const x = Float32Array.from(normals([T, B, O], 5).data);
    const episode = await compile(
      { outputs: { ...agent.episode(input("x", [T, B, O])) } },
      { ...options, state },
    );
    try {
      const want = await episode.run({ x });
      // Twice: nothing of the first episode may be left in the second.
      for (let again = 0; again < 2; again++) {
        await actor.begin();
        const [logits, values]: [number[], number[]] = [[], []];
        for (let t = 0; t < T; t++) {
          const decision = await actor.act(x.subarray(t * B * O, (t + 1) * B * O));
          logits.push(...decision.logits);
          values.push(...decision.value);
        }
        // Float32, and 30 writes added up in another order.
        const close = { rtol: 1e-4, atol: 1e-4 };
        expectClose(logits, want.logits as Float32Array, { ...close, label: "logits" });
        expectClose(values, want.value as Float32Array, { ...close, label: "values" });
      }
    } finally {
      await actor.release();
      await episode.release();
    }
  });
});

describe("a run", () => {
  const small: Change = {
    training: { batch: 10, steps: 12, logEvery: 4, saveEvery: 3 },
    task: { length: 8 },
  };
  const plan = (folder: string, name: keyof typeof metarlExperiments = "metarl-fwm", change = small) =>
    ({ kind: "new", experiment: name, settings: settingsOf(name, change), folder }) as const;

  /** Stops after an episode, as ^C does. */
  function stopAfter(episode: number): { signal: AbortSignal; watch: A2cWatch } {
    const controller = new AbortController();
    const onEpisode = (done: number) => {
      if (done === episode) controller.abort();
    };
    return { signal: controller.signal, watch: { onEpisode } };
  }

  test.each(["metarl-fwm", "metarl-lstm-512", "metarl-fwm-tuned"] as const)(
    "%s: stopped twice and resumed, it has the numbers and the bytes of one that never stopped",
    async (name) => {
      const [whole, parts] = [join(scratch, `${name}-whole`), join(scratch, `${name}-parts`)];
      await trainMetarl(plan(whole, name), { ...context, signal: never });
      const first = await trainMetarl(plan(parts, name), { ...context, ...stopAfter(1) });
      expect(first).toMatchObject({ step: 2, reason: "interrupted" });
      expect((await readRun(parts)).state).toBe("interrupted");
      const resume = { kind: "resume", folder: parts } as const;
      expect(await trainMetarl(resume, { ...context, ...stopAfter(6) })).toMatchObject({ step: 7 });
      const last = await trainMetarl(resume, { ...context, signal: never });
      expect(last).toMatchObject({ step: 12, reason: "finished" });
      expect(await readMetrics(parts, { withoutTimes: true })).toEqual(
        await readMetrics(whole, { withoutTimes: true }),
      );
      for (const file of ["model.safetensors", "optimizer.safetensors", "trainer_state.json"]) {
        const bytes = (folder: string) => readFileSync(join(folder, "checkpoint-12", file));
        expect(bytes(parts).equals(bytes(whole)), file).toBe(true);
      }
      expect((await readRun(parts)).summary).toEqual((await readRun(whole)).summary);
    },
  );

  test("logs a test episode before the first update and with every line", async () => {
    const records = await readMetrics(join(scratch, "metarl-fwm-whole"));
    const steps = (split: string) =>
      records.filter((record) => record.split === split).map(({ step }) => step);
    expect(steps("test")).toEqual([0, 4, 8, 12]);
    expect(steps("train")).toEqual([4, 8, 12]);
    const names = ["entropy", "gradNorm", "loss", "policyLoss", "reward", "valueLoss"];
    for (const { split, values } of records) {
      expect(Object.keys(values).sort()).toEqual(split === "train" ? names : ["reward"]);
    }
  });

  test("another seed gives other weights, places and actions on the same graphs", async () => {
    const folder = join(scratch, "seed2");
    const change = { ...small, training: { ...small.training, seed: 2, steps: 4 } };
    await trainMetarl(plan(folder, "metarl-fwm", change), { ...context, signal: never });
    const [one, two] = await Promise.all(
      [join(scratch, "metarl-fwm-whole"), folder].map((run) => readMetrics(run, { withoutTimes: true })),
    );
    expect(two![0]).not.toEqual(one![0]);
    const graphs = [1, 2].map((seed) => makeWorlds(settingsOf("metarl-fwm", { training: { seed } })));
    expect(graphs[0]!.train.environment.graphs).toEqual(graphs[1]!.train.environment.graphs);
  });

  test("a finished run asks for more steps", async () => {
    const resume = { kind: "resume", folder: join(scratch, "metarl-fwm-whole") } as const;
    await expect(trainMetarl(resume, { ...context, signal: never })).rejects.toThrow(/has made its 12 steps/);
    const end = await trainMetarl({ ...resume, steps: 13 }, { ...context, signal: never });
    expect(end.step).toBe(13);
  });

  test("what is not finite is refused, and the last checkpoint stays good", async () => {
    const folder = join(scratch, "diverged");
    const wild = { ...small, training: { ...small.training, learningRate: 1e30, saveEvery: 1 } };
    const ended = trainMetarl(plan(folder, "metarl-lstm-512", wild), { ...context, signal: never });
    await expect(ended).rejects.toMatchObject({ name: "DivergedError", exitCode: 4 });
    const record = await readRun(folder);
    expect(record.state).toBe("diverged");
    expect(record.note).toContain("is not finite");
  });

  test("a checkpoint of an agent of another size is refused by name", async () => {
    const { model, optimizer } = await loadCheckpoint(
      join(scratch, "metarl-lstm-512-whole", "checkpoint-12"),
    );
    const trainer = makeTrainer(settingsOf("metarl-lstm-512", { system: { hidden: 16 } }), { threads: 1 });
    const values = new Map(
      Object.entries({ ...model, ...optimizer }).map(([name, { shape, data }]) => [
        name,
        { shape, dtype: "f32" as const, data: data as Float32Array },
      ]),
    );
    await expect(trainer.adopt(values, "somewhere")).rejects.toThrow(
      /somewhere: tensor \S+ has another type/,
    );
    await trainer.release();
  });
});

describe("learning", () => {
  // A short horizon and a high rate: the first thing to learn is which actions have no edge, and that is quick.
  test.each([
    ["LSTM", { name: "lstm", hidden: 32 }, "a2c", 300],
    ["FWM", { name: "fwm", hidden: 16, memory: 8, reads: 3, variant: "releasedMetaRl" }, "broadcast", 250],
  ] as const)(
    "%s beats random play on the training graphs and on unseen ones",
    async (_, system, advantage, steps) => {
      const settings = metarlSchema.parse({
        task: metarlExperiments["metarl-fwm"].settings.task,
        system,
        training: {
          ...metarlExperiments["metarl-fwm"].settings.training,
          batch: 150,
          learningRate: 0.01,
          discount: 0.5,
          advantage,
        },
      });
      const trainer = makeTrainer(settings, { threads: 1 });
      const worlds = makeWorlds(settings);
      try {
        for (let episode = 0; episode < steps; episode++) {
          await trainer.play(worlds.train, episode);
          await trainer.learn(settings.training);
        }
        for (const split of ["train", "test"] as const) {
          const { environment } = worlds[split];
          let [learned, random, known] = [0, 0, 0];
          const episodes = 20;
          for (let i = 1; i <= episodes; i++) {
            learned += (await trainer.play(worlds[split], 10_000 + i)) / episodes;
            random += runBaseline(environment, 10_000 + i, randomBaseline(1, split)) / episodes;
            known +=
              runBaseline(environment, 10_000 + i, shortestPathBaseline(environment.graphs)) / episodes;
          }
          // A mean of 20 episodes of 150 agents has a deviation of 0.4.
          expect(learned, split).toBeGreaterThan(random + 2);
          expect(learned, split).toBeLessThan(known);
        }
      } finally {
        await trainer.release();
      }
    },
  );
});

test("the bench times acting and learning", async () => {
  const experiment = { settings: settingsOf("metarl-fwm") };
  const bench = await benchMetarl({ experiment, seconds: 0.1, threads: 1 });
  expect(bench.episodes).toBeGreaterThanOrEqual(3);
  expect(bench.actMs).toBeGreaterThan(0);
  expect(bench.learnMs).toBeGreaterThan(0);
  expect(bench.episodesPerSecond).toBeCloseTo(1000 / (bench.actMs + bench.learnMs), 9);
});
