/**
 * The runs in a folder, followed as they change: what `fwm runs` lists, read again only where a file has changed, with a
 * number for every change, so that a page is told of what it has not seen and of nothing else.
 */
import { randomBytes } from "node:crypto";
import { readdir, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { DataError } from "../../errors.ts";
import { findExperiment, kindOfRecord } from "../../experiment/registry.ts";
import { changedSettings } from "../../report/changed.ts";
import { withoutPlaces } from "../../report/result.ts";
import { errorCode, isTemporary, StorageError } from "../../store/atomic.ts";
import { effectiveState, type RunRecord, readRun, runFile } from "../../store/runRecord.ts";
import type { RunSummary, RunsAnswer } from "../api.ts";
import { lastSpeed, metricsSize } from "./metricsLog.ts";

/** A run as the index knows it. */
export interface IndexedRun {
  readonly summary: RunSummary;
  /** Absolute path of its folder. */
  readonly path: string;
  readonly record: RunRecord;
}

interface Entry extends IndexedRun {
  /** What the files looked like when they were read. */
  readonly stamp: string;
  /** Number of the change that made it what it is. */
  readonly version: number;
}

/** Folders that are no whole runs: what their files looked like, and the reason. */
type Damaged = Map<string, { readonly stamp: string; readonly problem: string }>;

/** How many files are looked at at a time. */
const width = 64;

/** Follows a folder of runs. */
export class RunIndex {
  /** Absolute path of the folder. */
  readonly root: string;
  /** Cursors of another index mean nothing to this one. */
  private readonly epoch = randomBytes(6).toString("hex");
  private version = 0;
  private readonly entries = new Map<string, Entry>();
  private readonly removed = new Map<string, number>();
  private damaged: Damaged = new Map();
  private refreshing: Promise<void> | undefined;
  private lastRefresh = Number.NEGATIVE_INFINITY;

  constructor(
    folder: string,
    /** Whether this studio trains a run. */
    private readonly isTrainedHere: (name: string) => boolean = () => false,
  ) {
    this.root = resolve(folder);
  }

  /** Looks for changes, unless that was done less than `age` milliseconds ago. */
  async refresh(age = 0): Promise<void> {
    if (!this.refreshing && performance.now() - this.lastRefresh < age) return;
    this.refreshing ??= this.scan().finally(() => {
      this.refreshing = undefined;
      this.lastRefresh = performance.now();
    });
    await this.refreshing;
  }

  /** The run of a name; undefined for any text that is no name of the list. */
  find(name: string): IndexedRun | undefined {
    return this.entries.get(name);
  }

  /** All runs, oldest first. */
  all(): IndexedRun[] {
    return [...this.entries.values()].sort(
      (a, b) =>
        a.record.created.localeCompare(b.record.created) || a.summary.name.localeCompare(b.summary.name),
    );
  }

  /** Where a page that was told everything stands. */
  get cursor(): string {
    return `${this.epoch}-${this.version}`;
  }

  /** What changed after a cursor; the whole list without one, or with one that this index did not give. */
  changes(since?: string): RunsAnswer {
    const [, epoch, text] = /^([0-9a-f]{12})-(\d{1,15})$/.exec(since ?? "") ?? [];
    const seen = Number(text);
    const whole = epoch !== this.epoch || seen > this.version;
    const isNew = ({ version }: Entry): boolean => whole || version > seen;
    return {
      cursor: this.cursor,
      whole,
      runs: this.all().flatMap((run) => (isNew(run as Entry) ? [run.summary] : [])),
      removed: whole ? [] : [...this.removed].filter(([, version]) => version > seen).map(([name]) => name),
      damaged: [...this.damaged].map(([name, { problem }]) => ({ name, problem })),
    };
  }

  private async scan(): Promise<void> {
    const seen = new Set<string>();
    const damaged: Damaged = new Map();
    const others: string[] = [];
    const look = async (name: string): Promise<boolean> => {
      const problem = await this.look(name);
      if (problem) damaged.set(name, problem);
      else seen.add(name);
      return !problem;
    };
    await inParts(await folderNames(this.root), async (name) => {
      if (!(await look(name))) others.push(name);
    });
    for (const group of others) {
      const inside = await folderNames(join(this.root, group));
      let runs = 0;
      await inParts(inside, async (name) => {
        if (await look(`${group}/${name}`)) runs++;
      });
      // A folder of runs is no damaged run; and what lies in a folder that holds none is nobody's business.
      if (runs > 0) damaged.delete(group);
      else for (const name of inside) damaged.delete(`${group}/${name}`);
    }
    this.forget(seen, damaged);
  }

  private forget(seen: ReadonlySet<string>, damaged: Damaged): void {
    for (const name of this.entries.keys()) {
      if (seen.has(name)) continue;
      this.entries.delete(name);
      this.removed.set(name, ++this.version);
    }
    const told = (problems: Damaged): string =>
      JSON.stringify([...problems].map(([name, { problem }]) => [name, problem]).sort());
    if (told(damaged) !== told(this.damaged)) this.version++;
    this.damaged = damaged;
  }

  /** Reads a folder again if its files have changed; says what is wrong with it if it is no whole run. */
  private async look(name: string): Promise<{ stamp: string; problem: string } | undefined> {
    const path = join(this.root, ...name.split("/"));
    const known = this.entries.get(name);
    const isLive = known?.summary.state === "running";
    const record = await stampOf(join(path, runFile));
    if (record === undefined) return { stamp: "", problem: "not a run folder: there is no run.json" };
    const stamp = `${record} ${known && !isLive ? known.summary.metricsVersion : await metricsSize(path)}`;
    if (known?.stamp === stamp) {
      this.renew(known);
      return undefined;
    }
    const before = this.damaged.get(name);
    if (before?.stamp === stamp) return before;
    try {
      await this.read(name, path, stamp);
      return undefined;
    } catch (error) {
      if (!(error instanceof DataError || error instanceof StorageError)) throw error;
      return { stamp, problem: error.message };
    }
  }

  private async read(name: string, path: string, stamp: string): Promise<void> {
    const record = await readRun(path);
    const kind = kindOfRecord(record);
    const size = await metricsSize(path);
    const summary = summaryOf(name, record, {
      speed: kind && size > 0 ? await lastSpeed(path, kind.speed.name) : null,
      metricsVersion: size,
      trainedHere: this.isTrainedHere(name),
    });
    this.removed.delete(name);
    this.entries.set(name, { summary, path, record, stamp, version: ++this.version });
  }

  /** A run whose files are as they were may still have lost its process. */
  private renew(entry: Entry): void {
    const { summary, record } = entry;
    const state = effectiveState(record);
    const trainedHere = this.isTrainedHere(summary.name);
    if (state === summary.state && trainedHere === summary.trainedHere) return;
    this.entries.set(summary.name, {
      ...entry,
      summary: { ...summary, state, trainedHere },
      version: ++this.version,
    });
  }
}

function summaryOf(
  name: string,
  record: RunRecord,
  live: Pick<RunSummary, "speed" | "metricsVersion" | "trainedHere">,
): RunSummary {
  const { experiment, seed, step, created, updated, note, summary, settings } = record;
  const kind = kindOfRecord(record);
  const measures = Object.keys(kind?.measures ?? {});
  const values = (which: string): Record<string, number> =>
    Object.fromEntries(
      measures.flatMap((measure) => {
        const value = summary[`${which}.${measure}`];
        return typeof value === "number" ? [[measure, value] as const] : [];
      }),
    );
  const system = settings.system as { readonly name?: unknown } | undefined;
  return {
    name,
    sweep: name.includes("/") ? name.split("/")[0]! : null,
    experiment,
    kind: kind?.name ?? null,
    system: typeof system?.name === "string" ? system.name : "",
    seed,
    state: effectiveState(record),
    step,
    steps: stepsOf(record),
    bestStep: typeof summary.bestStep === "number" ? summary.bestStep : null,
    best: values("best"),
    last: values("last"),
    changed: changedOf(record),
    created,
    updated,
    note,
    ...live,
  };
}

/** Steps that the settings of a run ask for. */
function stepsOf(record: RunRecord): number | null {
  const path = kindOfRecord(record)?.flags.steps ?? "";
  const value = path
    .split(".")
    .reduce<unknown>(
      (at, key) => (at as Readonly<Record<string, unknown>> | undefined)?.[key],
      record.settings,
    );
  return typeof value === "number" ? value : null;
}

/** Settings that are not as the experiment has them. */
function changedOf(record: RunRecord): Record<string, string> {
  const known = findExperiment(record.experiment);
  const parsed = kindOfRecord(record)?.schema.safeParse(record.settings);
  if (!known || !parsed?.success) return {};
  const changes = changedSettings(withoutPlaces(known.settings), withoutPlaces(parsed.data));
  return Object.fromEntries(Object.entries(changes).map(([key, { run }]) => [key, String(run ?? "none")]));
}

/** The folders in a folder; none where it is absent or cannot be listed. */
async function folderNames(path: string): Promise<string[]> {
  const entries = await readdir(path, { withFileTypes: true }).catch(() => []);
  return entries
    .filter((entry) => entry.isDirectory() && !isTemporary(entry.name) && !entry.name.startsWith("."))
    .map(({ name }) => name);
}

/** Another text means that a file was written. */
async function stampOf(file: string): Promise<string | undefined> {
  try {
    const { mtimeMs, size, ino } = await stat(file);
    return `${ino} ${size} ${mtimeMs}`;
  } catch (error) {
    if (errorCode(error) === "ENOENT" || errorCode(error) === "ENOTDIR") return undefined;
    throw new StorageError("cannot look at the file", file, error);
  }
}

async function inParts<T>(items: readonly T[], act: (item: T) => Promise<void>): Promise<void> {
  for (let i = 0; i < items.length; i += width) await Promise.all(items.slice(i, i + width).map(act));
}
