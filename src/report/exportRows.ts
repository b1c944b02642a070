/** Runs as rows for other programs: one per measured value, or one per run with its settings. */
import { flatten } from "../store/flatten.ts";
import { readMetrics } from "../store/metrics.ts";
import type { RunListing } from "../store/runRecord.ts";

/** A cell of a row. */
export type Cell = string | number | boolean | null;

/** A row: its columns by name. */
export type Row = Readonly<Record<string, Cell>>;

/** Columns of `metricRows`. */
export const metricColumns = ["run", "experiment", "seed", "split", "step", "name", "value", "at"] as const;

/** One row per value that a run measured; `at` is in seconds since 1970. */
export async function metricRows({ name: run, path, record }: RunListing): Promise<Row[]> {
  const { experiment, seed } = record;
  return (await readMetrics(path)).flatMap(({ step, split, values, times }) => {
    const { at = null, ...speeds } = times ?? {};
    return Object.entries({ ...values, ...speeds }).map(([name, value]) => ({
      ...{ run, experiment, seed, split, step, name, value, at },
    }));
  });
}

/** One row per run: what it is, how it stands, its summary and all its settings. */
export function runRow({ name: run, record, state }: RunListing): Row {
  const { experiment, seed, step, created, updated, note, gitCommit, packageVersion, summary } = record;
  return {
    ...{ run, experiment, seed, state, step, created, updated, note, gitCommit, packageVersion },
    ...prefixed("summary.", summary),
    ...prefixed("settings.", flatten(record.settings)),
  };
}

function prefixed(prefix: string, values: Readonly<Record<string, Cell>>): Row {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [prefix + name, value]));
}

/** A line of CSV (RFC 4180): texts with commas, quotation marks or line breaks are quoted, nothing is an empty cell. */
export function csvLine(cells: readonly (Cell | undefined)[]): string {
  return cells
    .map((cell) => {
      const text = cell === null || cell === undefined ? "" : String(cell);
      return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    })
    .join(",");
}

/** A row as JSON; numbers that JSON does not have are words, as in `metrics.jsonl`. */
export function jsonCells(row: Row): Row {
  return Object.fromEntries(
    Object.entries(row).map(([name, cell]) => [
      name,
      typeof cell === "number" && !Number.isFinite(cell) ? String(cell) : cell,
    ]),
  );
}
