/**
 * `run.json`: what a run is and how it stands. It is the only file that a list of runs reads.
 */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { arch, cpus, platform, release } from "node:os";
import { basename, join, resolve } from "node:path";
import { z } from "zod";
import { DataError } from "../errors.ts";
import { errorCode, isTemporary, StorageError } from "./atomic.ts";
import type { Damage } from "./checkpoint.ts";
import { parseJsonObject } from "./json.ts";
import { isRunning, isSilent, processSchema } from "./lock.ts";
import { unreadableFolder } from "./manifest.ts";
import { programFolder } from "./programFolder.ts";
import { readIfPresent } from "./read.ts";

/** Name of the file in a run folder. */
export const runFile = "run.json";

const runVersion = 1;
const largestRecord = 2 ** 22;

const environmentSchema = z.strictObject({
  node: z.string(),
  os: z.string(),
  cpu: z.string(),
  cores: z.int(),
  /** Threads the engine was given; results repeat bit for bit only at the same number. */
  threads: z.int().nullable(),
  /** Version of ONNX Runtime. */
  ort: z.string().nullable(),
  device: z.string().nullable(),
});

/** Where a run was computed: what its numbers may depend on besides the seed. */
export type Environment = z.infer<typeof environmentSchema>;

/** How a run stands. A run that says `running` although its process is gone is `interrupted`. */
const runStates = ["running", "finished", "interrupted", "diverged", "failed"] as const;

/** How a run stands. */
export type RunState = (typeof runStates)[number];

const json = z.record(z.string(), z.unknown());
const commandSchema = z.array(z.string());

const recordSchema = z.strictObject({
  format: z.literal("fwm-run"),
  version: z.literal(runVersion),
  experiment: z.string(),
  settings: json,
  seed: z.int(),
  command: commandSchema,
  packageVersion: z.string(),
  gitCommit: z.string().nullable(),
  environment: environmentSchema,
  created: z.iso.datetime(),
  /** Heartbeat: renewed while the run trains. */
  updated: z.iso.datetime(),
  state: z.enum(runStates),
  /** Updates made, as of `updated`. */
  step: z.int().min(0),
  /** A few numbers for lists, such as the best accuracy. */
  summary: z.record(z.string(), z.union([z.number(), z.string(), z.boolean(), z.null()])),
  /** Why the run ended, when there is more to say than its state. */
  note: z.string().nullable(),
  /** The process that trains, while one does. */
  process: processSchema.nullable(),
  /** Each time the run was taken up again. */
  resumed: z.array(
    z.strictObject({
      at: z.iso.datetime(),
      step: z.int().min(0),
      command: commandSchema,
      packageVersion: z.string(),
      gitCommit: z.string().nullable(),
      environment: environmentSchema,
    }),
  ),
});

/** The content of `run.json`. */
export type RunRecord = z.infer<typeof recordSchema>;

/** What the caller knows about a run before its first step. */
export type RunDescription = Pick<
  RunRecord,
  "experiment" | "settings" | "seed" | "command" | "packageVersion" | "gitCommit" | "environment"
> &
  Partial<Pick<RunRecord, "summary">>;

/** The record of a run that is about to begin. */
export function newRecord(about: RunDescription, now: string): RunRecord {
  return {
    format: "fwm-run",
    version: runVersion,
    summary: {},
    ...about,
    created: now,
    updated: now,
    state: "running",
    step: 0,
    note: null,
    process: null,
    resumed: [],
  };
}

/** A record that did not come from a file, checked; undefined where it is none. */
export function parseRecord(value: unknown): RunRecord | undefined {
  return recordSchema.safeParse(value).data;
}

/** The record of a run folder; a missing or damaged one is a `DataError`. */
export async function readRun(folder: string): Promise<RunRecord> {
  const file = join(resolve(folder), runFile);
  const bytes = await readIfPresent(file, largestRecord);
  if (!bytes) {
    throw new DataError(`${resolve(folder)}: not a run folder`, {
      looked: `for ${runFile}`,
      hint: "give the folder that training wrote, as --out named it",
    });
  }
  const value = parseJsonObject(bytes, { file });
  if (value.format === "fwm-run" && value.version !== runVersion) {
    throw new DataError(`${file}: format version ${JSON.stringify(value.version)}`, {
      expected: runVersion,
      hint: "the run was made by another version of fwm; use that version",
    });
  }
  const parsed = recordSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new DataError(`${file}: not a run record this version understands`, {
    reason: z.prettifyError(parsed.error),
  });
}

/** One line of a list of runs. */
export interface RunListing {
  /** The folder's name; of a run in a folder of runs, such as a sweep, with that one's: `sweep/base`. */
  readonly name: string;
  readonly path: string;
  readonly record: RunRecord;
  /** As the record says, except that a run whose process is gone is `interrupted`. */
  readonly state: RunState;
}

/**
 * The runs in a folder and in the folders of runs there, oldest first, and the folders that are no whole runs, with
 * the reason.
 */
export async function listRuns(
  folder: string,
): Promise<{ runs: readonly RunListing[]; damaged: readonly Damage[] }> {
  const { runs, damaged } = await runsIn(resolve(folder));
  const others: Damage[] = [];
  for (const found of damaged) {
    // A folder that cannot be listed has been named already.
    const inside = await runsIn(found.path).catch((error: unknown) => {
      if (error instanceof StorageError) return { runs: [], damaged: [] };
      throw error;
    });
    if (inside.runs.length === 0) others.push(found);
    else others.push(...inside.damaged);
    const group = basename(found.path);
    runs.push(...inside.runs.map((run) => ({ ...run, name: `${group}/${run.name}` })));
  }
  runs.sort((a, b) => a.record.created.localeCompare(b.record.created) || a.name.localeCompare(b.name));
  others.sort((a, b) => a.path.localeCompare(b.path));
  return { runs, damaged: others };
}

/** The runs right in a folder, and the folders there that are none. */
async function runsIn(root: string): Promise<{ runs: RunListing[]; damaged: Damage[] }> {
  const runs: RunListing[] = [];
  const damaged: Damage[] = [];
  const readInto = async (path: string): Promise<void> => {
    try {
      const record = await readRun(path);
      runs.push({ name: basename(path), path, record, state: effectiveState(record) });
    } catch (error) {
      if (!(error instanceof DataError || error instanceof StorageError)) throw error;
      damaged.push({ path, problem: error.message });
    }
  };
  const names = await folderNames(root);
  // Some at a time: thousands of runs list quickly without as many open files.
  for (let i = 0; i < names.length; i += 64) {
    await Promise.all(names.slice(i, i + 64).map((name) => readInto(join(root, name))));
  }
  return { runs, damaged };
}

/** How a run stands now: a crash leaves `running` in the file, and nobody to correct it. */
export function effectiveState(record: RunRecord): RunState {
  if (record.state !== "running") return record.state;
  const running = record.process ? isRunning(record.process) : false;
  const silent = isSilent(Date.parse(record.updated));
  return (running ?? !silent) ? "running" : "interrupted";
}

/** This machine, with what only the engine knows. */
export function describeEnvironment(engine: {
  readonly threads?: number;
  readonly ort?: string;
  readonly device?: string;
}): Environment {
  const processors = cpus();
  return {
    node: process.version,
    os: `${platform()} ${release()} ${arch()}`,
    cpu: processors[0]?.model.trim() ?? "unknown",
    cores: processors.length,
    threads: engine.threads ?? null,
    ort: engine.ort ?? null,
    device: engine.device ?? null,
  };
}

/** The program and the machine that a run was computed with. */
export type Provenance = Pick<RunRecord, "packageVersion" | "gitCommit" | "environment">;

/** What differs between two of them in a way that can change results, as `name: before → now`. */
export function provenanceDifferences(before: Provenance, now: Provenance): string[] {
  const telling = ({ packageVersion, gitCommit: commit, environment }: Provenance) => {
    const { cpu, threads, ort, device, node } = environment;
    return {
      "version of fwm": packageVersion,
      commit: commit && shortCommit(commit),
      cpu,
      threads,
      ort,
      device,
      node,
    };
  };
  const then = telling(before);
  return Object.entries(telling(now)).flatMap(([name, value]) => {
    const earlier = then[name as keyof typeof then];
    return earlier === value ? [] : [`${name}: ${earlier ?? "unknown"} → ${value ?? "unknown"}`];
  });
}

/** A commit as messages show it; `-dirty` stays. */
function shortCommit(commit: string): string {
  return commit.replace(/^([0-9a-f]{12})[0-9a-f]+/, "$1");
}

/** The commit checked out in a clone, the program's own by default; `-dirty` if files differ; null for no clone. */
export function gitCommit(folder: string = programFolder()): string | null {
  const command = ["describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"];
  // Only a clone of the program has its commits; a package within somebody's repository does not.
  if (!existsSync(join(folder, ".git"))) return null;
  try {
    const text = execFileSync("git", command, {
      cwd: folder,
      encoding: "utf8",
      timeout: 5000,
      stdio: ["ignore", "pipe", "ignore"],
    });
    return text.trim() || null;
  } catch {
    return null;
  }
}

async function folderNames(root: string): Promise<string[]> {
  try {
    const entries = await readdir(root, { withFileTypes: true });
    return entries
      .filter((entry) => entry.isDirectory() && !entry.name.startsWith(".") && !isTemporary(entry.name))
      .map((entry) => entry.name);
  } catch (error) {
    if (errorCode(error) === "ENOENT") return [];
    throw unreadableFolder(root, error);
  }
}
