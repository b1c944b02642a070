/** Sweeps: which members there are, and that stopping one anywhere changes nothing of the result. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import "../../experiments/index.ts";
import { assignments, layer, resolveSettings } from "../../src/cli/config.ts";
import type { Kind } from "../../src/experiment/kind.ts";
import { kindOf, registerKind, requireExperiment } from "../../src/experiment/registry.ts";
import {
  type Change,
  type Grid,
  type SweepMember,
  sweepMembers,
  sweepStates,
} from "../../src/experiment/sweep/members.ts";
import type { SweepCallbacks } from "../../src/experiment/sweep/queue.ts";
import { runSweep } from "../../src/experiment/sweep/run.ts";
import { collectSweep, type SweepResult, sweepFigure } from "../../src/report/sweep.ts";
import { thisProcess } from "../../src/store/lock.ts";
import { readRun } from "../../src/store/runRecord.ts";
import { withoutClock } from "../support/withoutClock.ts";
import { registerToy, toy } from "./toyKind.ts";

const scratch = mkdtempSync(join(tmpdir(), "fwm-sweep-test-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const stories = [
  "task.tasks=1",
  "system.embedding=8",
  "system.hidden=8",
  "system.memory=4",
  "training.evalBatch=250",
  "training.steps=8",
  "training.logEvery=2",
  "training.saveEvery=3",
  "training.evalEvery=4",
];

/** The members of a small sweep. */
function membersOf(
  grid: Partial<Grid>,
  out: string,
  { experiment = "catbabi-qa-fwm", set = stories } = {},
): SweepMember[] {
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

const axis = (key: string, ...values: string[]) => ({ key, values });
const never = new AbortController().signal;

function sweep(members: readonly SweepMember[], callbacks: SweepCallbacks = {}, signal = never) {
  return runSweep(members, {
    env: {},
    signal,
    command: ["fwm", "sweep"],
    packageVersion: "0",
    // One thread: equal bits are promised only for equal thread counts, and the tests share the cores.
    threads: 1,
    callbacks,
  });
}

/** The result without what the clock decides, and without commits: one may be made while this runs. */
async function resultOf(members: readonly SweepMember[]) {
  const states = await sweepStates(members);
  const { members: results, seeds } = withoutClock(await document(members, states), ["commits"]);
  return { seeds, members: results };
}

function document(members: readonly SweepMember[], states: readonly string[]): Promise<SweepResult> {
  const { settings, experiment } = members[0]!;
  return collectSweep(
    members.map((member, i) => ({ ...member, state: states[i]! })),
    kindOf(settings),
    {
      experiment,
      description: "a test",
      steps: kindOf(settings).steps(settings),
      command: ["fwm", "sweep", "--out", scratch],
      commit: null,
      packageVersion: "0",
      state: "finished",
      settings,
      paper: undefined,
    },
  );
}

describe("the members of a grid", () => {
  const reads = axis("system.reads", "1", "2");
  const keys = axis("system.keys", "concat", "product");
  const cases: [string, Partial<Grid>, string[]][] = [
    [
      "each: one change at a time, and none",
      { each: [reads, axis("system.keys", "concat")] },
      ["base", "reads=1", "reads=2", "keys=concat"],
    ],
    [
      "vary: every combination",
      { vary: [reads, keys] },
      ["reads=1-keys=concat", "reads=1-keys=product", "reads=2-keys=concat", "reads=2-keys=product"],
    ],
    ["seeds alone", { seeds: [1, 7] }, ["base-seed1", "base-seed7"]],
    [
      "changes and seeds",
      { each: [axis("system.keys", "concat")], seeds: [1, 2] },
      ["base-seed1", "base-seed2", "keys=concat-seed1", "keys=concat-seed2"],
    ],
    [
      "both kinds of change",
      { each: [axis("system.keys", "concat")], vary: [reads] },
      ["reads=1", "reads=2", "keys=concat-reads=1", "keys=concat-reads=2"],
    ],
    ["a value that is no file name", { vary: [axis("task.data", "a/b", '"c,d"')] }, ["data=a_b", "data=c,d"]],
  ];
  test.each(cases)("%s", (_, grid, names) => {
    const members = membersOf(grid, "out");
    expect(members.map(({ name }) => name)).toEqual(names);
    expect(members.map(({ folder }) => folder)).toEqual(names.map((name) => join("out", name)));
  });

  test("have the settings and the weights of their changes", () => {
    const [base, one] = membersOf({ each: [axis("system.reads", "1")], seeds: [5] }, "out");
    expect(base!.settings).toMatchObject({ system: { reads: 3 }, training: { seed: 5, steps: 8 } });
    expect(one!.settings).toMatchObject({ system: { reads: 1 }, training: { seed: 5, steps: 8 } });
    // Two reads less: two key projections of 4 from a hidden state of 8, with bias.
    expect(base!.parameters - one!.parameters).toBe(2 * 4 * (8 + 1));
  });

  const mistakes: [string, Partial<Grid>, RegExp][] = [
    ["nothing that changes", {}, /something that changes\n.*--each/],
    ["a setting given twice", { vary: [reads], each: [reads] }, /system\.reads is given twice/],
    ["another budget", { vary: [axis("training.steps", "4", "8")] }, /the budget is the same/],
    ["the seed as a setting", { vary: [axis("training.seed", "4")] }, /--seeds/],
    [
      "a change that changes nothing",
      { each: [axis("system.reads", "3")] },
      /reads=3 and base have the same/,
    ],
    ["the same name twice", { vary: [axis("task.data", "a/b", "a:b")] }, /named data=a_b/],
    ["an unknown task", { each: [axis("task.tasks", "21")] }, /21/],
    ["an unknown setting", { each: [axis("system.raeds", "1")] }, /did you mean +reads/],
    ["a setting without its group", { each: [axis("reads", "1")] }, /did you mean +system\.reads/],
    ["an unknown value", { each: [axis("system.keys", "concta")] }, /did you mean +concat/],
  ];
  test.each(mistakes)("%s is refused", (_, grid, message) => {
    expect(() => membersOf(grid, "out")).toThrow(message);
  });
});

describe("a sweep on stories", () => {
  const grid = { each: [axis("system.reads", "1")], seeds: [2] };
  let whole: Awaited<ReturnType<typeof resultOf>>;
  const folder = join(scratch, "whole");

  beforeAll(async () => {
    const members = membersOf(grid, folder);
    expect(await sweepStates(members)).toEqual(["waiting", "waiting"]);
    expect(await sweep(members)).toEqual({ reason: "finished", states: ["finished", "finished"] });
    whole = await resultOf(members);
  });

  test("says of each member what its folder says", async () => {
    const [base] = whole.members;
    const { summary, settings } = await readRun(join(folder, "base-seed2"));
    expect(settings).toMatchObject({ training: { seed: 2 } });
    expect(base).toMatchObject({ name: "base-seed2", changes: {}, seed: 2, state: "finished", steps: 8 });
    expect(base!.best.loss).toEqual({ value: summary["best.loss"], step: summary.bestStep });
    expect(base!.data).toContain("generated");
    expect(base!.last!.step).toBe(8);
    expect(base!.curves.valid!.map(({ step }) => step)).toEqual([4, 8]);
    expect(Object.keys(base!.curves.valid![0]!.values).sort()).toEqual(["accuracy", "loss", "perplexity"]);
    expect(base!.best.accuracy!.value).toBeGreaterThanOrEqual(base!.last!.values.accuracy!);
    expect(whole.members[1]!.changes).toEqual({ "system.reads": 1 });
    expect(whole.seeds).toEqual([]);
  });

  test("its document has no place of this machine, and its figure a line per member", async () => {
    const members = membersOf(grid, folder);
    const result = await document(members, ["finished", "finished"]);
    expect(JSON.stringify(result)).not.toContain(scratch);
    expect(result.steps).toBe(8);
    const { lines, percent } = sweepFigure(result, kindOf(members[0]!.settings));
    expect(percent).toBe(true);
    expect(lines.map(({ name }) => name)).toEqual(members.map(({ name }) => name));
    expect(lines[0]!.points.map(({ x }) => x)).toEqual([4, 8]);
  });

  // Before the first checkpoint; between two; at a last step, its evaluation still pending; in the last member.
  test.each([1, 5, 8, 13])("stopped after %i steps in all, it ends the same", async (stop) => {
    const members = membersOf(grid, join(scratch, `stopped-${stop}`));
    const controller = new AbortController();
    let steps = 0;
    const callbacks = { onStep: () => void (++steps === stop && controller.abort()) };
    const { reason, states } = await sweep(members, callbacks, controller.signal);
    expect(reason).toBe("interrupted");
    expect(steps).toBe(stop);
    expect(states.filter((state) => state === "finished")).toHaveLength(Math.floor((stop - 1) / 8));
    const seen: string[] = [];
    await sweep(members, { onMember: (_, state) => seen.push(state) });
    expect(seen).toEqual(states);
    expect(await resultOf(members)).toEqual(whole);
  });

  test("started again when all is done, it trains nothing and touches nothing", async () => {
    const members = membersOf(grid, folder);
    const stamps = () => members.map((member) => statSync(join(member.folder, "run.json")).mtimeMs);
    const before = stamps();
    let steps = 0;
    const { reason } = await sweep(members, { onStep: () => void steps++ });
    expect([reason, steps]).toEqual(["finished", 0]);
    expect(stamps()).toEqual(before);
  });

  test("more seeds are trained beside those that are there", async () => {
    const members = membersOf({ ...grid, seeds: [2, 3] }, folder);
    const wanted = ["finished", "waiting", "finished", "waiting"];
    expect(await sweepStates(members)).toEqual(wanted);
  });
});

describe("folders that are something else", () => {
  const out = join(scratch, "whole");
  const grid = { each: [axis("system.reads", "1")], seeds: [2] };

  test.each([
    [
      "other settings",
      { set: [...stories, "training.batch=4"] },
      /training\.batch: 8 in the folder, 4 wanted/,
    ],
    [
      "another budget",
      { set: [...stories, "training.steps=9"] },
      /training\.steps: 8 in the folder, 9 wanted/,
    ],
    [
      "another experiment",
      { experiment: "catbabi-qa-fwm-decay" },
      /experiment: catbabi-qa-fwm in the folder/,
    ],
  ])("%s: refused before anything is trained", async (_, change, message) => {
    const members = membersOf(grid, out, change);
    const before = readFileSync(join(members[0]!.folder, "run.json"), "utf8");
    await expect(sweep(members)).rejects.toThrow(message);
    expect(readFileSync(join(members[0]!.folder, "run.json"), "utf8")).toBe(before);
  });

  test("files that are no run", async () => {
    const members = membersOf({ seeds: [1, 2] }, join(scratch, "files"));
    mkdirSync(members[1]!.folder, { recursive: true });
    writeFileSync(join(members[1]!.folder, "mine.txt"), "mine");
    await expect(sweep(members)).rejects.toThrow(/base-seed2: the folder is not empty, and no run/);
    await expect(readRun(members[0]!.folder)).rejects.toThrow("not a run folder");
    writeFileSync(join(scratch, "file"), "");
    await expect(sweepStates(membersOf({ seeds: [1] }, join(scratch, "file")))).rejects.toThrow(
      "not a folder",
    );
  });

  test("a member that another process trains", async () => {
    const members = membersOf({ seeds: [2] }, join(scratch, "busy"));
    const record = await readRun(join(out, "base-seed2"));
    mkdirSync(members[0]!.folder, { recursive: true });
    const busy = { ...record, state: "running", process: thisProcess() };
    writeFileSync(join(members[0]!.folder, "run.json"), JSON.stringify(busy));
    expect(await sweepStates(members)).toEqual(["running"]);
    await expect(sweep(members)).rejects.toThrow("another process trains this member");
  });

  test("what a process leaves that died before the run had a record counts as nothing", async () => {
    const members = membersOf({ seeds: [1] }, join(scratch, "leftovers"));
    mkdirSync(members[0]!.folder, { recursive: true });
    writeFileSync(join(members[0]!.folder, ".fwm-tmp-1"), "");
    expect(await sweepStates(members)).toEqual(["waiting"]);
  });
});

test("a member that diverges is told as such, and the others are trained", async () => {
  const members = membersOf(
    { vary: [axis("training.optimizer.learningRate", "1e37", "1e-3")] },
    join(scratch, "rates"),
    {
      set: [...stories, "training.steps=40", "training.evalEvery=40"],
    },
  );
  const { reason, states } = await sweep(members);
  expect([reason, states]).toEqual(["finished", ["diverged", "finished"]]);
  const { members: results } = await resultOf(members);
  expect(results[0]!.note).toMatch(/diverged at step \d+/);
  expect(results[0]!.best).toEqual({});
  const seen: string[] = [];
  await sweep(members, { onMember: (_, state) => seen.push(state) });
  expect(seen).toEqual(["diverged", "finished"]);
});

test("a member whose numbers are found not to be finite only when it is saved does not end the sweep", async () => {
  const name = "toy-unsaved";
  const nan = { weight: { dtype: "f32" as const, shape: [1], data: new Float32Array([Number.NaN]) } };
  const kind: Kind = {
    ...(toy as unknown as Kind),
    name,
    async open(settings, context) {
      const session = await (toy as unknown as Kind).open(settings, context);
      const isBad = settings.training.seed === 1;
      return { ...session, ...(isBad ? { snapshot: () => ({ model: nan, optimizer: {}, state: {} }) } : {}) };
    },
  };
  registerToy();
  registerKind(kind);
  const own = requireExperiment("toy-weight").settings;
  const members = sweepMembers(
    { vary: [], each: [], seeds: [1, 2] },
    { experiment: "toy-weight", out: join(scratch, "unsaved") },
    (changes) => ({
      ...own,
      task: { ...own.task, name },
      training: { ...own.training, seed: Number(changes[0]!.value) },
    }),
  );
  const { reason, states } = await sweep(members);
  expect([reason, states]).toEqual(["finished", ["diverged", "finished"]]);
  expect((await readRun(members[0]!.folder)).note).toContain("weight[0] is NaN");
});

test("agents are swept too: by the return on validation graphs", async () => {
  const set = [
    ...["training.episodes=4", "training.agents=8", "training.logEvery=2"],
    ...["training.evalEvery=2", "training.saveEvery=2"],
  ];
  const members = membersOf({ seeds: [1, 2] }, join(scratch, "agents"), { experiment: "metarl-fwm", set });
  expect((await sweep(members)).states).toEqual(["finished", "finished"]);
  const result = await document(members, ["finished", "finished"]);
  expect(result.members[0]!.curves.valid!.map(({ step }) => step)).toEqual([2, 4]);
  const returns = result.members[0]!.curves.valid!.map(({ values }) => values.return!);
  expect(result.members[0]!.best.return!.value).toBeCloseTo(Math.max(...returns), 4);
  expect(result.members[0]!.speed.episodesPerSecond).toBeGreaterThan(0);
  const [first, second] = result.members.map(({ last }) => last!.values.return!);
  const [over] = result.seeds;
  expect(over).toMatchObject({ name: "base", seeds: [1, 2] });
  expect(first).not.toBe(second);
  expect(over!.last.return!.mean).toBeCloseTo((first! + second!) / 2, 10);
  expect(over!.last.return!.std).toBeCloseTo(Math.abs(first! - second!) / Math.SQRT2, 10);
  expect(sweepFigure(result, kindOf(members[0]!.settings))).toMatchObject({ percent: false, x: "episode" });
});
