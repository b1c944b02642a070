/** `fwm report`: files what runs reached under `results/`, with the conditions, the curves and the paper's numbers. */
import { basename, join, resolve } from "node:path";
import { metarlExperiments } from "../../experiments/index.ts";
import { UsageError } from "../errors.ts";
import type { AnyExperiment } from "../experiment/kinds.ts";
import type { MetarlExperiment, MetarlPaper, MetarlSettings } from "../experiment/metarlSettings.ts";
import type { Published } from "../experiment/settings.ts";
import { changesLine } from "../report/changed.ts";
import type { FigureSpec } from "../report/figure.ts";
import type { RunResult } from "../report/result.ts";
import type { RewardPoint, RewardRun } from "../report/rewards.ts";
import { command } from "./command.ts";
import { knownExperiment } from "./knownExperiment.ts";
import { file, fileName, flag, folder, integer, oneOf, texts } from "./params.ts";
import { scoreLine, scoreModel } from "./score.ts";
import { usualEpisodes } from "./scoreAgent.ts";
import { table, thousands } from "./table.ts";
import { writeJson, writeResult } from "./writeResult.ts";

/** The `report` command. */
export const reportCommand = command({
  name: "report",
  summary: "Write a run's result file, and curves of several runs as a figure.",
  details:
    "The file holds command, commit, seed, machine, date, settings (and those changed), data, curves, the weights the run began with, every " +
    "time it was resumed, the score of the best checkpoint on --split, and the published numbers. An existing file of " +
    "the same name is replaced. The figure has the validation accuracy of the runs, or the reward of agents, beside " +
    "what the authors published (docs/training.md). The rewards of agents are also a table.",
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
    figure: file({ help: "SVG file: curves of all runs named" }),
    split: oneOf(["valid", "test", "train"], {
      default: "test",
      help: "what the checkpoint is scored on; valid for answers, train for agents",
    }),
    checkpoint: oneOf(["best", "last"], { help: "which checkpoint is scored; default: best, else last" }),
    batch: integer({ min: 1, help: "answers: rows; default: 1 for test, 128 for valid" }),
    episodes: integer({ min: 1, help: `agents: episodes on every graph; default: ${usualEpisodes}` }),
    curvesOnly: flag({ help: "do not score a checkpoint" }),
    name: fileName({ help: "name of the result file; default: the run folder's" }),
    out: folder({ default: "results", help: "folder of the result files" }),
    threads: integer({ min: 1, help: "threads; default: all cores", env: "FWM_THREADS" }),
  },
  run: async ({ args, options: { checkpoint, ...options }, out, env }) => {
    const { kindOfRun } = await import("../experiment/kinds.ts");
    const { loadModelFolder } = await import("../store/modelFolder.ts");
    const kind = await kindOfRun(args.run);
    if (options.also.length > 0 && !options.figure && kind !== "metarl") {
      throw new UsageError("--also: further runs are for a figure", { hint: "say where with --figure" });
    }
    for (const other of options.also) {
      if ((await kindOfRun(other)) !== kind) {
        throw new UsageError(`--also ${other}: agents and models that answer have no curve in common`);
      }
    }
    const runs = [args.run, ...options.also];
    const results = await Promise.all(runs.map(collect));
    const result = results[0]!;
    let score = null;
    if (!options.curvesOnly) {
      const model = await loadModelFolder(args.run, checkpoint ? { which: checkpoint } : {});
      const made = await scoreModel(model, options, env, out);
      // The file is for everybody: where the run lies on this machine is not part of the result.
      score = { ...made, model: basename(made.model) };
    }
    const path = join(options.out, `${options.name ?? basename(resolve(args.run))}.json`);
    const drawn = runs.map((run, i) => ({ run, result: results[i]! }));
    const agents = kind === "metarl" ? await Promise.all(drawn.map((one) => agentRun(one, drawn))) : [];
    const { rewardRows } = await import("../report/rewards.ts");
    const rewards = rewardRows(agents);
    await writeJson(path, { ...result, ...(rewards[0] ? { rewards: rewards[0].points } : {}), score });
    if (options.figure) {
      const { drawFigure } = await import("../report/figure.ts");
      const figure = kind === "metarl" ? await framed(agents, drawn) : await accuracies(drawn);
      await writeResult(options.figure, await drawFigure(figure));
    }
    const told = { path, figure: options.figure ?? null, score, ...(kind === "metarl" ? { rewards } : {}) };
    out.result(told, () => {
      const { experiment, steps, hours, changed } = result;
      const changes = changesLine(changed ?? {});
      const unit = kind === "metarl" ? "episodes" : "steps";
      return [
        `${path}: ${experiment}, ${thousands(steps)} ${unit}, ${hours.toFixed(2)} hours`,
        ...(changes ? [`changed: ${changes}`] : []),
        ...(score ? [scoreLine(score)] : []),
        ...(options.figure ? [`figure ${options.figure}`] : []),
        ...(rewards.length > 0 ? ["", rewardTable(rewards)] : []),
      ].join("\n");
    });
  },
});

/** The rewards on test graphs, an episode of the log in each column. */
function rewardTable(rows: readonly { name: string; points: readonly RewardPoint[] }[]): string {
  const episodes = [...new Set(rows.flatMap(({ points }) => points.map(({ episode }) => episode)))].sort(
    (a, b) => a - b,
  );
  return table([
    ["test reward after episodes", ...episodes],
    ...rows.map(({ name, points }) => [
      name,
      ...episodes.map((episode) => points.find((point) => point.episode === episode)?.test.toFixed(1) ?? ""),
    ]),
  ]).trimEnd();
}

/** A result of either kind of experiment. */
type AnyResult = RunResult<NonNullable<AnyExperiment["paper"]>>;

async function collect(run: string): Promise<AnyResult> {
  const { collectResult } = await import("../report/result.ts");
  const { readRun } = await import("../store/runRecord.ts");
  const { experiment } = await readRun(run);
  const reportedBy = ["fwm", ...process.argv.slice(2)];
  return collectResult<NonNullable<AnyExperiment["paper"]>>(run, {
    known: await knownExperiment(experiment),
    reportedBy,
  });
}

/** A run of a figure. */
interface Drawn {
  readonly run: string;
  readonly result: AnyResult;
}

/** The runs are called by experiment and seed, and by the folder's name where these are not enough. */
async function accuracies(drawn: readonly Drawn[]): Promise<FigureSpec> {
  const { accuracyFigure } = await import("../report/accuracyFigure.ts");
  const names = drawn.map(({ result: { experiment, seed } }) => `${experiment}, seed ${seed}`);
  return accuracyFigure(
    drawn.map(({ run, result }, i) => {
      const [name, folder] = [names[i]!, basename(resolve(run))];
      const isAlone = names.indexOf(name) === names.lastIndexOf(name);
      return { ...(result as RunResult<Published>), name: isAlone ? name : `${name}, ${folder}`, folder };
    }),
  );
}

/** What an agent is called: its experiment, and the folder's name where its runs differ in more than the seed. */
function agentName({ run, result }: Drawn, drawn: readonly Drawn[]): string {
  const changes = ({ changed }: AnyResult): string => changesLine(changed ?? {});
  const isAlone = drawn.every(
    (other) =>
      other.run === run ||
      other.result.experiment !== result.experiment ||
      (other.result.seed !== result.seed && changes(other.result) === changes(result)),
  );
  return isAlone ? result.experiment : `${result.experiment}, ${basename(resolve(run))}`;
}

/** The experiment that stands for the authors' log: of several that share one the first. */
function loggedAs(experiment: string): string {
  const all = Object.entries<MetarlExperiment>(metarlExperiments);
  const paper = all.find(([name]) => name === experiment)?.[1].paper;
  return all.find(([, other]) => other.paper === paper)?.[0] ?? experiment;
}

/** The rewards of a run, and the authors' log of the same agent. */
async function agentRun(one: Drawn, drawn: readonly Drawn[]): Promise<RewardRun> {
  const { readRewards } = await import("../report/rewards.ts");
  const { experiment, paper, seed } = one.result;
  return {
    agent: agentName(one, drawn),
    seed,
    ...(await readRewards(one.run)),
    ...(paper ? { published: { agent: loggedAs(experiment), curve: (paper as MetarlPaper).curve } } : {}),
  };
}

/** Episodes that the players of a figure's frame play on every test graph. */
const frameEpisodes = 50;

/** The figure of agents, framed by the players. */
async function framed(agents: readonly RewardRun[], drawn: readonly Drawn[]): Promise<FigureSpec> {
  const { rewardFigure } = await import("../report/rewardFigure.ts");
  const { frameReward } = await import("../experiment/metarlEvaluate.ts");
  const parts = agents.map(async (agent, i) => {
    const { task, training } = drawn[i]!.result.settings as MetarlSettings;
    const about = { task, graphs: training.batch };
    const players = await frameReward(about, { episodes: frameEpisodes });
    const frame = {
      rules: `${task.rules} rules`,
      random: players.random.mean,
      explorer: players.explorer.mean,
      shortestPath: players.shortestPath.mean,
    };
    return { ...agent, frame };
  });
  return rewardFigure(await Promise.all(parts));
}
