/** `fwm report`: files what runs reached under `results/`, with the conditions, the curves and the paper's numbers. */
import { basename, join } from "node:path";
import { experiments } from "../../experiments/index.ts";
import { command } from "./command.ts";
import type { Output } from "./output.ts";
import { file, flag, folder, integer, oneOf, texts } from "./params.ts";
import { thousands } from "./table.ts";

/** The `report` command. */
export const reportCommand = command({
  name: "report",
  summary: "Write a run's result file, and curves of several runs as a figure.",
  details:
    "The file holds command, commit, seed, machine, date, settings, curves, the score of the best checkpoint on " +
    "--split, and the published numbers. An existing file of the same run is replaced.",
  examples: [
    {
      line: "fwm report runs/catbabi-qa-fwm-seed1 --split test",
      trial: "fwm report $RUN --split valid --batch 16 --out $EMPTY/results",
    },
    {
      line: "fwm report runs/catbabi-qa-fwm-seed1 --also runs/catbabi-qa-lstm-seed1 --figure results/qa.svg --curves-only",
      trial: "fwm report $RUN --also $RUN --figure $EMPTY/qa.svg --out $EMPTY/results --curves-only",
    },
  ],
  args: { run: folder({ help: "run folder" }) },
  options: {
    also: texts({ placeholder: "run", help: "a further run for the figure" }),
    figure: file({ help: "SVG file: validation accuracy of all runs named" }),
    split: oneOf(["valid", "test"], { default: "test", help: "what the best checkpoint is scored on" }),
    batch: integer({ min: 1, help: "rows; default: 1 for test, 128 for valid" }),
    curvesOnly: flag({ help: "do not score the best checkpoint" }),
    name: file({ placeholder: "name", help: "name of the result file; default: the run folder's" }),
    out: folder({ default: "results", help: "folder of the result files" }),
    threads: integer({ min: 1, help: "threads; default: all cores", env: "FWM_THREADS" }),
  },
  run: async ({ args, options, out, env }) => {
    const { collectResult } = await import("../report/result.ts");
    const { writeFileAtomically } = await import("../store/atomic.ts");
    const { mkdir } = await import("node:fs/promises");
    const reportedBy = ["fwm", ...process.argv.slice(2)];
    const collect = async (path: string) => {
      const { readRun } = await import("../store/run-record.ts");
      const { experiment } = await readRun(path);
      const known = Object.entries(experiments).find(([name]) => name === experiment)?.[1];
      return collectResult(path, { shows: known?.shows ?? experiment, reportedBy, paper: known?.paper });
    };
    const result = await collect(args.run);
    const score = options.curvesOnly ? null : await scoreRun(args.run, options, env, out);
    await mkdir(options.out, { recursive: true });
    const path = join(options.out, `${options.name ?? basename(args.run)}.json`);
    const document = { ...result, score };
    await writeFileAtomically(path, `${JSON.stringify(document, null, 1)}\n`);
    if (options.figure) {
      const all = [result, ...(await Promise.all(options.also.map(collect)))];
      await writeFileAtomically(options.figure, await figureOf(all));
    }
    out.result({ path, figure: options.figure ?? null, score }, () => {
      const lines = [
        `${path}: ${result.experiment}, ${thousands(result.steps)} steps, ${result.hours.toFixed(2)} hours`,
      ];
      if (score) {
        const { accuracy, perplexity, split, questions } = score;
        lines.push(
          `${split}: accuracy ${(100 * accuracy).toFixed(2)}% of ${thousands(questions)} questions, perplexity ${perplexity.toFixed(3)}` +
            (result.paper?.accuracy ? `  (paper: ${(100 * result.paper.accuracy).toFixed(2)}%)` : ""),
        );
      }
      if (options.figure) lines.push(`figure ${options.figure}`);
      return lines.join("\n");
    });
  },
});

/** Scores a run's best checkpoint, with progress. */
export async function scoreRun(
  run: string,
  options: { split: "valid" | "test"; batch: number | undefined; threads: number | undefined },
  env: Readonly<Record<string, string | undefined>>,
  out: Output,
) {
  const { evaluateModel } = await import("../inference/evaluate.ts");
  let progress: ReturnType<typeof out.progress> | undefined;
  try {
    const evaluation = await evaluateModel(run, {
      split: options.split,
      env,
      ...(options.batch ? { batch: options.batch } : {}),
      ...(options.threads ? { threads: options.threads } : {}),
      onWindow(done, total) {
        progress ??= out.progress({
          label: `scoring ${options.split}`,
          total,
          show: thousands,
          every: 10_000,
        });
        progress.update(done, "windows");
      },
    });
    // The file is for everybody: where the run lies on this machine is not part of the result.
    return { ...evaluation, model: basename(evaluation.model) };
  } finally {
    progress?.stop();
  }
}

async function figureOf(
  results: readonly Awaited<ReturnType<typeof import("../report/result.ts").collectResult>>[],
) {
  const { drawFigure } = await import("../report/figure.ts");
  const [first] = results;
  const published = first?.paper?.accuracy;
  return drawFigure({
    title: "Validation accuracy",
    x: "update",
    y: "answers right",
    percent: true,
    lines: results.map(({ experiment, seed, curves }) => ({
      name: `${experiment}, seed ${seed}`,
      points: (curves.valid ?? []).map(({ step, values }) => ({ x: step, y: values.accuracy ?? 0 })),
    })),
    marks: published ? [{ name: `paper, test: ${(100 * published).toFixed(2)} %`, y: published }] : [],
  });
}
