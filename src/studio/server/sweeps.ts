/** Sweeps: their members side by side, and which of the settings that differ matter. */

import { kindOfRecord } from "../../experiment/registry.ts";
import { mean } from "../../statistics.ts";
import { flatten } from "../../store/flatten.ts";
import type { RunState, SweepDetail, SweepMember, SweepSummary } from "../api.ts";
import type { IndexedRun } from "./runIndex.ts";

/** The sweeps among runs, newest first. */
export function sweepsOf(runs: readonly IndexedRun[]): SweepSummary[] {
  const groups = new Map<string, IndexedRun[]>();
  for (const run of runs) {
    const { sweep } = run.summary;
    if (sweep !== null) groups.set(sweep, [...(groups.get(sweep) ?? []), run]);
  }
  return [...groups].map(([name, members]) => summaryOf(name, members)).reverse();
}

function summaryOf(name: string, members: readonly IndexedRun[]): SweepSummary {
  const states: Partial<Record<RunState, number>> = {};
  for (const { summary } of members) states[summary.state] = (states[summary.state] ?? 0) + 1;
  const kind = kindOfRecord(members[0]!.record);
  const measure = kind?.headline ?? null;
  const sign = measure !== null && kind?.measures[measure]?.better === "higher" ? 1 : -1;
  let best: SweepSummary["best"] = null;
  for (const { summary } of members) {
    const value = measure === null ? undefined : summary.best[measure];
    if (value !== undefined && (!best || sign * value > sign * best.value)) {
      best = { run: summary.name, value };
    }
  }
  return {
    name,
    experiment: members[0]!.summary.experiment,
    members: members.length,
    states,
    measure,
    best,
  };
}

/** A sweep in full; undefined where there is none of the name. */
export function sweepOf(name: string, runs: readonly IndexedRun[]): SweepDetail | undefined {
  const found = runs.filter(({ summary }) => summary.sweep === name);
  if (found.length === 0) return undefined;
  const settings = found.map(({ record }) => flatten(record.settings));
  const all = [...new Set(settings.flatMap((each) => Object.keys(each)))];
  const differing = all.filter((key) => new Set(settings.map((each) => each[key])).size > 1);
  const keys = [
    ...differing.filter((key) => key !== "training.seed"),
    ...differing.filter((key) => key === "training.seed"),
  ];
  const members = found.map(
    ({ summary }, i): SweepMember => ({
      run: summary.name,
      member: summary.name.slice(name.length + 1),
      state: summary.state,
      seed: summary.seed,
      created: summary.created,
      values: Object.fromEntries(keys.map((key) => [key, settings[i]![key] ?? null])),
      best: summary.best,
      bestStep: summary.bestStep,
    }),
  );
  const measures = [...new Set(members.flatMap(({ best }) => Object.keys(best)))];
  return {
    sweep: summaryOf(name, found),
    kind: found[0]!.summary.kind,
    keys,
    members,
    importance: Object.fromEntries(
      measures.map((measure) => [measure, importance(members, keys, measure)] as const),
    ),
  };
}

/** Fewest members that say anything about what matters. */
const fewest = 4;

/**
 * How much of a measure's variance each setting explains by itself: ε², the share between the groups of its values,
 * corrected for what as many groups would explain by chance. Numbers with nearly as many values as members are grouped
 * by their order.
 */
export function importance(
  members: readonly Pick<SweepMember, "values" | "best">[],
  keys: readonly string[],
  measure: string,
): { key: string; importance: number }[] {
  const counted = members.filter(({ best }) => Number.isFinite(best[measure]));
  if (counted.length < fewest) return [];
  const results = counted.map(({ best }) => best[measure]!);
  return keys
    .map((key) => {
      const groups = grouped(counted.map(({ values }) => values[key] ?? null));
      return { key, importance: Number(epsilonSquared(results, groups).toFixed(4)) };
    })
    .sort((a, b) => b.importance - a.importance);
}

/** A group for every value: its own, or that of its neighbours in order. */
function grouped(values: readonly (string | number | boolean | null)[]): string[] {
  const distinct = [...new Set(values)];
  const isContinuous = distinct.length > values.length / 2 && distinct.every((v) => typeof v === "number");
  if (!isContinuous) return values.map(String);
  const sorted = (distinct as number[]).sort((a, b) => a - b);
  const groups = Math.max(2, Math.floor(Math.sqrt(sorted.length)));
  return values.map((value) =>
    String(Math.floor((groups * sorted.indexOf(value as number)) / sorted.length)),
  );
}

function epsilonSquared(results: readonly number[], groups: readonly string[]): number {
  const squares = (values: readonly number[]): number => {
    const center = mean(values);
    return values.reduce((sum, value) => sum + (value - center) ** 2, 0);
  };
  const total = squares(results);
  const members = new Map<string, number[]>();
  results.forEach((value, i) => {
    const group = groups[i]!;
    members.set(group, [...(members.get(group) ?? []), value]);
  });
  const freedom = results.length - members.size;
  if (total === 0 || freedom <= 0 || members.size < 2) return 0;
  const within = [...members.values()].reduce((sum, values) => sum + squares(values), 0);
  return Math.max(0, 1 - within / freedom / (total / (results.length - 1)));
}
