/** The listing that pages follow: the same runs as `fwm runs`, and only what changed. */
import { appendFileSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { thisProcess } from "../../src/store/lock.ts";
import { listRuns } from "../../src/store/runRecord.ts";
import { RunIndex } from "../../src/studio/server/runIndex.ts";
import { logOf, record, scratch, writeRun } from "./support.ts";

const root = scratch("index");
const at = (...names: string[]): string => join(root, ...names);
const names = (index: RunIndex, since?: string): string[] =>
  index.changes(since).runs.map(({ name }) => name);

test("lists what `fwm runs` lists: runs, members of sweeps, and what is damaged", async () => {
  const folder = at("list");
  writeRun(join(folder, "b"), record("catbabi-qa-fwm", { created: "2026-01-03T00:00:00.000Z" }));
  writeRun(join(folder, "a"), record("metarl-fwm", { created: "2026-01-02T00:00:00.000Z" }));
  writeRun(join(folder, "sweep/base"), record("catbabi-qa-fwm"));
  writeRun(join(folder, "sweep/reads=1"), record("catbabi-qa-fwm"));
  mkdirSync(join(folder, "sweep/half"), { recursive: true });
  mkdirSync(join(folder, "empty/inside"), { recursive: true });
  mkdirSync(join(folder, ".hidden"));
  mkdirSync(join(folder, "broken"));
  writeFileSync(join(folder, "broken/run.json"), "{");
  const index = new RunIndex(folder);
  await index.refresh();
  const want = await listRuns(folder);
  const { runs, damaged, whole } = index.changes();
  expect(whole).toBe(true);
  expect(runs.map(({ name, state }) => [name, state])).toEqual(
    want.runs.map(({ name, state }) => [name, state]),
  );
  expect(damaged.map(({ name }) => join(folder, name)).sort()).toEqual(want.damaged.map(({ path }) => path));
  expect(runs.map(({ sweep }) => sweep)).toEqual(["sweep", "sweep", null, null]);
  expect(index.find("sweep/base")?.path).toBe(join(folder, "sweep/base"));
  expect(index.find("sweep")).toBeUndefined();
});

test("tells a page only what it has not seen", async () => {
  const folder = at("changes");
  writeRun(join(folder, "a"), record("catbabi-qa-fwm"));
  writeRun(join(folder, "b"), record("catbabi-qa-fwm"));
  const index = new RunIndex(folder);
  await index.refresh();
  const first = index.changes();
  await index.refresh();
  expect(index.changes(first.cursor)).toMatchObject({
    whole: false,
    runs: [],
    removed: [],
    cursor: first.cursor,
  });
  writeRun(join(folder, "b"), record("catbabi-qa-fwm", { step: 7 }));
  rmSync(join(folder, "a"), { recursive: true });
  await index.refresh();
  const second = index.changes(first.cursor);
  expect(second).toMatchObject({ whole: false, removed: ["a"], runs: [{ name: "b", step: 7 }] });
  writeRun(join(folder, "a"), record("catbabi-qa-fwm"));
  await index.refresh();
  expect(index.changes(second.cursor)).toMatchObject({ removed: [], runs: [{ name: "a" }] });
  expect(index.changes(first.cursor).removed).toEqual([]);
  mkdirSync(join(folder, "broken"));
  const before = index.cursor;
  await index.refresh();
  expect(index.cursor).not.toBe(before);
  expect(index.changes(before).damaged).toHaveLength(1);
  // Cursors of another studio, of the future or of nobody: the whole list.
  for (const cursor of [new RunIndex(folder).cursor, `${first.cursor}0`, "nonsense", ""]) {
    expect(index.changes(cursor).whole, cursor).toBe(true);
  }
});

test("follows a run that trains: its log, and the end of its process", async () => {
  const folder = at("live");
  const trained = record("catbabi-qa-fwm", { state: "running", process: thisProcess() });
  writeRun(join(folder, "run"), trained, [
    { step: 25, values: { loss: 2 }, times: { tokensPerSecond: 100 } },
  ]);
  const index = new RunIndex(folder);
  await index.refresh();
  const { cursor, runs } = index.changes();
  expect(runs[0]).toMatchObject({ state: "running", speed: 100 });
  appendFileSync(
    join(folder, "run/metrics.jsonl"),
    logOf([
      { step: 50, values: { loss: 1 }, times: { tokensPerSecond: 250 } },
      { step: 50, split: "valid", values: { loss: 1 } },
    ]),
  );
  await index.refresh();
  const next = index.changes(cursor);
  expect(next.runs).toMatchObject([{ speed: 250 }]);
  expect(next.runs[0]!.metricsVersion).toBeGreaterThan(runs[0]!.metricsVersion);
  // The file stays as it was: a process that was killed writes nothing.
  const gone = { ...thisProcess(), started: "another/1" };
  writeRun(join(folder, "run"), { ...trained, process: gone });
  await index.refresh();
  expect(names(index, next.cursor)).toEqual(["run"]);
  expect(index.find("run")!.summary.state).toBe("interrupted");
});

test("says how settings differ from the experiment's", async () => {
  const folder = at("changed");
  const { settings } = record("catbabi-qa-fwm");
  const training = { ...(settings.training as object), batch: 64 };
  writeRun(join(folder, "run"), record("catbabi-qa-fwm", { settings: { ...settings, training } }));
  writeRun(join(folder, "other"), record("catbabi-qa-fwm", { settings: { task: { name: "unheard of" } } }));
  const index = new RunIndex(folder);
  await index.refresh();
  expect(index.find("run")!.summary).toMatchObject({ changed: { "training.batch": "64" }, kind: "catbabi" });
  expect(index.find("other")!.summary).toMatchObject({ changed: {}, kind: null, steps: null, system: "" });
});

test("a folder that does not exist has no runs", async () => {
  const index = new RunIndex(at("absent"));
  await index.refresh();
  expect(index.changes()).toMatchObject({ runs: [], damaged: [] });
});
