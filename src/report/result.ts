/** A result: what a run reached, under which conditions, beside the published number. Written by a command only. */
import { basename, isAbsolute, join } from "node:path";
import { median } from "../statistics.ts";
import { type MetricRecord, metricsFile, readMetrics } from "../store/metrics.ts";
import { effectiveState, type RunRecord, readRun } from "../store/runRecord.ts";
import { type Ancestor, isExact, parseChain } from "./chain.ts";
import { type ChangedSetting, changedSettings } from "./changed.ts";

/** A point of a curve. */
export interface CurvePoint {
  readonly step: number;
  readonly values: Readonly<Record<string, number>>;
  /** Spent in training steps until then, where the log says: by the clock, and of processor time. */
  readonly hours?: number;
  readonly processorHours?: number;
}

/** A time the run was resumed: after which step, and how. */
export interface Resumption {
  readonly step: number;
  readonly command: string;
  readonly commit: string | null;
}

/** What a run reached, whatever its kind; `Paper` are the published numbers beside it. */
export interface RunResult<Paper = unknown> {
  readonly experiment: string;
  readonly description: string;
  /** The command that trained it, and the one that wrote this file. */
  readonly command: string;
  readonly reportedBy: string;
  /** Each time it was resumed. */
  readonly resumed: readonly Resumption[];
  /** The run or model whose weights it started with, where these were not fresh. */
  readonly initFrom: string | null;
  /** The runs behind these weights, oldest first; empty where they were fresh or nothing is known of them. */
  readonly chain: readonly Ancestor[];
  /** Whether every commit it was trained with, the chain's too, is known and was without changes. */
  readonly exactSource: boolean;
  /** What its data lacks or was filled with. */
  readonly data: string | null;
  readonly date: string;
  readonly commit: string | null;
  readonly packageVersion: string;
  readonly machine: RunRecord["environment"];
  readonly seed: number;
  readonly settings: RunRecord["settings"];
  /** The settings that are not as this version's experiment has them; null where there is no such experiment. */
  readonly changed: Readonly<Record<string, ChangedSetting>> | null;
  readonly state: string;
  /** Steps made, and hours at them. */
  readonly steps: number;
  readonly hours: number;
  /** Trained weights, and numbers in the recurrent state of one row; null where these settings make no system. */
  readonly weights: number | null;
  readonly stateVariables: number | null;
  readonly curves: Readonly<Record<string, readonly CurvePoint[]>>;
  readonly paper: Paper | null;
}

/** A command line without the places of one machine: of an absolute path, also behind "=", only the last part stays. */
export function portableCommand(words: readonly string[]): string {
  const portable = (text: string): string => (isAbsolute(text) ? basename(text) : text);
  return words
    .map((word) => {
      const [, before = "", after = word] = /^((?:[\w.-]+=)+)(.*)$/s.exec(word) ?? [];
      return before + portable(after);
    })
    .join(" ");
}

/** Settings as anybody may see them: of an absolute path only the last part stays. */
export function withoutPlaces<T>(settings: T): T {
  const text = JSON.stringify(settings, (_key, value: unknown) =>
    typeof value === "string" && isAbsolute(value) ? basename(value) : value,
  );
  return JSON.parse(text) as T;
}

/** What is known of the experiment of a run. */
export interface KnownExperiment<Paper> {
  readonly description: string;
  readonly settings: unknown;
  /** Settings with what the experiment's schema adds to those of an earlier version. */
  complete(settings: unknown): unknown;
  readonly paper?: Paper;
}

/** Records farther apart than so many seconds, and so many times the usual gap, are two sittings. */
const pause = { seconds: 15 * 60, times: 10 };

/** Collects a run's result from its folder; `known` is the experiment of the run's name, where there is one. */
export async function collectResult<Paper = unknown>(
  folder: string,
  about: {
    known: KnownExperiment<Paper> | undefined;
    reportedBy: readonly string[];
    counts?: Pick<RunResult, "weights" | "stateVariables">;
    points?: number;
  },
): Promise<RunResult<Paper>> {
  const record = await readRun(folder);
  const { known } = about;
  const settings = withoutPlaces(record.settings);
  const chain = parseChain(record.summary.chain);
  const metrics = await readMetrics(join(folder, metricsFile));
  return {
    experiment: record.experiment,
    description: known?.description ?? record.experiment,
    command: portableCommand(record.command),
    reportedBy: portableCommand(about.reportedBy),
    resumed: record.resumed.map(({ step, command, gitCommit }) => ({
      step,
      command: portableCommand(command),
      commit: gitCommit,
    })),
    initFrom: textOf(record.summary.initFrom),
    chain,
    exactSource: [
      record.gitCommit,
      ...record.resumed.map(({ gitCommit }) => gitCommit),
      ...chain.map(({ commit }) => commit),
    ].every(isExact),
    data: textOf(record.summary.data),
    date: new Date().toISOString(),
    commit: record.gitCommit,
    packageVersion: record.packageVersion,
    machine: record.environment,
    seed: record.seed,
    settings,
    changed: known ? changedSettings(withoutPlaces(known.settings), known.complete(settings)) : null,
    state: effectiveState(record),
    steps: record.step,
    hours: hoursOf(metrics),
    ...(about.counts ?? { weights: null, stateVariables: null }),
    curves: curvesOf(metrics, about.points ?? 100),
    paper: known?.paper ?? null,
  };
}

/** Steps that the weights a run started with had been trained for, as `initFrom` tells them. */
export function stepsOf(initFrom: string | null): number {
  return Number(/ after (\d+) steps$/.exec(initFrom ?? "")?.[1] ?? 0);
}

function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

/** Hours between the first and the last record, the gaps between sittings left out. */
export function hoursOf(metrics: readonly MetricRecord[]): number {
  const at = metrics.map(({ times }) => times?.at).filter((time) => time !== undefined);
  const gaps = at.slice(1).map((time, i) => time - at[i]!);
  // Two records of one step, a train and a test line, are moments apart and say nothing of what is usual.
  const usual = median(gaps.filter((gap) => gap > 1));
  const isPause = (gap: number): boolean => gap >= pause.seconds && !(gap < pause.times * usual);
  const seconds = gaps.filter((gap) => !isPause(gap)).reduce((sum, gap) => sum + gap, 0);
  return Number((seconds / 3600).toFixed(3));
}

/** The curves of a log, by split: at most so many points each. */
export function curvesOf(metrics: readonly MetricRecord[], most: number): RunResult["curves"] {
  const splits = [...new Set(metrics.map(({ split }) => split))];
  return Object.fromEntries(
    splits.map((name) => [
      name,
      thinned(
        metrics.filter(({ split }) => split === name),
        most,
      ),
    ]),
  );
}

/** Values of single tasks, twenty of a kind, at so many points of a curve. */
const mostTaskPoints = 12;

/** At most so many points, the last one always among them; numbers to six digits. */
function thinned(records: readonly MetricRecord[], most: number): CurvePoint[] {
  const points = evenly(records, most);
  const detailed = new Set(evenly(points, mostTaskPoints));
  return points.map((record) => {
    const { step, values, times } = record;
    const shown = Object.entries(values).filter(
      ([name]) => detailed.has(record) || !/^(task|share)\d+$/.test(name),
    );
    return {
      step,
      values: rounded(Object.fromEntries(shown)),
      ...rounded({
        ...(times?.hours === undefined ? {} : { hours: times.hours }),
        ...(times?.processorHours === undefined ? {} : { processorHours: times.processorHours }),
      }),
    };
  });
}

/** At most so many of them, evenly spaced, the last one always among them. */
function evenly<T>(items: readonly T[], most: number): T[] {
  const every = Math.max(1, Math.ceil(items.length / most));
  return items.filter((_, i) => (items.length - 1 - i) % every === 0);
}

function rounded(values: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, Number(value.toPrecision(6))]),
  );
}
