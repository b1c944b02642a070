/** What agents had learned after so many episodes: the rewards of a run's log, ours beside the authors'. */
import { join } from "node:path";
import { metricsFile, readMetrics } from "../store/metrics.ts";

/** Lines of the log that a point is the mean of, as in the authors' table. */
export const neighbours = 11;

/** The episodes of a table, as far as a run went; its last line of the log is added. */
const milestones = [1_000, 2_500, 5_000, 7_500, 10_000, 15_000, 20_000, 25_000, 50_000, 100_000, 200_000];

/** A curve. */
export type Points = readonly { readonly x: number; readonly y: number }[];

/** Mean total reward after so many episodes, on training and test graphs. */
export interface RewardPoint {
  readonly episode: number;
  readonly train: number;
  readonly test: number;
}

/** A run of an agent. */
export interface RewardRun {
  /** Runs of one agent differ in the seed only. */
  readonly agent: string;
  readonly seed: number;
  readonly train: Points;
  readonly test: Points;
  /** Points of the authors' log, and the agent it is the log of. */
  readonly published?: { readonly agent: string; readonly curve: readonly RewardPoint[] };
}

/** The rewards a run logged, each the mean of the lines around it. */
export async function readRewards(folder: string): Promise<{ train: Points; test: Points }> {
  const metrics = await readMetrics(join(folder, metricsFile));
  const points = (wanted: string): Points =>
    smoothed(
      metrics
        .filter(({ split, values }) => split === wanted && values.reward !== undefined)
        .map(({ step, values }) => ({ x: step, y: values.reward! })),
      neighbours,
    );
  return { train: points("train"), test: points("test") };
}

/** Every point as the mean of so many around it, itself in the middle; at the ends of those there are. */
export function smoothed(points: Points, count: number): Points {
  const side = (count - 1) / 2;
  return points.map(({ x }, i) => {
    const around = points.slice(Math.max(0, i - side), i + side + 1);
    return { x, y: around.reduce((sum, { y }) => sum + y, 0) / around.length };
  });
}

/** At most so many points of a curve, evenly, the last among them. */
export function thinned(points: Points, most: number): Points {
  const every = Math.max(1, Math.ceil(points.length / most));
  return points.filter((_, i) => (points.length - 1 - i) % every === 0);
}

/** A run's rewards at the milestones its log has a line of, and at its end. */
export function rewardPoints({ train, test }: Pick<RewardRun, "train" | "test">): RewardPoint[] {
  const learned = new Map(train.map(({ x, y }) => [x, y]));
  const last = test.at(-1)?.x;
  return test
    .filter(({ x }) => learned.has(x) && (milestones.includes(x) || x === last))
    .map(({ x, y }) => ({ episode: x, train: rounded(learned.get(x)!), test: rounded(y) }));
}

function rounded(reward: number): number {
  return Number(reward.toPrecision(6));
}

/** The authors' logs of the agents of runs, each once. */
export function authorsLogs(
  runs: readonly RewardRun[],
): { agent: string; curve: readonly RewardPoint[]; beside: string }[] {
  const logs = runs.flatMap(({ agent, published }) => (published ? [{ ...published, beside: agent }] : []));
  return logs.filter(({ agent }, i) => logs.findIndex((log) => log.agent === agent) === i);
}

/** The rows of a table: every run, then the authors' logs as far as the runs went. */
export function rewardRows(runs: readonly RewardRun[]): { name: string; points: readonly RewardPoint[] }[] {
  const ours = runs.map((run) => ({ name: `${run.agent}, seed ${run.seed}`, points: rewardPoints(run) }));
  const most = Math.max(0, ...ours.flatMap(({ points }) => points.map(({ episode }) => episode)));
  const theirs = authorsLogs(runs).map(({ agent, curve }) => ({
    name: `authors, ${agent}`,
    points: curve.filter(({ episode }) => episode > 0 && episode <= most),
  }));
  return [...ours, ...theirs.filter(({ points }) => points.length > 0)];
}
