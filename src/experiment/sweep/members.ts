/**
 * The members of a sweep: one experiment trained many times at an equal budget, each with other settings or another seed.
 *
 *   vary   every combination of the values        reads 1, 2 and keys product, concat: four members
 *   each   one change at a time, and none at all  reads 1, 2 and keys concat: base, reads=1, reads=2, keys=concat
 *   seeds  all of that once per seed
 *
 * Each member is a run folder like any other. What a folder says is all the state there is, so a sweep that was
 * stopped in whatever way resumes when it is started again.
 */
import { readdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { UsageError } from "../../errors.ts";
import { errorCode, isTemporary } from "../../store/atomic.ts";
import { flatten } from "../../store/flatten.ts";
import { lockFile } from "../../store/lock.ts";
import { effectiveState, type RunRecord, type RunState, readRun, runFile } from "../../store/runRecord.ts";
import type { BaseSettings } from "../kind.ts";
import { kindOf } from "../registry.ts";
import { withAbsoluteData } from "../settings.ts";

/** One setting and a value for it, as text: `system.reads`, `2`. */
export interface Change {
  readonly key: string;
  readonly value: string;
}

/** One setting and the values it is to have. */
export interface Axis {
  readonly key: string;
  readonly values: readonly string[];
}

/** What a sweep goes through. */
export interface Grid {
  readonly vary: readonly Axis[];
  readonly each: readonly Axis[];
  /** Empty: the experiment's own seed. */
  readonly seeds: readonly number[];
}

/** One training of a sweep. */
export interface SweepMember {
  /** Also the name of its folder: `base`, `reads=1`, `keys=concat-seed2`. */
  readonly name: string;
  readonly folder: string;
  readonly experiment: string;
  readonly changes: readonly Change[];
  readonly settings: BaseSettings;
  /** Number of trained weights. */
  readonly parameters: number;
}

/** How a member stands: `waiting` has not started; `pruned` was not kept after a round. */
export type MemberState = RunState | "waiting" | "pruned";

/**
 * The members of a sweep, in the order they are trained in. `settingsOf` gives the settings after some changes, or
 * throws; all members are made, so every mistake is found before the first one trains.
 */
export function sweepMembers(
  grid: Grid,
  { experiment, out }: { experiment: string; out: string },
  settingsOf: (changes: readonly Change[]) => BaseSettings,
): SweepMember[] {
  const axes = [...grid.vary, ...grid.each];
  checkAxes(axes, grid.seeds);
  const shortKey = shortKeys(axes.map(({ key }) => key));
  const seeds = grid.seeds.length > 0 ? grid.seeds : [undefined];
  const members: SweepMember[] = [];
  for (const changes of changeSets(grid)) {
    for (const seed of seeds) {
      const parts = changes.map(({ key, value }) => `${shortKey(key)}=${fileName(value)}`);
      if (parts.length === 0) parts.push("base");
      if (seed !== undefined) parts.push(`seed${seed}`);
      const seeded = seed === undefined ? [] : [{ key: "training.seed", value: String(seed) }];
      const wanted = settingsOf([...changes, ...seeded]);
      const settings = withAbsoluteData(kindOf(wanted), wanted);
      const name = parts.join("-");
      const folder = join(out, name);
      const parameters = kindOf(settings).countWeights(settings);
      members.push({ name, folder, experiment, changes, settings, parameters });
    }
  }
  refuseTwins(members);
  return members;
}

/** Every set of changes, seeds left out. */
function changeSets({ vary, each }: Grid): readonly (readonly Change[])[] {
  const single = each.flatMap(({ key, values }) => values.map((value) => [{ key, value }]));
  return vary.reduce<readonly (readonly Change[])[]>(
    (sets, { key, values }) => sets.flatMap((set) => values.map((value) => [...set, { key, value }])),
    [[], ...single],
  );
}

function checkAxes(axes: readonly Axis[], seeds: readonly number[]): void {
  if (axes.length === 0 && seeds.length === 0) {
    throw new UsageError("a sweep needs something that changes", {
      hint: "give --each system.reads=1,2 or --vary system.reads=1,2,3 or --seeds 1,2,3",
    });
  }
  axes.forEach(({ key }, i) => {
    if (axes.findIndex((axis) => axis.key === key) !== i) {
      throw new UsageError(`${key} is given twice`, { hint: "give all its values at once: key=v1,v2,v3" });
    }
    if (key === "training.steps" || key === "training.episodes") {
      throw new UsageError(`${key} cannot change within a sweep: the budget is the same for all`, {
        hint: "give it once, with --steps or --rounds",
      });
    }
    if (key === "training.seed") {
      throw new UsageError("training.seed: seeds have an option of their own", { hint: "--seeds 1,2,3" });
    }
  });
}

/** `system.reads` is `reads`, unless two settings of the sweep end alike. */
function shortKeys(keys: readonly string[]): (key: string) => string {
  const last = (key: string): string => key.slice(key.lastIndexOf(".") + 1);
  return (key) => (keys.filter((other) => last(other) === last(key)).length > 1 ? key : last(key));
}

/** A value as part of a folder's name, on every system. */
function fileName(value: string): string {
  return value.replace(/^(["'])(.*)\1$/, "$2").replace(/[^\w.+,-]/g, "_");
}

function refuseTwins(members: readonly SweepMember[]): void {
  const settings = new Map<string, SweepMember>();
  const names = new Set<string>();
  for (const member of members) {
    const twin = settings.get(settingsKey(member.settings));
    if (twin) {
      throw new UsageError(`${member.name} and ${twin.name} have the same settings`, {
        hint: "leave one of them out",
      });
    }
    // Some file systems do not tell large letters from small ones.
    if (names.has(member.name.toLowerCase())) {
      throw new UsageError(`two members would be named ${member.name}`, {
        hint: "change one of the values, or make two sweeps of them",
      });
    }
    settings.set(settingsKey(member.settings), member);
    names.add(member.name.toLowerCase());
  }
}

/** Settings as a text: the same for equal settings, whatever the order of their keys. */
export function settingsKey(settings: unknown): string {
  return JSON.stringify(Object.entries(flatten(settings)).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** How each member stands. A folder that holds anything but the member itself is refused. */
export async function sweepStates(members: readonly SweepMember[]): Promise<MemberState[]> {
  const states: MemberState[] = [];
  for (const member of members) {
    const record = await memberRecord(member);
    states.push(record ? effectiveState(record) : "waiting");
  }
  return states;
}

/** The record of a member's folder, checked to be of this member; undefined where there is nothing yet. */
export async function memberRecord(
  member: Pick<SweepMember, "folder" | "experiment" | "settings">,
): Promise<RunRecord | undefined> {
  const record = await recordOf(member.folder);
  if (record) refuseForeign(member, record);
  return record;
}

/** The record of a run folder; undefined where there is nothing yet, or what a crash before `run.json` leaves. */
async function recordOf(folder: string): Promise<RunRecord | undefined> {
  const names = await readdir(folder).catch((error: unknown) => {
    if (errorCode(error) === "ENOENT") return [] as string[];
    if (errorCode(error) !== "ENOTDIR") throw error;
    throw new UsageError(`${resolve(folder)}: exists and is not a folder`, { hint: "choose another --out" });
  });
  if (names.includes(runFile)) return readRun(folder);
  const others = names.filter((name) => name !== lockFile && !isTemporary(name));
  if (others.length === 0) return undefined;
  throw new UsageError(`${resolve(folder)}: the folder is not empty, and no run`, {
    found: others.slice(0, 5),
    hint: "choose another --out",
  });
}

function refuseForeign(
  { folder, experiment, settings }: Pick<SweepMember, "folder" | "experiment" | "settings">,
  record: RunRecord,
): void {
  // Parsed, so that a run of an older version has what newer ones added.
  const there = kindOf(settings).schema.safeParse(record.settings);
  const differences = settingsBetween(there.success ? there.data : record.settings, settings);
  if (record.experiment !== experiment) {
    differences.unshift(`experiment: ${record.experiment} in the folder, ${experiment} wanted`);
  }
  if (record.summary.initFrom !== undefined) differences.push("it started with the weights of another run");
  if (differences.length === 0) return;
  throw new UsageError(`${resolve(folder)}: the run there is not this member of the sweep`, {
    differs: differences.slice(0, 5).join("; "),
    hint: "choose another --out, or give the line that started the sweep",
  });
}

/** What differs between two trees of settings, a phrase each. */
function settingsBetween(there: unknown, wanted: unknown, path = ""): string[] {
  if (isGroup(there) && isGroup(wanted)) {
    const keys = new Set([...Object.keys(there), ...Object.keys(wanted)]);
    const at = (group: Record<string, unknown>, key: string): unknown =>
      Object.hasOwn(group, key) ? group[key] : undefined;
    return [...keys].flatMap((key) =>
      settingsBetween(at(there, key), at(wanted, key), path === "" ? key : `${path}.${key}`),
    );
  }
  if (isDeepStrictEqual(there, wanted)) return [];
  const show = (value: unknown): string => (value === undefined ? "nothing" : JSON.stringify(value));
  return [`${path}: ${show(there)} in the folder, ${show(wanted)} wanted`];
}

function isGroup(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
