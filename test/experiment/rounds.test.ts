/** Rounds of a sweep: who goes on, that stopping anywhere decides the same, and that pausing changes no number. */
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import "../../experiments/index.ts";
import { assignments, layer, resolveSettings } from "../../src/cli/config.ts";
import { kindOf, requireExperiment } from "../../src/experiment/registry.ts";
import { type Change, type Grid, sweepMembers } from "../../src/experiment/sweep/members.ts";
import type { SweepCallbacks } from "../../src/experiment/sweep/queue.ts";
import {
  checkRounds,
  openTasks,
  type Rounds,
  rankings,
  type Standing,
} from "../../src/experiment/sweep/rounds.ts";
import { runSweep, type SweepEnd } from "../../src/experiment/sweep/run.ts";
import { trainRun } from "../../src/experiment/trainRun.ts";
import { loadCheckpoint } from "../../src/store/checkpoint.ts";
import { readMetrics } from "../../src/store/metrics.ts";
import { readRun } from "../../src/store/runRecord.ts";
import { registerToy } from "./toyKind.ts";

const scratch = mkdtempSync(join(tmpdir(), "fwm-rounds-test-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const never = new AbortController().signal;
const context = { env: {}, signal: never, command: ["fwm", "sweep"], packageVersion: "0", threads: 1 };
const halving = (steps: number[], ...keep: number[]): Rounds => ({ steps, rule: { name: "halving", keep } });
const asha = (steps: number[], factor: number): Rounds => ({ steps, rule: { name: "asha", factor } });

/** A member that stands at some values; `over` as its last word. */
function at(values: (number | undefined)[], { setting = "", over = false, step = 0 } = {}): Standing {
  return { setting: setting || `${Math.random()}`, step, over, values };
}

describe("halving: who goes on", () => {
  const rounds = halving([10, 20, 40], 2, 1);
  const tasksOf = (standings: readonly Standing[]) =>
    openTasks(rounds, standings, "lower").map(({ member, round }) => `${member}/${round}`);

  test("all begin; a round waits for the slowest", () => {
    expect(tasksOf([at([]), at([]), at([])])).toEqual(["0/0", "1/0", "2/0"]);
    expect(tasksOf([at([1]), at([2]), at([])])).toEqual(["2/0"]);
  });

  test("the best go on, in the order of the sweep; a tie is decided by that order", () => {
    expect(tasksOf([at([3]), at([2]), at([1])])).toEqual(["1/1", "2/1"]);
    expect(tasksOf([at([2]), at([2]), at([2])])).toEqual(["0/1", "1/1"]);
    expect(tasksOf([at([3]), at([2, 5]), at([1, 6])])).toEqual(["1/2"]);
  });

  test("higher may be better", () => {
    expect(openTasks(rounds, [at([3]), at([2]), at([1])], "higher")).toEqual([
      { member: 0, round: 1 },
      { member: 1, round: 1 },
    ]);
  });

  test("one that diverged is not kept, and does not hold up the others", () => {
    expect(tasksOf([at([], { over: true }), at([9]), at([], { over: true })])).toEqual(["1/1"]);
    expect(tasksOf([at([], { over: true }), at([], { over: true })])).toEqual([]);
    // Its value of the round before still counts: what was decided then stays decided.
    expect(tasksOf([at([1], { over: true }), at([2, 7]), at([3])])).toEqual(["1/2"]);
  });

  test("settings are compared by the mean over their seeds, and all seeds go on", () => {
    const pair = (setting: string, a: number, b: number | undefined) => [
      at([a], { setting }),
      at(b === undefined ? [] : [b], { setting, over: b === undefined }),
    ];
    const standings = [...pair("a", 1, 9), ...pair("b", 4, 4), ...pair("c", 0, undefined)];
    expect(openTasks(halving([10, 20], 1), standings, "lower")).toEqual([
      { member: 2, round: 1 },
      { member: 3, round: 1 },
    ]);
    const [ranking] = rankings(halving([10, 20], 1), standings, "lower");
    expect(ranking!.map(({ members, value, kept }) => [members, value, kept])).toEqual([
      [[2, 3], 4, true],
      [[0, 1], 5, false],
      [[4, 5], undefined, false],
    ]);
  });
});

describe("asha: who goes on", () => {
  const rounds = asha([10, 20, 40], 2);
  const tasksOf = (standings: readonly Standing[]) =>
    openTasks(rounds, standings, "lower").map(({ member, round }) => `${member}/${round}`);

  test("the best half of those that are there, before the others have come", () => {
    expect(tasksOf([at([5]), at([]), at([])])).toEqual(["1/0", "2/0"]);
    expect(tasksOf([at([5]), at([4]), at([])])).toEqual(["1/1", "2/0"]);
    expect(tasksOf([at([5]), at([4, 3], { step: 20 }), at([1]), at([1, 2], { step: 20 })])).toEqual([
      "3/2",
      "2/1",
    ]);
  });

  test("one that has gone on goes on, also where it would not be chosen now", () => {
    expect(tasksOf([at([5], { step: 15 }), at([4]), at([3]), at([2])])).toEqual(["3/1", "2/1", "0/1"]);
  });

  test("one that diverged counts as a result, and never goes on", () => {
    expect(tasksOf([at([5]), at([], { over: true })])).toEqual(["0/1"]);
    expect(tasksOf([at([5], { over: true }), at([6])])).toEqual([]);
  });
});

/** Plays a sweep with members whose values are known; `order` says which open task is done next. */
function play(
  rounds: Rounds,
  values: readonly number[][],
  order: readonly number[],
  stop = Number.POSITIVE_INFINITY,
) {
  const standings: Standing[] = values.map((_, i) => at([], { setting: `${i}` }));
  const done: string[] = [];
  for (let turn = 0; turn < stop; turn++) {
    const open = openTasks(rounds, standings, "lower");
    if (open.length === 0) break;
    const { member, round } = open[(order[turn % order.length] ?? 0) % open.length]!;
    const last = rounds.steps.length - 1;
    const before = standings[member]!;
    standings[member] = {
      ...before,
      step: rounds.steps[round]!,
      over: round === last,
      values: [...before.values.slice(0, round), values[member]![round]!],
    };
    done.push(`${member}/${round}`);
  }
  return { standings, done };
}

const valuesOf = fc.array(fc.array(fc.integer({ min: 0, max: 50 }), { minLength: 3, maxLength: 3 }), {
  minLength: 1,
  maxLength: 12,
});
const orders = fc.array(fc.nat(20), { minLength: 1, maxLength: 30 });

describe("whatever the values and the order they come in", () => {
  test("halving decides the same", () => {
    fc.assert(
      fc.property(valuesOf, orders, orders, (values, a, b) => {
        const keep = [Math.ceil(values.length / 2), 1];
        const rounds = halving([1, 2, 3], ...keep);
        const [one, other] = [play(rounds, values, a), play(rounds, values, b)];
        expect(new Set(one.done)).toEqual(new Set(other.done));
        expect(one.done).toHaveLength(values.length + keep[0]! + 1);
        expect(rankings(rounds, one.standings, "lower")).toEqual(rankings(rounds, other.standings, "lower"));
      }),
    );
  });

  test("asha ends, trains everything once, and keeps at least one of every factor", () => {
    fc.assert(
      fc.property(valuesOf, orders, fc.integer({ min: 2, max: 4 }), (values, order, factor) => {
        const rounds = asha([1, 2, 3], factor);
        const { done, standings } = play(rounds, values, order);
        expect(new Set(done).size).toBe(done.length);
        const inRound = [0, 1, 2].map((round) => done.filter((task) => task.endsWith(`/${round}`)).length);
        expect(inRound[0]).toBe(values.length);
        expect(inRound[1]).toBeGreaterThanOrEqual(Math.floor(inRound[0]! / factor));
        expect(inRound[2]).toBeGreaterThanOrEqual(Math.floor(inRound[1]! / factor));
        // The best of all is never left behind where there is room for one.
        const firsts = values.map(([first]) => first!);
        const best = firsts.indexOf(Math.min(...firsts));
        if (values.length >= factor) expect(standings[best]!.step).toBeGreaterThan(1);
      }),
    );
  });

  test("asha with the same order decides the same", () => {
    fc.assert(
      fc.property(valuesOf, orders, (values, order) => {
        expect(play(asha([1, 2, 3], 3), values, order)).toEqual(play(asha([1, 2, 3], 3), values, order));
      }),
    );
  });
});

/** The members of a sweep over rates of the toy kind: the nearer to 0.5, the sooner it is at its target. */
function toyMembers(out: string, { rates = ["0.02", "0.1", "0.3"], seeds = [1] } = {}) {
  registerToy();
  return membersOf("toy-weight", { vary: [{ key: "training.rate", values: rates }], seeds }, out, [
    "training.saveEvery=20",
  ]);
}

function membersOf(experiment: string, grid: Partial<Grid>, out: string, set: readonly string[]) {
  const { settings, smoke } = requireExperiment(experiment);
  const settingsOf = (changes: readonly Change[]) =>
    resolveSettings(kindOf(settings).schema, [
      layer("experiment", settings),
      layer("smoke", smoke),
      assignments(set),
      assignments(changes.map(({ key, value }) => `${key}=${value}`)),
    ]).settings;
  return sweepMembers({ vary: [], each: [], seeds: [], ...grid }, { experiment, out }, settingsOf);
}

describe("a search in rounds", () => {
  const rounds = halving([20, 40, 60], 2, 1);
  const whole = join(scratch, "whole");
  let end: SweepEnd;
  beforeAll(async () => {
    end = await runSweep(toyMembers(whole), { ...context, rounds });
  });

  test("all train to the first budget, the best settings to the next", async () => {
    expect([end.reason, end.states]).toEqual(["finished", ["pruned", "pruned", "finished"]]);
    const records = await Promise.all(toyMembers(whole).map(({ folder }) => readRun(folder)));
    expect(records.map(({ step }) => step)).toEqual([20, 40, 60]);
    expect(records.map(({ note }) => note)).toEqual(["paused after 20 steps", "paused after 40 steps", null]);
  });

  test("the rounds say what decided", async () => {
    const shown = end.rounds!.map(({ ranking }) => ranking.map(({ name, kept }) => [name, kept]));
    expect(shown).toEqual([
      [
        ["rate=0.3", true],
        ["rate=0.1", true],
        ["rate=0.02", false],
      ],
      [
        ["rate=0.3", true],
        ["rate=0.1", false],
      ],
      [["rate=0.3", false]],
    ]);
    const metrics = await readMetrics(join(whole, "rate=0.3-seed1"));
    for (const { steps, ranking } of end.rounds!) {
      const errors = metrics.filter(({ split, step }) => split === "valid" && step <= steps);
      expect(ranking[0]!.value).toBe(Math.min(...errors.map(({ values }) => values.error!)));
    }
  });

  test("a member that went on equals one that never paused", async () => {
    const [member] = toyMembers(join(scratch, "straight"), { rates: ["0.3"] });
    await trainRun({ action: "start", ...member! }, context);
    const paused = join(whole, member!.name);
    const without = { withoutTimes: true };
    expect(await readMetrics(paused, without)).toEqual(await readMetrics(member!.folder, without));
    const [a, b] = [await loadCheckpoint(paused), await loadCheckpoint(member!.folder)];
    expect([a.step, a.model, a.state]).toEqual([b.step, b.model, b.state]);
  });

  // In the first round, where it ends, in the second, in the third.
  test.each([25, 60, 75, 115])("stopped after %i steps in all, it decides the same", async (stop) => {
    const members = toyMembers(join(scratch, `stopped-${stop}`));
    const controller = new AbortController();
    let steps = 0;
    const callbacks: SweepCallbacks = { onStep: () => void (++steps === stop && controller.abort()) };
    const stopped = await runSweep(members, { ...context, rounds, callbacks, signal: controller.signal });
    expect([stopped.reason, steps]).toEqual(["interrupted", stop]);
    expect(await runSweep(members, { ...context, rounds })).toEqual(end);
  });

  test("started again it trains nothing; more may be kept, and train on from where they stood", async () => {
    const folder = join(scratch, "again");
    cpSync(whole, folder, { recursive: true });
    let steps = 0;
    const callbacks: SweepCallbacks = { onStep: () => void steps++ };
    expect(await runSweep(toyMembers(folder), { ...context, rounds, callbacks })).toEqual(end);
    expect(steps).toBe(0);
    const more = halving([20, 40, 60], 3, 1);
    const { states } = await runSweep(toyMembers(folder), { ...context, rounds: more, callbacks });
    expect([states[0], steps]).toEqual(["pruned", 20]);
  });

  test("asha gives the good ones their turn before the last has begun", async () => {
    const folder = join(scratch, "asha");
    const members = toyMembers(folder, { rates: ["0.02", "0.05", "0.1", "0.3"] });
    const order: string[] = [];
    const callbacks: SweepCallbacks = { onEnd: ({ name }) => order.push(name.slice(5, -6)) };
    const { states, rounds: decided } = await runSweep(members, {
      ...context,
      callbacks,
      rounds: asha([20, 40, 60], 2),
    });
    // The third was the best of three when it was chosen, the fourth of four.
    expect(order).toEqual("0.02 0.05 0.05 0.1 0.1 0.1 0.3 0.3 0.3".split(" "));
    expect(states).toEqual(["pruned", "pruned", "finished", "finished"]);
    expect(decided!.map(({ ranking }) => ranking.length)).toEqual([4, 3, 2]);
  });

  test("one that is out of patience is finished, and is ranked by what it reached", async () => {
    const members = membersOf(
      "toy-weight",
      { vary: [{ key: "training.rate", values: ["0.3", "1e-9"] }] },
      join(scratch, "patience"),
      ["training.steps=60", "training.evalEvery=5", "training.patience=2"],
    );
    const { states, rounds: results } = await runSweep(members, { ...context, rounds: halving([40, 60], 1) });
    expect(states).toContain("finished");
    expect(results![0]!.ranking.map(({ value }) => value)).not.toContain(null);
  });
});

test("a decaying schedule is the one of the last round: the rate of a paused member is that of a whole run", async () => {
  const set = [
    ...["task.tasks=1", "system.embedding=8", "system.hidden=8", "system.memory=4", "training.evalBatch=250"],
    ...["training.steps=8", "training.logEvery=1", "training.saveEvery=3", "training.evalEvery=4"],
    "training.schedule.name=cosine",
  ];
  const grid = { vary: [{ key: "system.reads", values: ["1", "2"] }] };
  const members = membersOf("catbabi-qa-fwm", grid, join(scratch, "decay"), set);
  const { states } = await runSweep(members, { ...context, rounds: halving([4, 8], 1) });
  const kept = states.indexOf("finished");
  const straight = membersOf("catbabi-qa-fwm", grid, join(scratch, "decay-straight"), set)[kept]!;
  await trainRun({ action: "start", ...straight }, context);
  const without = { withoutTimes: true };
  const metrics = await readMetrics(straight.folder, without);
  expect(await readMetrics(members[kept]!.folder, without)).toEqual(metrics);
  const weights = (folder: string) => readFileSync(join(folder, "checkpoint-8", "model.safetensors"));
  expect(weights(members[kept]!.folder).equals(weights(straight.folder))).toBe(true);
  // The other one stopped in the middle of the same curve.
  const rates = async (folder: string) =>
    (await readMetrics(folder)).flatMap(({ values }) => values.learningRate ?? []);
  expect(await rates(members[1 - kept]!.folder)).toEqual((await rates(straight.folder)).slice(0, 4));
});

test.each([
  ["one round", halving([20]), /at least two/],
  ["budgets that fall", halving([40, 20], 1), /larger than the one before/],
  ["too many kept", halving([20, 60], 5), /--keep 5: does not fit 2 rounds of 3 settings/],
  ["more kept later", halving([20, 40, 60], 1, 2), /--keep 1,2/],
  ["a number of kept too few", halving([20, 40, 60], 1), /--keep 1: does not fit 3 rounds/],
  ["a round that ends between evaluations", halving([30, 60], 1), /not evaluated at step 30[\s\S]*multiples/],
])("%s: refused", (_, rounds, message) => {
  expect(() => checkRounds(rounds, toyMembers("out"))).toThrow(message);
});
