/** Agents in groups: the same episodes, and the update that all agents together would make. */
import { describe, expect, test } from "vitest";
import "../../../experiments/index.ts";
import { sampleGraphSets } from "../../../src/environment/index.ts";
import { makeEnvironment } from "../../../src/experiment/metarl/environments.ts";
import {
  groupCount,
  localGroup,
  openGroups,
  trainerSettings,
} from "../../../src/experiment/metarl/groups.ts";
import {
  agentSizesOf,
  type MetarlExperiment,
  type MetarlSettings,
  metarlSchema,
  releasedTask,
} from "../../../src/experiment/metarl/settings.ts";
import { requireExperiment } from "../../../src/experiment/registry.ts";
import { buildAgent } from "../../../src/model/agentRegistry.ts";
import { nodeRuntime } from "../../../src/runtime/node.ts";
import { A2cTrainer } from "../../../src/train/a2cTrainer.ts";
import { type AgentGroup, GroupedA2cTrainer } from "../../../src/train/agentGroups.ts";
import type { AgentTrainer } from "../../../src/train/agentTrainer.ts";
import { expectClose } from "../../support/check.ts";

/** Lessons, a teacher, and the facts. */
const taught: Partial<MetarlSettings["training"]> = { teacher: { coef: 1, episodes: 10 }, factCoef: 2 };
const lessons = [{ extra: 2, joined: 0.5, until: 1, episodes: 100 }];

function settingsOf(change: Partial<MetarlSettings["training"]> = {}, name = "fwm"): MetarlSettings {
  const { settings } = requireExperiment("metarl-fwm") as MetarlExperiment;
  return metarlSchema.parse({
    task: change.teacher
      ? { ...settings.task, length: 12, lessons }
      : { ...settings.task, length: 6, rename: true },
    system: name === "fwm" ? { ...settings.system, hidden: 8, memory: 4 } : { name, hidden: 8 },
    training: { ...settings.training, agents: 6, clip: 0.5, ...change },
  });
}

const options = { runtime: nodeRuntime, threads: 1 };

function grouped(settings: MetarlSettings, groups: readonly AgentGroup[]): GroupedA2cTrainer {
  const agent = buildAgent(settings.system, agentSizesOf(settings.task));
  return new GroupedA2cTrainer(agent, trainerSettings(settings), groups, options);
}

const localGroups = (settings: MetarlSettings, count: number): AgentGroup[] =>
  Array.from({ length: count }, (_, index) => localGroup({ settings, index, count }));

/** Some episodes: what they gave, and the weights and optimizer after them. */
async function train(trainer: AgentTrainer, settings: MetarlSettings, [from, to]: [number, number] = [0, 3]) {
  const { task, training } = settings;
  const graphs = sampleGraphSets(task.graphSeed, training.agents);
  const [environment, valid] = (["train", "valid"] as const).map((split) =>
    makeEnvironment(task, graphs[split], training.seed, split),
  );
  const told: Record<string, number>[] = [];
  for (let episode = from; episode < to; episode++) {
    environment!.lesson = task.lessons.length > 0 ? 0 : undefined;
    const { meanReturn, answers } = await trainer.rollout(environment!, episode);
    const rates = { learningRate: 1e-2, entropyCoef: 0.03, teacherCoef: 0.5 };
    told.push({ meanReturn, ...answers, ...(await trainer.update(rates)) } as never);
  }
  const { model, optimizer } = trainer.snapshot();
  const saved = [...model, ...optimizer].map(([name, { data }]) => [name, data as Float32Array] as const);
  return { told, saved, valid: await trainer.evaluate(valid!, 0) };
}

describe("an update of groups is that of all agents", () => {
  test.each([
    ["fwm", "broadcast", 2, {}],
    ["fwm", "a2c", 3, {}],
    ["fwm", "a2c", 2, taught],
    ["lstm", "broadcast", 2, {}],
  ] as const)("%s, advantage %s, %i groups, %o", async (name, advantage, count, change) => {
    const settings = settingsOf({ advantage, lambda: 0.9, ...change }, name);
    const [one, many] = [
      new A2cTrainer(
        buildAgent(settings.system, agentSizesOf(settings.task)),
        trainerSettings(settings),
        options,
      ),
      grouped(settings, localGroups(settings, count)),
    ];
    try {
      const [want, got] = [await train(one, settings), await train(many, settings)];
      // The same actions in the same places: returns are sums of the same rewards.
      expect(got.told.map(({ meanReturn }) => meanReturn!.toFixed(6))).toEqual(
        want.told.map(({ meanReturn }) => meanReturn!.toFixed(6)),
      );
      got.told.forEach((numbers, i) => {
        expectClose(Object.values(numbers), Float64Array.from(Object.values(want.told[i]!)), {
          rtol: 1e-4,
          atol: 1e-5,
          label: `episode ${i}`,
        });
      });
      expect(got.saved.map(([of]) => of)).toEqual(want.saved.map(([of]) => of));
      got.saved.forEach(([of, data], i) => {
        // Adam divides by the root of small squares: 3 updates of 1e-2 each, float32.
        expectClose(data, Float64Array.from(want.saved[i]![1]), { rtol: 1e-3, atol: 1e-5, label: of });
      });
      expect(got.valid).toBeCloseTo(want.valid, 6);
    } finally {
      await one.release();
      await many.release();
    }
  });
});

test.each([
  ["ordinary episodes", {}],
  ["lessons", taught],
] as const)(
  "%s: a group in another thread gives the bits of one in this thread, and an update resumes exactly",
  async (_, change) => {
    const settings = settingsOf(change);
    const trainers = [
      grouped(settings, openGroups(settings, 2)),
      grouped(settings, localGroups(settings, 2)),
      grouped(settings, localGroups(settings, 2)),
    ] as const;
    const [threads, local, resumed] = trainers;
    try {
      const want = await train(local, settings);
      expect(await train(threads, settings)).toEqual(want);
      await train(resumed, settings, [0, 1]);
      const { model, optimizer } = resumed.snapshot();
      const again = grouped(settings, localGroups(settings, 2));
      try {
        await again.restore(new Map([...model, ...optimizer]), "test");
        const rest = await train(again, settings, [1, 3]);
        expect(rest.told).toEqual(want.told.slice(1));
        expect(rest.saved).toEqual(want.saved);
      } finally {
        await again.release();
      }
    } finally {
      for (const trainer of trainers) await trainer.release();
    }
  },
);

test("what goes wrong in another thread is thrown here, and later calls say so too", async () => {
  const settings = settingsOf();
  const [, remote] = openGroups(settings, 2) as [AgentGroup, AgentGroup];
  const weights = buildAgent(settings.system, agentSizesOf(settings.task)).parameters.map(
    ({ shape }) => new Float32Array(shape.reduce((a, b) => a * b, 1)),
  );
  const order = { weights, environment: "elsewhere", episode: 0, store: false };
  await expect(remote.rollout(order)).rejects.toThrow("no environment elsewhere");
  expect((await remote.rollout({ ...order, environment: "valid" })).meanReturn).toBeTypeOf("number");
  await remote.release();
  await expect(remote.rollout(order)).rejects.toThrow("the thread of a group of agents ended");
});

test("weights that are not finite are refused: nothing changes", async () => {
  const settings = settingsOf();
  const trainer = grouped(settings, localGroups(settings, 2));
  try {
    const [name] = trainer.weightNames;
    (trainer.state.get(name!).data as Float32Array)[0] = Number.NaN;
    const before = trainer.snapshot();
    const { told } = await train(trainer, settings, [0, 1]);
    expect(told[0]).toMatchObject({ nonFinite: "loss" });
    expect(trainer.snapshot().model).toEqual(before.model);
  } finally {
    await trainer.release();
  }
});

test("small agents get a thread for every 128 of them, large ones stay together", () => {
  const [small, large] = [
    { name: "fwm", hidden: 32, memory: 16, reads: 3 },
    { name: "lstm", hidden: 512 },
  ].map((system) =>
    buildAgent(
      { variant: "releasedMetaRl", ...system } as MetarlSettings["system"],
      agentSizesOf(releasedTask),
    ),
  ) as [ReturnType<typeof buildAgent>, ReturnType<typeof buildAgent>];
  const counts = [1, 2, 3, 4, 8].map((threads) => groupCount(small, 600, threads));
  expect(counts).toEqual([1, 2, 3, 4, 4]);
  expect([groupCount(small, 255, 2), groupCount(small, 257, 2), groupCount(large, 600, 2)]).toEqual([
    1, 1, 1,
  ]);
});
