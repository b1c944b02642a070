/** The result of a sweep: what each member reached at the same budget, read from the run folders. */
import { join } from "node:path";
import { mean, median, std } from "../statistics.ts";
import { type MetricRecord, metricsFile, readMetrics } from "../store/metrics.ts";
import { type RunRecord, readRun } from "../store/runRecord.ts";
import { type FigureSpec, showSeeds } from "./figure.ts";
import { type CurvePoint, curvesOf, hoursOf, portableCommand, withoutPlaces } from "./result.ts";

/** What members are compared by: the measures of their kind of experiment. */
export interface SweepMeasures {
  /** Name of the kind. */
  readonly name: string;
  readonly measures: Readonly<
    Record<
      string,
      { readonly label: string; readonly better: "higher" | "lower"; readonly percent?: boolean }
    >
  >;
  /** The measure of the figure. */
  readonly headline: string;
  /** Name of the speed in the log. */
  readonly speed: { readonly name: string };
  /** What a step is called. */
  readonly unit: string;
}

/** The split that members are compared on. */
const split = "valid";

/** A member as its sweep knows it. */
export interface SweptMember {
  readonly name: string;
  readonly folder: string;
  readonly changes: readonly { readonly key: string }[];
  readonly settings: { readonly training: { readonly seed: number } };
  readonly parameters: number;
  readonly state: string;
}

/** What one member reached. */
export interface MemberResult {
  readonly name: string;
  /** Settings that differ from the experiment's, with their values. */
  readonly changes: Readonly<Record<string, unknown>>;
  readonly seed: number;
  readonly state: string;
  readonly note: string | null;
  /** What has to be said of its stories: generated, filled in, missing. */
  readonly data: string | null;
  /** Commits it was trained with: one, unless it was resumed with another. */
  readonly commits: readonly (string | null)[];
  readonly steps: number;
  readonly hours: number;
  readonly parameters: number;
  /** By measure: the best value and the step it was reached at. */
  readonly best: Readonly<Record<string, { readonly value: number; readonly step: number }>>;
  /** The measures at the last step they were taken at. */
  readonly last: CurvePoint | null;
  /** Median over the lines of the log. */
  readonly speed: Readonly<Record<string, number | null>>;
  readonly curves: Readonly<Record<string, readonly CurvePoint[]>>;
  /** Where it was trained, if not where the first one was. */
  readonly machine?: RunRecord["environment"];
}

/** Mean and spread over the seeds of the same changes. */
export interface SeedsResult {
  readonly name: string;
  readonly seeds: readonly number[];
  /** By measure, of the best values. */
  readonly best: Readonly<Record<string, Spread>>;
  /** By measure, of the last values. */
  readonly last: Readonly<Record<string, Spread>>;
}

/** A mean, and the standard deviation of a sample. */
export interface Spread {
  readonly mean: number;
  readonly std: number;
}

/** The document of a sweep. */
export interface SweepResult {
  readonly experiment: string;
  readonly description: string;
  /** The kind of experiment. */
  readonly kind: string;
  readonly command: string;
  readonly date: string;
  readonly commit: string | null;
  readonly packageVersion: string;
  readonly machine: RunRecord["environment"] | null;
  /** `finished` when every member has come to an end. */
  readonly state: string;
  /** Steps each member makes. */
  readonly steps: number;
  /** Of all members together. */
  readonly hours: number;
  /** The experiment's settings before the changes. */
  readonly settings: unknown;
  /** The published numbers, as the experiment has them. */
  readonly paper: object | null;
  readonly members: readonly MemberResult[];
  /** Only where changes were trained with several seeds. */
  readonly seeds: readonly SeedsResult[];
  /** Only where members trained in rounds. */
  readonly rounds?: SweptRounds;
}

/** The rounds of a sweep: what each decided, by which measure. */
export interface SweptRounds {
  readonly rule: object;
  /** The validation measure that ranks. */
  readonly measure: string;
  readonly rounds: readonly object[];
}

/** What the folders do not say of a sweep. */
export interface SweepAbout {
  readonly experiment: string;
  readonly description: string;
  readonly command: readonly string[];
  readonly commit: string | null;
  readonly packageVersion: string;
  readonly state: string;
  readonly steps: number;
  readonly settings: unknown;
  readonly paper: object | undefined;
  readonly rounds?: SweptRounds;
}

/** Collects a sweep's result from the folders of its members. */
export async function collectSweep(
  members: readonly SweptMember[],
  kind: SweepMeasures,
  about: SweepAbout,
): Promise<SweepResult> {
  const found = [];
  for (const member of members) found.push(await collectMember(member, kind));
  const machine = found.find((member) => member.machine)?.machine ?? null;
  const results = found.map(({ machine: own, ...rest }) =>
    own && JSON.stringify(own) !== JSON.stringify(machine) ? { ...rest, machine: own } : rest,
  );
  return {
    ...about,
    kind: kind.name,
    command: portableCommand(about.command),
    date: new Date().toISOString(),
    machine,
    hours: Number(results.reduce((total, { hours }) => total + hours, 0).toFixed(3)),
    settings: withoutPlaces(about.settings),
    paper: about.paper ?? null,
    members: results,
    seeds: overSeeds(results),
  };
}

async function collectMember(
  { name, folder, changes, settings, parameters, state }: SweptMember,
  { measures, speed }: SweepMeasures,
): Promise<MemberResult> {
  const known = {
    name,
    changes: withoutPlaces(Object.fromEntries(changes.map(({ key }) => [key, valueAt(settings, key)]))),
    seed: settings.training.seed,
    state,
    parameters,
  };
  if (state === "waiting") {
    const nothing = {
      note: null,
      data: null,
      commits: [],
      steps: 0,
      hours: 0,
      best: {},
      last: null,
      curves: {},
    };
    return { ...known, ...nothing, speed: { [speed.name]: null } };
  }
  const { note, resumed, gitCommit, summary, step, environment } = await readRun(folder);
  const metrics = await readMetrics(join(folder, metricsFile));
  const scored = metrics.filter((record) => record.split === split);
  const last = scored.at(-1);
  // Twenty tasks by a hundred points by every member is more than a result has to carry.
  const whole = metrics.map((record) => ({
    ...record,
    values: picked(record.values, (name) => !/^(task|share)\d+$/.test(name)),
  }));
  return {
    ...known,
    note,
    data: typeof summary.data === "string" ? summary.data : null,
    commits: [...new Set([gitCommit, ...resumed.map((entry) => entry.gitCommit)])],
    steps: step,
    hours: hoursOf(metrics),
    best: Object.fromEntries(
      Object.entries(measures).flatMap(([measure, { better }]) => bestOf(scored, measure, better)),
    ),
    last: last ? { step: last.step, values: picked(last.values, (name) => name in measures) } : null,
    speed: { [speed.name]: medianSpeed(metrics.flatMap(({ times }) => times?.[speed.name] ?? [])) },
    curves: curvesOf(whole, 100),
    machine: environment,
  };
}

function valueAt(settings: unknown, key: string): unknown {
  return key
    .split(".")
    .reduce<unknown>((at, part) => (at as Record<string, unknown> | undefined)?.[part], settings);
}

function picked(
  values: Readonly<Record<string, number>>,
  wanted: (name: string) => boolean,
): Record<string, number> {
  return Object.fromEntries(Object.entries(values).filter(([name]) => wanted(name)));
}

function bestOf(records: readonly MetricRecord[], measure: string, better: "higher" | "lower") {
  const sign = better === "higher" ? 1 : -1;
  let best: { value: number; step: number } | undefined;
  for (const { step, values } of records) {
    const value = values[measure] ?? Number.NaN;
    if (Number.isFinite(value) && (!best || sign * value > sign * best.value)) best = { value, step };
  }
  return best ? [[measure, best] as const] : [];
}

/** The median speed; lines without one (right after a pause) do not count. */
function medianSpeed(speeds: readonly number[]): number | null {
  const counted = speeds.filter((speed) => speed > 0);
  return counted.length === 0 ? null : Number(median(counted).toPrecision(4));
}

/** Mean and spread of the finished members that differ in the seed alone. */
function overSeeds(members: readonly MemberResult[]): SeedsResult[] {
  const groups = new Map<string, MemberResult[]>();
  for (const member of members) {
    if (member.state !== "finished") continue;
    const key = JSON.stringify(member.changes);
    groups.set(key, [...(groups.get(key) ?? []), member]);
  }
  return [...groups.values()]
    .filter((group) => group.length > 1)
    .map((group) => {
      const measures = Object.keys(group[0]!.best);
      const spreads = (read: (member: MemberResult, measure: string) => number) =>
        Object.fromEntries(
          measures.map((measure) => [measure, spreadOf(group.map((member) => read(member, measure)))]),
        );
      return {
        name: group[0]!.name.replace(/-seed\d+$/, ""),
        seeds: group.map(({ seed }) => seed),
        best: spreads(({ best }, measure) => best[measure]!.value),
        last: spreads(({ last }, measure) => last!.values[measure]!),
      };
    });
}

function spreadOf(values: readonly number[]): Spread {
  return { mean: mean(values), std: std(values) };
}

/** The figure of a sweep: one line per member; finished members that differ in the seed alone share a name. */
export function sweepFigure({ description, members }: SweepResult, kind: SweepMeasures): FigureSpec {
  const { label, percent = false } = kind.measures[kind.headline]!;
  return {
    title: `${description}: validation ${label}`,
    x: kind.unit,
    y: label,
    percent,
    lines: members.map((member) => ({
      name: nameInFigure(member, members),
      points: (member.curves[split] ?? []).map(({ step, values }) => ({
        x: step,
        y: values[kind.headline] ?? 0,
      })),
    })),
  };
}

/** What the figure calls a member: with all seeds of the finished ones that have the same changes. */
function nameInFigure(member: MemberResult, members: readonly MemberResult[]): string {
  const { name, state, changes } = member;
  if (state !== "finished") return `${name} (${state})`;
  const same = members.filter(
    (other) => other.state === "finished" && JSON.stringify(other.changes) === JSON.stringify(changes),
  );
  if (same.length === 1) return name;
  const seeds = showSeeds(same.map(({ seed }) => seed));
  return [name.replace(/-?seed\d+$/, ""), seeds].filter((part) => part !== "").join(", ");
}
