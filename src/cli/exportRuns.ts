/** `fwm export-runs`: runs and sweeps for other programs, as CSV or JSON lines, or to an MLflow server. */
import { existsSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { DataError, UsageError } from "../errors.ts";
import { effectiveState, listRuns, type RunListing, readRun, runFile } from "../store/runRecord.ts";
import { command } from "./command.ts";
import { folder, oneOf, text } from "./params.ts";

/** The `export-runs` command. */
export const exportRunsCommand = command({
  name: "export-runs",
  summary: "Write the metrics of runs as CSV or JSON lines, or log them to MLflow.",
  details:
    "Takes a run folder, a sweep, or a folder of both. Without --mlflow the rows go to standard output: --rows metrics " +
    "has one per measured value, --rows runs one per run with its settings. --json is the same as --format jsonl.",
  examples: [
    { line: "fwm export-runs runs/catbabi-qa-fwm-seed1", trial: "fwm export-runs $RUN" },
    {
      line: "fwm export-runs runs/ablation --rows runs --format jsonl",
      trial: "fwm export-runs $RUN --rows runs --format jsonl",
    },
    {
      line: "fwm export-runs runs --mlflow http://127.0.0.1:5000",
      trial: "fwm export-runs --help",
    },
  ],
  args: { folder: folder({ default: "runs", help: "a run, a sweep, or a folder that holds them" }) },
  options: {
    rows: oneOf(["metrics", "runs"], { default: "metrics", help: "what a row is" }),
    format: oneOf(["csv", "jsonl"], { default: "csv", help: "how rows are written" }),
    mlflow: text({ placeholder: "url", help: "log the runs to this MLflow tracking server" }),
    experiment: text({ help: "with --mlflow: name of the MLflow experiment; default: each run's own" }),
  },
  run: async ({ args, options, origins, out, env }) => {
    if (options.mlflow === undefined && options.experiment !== undefined) {
      throw new UsageError("--experiment goes with --mlflow");
    }
    if (options.mlflow !== undefined && (origins.rows === "flag" || origins.format === "flag")) {
      throw new UsageError("--rows and --format are for standard output", { hint: "leave --mlflow out" });
    }
    const runs = await runsIn(args.folder, (problem) => out.warn(problem));
    if (options.mlflow !== undefined) {
      const { exportToMlflow, mlflowAddress } = await import("../report/mlflow.ts");
      const address = mlflowAddress(options.mlflow, env);
      const { experiment } = options;
      const bar = out.progress({ label: "logging", total: runs.length, show: String, every: 10_000 });
      let done = 0;
      const logged = await exportToMlflow(address, runs, {
        ...(experiment === undefined ? {} : { experiment }),
        onRun: ({ name }) => bar.update(++done, name),
      }).finally(() => bar.stop());
      out.result(
        { server: address.url.origin, ...logged },
        `${logged.runs} runs logged to ${address.url.origin}`,
      );
      return;
    }
    const { csvLine, jsonCells, metricColumns, metricRows, runRow } = await import("../report/exportRows.ts");
    const isCsv = options.format === "csv" && !out.json;
    const ofRuns = options.rows === "runs" ? runs.map(runRow) : undefined;
    const columns = ofRuns ? [...new Set(ofRuns.flatMap((row) => Object.keys(row)))] : metricColumns;
    if (isCsv) out.record(undefined, csvLine(columns));
    for (const [i, run] of runs.entries()) {
      for (const row of ofRuns ? [ofRuns[i]!] : await metricRows(run)) {
        out.record(jsonCells(row), () =>
          isCsv ? csvLine(columns.map((column) => row[column])) : JSON.stringify(jsonCells(row)),
        );
      }
    }
  },
});

/** The runs that a path stands for: one, or all in a folder. */
async function runsIn(path: string, warn: (problem: string) => void): Promise<readonly RunListing[]> {
  if (existsSync(join(path, runFile))) {
    const record = await readRun(path);
    return [{ name: basename(resolve(path)), path: resolve(path), record, state: effectiveState(record) }];
  }
  if (!existsSync(path))
    throw new DataError(`${resolve(path)}: no such folder`, { hint: "give a run or a sweep" });
  const { runs, damaged } = await listRuns(path);
  for (const { problem } of damaged) warn(problem.split("\n")[0]!);
  if (runs.length === 0)
    throw new DataError(`${resolve(path)}: no runs in it`, { hint: "give a run or a sweep" });
  return runs;
}
