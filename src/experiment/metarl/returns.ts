/** What agents had learned after so many episodes: the returns of a run's log, ours beside the authors'. */
import { basename, join, resolve } from "node:path";
import { changesLine } from "../../report/changed.ts";
import { metricsFile, readMetrics } from "../../store/metrics.ts";
import type { ReportedRun } from "../kind.ts";
import type { MetarlPaper } from "./settings.ts";

/** A point is the mean of what was logged within so many episodes of it: 11 lines of the authors' log. */
export const smoothing = 275;

/** The episodes of a table, as far as a run went; its last evaluation is added. */
const milestones = [1_000, 2_500, 5_000, 7_500, 10_000, 15_000, 20_000, 25_000, 50_000, 100_000, 200_000];

/** A curve. */
export type Points = readonly { readonly x: number; readonly y: number }[];

/** Mean return after so many episodes, on training graphs and on graphs that are not trained on. */
export interface ReturnPoint {
  readonly episode: number;
  readonly train: number;
  readonly heldOut: number;
}

/** A run of an agent. */
export interface AgentRun {
  /** Runs of one agent differ in the seed only. */
  readonly agent: string;
  readonly seed: number;
  readonly train: Points;
  readonly heldOut: Points;
  /** Points of the authors' log, and the agent it is the log of. */
  readonly published?: { readonly agent: string; readonly curve: readonly ReturnPoint[] };
}

/** The returns of runs that are shown side by side. */
export async function agentRuns(runs: readonly ReportedRun<MetarlPaper>[]): Promise<AgentRun[]> {
  return Promise.all(
    runs.map(async (run) => {
      const { experiment, paper, seed } = run.result;
      const first = runs.find(({ result }) => JSON.stringify(result.paper) === JSON.stringify(paper))!;
      const curve = paper?.curve.map(({ episode, train, test }) => ({ episode, train, heldOut: test }));
      return {
        agent: agentName(run, runs),
        seed,
        ...(await readReturns(run.folder)),
        // Several experiments may share a log: it stands there once, under the first of them.
        ...(curve ? { published: { agent: first.result.experiment ?? experiment, curve } } : {}),
      };
    }),
  );
}

/** What an agent is called: its experiment, and the folder's name where its runs differ in more than the seed. */
function agentName(run: ReportedRun<MetarlPaper>, runs: readonly ReportedRun<MetarlPaper>[]): string {
  const changes = ({ result }: ReportedRun<MetarlPaper>): string => changesLine(result.changed ?? {});
  const isAlone = runs.every(
    (other) =>
      other.folder === run.folder ||
      other.result.experiment !== run.result.experiment ||
      (other.result.seed !== run.result.seed && changes(other) === changes(run)),
  );
  const { experiment } = run.result;
  return isAlone ? experiment : `${experiment}, ${basename(resolve(run.folder))}`;
}

/** The returns a run logged, smoothed. */
async function readReturns(folder: string): Promise<{ train: Points; heldOut: Points }> {
  const metrics = await readMetrics(join(folder, metricsFile));
  const points = (wanted: string): Points =>
    smoothed(
      metrics
        .filter(({ split, values }) => split === wanted && values.return !== undefined)
        .map(({ step, values }) => ({ x: step, y: values.return! })),
      smoothing,
    );
  return { train: points("train"), heldOut: points("valid") };
}

/** Every point as the mean of those within `reach` of it. */
export function smoothed(points: Points, reach: number): Points {
  return points.map(({ x }) => {
    const around = points.filter((other) => Math.abs(other.x - x) <= reach);
    return { x, y: around.reduce((sum, { y }) => sum + y, 0) / around.length };
  });
}

/** At most so many points of a curve, evenly, the last among them. */
export function thinned(points: Points, most: number): Points {
  const every = Math.max(1, Math.ceil(points.length / most));
  return points.filter((_, i) => (points.length - 1 - i) % every === 0);
}

/** A run's returns at the milestones it was evaluated at, and at its end. */
export function returnPoints({ train, heldOut }: Pick<AgentRun, "train" | "heldOut">): ReturnPoint[] {
  const learned = new Map(train.map(({ x, y }) => [x, y]));
  const last = heldOut.at(-1)?.x;
  const rounded = (value: number): number => Number(value.toPrecision(6));
  return heldOut
    .filter(({ x }) => learned.has(x) && (milestones.includes(x) || x === last))
    .map(({ x, y }) => ({ episode: x, train: rounded(learned.get(x)!), heldOut: rounded(y) }));
}

/** The authors' logs of the agents of runs, each once. */
export function authorsLogs(
  runs: readonly AgentRun[],
): { agent: string; curve: readonly ReturnPoint[]; beside: string }[] {
  const logs = runs.flatMap(({ agent, published }) => (published ? [{ ...published, beside: agent }] : []));
  return logs.filter(({ agent }, i) => logs.findIndex((log) => log.agent === agent) === i);
}

/** The rows of a table: every run, then the authors' logs as far as the runs went. */
export function returnRows(runs: readonly AgentRun[]): { name: string; points: readonly ReturnPoint[] }[] {
  const ours = runs.map((run) => ({ name: `${run.agent}, seed ${run.seed}`, points: returnPoints(run) }));
  const most = Math.max(0, ...ours.flatMap(({ points }) => points.map(({ episode }) => episode)));
  const theirs = authorsLogs(runs).map(({ agent, curve }) => ({
    name: `authors, ${agent}`,
    points: curve.filter(({ episode }) => episode > 0 && episode <= most),
  }));
  return [...ours, ...theirs.filter(({ points }) => points.length > 0)];
}
