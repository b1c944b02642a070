/** `fwm runs`: the runs in a folder, how each stands and how good it is. */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { DataError, UsageError } from "../errors.ts";
import { metricsFile } from "../store/metrics.ts";
import { listRuns, type RunListing, runFile } from "../store/runRecord.ts";
import { command } from "./command.ts";
import { folder, oneOf } from "./params.ts";
import { percent, table, thousands } from "./table.ts";

/** A run as a line of the list. */
interface RunLine {
  readonly name: string;
  readonly path: string;
  readonly experiment: string;
  readonly seed: number;
  readonly state: string;
  readonly step: number;
  /** Updates the run is to make, where its settings say. */
  readonly steps: number | null;
  readonly bestStep: number | null;
  readonly bestLoss: number | null;
  readonly bestAccuracy: number | null;
  /** Of an agent: mean total reward of the test episode after its best checkpoint, and of the last one. */
  readonly testReward: number | null;
  readonly lastReward: number | null;
  readonly created: string;
  readonly updated: string;
  readonly note: string | null;
}

const orders = {
  created: (a: RunLine, b: RunLine) => b.created.localeCompare(a.created),
  name: (a: RunLine, b: RunLine) => a.name.localeCompare(b.name, "en", { numeric: true }),
  loss: (a: RunLine, b: RunLine) => (a.bestLoss ?? Infinity) - (b.bestLoss ?? Infinity),
  accuracy: (a: RunLine, b: RunLine) => (b.bestAccuracy ?? -1) - (a.bestAccuracy ?? -1),
  reward: (a: RunLine, b: RunLine) => (b.testReward ?? -Infinity) - (a.testReward ?? -Infinity) || 0,
} as const;

/** The `runs` command. */
export const runsCommand = command({
  name: "runs",
  summary: "List the runs in a folder.",
  details:
    "Best is the validation loss that decides which checkpoint is the best, and the accuracy there. Of agents the " +
    "reward of the test episode at the best checkpoint is shown, and of the last test episode. Members of a sweep are " +
    "listed as <sweep>/<member>.",
  examples: [
    { line: "fwm runs", trial: "fwm runs $EMPTY" },
    { line: "fwm runs runs --sort accuracy --json", trial: "fwm runs $EMPTY --sort accuracy --json" },
  ],
  args: { folder: folder({ default: "runs", help: "folder that holds run folders, or sweeps" }) },
  options: {
    sort: oneOf(Object.keys(orders) as (keyof typeof orders)[], {
      default: "created",
      help: "newest, name, lowest loss, highest accuracy or highest test reward first",
    }),
  },
  run: async ({ args, options, out }) => {
    if (existsSync(join(args.folder, runFile))) {
      throw new UsageError(`${args.folder}: this is a run; give the folder that holds it`, {
        hint: `fwm runs ${join(args.folder, "..")}`,
      });
    }
    if (args.folder !== "runs" && !existsSync(args.folder)) {
      throw new DataError(`${resolve(args.folder)}: no such folder`, {
        hint: "give the folder that holds runs",
      });
    }
    const { runs, damaged } = await listRuns(args.folder);
    const lines = await Promise.all(runs.map(describe));
    lines.sort((a, b) => orders[options.sort](a, b) || orders.name(a, b));
    for (const { problem } of damaged) out.warn(problem.split("\n")[0]!);
    out.result({ folder: resolve(args.folder), runs: lines, damaged }, () =>
      lines.length === 0 ? `no runs in ${resolve(args.folder)}` : show(lines),
    );
  },
});

async function describe({ name, path, record, state }: RunListing): Promise<RunLine> {
  const { experiment, seed, step, created, updated, note, summary, settings } = record;
  const numeric = (value: unknown) => (typeof value === "number" ? value : null);
  const bestStep = numeric(summary.bestStep);
  const agent = (settings.task as { name?: unknown } | undefined)?.name === "metarl";
  const bestAccuracy = numeric(summary.bestAccuracy);
  const metrics =
    agent || bestAccuracy === null ? await readFile(join(path, metricsFile), "utf8").catch(() => "") : "";
  const best = (split: string, value: string) =>
    bestStep === null ? null : valueIn(metrics, `{"step":${bestStep},"split":"${split}"`, value);
  return {
    name,
    path,
    experiment,
    seed,
    state,
    step,
    steps: numeric((settings.training as { steps?: unknown } | undefined)?.steps),
    bestStep,
    bestLoss: numeric(summary.bestLoss),
    bestAccuracy: bestAccuracy ?? best("valid", "accuracy"),
    testReward: agent ? best("test", "reward") : null,
    lastReward: agent ? valueIn(metrics, '"split":"test"', "reward") : null,
    created,
    updated,
    note,
  };
}

/** A value of the last line that has `mark`. The other lines are not parsed: a list has to be quick. */
function valueIn(metrics: string, mark: string, name: string): number | null {
  const at = metrics.lastIndexOf(mark);
  if (at < 0) return null;
  const end = metrics.indexOf("\n", at);
  const line = metrics.slice(metrics.lastIndexOf("\n", at) + 1, end < 0 ? undefined : end);
  try {
    const { values } = JSON.parse(line) as { values: Readonly<Record<string, unknown>> };
    return typeof values[name] === "number" ? values[name] : null;
  } catch {
    return null;
  }
}

/** The columns between step and age: those that some run has something in. */
const measures: readonly {
  readonly head: string;
  readonly of: (line: RunLine) => string | undefined;
}[] = [
  { head: "best loss", of: ({ bestLoss }) => bestLoss?.toFixed(4) },
  {
    head: "accuracy",
    of: ({ bestAccuracy }) => (bestAccuracy === null ? undefined : percent(bestAccuracy)),
  },
  { head: "test reward", of: ({ testReward }) => testReward?.toFixed(2) },
  { head: "at step", of: ({ bestStep }) => (bestStep === null ? undefined : thousands(bestStep)) },
  { head: "last reward", of: ({ lastReward }) => lastReward?.toFixed(2) },
];

function show(lines: readonly RunLine[]): string {
  const shown = measures.filter(({ of }) => lines.some((line) => of(line) !== undefined));
  return table([
    ["run", "experiment", "state", "step", ...shown.map(({ head }) => head), "last change"],
    ...lines.map((line) => [
      line.name,
      line.experiment,
      line.state,
      line.steps === null ? thousands(line.step) : `${thousands(line.step)}/${thousands(line.steps)}`,
      ...shown.map(({ of }) => of(line) ?? "-"),
      age(Date.now() - Date.parse(line.updated)),
    ]),
  ]);
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
