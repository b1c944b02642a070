/** Runs that differ in the seed alone are one row: their mean, its spread, and a link to each. */
import { isExact } from "../../report/chain.ts";
import { mean, std } from "../../statistics.ts";
import type { FiledRun } from "./read.ts";

/** Runs of one setting, by seed. */
export interface RunGroup {
  readonly experiment: string;
  readonly runs: readonly FiledRun[];
}

/** The groups of runs, in the order in which they first come. */
export function groupsOf(runs: readonly FiledRun[]): RunGroup[] {
  const groups = new Map<string, FiledRun[]>();
  for (const run of runs) {
    const key = JSON.stringify(
      [run.experiment, run.settings, run.initFrom, run.data, run.score?.split],
      (name, value: unknown) => (name === "seed" ? undefined : value),
    );
    groups.set(key, [...(groups.get(key) ?? []), run]);
  }
  return [...groups.values()].map((members) => ({
    experiment: members[0]!.experiment,
    runs: members.toSorted((a, b) => a.seed - b.seed),
  }));
}

/** What tells a group from the others of its experiment: its first file, where there are several. */
export function groupNames(groups: readonly RunGroup[]): string[] {
  return groups.map(({ experiment, runs }) =>
    groups.filter((other) => other.experiment === experiment).length === 1
      ? experiment
      : `${experiment} (${runs[0]!.file})`,
  );
}

/** "96.80 ± 0.05" over seeds; of one value no spread. */
export function withSpread(values: readonly number[], digits: number): string {
  const center = mean(values).toFixed(digits);
  return values.length > 1 ? `${center} ± ${std(values).toFixed(digits)}` : center;
}

/** A link to each run's file, with its own value behind it. */
export function links(
  runs: readonly FiledRun[],
  folder: string,
  shownOf: (run: FiledRun) => string | undefined,
): string {
  return runs
    .map((run) => {
      const value = shownOf(run);
      return `${link(run, folder, `seed ${run.seed}`)}${value === undefined ? "" : ` ${value}`}`;
    })
    .join(", ");
}

/** A link to a result file; a dagger where the exact source is not known. */
export function link(
  {
    file,
    commit,
    exactSource,
  }: { readonly file: string; readonly commit: string | null; readonly exactSource?: boolean | undefined },
  folder: string,
  name = file,
): string {
  const isKnown = exactSource ?? isExact(commit);
  return `[${name}](${folder}/${file}.json)${isKnown ? "" : " †"}`;
}

/** A fraction in per cent, as pages write it. */
export function share(value: number): string {
  return `${(100 * value).toFixed(2)} %`;
}

/** A table in Markdown; the first row is the head. */
export function markdownTable(rows: readonly (readonly string[])[]): string {
  const [head, ...body] = rows;
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return [line(head!), line(head!.map(() => "---")), ...body.map(line)].join("\n");
}
