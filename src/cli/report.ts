/** `fwm report`: files what runs reached under `results/`, with the conditions, the curves and the paper's numbers. */
import { basename, join, resolve } from "node:path";
import { DataError, UsageError } from "../errors.ts";
import type { BaseEvaluation, ReportedRun } from "../experiment/kind.ts";
import { curveAxes } from "../experiment/report.ts";
import { changesLine } from "../report/changed.ts";
import type { RunResult } from "../report/result.ts";
import { thousands } from "../report/table.ts";
import { decodeUtf8, parseJson } from "../store/json.ts";
import { readIfPresent } from "../store/read.ts";
import { command } from "./command.ts";
import { type ChosenOptions, evaluateWithProgress, evaluationParams } from "./evaluation.ts";
import { figureParams, svgFile, writeBars, writeFigure } from "./figure.ts";
import { fileName, flag, folder, oneOf, texts, threadCount, value } from "./params.ts";
import { shellLine } from "./shell.ts";
import { checkWritable, writeJson } from "./writeResult.ts";

/** The `report` command. */
export const reportCommand = command({
  name: "report",
  summary: "Write a run's result file, and curves of several runs as a figure.",
  details:
    "The file holds command, commit, seed, machine, date, settings (and those changed), data, curves, the weights the " +
    "run started with, every time it was resumed, the evaluation of the best checkpoint on --split, and the published " +
    "numbers. An existing file of the same name is replaced. The figure has the curves of the runs beside what the " +
    "authors published (docs/training.md). The returns of agents are also a table.",
  examples: [
    {
      line: "fwm report runs/catbabi-qa-fwm-seed1 --split test",
      trial: "fwm report $RUN --split valid --batch 16 --out $EMPTY/results",
    },
    {
      line: "fwm report runs/catbabi-qa-fwm-seed1 --also runs/catbabi-qa-lstm-seed1 --figure results/qa.svg --curves-only",
      trial: "fwm report $RUN --also $RUN --figure $EMPTY/qa.svg --out $EMPTY/results --curves-only",
    },
    {
      line: "fwm report runs/metarl-fwm-seed1 --also runs/metarl-lstm-512-seed1 --figure results/metarl.svg",
      trial:
        "fwm report $AGENT --also $AGENT --figure $EMPTY/metarl.svg --out $EMPTY/results --episodes 2 --json",
    },
  ],
  args: { run: folder({ help: "run folder" }) },
  options: {
    also: texts({ placeholder: "run", help: "a further run for the figure, or the table of agents" }),
    ...figureParams("curves of all runs named"),
    over: oneOf(curveAxes, {
      default: "steps",
      help: "what the figure's curves are over; hours are those spent in training steps",
    }),
    tasks: value(
      {
        placeholder: "file.svg",
        help: "SVG file: bars by task; --also runs as their result files in --out have them",
      },
      svgFile,
    ),
    ...evaluationParams({ onSplit: true }),
    checkpoint: oneOf(["best", "last"], { help: "which checkpoint is evaluated; default: best, else last" }),
    curvesOnly: flag({ help: "do not evaluate a checkpoint" }),
    name: fileName({ help: "name of the result file; default: the run folder's" }),
    out: folder({ default: "results", help: "folder of the result files" }),
    threads: threadCount(),
  },
  run: async ({ args, options, out: output, env }) => {
    const { also, figure, title, width, height, over, tasks, ...others } = options;
    const { checkpoint, curvesOnly, name, out, threads, ...chosen } = others;
    const { figureOver, reportedRun } = await import("../experiment/report.ts");
    const reportedBy = ["fwm", ...process.argv.slice(2)];
    const { kind, ...first } = await reportedRun(args.run, reportedBy);
    if (also.length > 0 && !figure && !tasks && !kind.compare) {
      throw new UsageError("--also: further runs are for a figure", { hint: "say where with --figure" });
    }
    if (tasks !== undefined && !kind.bars) {
      throw new UsageError(`--tasks: experiments of the kind ${kind.name} have no tasks to tell apart`);
    }
    if (tasks !== undefined && curvesOnly) {
      throw new UsageError("--tasks needs an evaluation: leave out --curves-only");
    }
    const runs: ReportedRun[] = [first];
    for (const other of also) {
      const { kind: its, ...run } = await reportedRun(other, reportedBy);
      if (its !== kind) {
        throw new UsageError(`--also ${other}: runs of ${kind.name} and ${its.name} have no curve in common`);
      }
      runs.push(run);
    }
    const path = join(out, `${name ?? basename(resolve(args.run))}.json`);
    for (const written of [path, figure, tasks]) if (written) await checkWritable(written);
    const beside = tasks === undefined ? [] : await Promise.all(also.map((run) => reportedScore(out, run)));
    // What cannot be drawn is found before an evaluation that takes hours.
    const drawn = figure && (await figureOver(kind, runs, over));
    const { result } = first;
    let score = null;
    if (!curvesOnly) {
      const options = { ...chosen, split: chosen.split ?? "test", checkpoint };
      score = await scoreOf(args.run, options, { threads, env, out: output });
    }
    const compared = await kind.compare?.(runs);
    const part = compared && { [compared.name]: compared.rows[0]?.points ?? [] };
    await writeJson(path, { ...result, ...part, score });
    if (drawn) await writeFigure({ figure, title, width, height }, () => drawn);
    const own = { name: result.experiment, evaluation: score as unknown };
    await writeBars(tasks, () => kind.bars!([own, ...beside]));
    const rows = compared ? { [compared.name]: compared.rows } : {};
    output.result({ path, figure: figure ?? null, tasks: tasks ?? null, score, ...rows }, () => {
      const changes = changesLine(result.changed ?? {});
      return [
        `${path}: ${result.experiment}, ${thousands(result.steps)} ${kind.unit}s, ${result.hours.toFixed(2)} hours`,
        ...(changes ? [`changed: ${changes}`] : []),
        ...(result.exactSource
          ? []
          : ["† not from clean commits alone: the exact source is not known (exactSource is false)"]),
        ...(score ? [kind.showLine(score, result.paper ?? undefined)] : []),
        ...(result.weights === null ? [] : [showCounts(result)]),
        ...(figure ? [`figure ${figure}`] : []),
        ...(tasks ? [`figure ${tasks}`] : []),
        ...(compared?.rows.some(({ points }) => points.length > 0) ? ["", compared.text] : []),
      ].join("\n");
    });
  },
});

/** Evaluates a run's checkpoint for its result file, which is for everybody: where the run lies is not part of it. */
export async function scoreOf(
  run: string,
  { checkpoint, ...options }: ChosenOptions & { readonly checkpoint?: "best" | "last" | undefined },
  context: Parameters<typeof evaluateWithProgress>[2],
): Promise<BaseEvaluation> {
  const { loadModelFolder } = await import("../store/modelFolder.ts");
  const model = await loadModelFolder(run, checkpoint ? { which: checkpoint } : {});
  const { evaluation } = await evaluateWithProgress(model, options, context);
  return { ...evaluation, model: basename(evaluation.model) };
}

/** The evaluation in a run's result file. */
async function reportedScore(results: string, run: string): Promise<{ name: string; evaluation: unknown }> {
  const path = join(results, `${basename(resolve(run))}.json`);
  const bytes = await readIfPresent(path);
  if (!bytes) {
    throw new DataError(`--tasks: ${path}: the run has no result file yet`, {
      hint: shellLine("fwm", "report", run),
    });
  }
  const { experiment, score } = parseJson(decodeUtf8(bytes, path), { file: path }) as {
    experiment?: string;
    score?: unknown;
  };
  return { name: experiment ?? run, evaluation: score };
}

/** The size of a system in a line. */
export function showCounts({
  weights,
  stateVariables,
}: Pick<RunResult, "weights" | "stateVariables">): string {
  const state = stateVariables === null ? "" : `, ${thousands(stateVariables)} state variables per row`;
  return `${thousands(weights ?? 0)} weights${state}`;
}
