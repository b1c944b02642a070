/** `fwm runs`: the runs in a folder, how each stands and how good it is. */
import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { UsageError } from "../errors.ts";
import { metricsFile } from "../store/metrics.ts";
import { listRuns, type RunListing } from "../store/run-record.ts";
import { command } from "./command.ts";
import { folder, oneOf } from "./params.ts";
import { table, thousands } from "./table.ts";

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
  readonly created: string;
  readonly updated: string;
  readonly note: string | null;
}

const orders = {
  created: (a: RunLine, b: RunLine) => b.created.localeCompare(a.created),
  name: (a: RunLine, b: RunLine) => a.name.localeCompare(b.name, "en", { numeric: true }),
  loss: (a: RunLine, b: RunLine) => (a.bestLoss ?? Infinity) - (b.bestLoss ?? Infinity),
  accuracy: (a: RunLine, b: RunLine) => (b.bestAccuracy ?? -1) - (a.bestAccuracy ?? -1),
} as const;

/** The `runs` command. */
export const runsCommand = command({
  name: "runs",
  summary: "List the runs in a folder.",
  details: "Best is the validation loss that decides which checkpoint is the best, and the accuracy there.",
  examples: [
    { line: "fwm runs", trial: "fwm runs $EMPTY" },
    { line: "fwm runs runs --sort accuracy --json", trial: "fwm runs $EMPTY --sort accuracy --json" },
  ],
  args: { folder: folder({ default: "runs", help: "folder that holds run folders" }) },
  options: {
    sort: oneOf(Object.keys(orders) as (keyof typeof orders)[], {
      default: "created",
      help: "newest, name, lowest loss or highest accuracy first",
    }),
  },
  run: async ({ args, options, out }) => {
    const { runs, damaged } = await listRuns(args.folder);
    if (
      runs.length === 0 &&
      damaged.some(({ path }) => path.startsWith(join(resolve(args.folder), "checkpoint-")))
    ) {
      throw new UsageError(`${args.folder}: this is a run; give the folder that holds it`, {
        hint: `fwm runs ${join(args.folder, "..")}`,
      });
    }
    const lines = await Promise.all(runs.map(describe));
    lines.sort((a, b) => orders[options.sort](a, b) || orders.name(a, b));
    for (const { problem } of damaged) out.warn(problem.split("\n")[0]!);
    out.result({ folder: resolve(args.folder), runs: lines, damaged }, () =>
      lines.length === 0 ? `no runs in ${resolve(args.folder)}` : show(lines),
    );
  },
});

async function describe({ name, path, record, state }: RunListing): Promise<RunLine> {
  const { experiment, seed, step, created, updated, note, summary } = record;
  const numeric = (value: unknown) => (typeof value === "number" ? value : null);
  const bestStep = numeric(summary.bestStep);
  return {
    name,
    path,
    experiment,
    seed,
    state,
    step,
    steps: numeric((record.settings.training as { steps?: unknown } | undefined)?.steps),
    bestStep,
    bestLoss: numeric(summary.bestLoss),
    bestAccuracy:
      numeric(summary.bestAccuracy) ?? (bestStep === null ? null : await accuracyAt(path, bestStep)),
    created,
    updated,
    note,
  };
}

/** The validation accuracy at a step. One line is sought, the others are not parsed: a list has to be quick. */
async function accuracyAt(run: string, step: number): Promise<number | null> {
  const text = await readFile(join(run, metricsFile), "utf8").catch(() => "");
  const start = text.lastIndexOf(`{"step":${step},"split":"valid"`);
  if (start < 0) return null;
  try {
    const end = text.indexOf("\n", start);
    const { values } = JSON.parse(text.slice(start, end < 0 ? undefined : end)) as {
      values: { accuracy?: unknown };
    };
    return typeof values.accuracy === "number" ? values.accuracy : null;
  } catch {
    return null;
  }
}

function show(lines: readonly RunLine[]): string {
  return table([
    ["run", "experiment", "state", "step", "best loss", "accuracy", "at step", "last change"],
    ...lines.map((line) => [
      line.name,
      line.experiment,
      line.state,
      line.steps === null ? thousands(line.step) : `${thousands(line.step)}/${thousands(line.steps)}`,
      line.bestLoss?.toFixed(4) ?? "-",
      line.bestAccuracy === null ? "-" : `${(100 * line.bestAccuracy).toFixed(2)}%`,
      line.bestStep === null ? "-" : thousands(line.bestStep),
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
