/** Meta-reinforcement learning put together: acting and learning agree, runs resume exactly, agents learn. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import "../../../experiments/index.ts";
import {
  graphRules,
  randomBaseline,
  runBaseline,
  shortestPathBaseline,
} from "../../../src/environment/index.ts";
import { benchMetarl } from "../../../src/experiment/metarl/bench.ts";
import { openMetarl } from "../../../src/experiment/metarl/session.ts";
import {
  agentSizesOf,
  type MetarlExperiment,
  type MetarlSettings,
  metarlSchema,
  releasedTask,
} from "../../../src/experiment/metarl/settings.ts";
import { experimentNames, requireExperiment } from "../../../src/experiment/registry.ts";
import { trainRun } from "../../../src/experiment/trainRun.ts";
import { input } from "../../../src/graph/index.ts";
import { buildAgent } from "../../../src/model/agentRegistry.ts";
import { countWeights } from "../../../src/model/sequence.ts";
import { nodeRuntime } from "../../../src/runtime/node.ts";
import { compile } from "../../../src/runtime/program.ts";
import { State } from "../../../src/runtime/state.ts";
import { loadCheckpoint } from "../../../src/store/checkpoint.ts";
import { readMetrics } from "../../../src/store/metrics.ts";
import { readRun } from "../../../src/store/runRecord.ts";
import { Actor } from "../../../src/train/actor.ts";
import type { LoopCallbacks } from "../../../src/train/loop.ts";
import { expectClose, normals } from "../../support/check.ts";
import { withoutClock } from "../../support/withoutClock.ts";

const scratch = mkdtempSync(join(tmpdir(), "fwm-metarl-test-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

type Change = { [Part in keyof MetarlSettings]?: Partial<MetarlSettings[Part]> };

/** Settings of an experiment with its smoke settings and some more laid over them. */
const metarlNames = experimentNames().filter((name) => name.startsWith("metarl-"));
const named = (name: string) => requireExperiment(name) as MetarlExperiment;

function settingsOf(name: string, change: Change = {}): MetarlSettings {
  const { settings, smoke } = named(name);
  const part = (key: keyof MetarlSettings) => ({ ...settings[key], ...smoke[key], ...change[key] });
  return metarlSchema.parse({ task: part("task"), system: part("system"), training: part("training") });
}

// One thread: ONNX Runtime promises equal bits only for equal thread counts, and the tests share the cores.
const context = { env: {}, command: ["fwm", "train"], packageVersion: "0", threads: 1 };
const never = new AbortController().signal;

describe("experiments", () => {
  test.each(metarlNames)("%s passes its schema, small and whole", (name) => {
    expect(metarlSchema.parse(named(name).settings)).toEqual(named(name).settings);
    expect(settingsOf(name).training.episodes).toBeLessThan(100);
  });

  test("have the weights they claim", () => {
    const weights = metarlNames.map((name) => [
      name,
      countWeights(buildAgent(named(name).settings.system, agentSizesOf(named(name).settings.task))),
    ]);
    expect(Object.fromEntries(weights)).toEqual({
      "metarl-fwm": 10_933,
      "metarl-fwm-corrected": 10_933,
      "metarl-fwm-tuned": 10_933,
      "metarl-fwm-lessons": 10_933,
      "metarl-fwm-ten-names": 12_213,
      "metarl-lstm-512": 1_089_540,
      "metarl-lstm-512-tuned": 1_089_540,
      "metarl-lstm-1024": 4_276_228,
      "metarl-lstm-2048": 16_941_060,
      "metarl-lstm-4096": 67_436_548,
    });
  });

  test("released and corrected differ in the rules and the advantage alone", () => {
    const [released, corrected] = [named("metarl-fwm"), named("metarl-fwm-corrected")];
    expect(corrected.settings).toEqual({
      ...released.settings,
      task: { ...released.settings.task, rules: "paper" },
      training: { ...released.settings.training, advantage: "a2c" },
    });
    const rules = ({ settings }: MetarlExperiment) =>
      openMetarl(settings, {}).environments.train.graphs.rules;
    expect(rules(released)).toEqual(graphRules.released);
    expect(rules(corrected)).toEqual(graphRules.paper);
  });

  test("a rule given by name wins over the set", () => {
    const settings = settingsOf("metarl-fwm", { task: { rewardInput: "last" } });
    const { train, valid } = openMetarl(settings, {}).environments;
    for (const { graphs } of [train, valid]) {
      expect(graphs.rules).toEqual({ ...graphRules.released, rewardInput: "last" });
      expect(graphs.agents).toBe(settings.training.agents);
    }
    expect(train.graphs.graphs.next).not.toEqual(valid.graphs.graphs.next);
  });
});

describe("acting and learning compute the same policy on ONNX Runtime", () => {
  test.each([
    ["FWM", { name: "fwm", hidden: 32, memory: 16, reads: 3, variant: "releasedMetaRl" }],
    ["LSTM", { name: "lstm", hidden: 40 }],
  ] as const)("%s, 30 steps", async (_, system) => {
    const [T, B, O] = [30, 8, 17];
    const agent = buildAgent(system, agentSizesOf(releasedTask));
    const state = new State(3);
    const options = { runtime: nodeRuntime, threads: 1 };
    const actor = new Actor(agent, { agents: B, steps: T, observation: O }, state, options);
    const x = Float32Array.from(normals([T, B, O], 5).data);
    const { logits, value } = agent.episode(input("x", [T, B, O]));
    const episode = await compile({ outputs: { logits, value } }, { ...options, state });
    try {
      const want = await episode.run({ x });
      // Twice: nothing of the first episode may be left in the second.
      for (let again = 0; again < 2; again++) {
        await actor.start();
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
    training: { agents: 10, episodes: 12, logEvery: 4, evalEvery: 4, evalEpisodes: 2, saveEvery: 3 },
    task: { length: 8 },
  };
  const plan = (folder: string, name = "metarl-fwm", change = small) =>
    ({ action: "start", experiment: name, settings: settingsOf(name, change), folder }) as const;

  /** Stops after an episode, as ^C does. */
  function stopAfter(episodes: number): { signal: AbortSignal; callbacks: LoopCallbacks } {
    const controller = new AbortController();
    const onStep = (done: number) => {
      if (done === episodes) controller.abort();
    };
    return { signal: controller.signal, callbacks: { onStep } };
  }

  test.each(["metarl-fwm", "metarl-lstm-512", "metarl-fwm-tuned", "metarl-fwm-lessons"] as const)(
    "%s: stopped twice and resumed, it has the numbers and the bytes of one that never stopped",
    async (name) => {
      const [whole, parts] = [join(scratch, `${name}-whole`), join(scratch, `${name}-parts`)];
      await trainRun(plan(whole, name), { ...context, signal: never });
      const first = await trainRun(plan(parts, name), { ...context, ...stopAfter(2) });
      expect(first).toMatchObject({ step: 2, reason: "interrupted" });
      expect((await readRun(parts)).state).toBe("interrupted");
      const resume = { action: "resume", folder: parts } as const;
      expect(await trainRun(resume, { ...context, ...stopAfter(7) })).toMatchObject({ step: 7 });
      const last = await trainRun(resume, { ...context, signal: never });
      expect(last).toMatchObject({ step: 12, reason: "finished" });
      expect(await readMetrics(parts, { withoutTimes: true })).toEqual(
        await readMetrics(whole, { withoutTimes: true }),
      );
      for (const file of ["model.safetensors", "optimizer.safetensors", "trainer_state.json"]) {
        const bytes = (folder: string) => readFileSync(join(folder, "checkpoint-12", file));
        expect(bytes(parts).equals(bytes(whole)), file).toBe(true);
      }
      expect(withoutClock((await readRun(parts)).summary)).toEqual(
        withoutClock((await readRun(whole)).summary),
      );
    },
  );

  test("logs means of training, and the return on validation graphs", async () => {
    const records = await readMetrics(join(scratch, "metarl-fwm-whole"));
    const steps = (split: string) =>
      records.filter((record) => record.split === split).map(({ step }) => step);
    expect(steps("valid")).toEqual([4, 8, 12]);
    expect(steps("train")).toEqual([4, 8, 12]);
    const names = ["entropy", "gradNorm", "learningRate", "loss", "policyLoss", "return", "valueLoss"];
    for (const { split, values } of records) {
      expect(Object.keys(values).sort()).toEqual(split === "train" ? names : ["return"]);
    }
  });

  test("another seed gives other weights, places and actions on the same graphs", async () => {
    const folder = join(scratch, "seed2");
    const change = { ...small, training: { ...small.training, seed: 2, episodes: 4 } };
    await trainRun(plan(folder, "metarl-fwm", change), { ...context, signal: never });
    const [one, two] = await Promise.all(
      [join(scratch, "metarl-fwm-whole"), folder].map((run) => readMetrics(run, { withoutTimes: true })),
    );
    expect(two![0]).not.toEqual(one![0]);
    const graphs = [1, 2].map(
      (seed) => openMetarl(settingsOf("metarl-fwm", { training: { seed } }), {}).environments.train.graphs,
    );
    expect(graphs[0]!.graphs).toEqual(graphs[1]!.graphs);
  });

  test("a teacher's advice counts less with every episode, and nothing in the end", async () => {
    /** The weights after one episode, in which a teacher's advice weighs less than at first, from the fifth on nothing. */
    const learned = async (episode: number, coef?: number): Promise<number[]> => {
      const teacher = coef === undefined ? undefined : { coef, episodes: 5 };
      const training = { ...small.training, seed: 4, teacher };
      const session = openMetarl(settingsOf("metarl-fwm", { ...small, training }), { threads: 1 });
      try {
        const { means } = await session.step(episode);
        expect("teacherLoss" in means).toBe(coef !== undefined);
        return Object.values(session.snapshot().model).flatMap(({ data }) => [...(data as Float32Array)]);
      } finally {
        await session.release();
      }
    };
    const alone = await learned(5);
    expectClose(await learned(5, 1), Float64Array.from(alone), { rtol: 1e-4, atol: 1e-6 });
    expect(await learned(4, 1)).not.toEqual(await learned(4, 0));
  });

  test("with rename, graphs change their names in ordinary training episodes and nowhere else", () => {
    const lessons = [{ extra: 0, joined: 0, until: 1, episodes: 3 }];
    const task = { length: 12, lessons, rename: true };
    const { environments, data } = openMetarl(settingsOf("metarl-fwm", { ...small, task }), {});
    const { train, valid } = environments;
    const plain = openMetarl(settingsOf("metarl-fwm", small), {}).environments;
    const tables = [0, undefined, undefined].map((lesson, episode) => {
      train.lesson = lesson;
      train.reset(episode);
      return [...train.graphs.graphs.next];
    });
    expect(data.notes.at(-1)).toBe("training graphs come under other names in every episode");
    expect(tables[0]).toEqual([...plain.train.graphs.graphs.next]);
    expect(tables[1]).not.toEqual(tables[0]);
    expect(tables[2]).not.toEqual(tables[1]);
    train.lesson = 0;
    train.reset(3);
    expect([...train.graphs.graphs.next]).toEqual(tables[0]);
    valid.reset(1);
    expect(valid.graphs.graphs.next).toEqual(plain.valid.graphs.graphs.next);
  });

  test("lessons come first, stage by stage, and are told of in the metrics", async () => {
    const stage = { extra: 0, joined: 0, until: 1, episodes: 3 };
    const lessons = [stage, { ...stage, extra: 2, episodes: 4 }];
    const session = openMetarl(settingsOf("metarl-fwm", { ...small, task: { length: 12, lessons } }), {
      threads: 1,
    });
    try {
      expect(session.data.notes).toEqual([
        "lessons come first: four edges are shown and ways of two asked for until 100 % are right, at most 3 episodes, " +
          "then four to 6 edges are shown and ways of two asked for until 100 % are right, at most 4 episodes",
      ]);
      const stages: unknown[] = [];
      for (let episode = 0; episode < 8; episode++) {
        const { latest, means } = await session.step(episode);
        stages.push(latest?.stage);
        expect("answers" in means, `episode ${episode}`).toBe(episode < 7);
        await session.evaluate(never);
      }
      expect(stages).toEqual([1, 1, 1, 2, 2, 2, 2, undefined]);
    } finally {
      await session.release();
    }
  });

  test("a finished run asks for more steps", async () => {
    const resume = { action: "resume", folder: join(scratch, "metarl-fwm-whole") } as const;
    await expect(trainRun(resume, { ...context, signal: never })).rejects.toThrow(/has made its 12 steps/);
    const end = await trainRun({ ...resume, steps: 13 }, { ...context, signal: never });
    expect(end.step).toBe(13);
  });

  test("what is not finite is refused, and the last checkpoint stays good", async () => {
    const folder = join(scratch, "diverged");
    const { optimizer } = named("metarl-lstm-512").settings.training;
    const wild = {
      ...small,
      training: { ...small.training, optimizer: { ...optimizer, learningRate: 1e30 }, saveEvery: 1 },
    };
    const ended = trainRun(plan(folder, "metarl-lstm-512", wild), { ...context, signal: never });
    await expect(ended).rejects.toMatchObject({ name: "DivergedError", exitCode: 4 });
    const record = await readRun(folder);
    expect(record.state).toBe("diverged");
    expect(record.note).toContain("is not finite");
  });

  test("a checkpoint of an agent of another size is refused by name", async () => {
    const { model, optimizer } = await loadCheckpoint(
      join(scratch, "metarl-lstm-512-whole", "checkpoint-12"),
    );
    const { trainer } = openMetarl(settingsOf("metarl-lstm-512", { system: { hidden: 16 } }), { threads: 1 });
    const values = new Map(
      Object.entries({ ...model, ...optimizer }).map(([name, { shape, data }]) => [
        name,
        { shape, dtype: "f32" as const, data: data as Float32Array },
      ]),
    );
    await expect(trainer.restore(values, "somewhere")).rejects.toThrow(
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
    "%s beats random actions on the training graphs and on unseen ones",
    async (_, system, advantage, steps) => {
      const settings = metarlSchema.parse({
        task: named("metarl-fwm").settings.task,
        system,
        training: {
          ...named("metarl-fwm").settings.training,
          agents: 150,
          optimizer: { name: "adam", learningRate: 0.01, eps: 1e-4 },
          discount: 0.5,
          advantage,
        },
      });
      const { trainer, environments } = openMetarl(settings, { threads: 1 });
      const rates = { learningRate: 0.01, entropyCoef: settings.training.entropyCoef };
      try {
        for (let episode = 0; episode < steps; episode++) {
          await trainer.rollout(environments.train, episode);
          await trainer.update(rates);
        }
        for (const split of ["train", "valid"] as const) {
          const { graphs } = environments[split];
          let [learned, random, known] = [0, 0, 0];
          const episodes = 20;
          for (let i = 1; i <= episodes; i++) {
            learned += (await trainer.evaluate(environments[split], 10_000 + i)) / episodes;
            random += runBaseline(graphs, 10_000 + i, randomBaseline(1, split)) / episodes;
            known += runBaseline(graphs, 10_000 + i, shortestPathBaseline(graphs.graphs)) / episodes;
          }
          // A mean of 20 episodes of 150 agents has a standard deviation of 0.4.
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
  const row = { label: { agents: 40 }, settings: settingsOf("metarl-fwm") };
  const { parts, perSecond, stepMs } = await benchMetarl(row, { steps: 3, threads: 1 });
  expect(parts.act).toBeGreaterThan(0);
  expect(parts.update).toBeGreaterThan(0);
  expect(stepMs).toBeCloseTo(parts.act! + parts.update!, 9);
  expect(perSecond).toBeCloseTo(1000 / stepMs, 9);
});
