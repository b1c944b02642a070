/** `fwm report`: files what runs reached under `results/`, with the conditions, the curves and the paper's numbers. */
import { basename, join } from "node:path";
import { experiments, metarlExperiments } from "../../experiments/index.ts";
import { UsageError } from "../errors.ts";
import type { AnyExperiment } from "../experiment/kinds.ts";
import type { AgentEvaluation } from "../experiment/metarlEvaluate.ts";
import type { MetarlPaper, MetarlSettings } from "../experiment/metarlSettings.ts";
import type { Published } from "../experiment/settings.ts";
import type { Evaluation } from "../inference/evaluate.ts";
import type { RunResult } from "../report/result.ts";
import { command } from "./command.ts";
import { scoreAnswers } from "./eval.ts";
import type { Output } from "./output.ts";
import { file, flag, folder, integer, oneOf, texts } from "./params.ts";
import { publishedFor, refuse, scoreAgent, usualEpisodes } from "./scoreAgent.ts";
import { thousands } from "./table.ts";

/** The `report` command. */
export const reportCommand = command({
  name: "report",
  summary: "Write a run's result file, and curves of several runs as a figure.",
  details:
    "The file holds command, commit, seed, machine, date, settings, curves, every time the run was resumed, the score " +
    "of the best checkpoint on --split, and the published numbers. An existing file of the same run is replaced. The " +
    "figure has the validation accuracy of the runs, or the reward of agents.",
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
    also: texts({ placeholder: "run", help: "a further run for the figure" }),
    figure: file({ help: "SVG file: curves of all runs named" }),
    split: oneOf(["valid", "test", "train"], {
      default: "test",
      help: "what the checkpoint is scored on; valid for answers, train for agents",
    }),
    checkpoint: oneOf(["best", "last"], { help: "which checkpoint is scored; default: best, else last" }),
    batch: integer({ min: 1, help: "answers: rows; default: 1 for test, 128 for valid" }),
    episodes: integer({ min: 1, help: `agents: episodes on every graph; default: ${usualEpisodes}` }),
    curvesOnly: flag({ help: "do not score a checkpoint" }),
    name: file({ placeholder: "name", help: "name of the result file; default: the run folder's" }),
    out: folder({ default: "results", help: "folder of the result files" }),
    threads: integer({ min: 1, help: "threads; default: all cores", env: "FWM_THREADS" }),
  },
  run: async ({ args, options, out, env }) => {
    const { kindOfRun } = await import("../experiment/kinds.ts");
    const { writeFileAtomically } = await import("../store/atomic.ts");
    const { mkdir } = await import("node:fs/promises");
    const kind = await kindOfRun(args.run);
    for (const other of options.also) {
      if ((await kindOfRun(other)) !== kind) {
        throw new UsageError(`--also ${other}: agents and models that answer have no curve in common`);
      }
    }
    if (kind === "metarl") refuse("agents", { batch: options.batch });
    else refuse("models that answer", { episodes: options.episodes });
    const result = await collect(args.run);
    const score = options.curvesOnly ? null : await scoreOf(args.run, kind, options, env, out);
    await mkdir(options.out, { recursive: true });
    const path = join(options.out, `${options.name ?? basename(args.run)}.json`);
    await writeFileAtomically(path, `${JSON.stringify({ ...result, score }, null, 1)}\n`);
    if (options.figure) {
      const all = [args.run, ...options.also];
      const svg = kind === "metarl" ? await rewardCurves(all) : await accuracyCurves(all);
      await writeFileAtomically(options.figure, svg);
    }
    out.result({ path, figure: options.figure ?? null, score }, () => {
      const { experiment, steps, hours } = result;
      const lines = [
        `${path}: ${experiment}, ${thousands(steps)} ${kind === "metarl" ? "episodes" : "steps"}, ${hours.toFixed(2)} hours`,
      ];
      if (score) lines.push(tell(score));
      if (options.figure) lines.push(`figure ${options.figure}`);
      return lines.join("\n");
    });
  },
});

/** Published numbers of either kind of experiment. */
type Paper = NonNullable<AnyExperiment["paper"]>;

/** The definition of an experiment of either kind, where it is one of ours. */
function knownExperiment(name: string): AnyExperiment | undefined {
  return ({ ...experiments, ...metarlExperiments } as Readonly<Record<string, AnyExperiment>>)[name];
}

async function collect(run: string): Promise<RunResult<Paper>> {
  const { collectResult } = await import("../report/result.ts");
  const { readRun } = await import("../store/run-record.ts");
  const { experiment } = await readRun(run);
  const known = knownExperiment(experiment);
  const reportedBy = ["fwm", ...process.argv.slice(2)];
  return collectResult<Paper>(run, { shows: known?.shows ?? experiment, reportedBy, paper: known?.paper });
}

/** A score of either kind. */
type AnyScore = Evaluation | AgentEvaluation;

async function scoreOf(
  run: string,
  kind: "catbabi" | "metarl",
  options: {
    split: "valid" | "test" | "train";
    batch: number | undefined;
    episodes: number | undefined;
    checkpoint: "best" | "last" | undefined;
    threads: number | undefined;
  },
  env: Readonly<Record<string, string | undefined>>,
  out: Output,
): Promise<AnyScore> {
  const { loadModelFolder } = await import("../store/model-folder.ts");
  const { checkpoint } = options;
  const model = await loadModelFolder(run, checkpoint ? { which: checkpoint } : {});
  const score =
    kind === "metarl" ? await scoreAgent(model, options, out) : await scoreAnswers(model, options, env, out);
  // The file is for everybody: where the run lies on this machine is not part of the result.
  return { ...score, model: basename(score.model) };
}

/** Scores the answers of a run's best checkpoint, with progress. */
export async function scoreRun(
  run: string,
  options: { split: "valid" | "test"; batch: number | undefined; threads: number | undefined },
  env: Readonly<Record<string, string | undefined>>,
  out: Output,
): Promise<Evaluation> {
  const score = await scoreAnswers(run, options, env, out);
  return { ...score, model: basename(score.model) };
}

/** A score in a line, beside the paper's. */
function tell(score: AnyScore): string {
  if ("reward" in score) {
    const { split, reward, random, shortestPath, episodes, graphs } = score;
    const paper = publishedFor(score);
    const error = reward.standardError === null ? "" : ` ± ${reward.standardError.toFixed(2)}`;
    return (
      `${split}: mean total reward ${reward.mean.toFixed(2)}${error} in ${thousands(episodes)} episodes on ` +
      `${thousands(graphs)} graphs; random play ${random.mean.toFixed(2)}, graph known ` +
      `${shortestPath.mean.toFixed(2)}` +
      (paper ? `  (paper: ${paper.reward.toFixed(2)})` : "")
    );
  }
  const { accuracy, perplexity, split, questions, experiment } = score;
  const published = (knownExperiment(experiment)?.paper as { accuracy?: number } | undefined)?.accuracy;
  return (
    `${split}: accuracy ${(100 * accuracy).toFixed(2)}% of ${thousands(questions)} questions, ` +
    `perplexity ${perplexity.toFixed(3)}${published ? `  (paper: ${(100 * published).toFixed(2)}%)` : ""}`
  );
}

/** What the lines of runs are called: experiment and seed, and the folder's name where these are not enough. */
function lineNames(
  runs: readonly string[],
  about: readonly { experiment: string; seed: number }[],
): string[] {
  const names = about.map(({ experiment, seed }) => `${experiment}, seed ${seed}`);
  return names.map((name, i) =>
    names.indexOf(name) === names.lastIndexOf(name) ? name : `${name}, ${basename(runs[i]!)}`,
  );
}

async function accuracyCurves(runs: readonly string[]): Promise<string> {
  const { drawFigure } = await import("../report/figure.ts");
  const { stepsBefore } = await import("../report/result.ts");
  const results = (await Promise.all(runs.map(collect))) as RunResult<Published>[];
  const paper = results.find((result) => result.paper)?.paper;
  const names = lineNames(runs, results);
  // A run that began with the weights of another goes on where that one stood.
  const lines = results.map(({ curves, begun }, i) => ({
    name: names[i]!,
    points: (curves.valid ?? []).map(({ step, values }) => ({
      x: stepsBefore(begun) + step,
      y: values.accuracy ?? 0,
    })),
  }));
  const last = Math.max(...lines.flatMap(({ points }) => points.map(({ x }) => x)));
  const theirs = paper?.curve?.filter(({ step }) => step <= last) ?? [];
  return drawFigure({
    title: "Validation accuracy",
    x: "update",
    y: "answers right",
    percent: true,
    lines: [
      ...lines,
      ...(theirs.length > 0
        ? [
            {
              name: "the authors' released run (read off their plot)",
              points: theirs.map(({ step, accuracy }) => ({ x: step, y: accuracy })),
              look: "circles" as const,
            },
          ]
        : []),
    ],
    marks: paper ? [{ name: `paper, test: ${(100 * paper.accuracy).toFixed(2)} %`, y: paper.accuracy }] : [],
  });
}

/** Episodes that the two players of a figure's frame play on every test graph. */
const frameEpisodes = 50;

async function rewardCurves(runs: readonly string[]): Promise<string> {
  const { drawFigure } = await import("../report/figure.ts");
  const { readRewards, rewardFigure } = await import("../report/rewardFigure.ts");
  const { frameReward } = await import("../experiment/metarlEvaluate.ts");
  const { readRun } = await import("../store/run-record.ts");
  const records = await Promise.all(runs.map(readRun));
  const names = lineNames(runs, records);
  const parts = records.map(async ({ experiment, settings }, i) => {
    const { task, training } = settings as MetarlSettings;
    const { random, shortestPath } = await frameReward(
      { task, graphs: training.batch },
      { episodes: frameEpisodes },
    );
    const paper = knownExperiment(experiment)?.paper as MetarlPaper | undefined;
    return {
      name: names[i]!,
      ...(await readRewards(runs[i]!)),
      ...(paper ? { published: { name: `authors, ${experiment}`, curve: paper.curve } } : {}),
      frame: { rules: `${task.rules} rules`, random: random.mean, shortestPath: shortestPath.mean },
    };
  });
  return drawFigure(rewardFigure(await Promise.all(parts)));
}
