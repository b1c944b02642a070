/**
 * A run folder while a process trains in it: the one place that writes there.
 *
 * `createRun` begins one, `resumeRun` takes one up again. Both hold the folder's lock until `close`. The order
 * of writes is what makes a crash cheap: metrics reach the disk before the checkpoint that counts on them, and
 * resumption takes back whatever is newer than the checkpoint it goes on from.
 */
import type { Dirent } from "node:fs";
import { readdir, rmdir } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { FwmError, UsageError } from "../errors.ts";
import {
  errorCode,
  type FileSystem,
  isTemporary,
  makeFolders,
  nodeFileSystem,
  removeLeftovers,
  StorageError,
  syncFolder,
  writeFileAtomically,
} from "./atomic.ts";
import {
  type Damage,
  type LoadedCheckpoint,
  listCheckpoints,
  loadCheckpoint,
  newestValid,
  rewindCheckpoints,
  type SavedCheckpoint,
  type SaveOptions,
  saveCheckpoint,
} from "./checkpoint.ts";
import { EventWriter, isEventFile } from "./events.ts";
import { flatten } from "./flatten.ts";
import { formatJson } from "./json.ts";
import { acquireLock, lockFile, type RunLock, thisProcess } from "./lock.ts";
import { type MetricRecord, MetricsWriter, metricsFile, truncateMetrics } from "./metrics.ts";
import {
  newRecord,
  provenanceDifferences,
  type RunDescription,
  type RunRecord,
  type RunState,
  readRun,
  runFile,
} from "./runRecord.ts";

/** How often, in milliseconds, `heartbeat` renews `run.json`. */
const heartbeatInterval = 15_000;

/** Choices that are not part of a run's description. */
export interface RunOptions {
  /** How many of the newest checkpoints to keep besides the best; 2 by default. */
  readonly keepLast?: number;
  /** The disk; tests give a failing one. */
  readonly fs?: FileSystem;
}

/** Makes a run folder and its `run.json`, before the first step. A folder that holds anything is refused. */
export async function createRun(
  folder: string,
  about: RunDescription,
  options: RunOptions = {},
): Promise<Run> {
  const { fs = nodeFileSystem } = options;
  const path = resolve(folder);
  const made = await makeFolder(path, fs);
  let lock: RunLock | undefined;
  try {
    await refuseOccupied(path);
    lock = await acquireLock(path, fs);
    await refuseOccupied(path);
  } catch (error) {
    await lock?.release().catch(ignored);
    if (made) await rmdir(path).catch(ignored);
    throw error;
  }
  const run = new Run(path, newRecord(about, new Date().toISOString()), lock, options);
  try {
    await removeLeftovers(path, fs);
    // Nothing else before `run.json`: a folder without it counts as empty after a crash, one with it can be resumed.
    await run.update({});
    run.recordHyperParameters();
    return run;
  } catch (error) {
    // The folder was empty when we locked it, so all that is in it now is ours; the lock goes last.
    const names = await readdir(path).catch((): string[] => []);
    for (const name of [...names.filter((other) => other !== lockFile), lockFile]) {
      await fs.rm(join(path, name), { recursive: true, force: true }).catch(ignored);
    }
    if (made) await rmdir(path).catch(ignored);
    throw error;
  }
}

/** The failure of tidying up: what went wrong before it is reported. */
function ignored(): undefined {
  return undefined;
}

/** How to take a run up again. */
export interface ResumeOptions extends RunOptions {
  /** A checkpoint's name or path; the newest whole one by default. Later checkpoints are removed. */
  readonly from?: string;
  /** First step the run will record on a split when it goes on from a checkpoint; the checkpoint's by default. */
  readonly firstStep?: (checkpoint: LoadedCheckpoint, split: string) => number;
  /** Throws where the run is not to be taken up; called before anything is changed. */
  readonly check?: (checkpoint: LoadedCheckpoint | undefined, record: RunRecord) => void;
}

/** A run that goes on. */
export interface ResumedRun {
  readonly run: Run;
  /** What to go on from; undefined if the run was stopped before its first checkpoint: begin again. */
  readonly checkpoint: LoadedCheckpoint | undefined;
  /** Damaged checkpoints that were passed over. They have been removed. */
  readonly skipped: readonly Damage[];
  /** Differences of program, machine or engine that may break bit-exactness; to be shown as a warning. */
  readonly differences: readonly string[];
}

/**
 * Takes a run up again from a checkpoint. Whatever the folder holds beyond that checkpoint is taken back, so
 * that what follows equals a run that never stopped.
 */
export async function resumeRun(
  folder: string,
  now: Pick<RunDescription, "command" | "packageVersion" | "gitCommit" | "environment">,
  options: ResumeOptions = {},
): Promise<ResumedRun> {
  const { fs = nodeFileSystem, from, firstStep = ({ step }: LoadedCheckpoint) => step } = options;
  const path = resolve(folder);
  await readRun(path);
  const lock = await acquireLock(path, fs);
  try {
    const record = await readRun(path);
    const { checkpoint, skipped } = await chooseCheckpoint(path, from);
    options.check?.(checkpoint, record);
    const step = checkpoint?.step ?? 0;
    const first = (split: string): number => (checkpoint ? firstStep(checkpoint, split) : 0);
    // Whatever may be refused is looked at before anything is changed.
    const metrics = await truncateMetrics(join(path, metricsFile), first);
    await removeLeftovers(path, fs);
    await rewindCheckpoints(path, checkpoint, fs);
    await metrics.write(fs);
    const { command, packageVersion, gitCommit, environment } = now;
    const entry = { at: new Date().toISOString(), step, command, packageVersion, gitCommit, environment };
    const resumed = {
      ...record,
      state: "running" as const,
      step,
      note: null,
      resumed: [...record.resumed, entry],
    };
    const run = new Run(path, resumed, lock, options);
    await run.update({});
    await run.restartEvents(first);
    if (!(await namesIn(path)).some(isEventFile)) run.recordHyperParameters();
    return { run, checkpoint, skipped, differences: provenanceDifferences(record, now) };
  } catch (error) {
    await lock.release().catch(ignored);
    throw error;
  }
}

/** A run folder that this process writes. Made by `createRun` and `resumeRun`. */
export class Run {
  /** Absolute path of the folder. */
  readonly folder: string;
  readonly #lock: RunLock;
  readonly #fs: FileSystem;
  readonly #keepLast: number;
  #firstStep: (split: string) => number = () => 0;
  #metrics: MetricsWriter | undefined;
  readonly #events = new Map<string, EventWriter>();
  #record: RunRecord;
  #lastBeat = 0;
  #closed = false;

  /** For `createRun` and `resumeRun`, which see to the lock and to what the folder already holds. */
  constructor(folder: string, record: RunRecord, lock: RunLock, options: RunOptions) {
    this.folder = folder;
    this.#record = { ...record, process: thisProcess() };
    this.#lock = lock;
    this.#fs = options.fs ?? nodeFileSystem;
    this.#keepLast = options.keepLast ?? 2;
  }

  /** The present content of `run.json`. */
  get record(): RunRecord {
    return this.#record;
  }

  /**
   * Records values at a step: a line of `metrics.jsonl`, and points in the split's TensorBoard folder under
   * the tags `<name>/<split>`.
   */
  log(record: MetricRecord): void {
    this.#metrics ??= new MetricsWriter(join(this.folder, metricsFile));
    this.#metrics.write(record);
    const tags = Object.entries({ ...record.values, ...record.times });
    const points = Object.fromEntries(tags.map(([name, value]) => [`${name}/${record.split}`, value]));
    this.#eventsOf(record.split).scalars(record.step, points);
  }

  /** Saves a checkpoint, after everything logged so far is on the disk. */
  async save(checkpoint: Omit<SaveOptions, "keepLast" | "fs">): Promise<SavedCheckpoint> {
    await this.#lock.touch();
    this.sync();
    const saved = await saveCheckpoint(this.folder, {
      ...checkpoint,
      keepLast: this.#keepLast,
      fs: this.#fs,
    });
    await this.update({ step: checkpoint.step });
    return saved;
  }

  /** Forces everything logged so far to the disk. */
  sync(): void {
    this.#metrics?.sync();
    for (const events of this.#events.values()) events.sync();
  }

  /** Changes `run.json`: the step reached, numbers for lists, the state. */
  async update(
    change: Partial<Pick<RunRecord, "settings" | "step" | "summary" | "state" | "note">>,
  ): Promise<void> {
    await this.#lock.touch();
    this.#record = { ...this.#record, ...change, updated: new Date().toISOString() };
    this.#lastBeat = Date.now();
    await writeFileAtomically(join(this.folder, runFile), formatJson(this.#record, runFile), this.#fs);
  }

  /** Says that the run lives; call it at every step, it writes only now and then. */
  async heartbeat(step: number): Promise<void> {
    if (Date.now() - this.#lastBeat >= heartbeatInterval) await this.update({ step });
  }

  /** Ends the run: the state is on the disk, the files are closed, the lock is free. */
  async close(state: Exclude<RunState, "running">, note?: string): Promise<void> {
    if (this.#closed) throw new FwmError("internal: the run is closed already");
    this.#closed = true;
    this.#record = { ...this.#record, process: null };
    const parts: (() => void | Promise<void>)[] = [
      () => this.#metrics?.close(),
      ...[...this.#events.values()].map((events) => () => events.close()),
      () => this.update({ state, note: note ?? null }),
      () => this.#lock.release(),
    ];
    // All of it is done even if a part fails; the first failure is the one to report.
    const failures: unknown[] = [];
    for (const part of parts) {
      try {
        await part();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }

  /** Writes the run's settings, flattened, where TensorBoard's HParams table finds them. */
  recordHyperParameters(): void {
    const { experiment, seed, settings } = this.#record;
    const events = new EventWriter(this.folder);
    try {
      events.hyperParameters({ experiment, seed, ...flatten(settings) });
    } finally {
      events.close();
    }
  }

  /** Voids the TensorBoard points at or after its first step, of every split that has any. */
  async restartEvents(firstStep: (split: string) => number): Promise<void> {
    this.#firstStep = firstStep;
    for (const split of await namesIn(this.folder, (entry) => entry.isDirectory())) {
      if ((await namesIn(join(this.folder, split))).some(isEventFile)) this.#eventsOf(split);
    }
  }

  #eventsOf(split: string): EventWriter {
    let events = this.#events.get(split);
    if (!events) {
      if (!/^[a-z][a-z0-9-]*$/i.test(split)) {
        throw new FwmError(`internal: ${JSON.stringify(split)} cannot be the name of a split`);
      }
      events = new EventWriter(join(this.folder, split), { firstStep: this.#firstStep(split) });
      this.#events.set(split, events);
    }
    return events;
  }
}

async function chooseCheckpoint(
  path: string,
  from: string | undefined,
): Promise<{ checkpoint: LoadedCheckpoint | undefined; skipped: readonly Damage[] }> {
  if (from === undefined) return (await newestValid(path)) ?? { checkpoint: undefined, skipped: [] };
  const checkpoint = await loadCheckpoint(path, { which: from });
  const own = await listCheckpoints(path);
  if (!own.some((entry) => entry.path === checkpoint.path)) {
    throw new UsageError(`${checkpoint.path}: not a checkpoint of this run`, {
      run: path,
      checkpoints: own.map(({ name }) => name),
    });
  }
  return { checkpoint, skipped: [] };
}

/** The names in a folder, of some kinds of entries only if told. */
async function namesIn(path: string, isWanted: (entry: Dirent) => boolean = () => true): Promise<string[]> {
  const entries = await readdir(path, { withFileTypes: true }).catch((error: unknown) => {
    throw new StorageError("cannot list the folder", path, error);
  });
  return entries.filter(isWanted).map(({ name }) => name);
}

async function makeFolder(path: string, fs: FileSystem): Promise<boolean> {
  try {
    const made = await makeFolders(path, fs);
    if (made) await syncFolder(dirname(path), fs);
    return made;
  } catch (error) {
    if (errorCode(error) === "EEXIST" || errorCode(error) === "ENOTDIR") {
      throw new UsageError(`${path}: exists and is not a folder`, { hint: "choose another --out" });
    }
    throw new StorageError("cannot make the run folder", path, error);
  }
}

/** A lock or temporaries alone are what a crash before `run.json` leaves: the folder counts as empty. */
async function refuseOccupied(path: string): Promise<void> {
  const names = (await namesIn(path)).filter((name) => name !== lockFile && !isTemporary(name));
  if (names.length === 0) return;
  const isRun = names.includes(runFile);
  throw new UsageError(`${path}: the folder exists and is not empty`, {
    found: names.slice(0, 5),
    hint: isRun
      ? "resume that run with --resume, choose another --out, or remove the folder first"
      : "choose another --out",
  });
}
