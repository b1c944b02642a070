/** `fwm report`: files what runs reached under `results/`, with the conditions, the curves and the paper's numbers. */
import { basename, join, resolve } from "node:path";
import { UsageError } from "../errors.ts";
import type { ReportedRun } from "../experiment/kind.ts";
import { changesLine } from "../report/changed.ts";
import { thousands } from "../report/table.ts";
import { command } from "./command.ts";
import { evaluateWithProgress, evaluationParams } from "./evaluation.ts";
import { figureParams, writeFigure } from "./figure.ts";
import { fileName, flag, folder, oneOf, texts, threadCount } from "./params.ts";
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
    ...evaluationParams(),
    checkpoint: oneOf(["best", "last"], { help: "which checkpoint is evaluated; default: best, else last" }),
    curvesOnly: flag({ help: "do not evaluate a checkpoint" }),
    name: fileName({ help: "name of the result file; default: the run folder's" }),
    out: folder({ default: "results", help: "folder of the result files" }),
    threads: threadCount(),
  },
  run: async ({ args, options, out: output, env }) => {
    const { also, figure, title, width, height, checkpoint, curvesOnly, name, out, threads, ...chosen } =
      options;
    const { loadModelFolder } = await import("../store/modelFolder.ts");
    const { reportedRun } = await import("../experiment/report.ts");
    const reportedBy = ["fwm", ...process.argv.slice(2)];
    const { kind, ...first } = await reportedRun(args.run, reportedBy);
    if (also.length > 0 && !figure && !kind.compare) {
      throw new UsageError("--also: further runs are for a figure", { hint: "say where with --figure" });
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
    for (const written of [path, ...(figure ? [figure] : [])]) await checkWritable(written);
    const { result } = first;
    let score = null;
    if (!curvesOnly) {
      const model = await loadModelFolder(args.run, checkpoint ? { which: checkpoint } : {});
      const options = { ...chosen, split: chosen.split ?? "test" };
      const { evaluation } = await evaluateWithProgress(model, options, { threads, env, out: output });
      // The file is for everybody: where the run lies on this machine is not part of the result.
      score = { ...evaluation, model: basename(evaluation.model) };
    }
    const compared = await kind.compare?.(runs);
    const own = compared && { [compared.name]: compared.rows[0]?.points ?? [] };
    await writeJson(path, { ...result, ...own, score });
    await writeFigure({ figure, title, width, height }, () => kind.figure(runs));
    const rows = compared ? { [compared.name]: compared.rows } : {};
    output.result({ path, figure: figure ?? null, score, ...rows }, () => {
      const changes = changesLine(result.changed ?? {});
      return [
        `${path}: ${result.experiment}, ${thousands(result.steps)} ${kind.unit}s, ${result.hours.toFixed(2)} hours`,
        ...(changes ? [`changed: ${changes}`] : []),
        ...(result.exactSource
          ? []
          : ["† not from clean commits alone: the exact source is not known (exactSource is false)"]),
        ...(score ? [kind.showLine(score, result.paper ?? undefined)] : []),
        ...(figure ? [`figure ${figure}`] : []),
        ...(compared?.rows.some(({ points }) => points.length > 0) ? ["", compared.text] : []),
      ].join("\n");
    });
  },
});
