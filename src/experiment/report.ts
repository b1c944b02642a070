/** Runs as reports take them: collected from their folders, with what their experiment and kind know. */
import { UsageError } from "../errors.ts";
import { type FigureSpec, runNames } from "../report/figure.ts";
import { collectResult, type RunResult } from "../report/result.ts";
import { readRun } from "../store/runRecord.ts";
import type { BaseSettings, Kind, ReportedRun } from "./kind.ts";
import { findExperiment, kindNamed } from "./registry.ts";

/** A run's result, and its kind; `reportedBy` is the command that asks. */
export async function reportedRun(
  folder: string,
  reportedBy: readonly string[],
): Promise<ReportedRun & { readonly kind: Kind }> {
  const record = await readRun(folder);
  const kind = kindNamed((record.settings.task as { name?: unknown } | undefined)?.name, folder);
  const known = findExperiment(record.experiment);
  const settings = kind.schema.safeParse(record.settings).data;
  const result = await collectResult<unknown>(folder, {
    // Settings that the schema does not accept are compared as they are.
    known: known && { ...known, complete: (given) => kind.schema.safeParse(given).data ?? given },
    reportedBy,
    ...(settings ? { counts: countsOf(kind, settings) } : {}),
  });
  return { folder, kind, result };
}

/** Trained weights and the recurrent state of one row. */
export function countsOf(kind: Kind, settings: BaseSettings): Pick<RunResult, "weights" | "stateVariables"> {
  return { weights: kind.countWeights(settings), stateVariables: kind.countState?.(settings, 1) ?? null };
}

/** What curves can be drawn over. */
export const curveAxes = ["steps", "hours", "processor-hours"] as const;

/** Curves of runs over steps, or over the time that they spent in training. */
export async function figureOver(
  kind: Kind,
  runs: readonly ReportedRun[],
  over: (typeof curveAxes)[number],
): Promise<FigureSpec> {
  const figure = await kind.figure(runs);
  if (over === "steps") return figure;
  const time = over === "hours" ? "hours" : "processorHours";
  const names = runNames(runs.map(({ result }) => result));
  const lines = runs.map(({ folder, result }, i) => {
    const points = (result.curves.valid ?? []).map((point) => ({
      x: point[time] ?? Number.NaN,
      y: point.values[kind.headline]!,
    }));
    if (points.some(({ x }) => Number.isNaN(x))) {
      throw new UsageError(`--over ${over}: the log of ${folder} does not have the time`, {
        hint: "it was trained by an earlier version; leave it out, or draw over steps",
      });
    }
    return { name: names[i]!, points };
  });
  const { label, percent } = kind.measures[kind.headline]!;
  return {
    title: `Validation ${label}`,
    x: over === "hours" ? "hours of training" : "processor hours of training",
    y: label,
    percent: percent ?? false,
    continuous: true,
    lines,
    ...(figure.marks ? { marks: figure.marks } : {}),
  };
}
