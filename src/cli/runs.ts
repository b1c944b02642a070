/** `fwm runs`: the runs in a folder, how each stands and how good it is. */
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { DataError, UsageError } from "../errors.ts";
import type { Measure } from "../experiment/kind.ts";
import { allKinds, kindOfRecord } from "../experiment/registry.ts";
import { showMeasure, table, thousands } from "../report/table.ts";
import { listRuns, type RunListing, runFile } from "../store/runRecord.ts";
import { command } from "./command.ts";
import { folder, oneOf } from "./params.ts";
import { shellLine } from "./shell.ts";

/** A run as a line of the list. */
interface RunLine {
  readonly name: string;
  readonly path: string;
  readonly experiment: string;
  readonly seed: number;
  readonly state: string;
  readonly step: number;
  /** Steps the run is to make, where its settings say. */
  readonly steps: number | null;
  readonly bestStep: number | null;
  /** The measures of its kind at the best evaluation, and at the last one. */
  readonly best: Readonly<Record<string, number>>;
  readonly last: Readonly<Record<string, number>>;
  readonly created: string;
  readonly updated: string;
  readonly note: string | null;
}

/** The measures of all kinds by name; of those that share one, the first kind's says how it is shown. */
function allMeasures(): Record<string, Measure> {
  const all: Record<string, Measure> = {};
  for (const { measures } of allKinds()) {
    for (const [name, measure] of Object.entries(measures)) all[name] ??= measure;
  }
  return all;
}

/** Orders of the list: newest, by name, or the best value of a measure first. */
function orders(): Record<string, (a: RunLine, b: RunLine) => number> {
  const byMeasure = Object.entries(allMeasures()).map(([name, { better }]) => {
    const sign = better === "higher" ? -1 : 1;
    const worst = Number.POSITIVE_INFINITY;
    const rank = ({ best }: RunLine): number => (best[name] === undefined ? worst : sign * best[name]);
    // Two runs without the measure are alike: infinities have no difference.
    return [name, (a: RunLine, b: RunLine) => rank(a) - rank(b) || 0] as const;
  });
  return {
    created: (a, b) => b.created.localeCompare(a.created),
    name: (a, b) => a.name.localeCompare(b.name, "en", { numeric: true }),
    ...Object.fromEntries(byMeasure),
  };
}

/** The `runs` command. */
export const runsCommand = command({
  name: "runs",
  summary: "List the runs in a folder.",
  details:
    "Shows the measures of the best checkpoint by validation: loss and accuracy on catbAbI, the return of agents. " +
    "Members of a sweep are listed as <sweep>/<member>.",
  examples: [
    { line: "fwm runs", trial: "fwm runs $EMPTY" },
    { line: "fwm runs runs --sort accuracy --json", trial: "fwm runs $EMPTY --sort accuracy --json" },
  ],
  args: { folder: folder({ default: "runs", help: "folder that holds run folders, or sweeps" }) },
  options: {
    sort: oneOf(Object.keys(orders()), {
      default: "created",
      help: "newest first, by name, or the best by a measure",
    }),
  },
  run: async ({ args, options, out }) => {
    if (existsSync(join(args.folder, runFile))) {
      throw new UsageError(`${args.folder}: this is a run; give the folder that holds it`, {
        hint: shellLine("fwm", "runs", join(args.folder, "..")),
      });
    }
    if (args.folder !== "runs" && !existsSync(args.folder)) {
      throw new DataError(`${resolve(args.folder)}: no such folder`, {
        hint: "give the folder that holds runs",
      });
    }
    const { runs, damaged } = await listRuns(args.folder);
    const lines = runs.map(describe);
    const { name: byName, [options.sort]: order } = orders();
    lines.sort((a, b) => order!(a, b) || byName!(a, b));
    for (const { problem } of damaged) out.warn(problem.split("\n")[0]!);
    out.result({ folder: resolve(args.folder), runs: lines, damaged }, () =>
      lines.length === 0 ? `no runs in ${resolve(args.folder)}` : show(lines, out.tableWidth),
    );
  },
});

function describe({ name, path, record, state }: RunListing): RunLine {
  const { experiment, seed, step, created, updated, note, summary, settings } = record;
  const kind = kindOfRecord(record);
  const values = (which: string): Record<string, number> =>
    Object.fromEntries(
      Object.keys(kind?.measures ?? {}).flatMap((measure) => {
        const value = summary[`${which}.${measure}`];
        return typeof value === "number" ? [[measure, value] as const] : [];
      }),
    );
  return {
    name,
    path,
    experiment,
    seed,
    state,
    step,
    steps: numberAt(settings, kind?.flags.steps),
    bestStep: typeof summary.bestStep === "number" ? summary.bestStep : null,
    best: values("best"),
    last: values("last"),
    created,
    updated,
    note,
  };
}

/** The number at a path such as `training.steps`, if there is one. */
function numberAt(settings: Readonly<Record<string, unknown>>, path = ""): number | null {
  const value = path
    .split(".")
    .reduce<unknown>((at, key) => (at as Readonly<Record<string, unknown>> | undefined)?.[key], settings);
  return typeof value === "number" ? value : null;
}

/** Columns between step and age: the measures that some run has. */
function show(lines: readonly RunLine[], width: number): string {
  const measures = Object.entries(allMeasures()).filter(([name]) =>
    lines.some(({ best }) => best[name] !== undefined),
  );
  const shown = ([name, measure]: [string, Measure], values: RunLine["best"]): string =>
    values[name] === undefined ? "-" : showMeasure(measure, values[name]);
  return table(
    [
      [
        "run",
        "experiment",
        "state",
        "step",
        ...measures.map(([, { label }]) => `best ${label}`),
        "at step",
        "last change",
      ],
      ...lines.map((line) => [
        line.name,
        line.experiment,
        line.state,
        line.steps === null ? thousands(line.step) : `${thousands(line.step)}/${thousands(line.steps)}`,
        ...measures.map((measure) => shown(measure, line.best)),
        line.bestStep === null ? "-" : thousands(line.bestStep),
        age(Date.now() - Date.parse(line.updated)),
      ]),
    ],
    width,
  );
}

/** How long ago, in the largest unit that counts. */
function age(milliseconds: number): string {
  const units = [
    ["day", 86_400_000],
    ["hour", 3_600_000],
    ["minute", 60_000],
  ] as const;
  for (const [unit, length] of units) {
    const count = Math.floor(milliseconds / length);
    if (count >= 1) return `${count} ${unit}${count === 1 ? "" : "s"} ago`;
  }
  return "just now";
}
