/** What the Runs page shows, worked out from the runs and the address: no drawing, no fetching. */
import type { About, MeasureInfo, RunSummary } from "../../src/studio/api.ts";

/** What the address says about the table. */
export interface TableState {
  readonly filter: string;
  readonly sort: string;
  readonly descending: boolean;
  /** Sweeps whose members are shown. */
  readonly opened: ReadonlySet<string>;
}

/** A row: a run, or a sweep that stands for its members. */
export type TableRow =
  | { readonly kind: "run"; readonly run: RunSummary; readonly inSweep: boolean }
  | {
      readonly kind: "sweep";
      readonly name: string;
      readonly members: readonly RunSummary[];
      readonly best: RunSummary | undefined;
      readonly isOpen: boolean;
    };

/** A column that can be sorted by. */
export interface Column {
  readonly key: string;
  readonly label: string;
  readonly number?: boolean;
  /** What a run is sorted by; undefined comes last in either direction. */
  readonly value: (run: RunSummary) => string | number | undefined;
}

/** The measure of a run that the table shows: its kind's headline, at the best checkpoint. */
export function headline(
  { kind, best }: RunSummary,
  about: About | undefined,
): { name: string; measure: MeasureInfo; value: number | undefined } | undefined {
  const known = about?.kinds.find(({ name }) => name === kind);
  if (!known) return undefined;
  const name = known.headline;
  return { name, measure: known.measures[name]!, value: best[name] };
}

/** The columns of the table. */
export function columnsOf(about: About | undefined): readonly Column[] {
  return [
    { key: "name", label: "Run", value: ({ name }) => name },
    { key: "experiment", label: "Experiment", value: ({ experiment }) => experiment },
    { key: "system", label: "System", value: ({ system }) => system },
    { key: "seed", label: "Seed", number: true, value: ({ seed }) => seed },
    { key: "state", label: "State", value: ({ state }) => stateOrder.indexOf(state) },
    { key: "step", label: "Steps", number: true, value: ({ step }) => step },
    {
      key: "best",
      label: "Best",
      number: true,
      // Better is larger, whatever the measure.
      value: (run) => {
        const shown = headline(run, about);
        if (shown?.value === undefined) return undefined;
        return shown.measure.better === "higher" ? shown.value : -shown.value;
      },
    },
    { key: "speed", label: "Speed", number: true, value: ({ speed }) => speed ?? undefined },
    { key: "changed", label: "Changed settings", value: ({ changed }) => showChanged(changed) || undefined },
    { key: "updated", label: "Last change", value: ({ updated }) => updated },
  ];
}

const stateOrder: readonly RunSummary["state"][] = [
  "running",
  "finished",
  "interrupted",
  "diverged",
  "failed",
];

/** Changed settings in a line: `batch 64, optimizer.learningRate 0.002`. */
export function showChanged(changed: RunSummary["changed"]): string {
  return Object.entries(changed)
    .map(([key, value]) => `${key.replace(/^(training|system|task)\./, "")} ${value}`)
    .join(", ");
}

/** Whether a run fits the words of a filter: each is in its name, experiment, system, state or changed settings. */
export function fits(run: RunSummary, filter: string): boolean {
  const { name, experiment, system, state, changed, seed } = run;
  const text = `${name} ${experiment} ${system} ${state} seed${seed} ${showChanged(changed)}`.toLowerCase();
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

/** The rows of the table, in order. Members of a sweep stand below it, where it is open or the filter asks for them. */
export function rowsOf(
  runs: Iterable<RunSummary>,
  { filter, sort, descending, opened }: TableState,
  about: About | undefined,
): TableRow[] {
  const column = columnsOf(about).find(({ key }) => key === sort)!;
  const sign = descending ? -1 : 1;
  const compare = (a: RunSummary, b: RunSummary): number => {
    const [first, second] = [column.value(a), column.value(b)];
    if (first === undefined || second === undefined) {
      return Number(first === undefined) - Number(second === undefined);
    }
    if (typeof first === "number" && typeof second === "number") return sign * (first - second);
    return sign * String(first).localeCompare(String(second), "en", { numeric: true });
  };
  const found = [...runs].filter((run) => fits(run, filter)).sort(compare);
  const best = columnsOf(about).find(({ key }) => key === "best")!;
  const sweeps = new Map<string, RunSummary[]>();
  for (const run of found)
    if (run.sweep !== null) sweeps.set(run.sweep, [...(sweeps.get(run.sweep) ?? []), run]);
  const rows: TableRow[] = [];
  const told = new Set<string>();
  for (const run of found) {
    if (run.sweep === null) rows.push({ kind: "run", run, inSweep: false });
    else if (!told.has(run.sweep)) {
      // A sweep stands where its first member stands.
      told.add(run.sweep);
      const members = sweeps.get(run.sweep)!;
      const isOpen = opened.has(run.sweep);
      const leader = members.reduce<RunSummary | undefined>((lead, member) => {
        const [value, before] = [best.value(member), lead && best.value(lead)];
        return value !== undefined && (before === undefined || value > before) ? member : lead;
      }, undefined);
      rows.push({ kind: "sweep", name: run.sweep, members, best: leader, isOpen });
      if (isOpen)
        rows.push(...members.map((member) => ({ kind: "run", run: member, inSweep: true }) as const));
    }
  }
  return rows;
}

/** A measure's value with its unit. */
export function showMeasure({ percent, digits }: MeasureInfo, value: number): string {
  return percent ? `${(100 * value).toFixed(digits)} %` : value.toFixed(digits);
}

/** How long ago, in the largest unit that counts. */
export function age(milliseconds: number): string {
  const units = [
    ["d", 86_400_000],
    ["h", 3_600_000],
    ["min", 60_000],
  ] as const;
  for (const [unit, length] of units) {
    if (milliseconds >= length) return `${Math.floor(milliseconds / length)} ${unit} ago`;
  }
  return "just now";
}

/** What curves can be drawn over. */
export const axes = { step: "steps", tokens: "tokens", hours: "hours" } as const;

/** Names of an x axis. */
export type XAxis = keyof typeof axes;
