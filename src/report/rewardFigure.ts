/** The figure of meta-reinforcement learning: mean reward against episodes, ours beside the authors'. */
import { join } from "node:path";
import { metricsFile, readMetrics } from "../store/metrics.ts";
import type { FigureLine, FigureMark, FigureSpec } from "./figure.ts";

/** Lines of the log that a point is the mean of, as in the authors' table. */
const neighbours = 11;

/** One run in the figure. */
export interface RewardRun {
  /** Runs of one agent differ in the seed only: they have one colour and one name. */
  readonly agent: string;
  readonly seed: number;
  readonly train: FigureLine["points"];
  readonly test: FigureLine["points"];
  /** Points of the authors' log, and the agent it is the log of. */
  readonly published?: {
    readonly agent: string;
    readonly curve: readonly { readonly episode: number; readonly train: number; readonly test: number }[];
  };
  /** What random play and knowing the graph give by the run's rules, which `rules` names. */
  readonly frame: { readonly rules: string; readonly random: number; readonly shortestPath: number };
}

/** The rewards a run logged, each the mean of the lines around it; at most `most` points of each split. */
export async function readRewards(folder: string, most = 250): Promise<Pick<RewardRun, "train" | "test">> {
  const metrics = await readMetrics(join(folder, metricsFile));
  const points = (wanted: string) => {
    const smooth = smoothed(
      metrics
        .filter(({ split, values }) => split === wanted && values.reward !== undefined)
        .map(({ step, values }) => ({ x: step, y: values.reward! })),
      neighbours,
    );
    const every = Math.max(1, Math.ceil(smooth.length / most));
    return smooth.filter((_, i) => (smooth.length - 1 - i) % every === 0);
  };
  return { train: points("train"), test: points("test") };
}

/** Every point as the mean of so many around it, itself in the middle; at the ends of those there are. */
export function smoothed(points: FigureLine["points"], count: number): { x: number; y: number }[] {
  const side = (count - 1) / 2;
  return points.map(({ x }, i) => {
    const around = points.slice(Math.max(0, i - side), i + side + 1);
    return { x, y: around.reduce((sum, { y }) => sum + y, 0) / around.length };
  });
}

/** What to draw: the runs, and the authors' logs of their agents as far as the runs went. */
export function rewardFigure(runs: readonly RewardRun[]): FigureSpec {
  const most = Math.max(0, ...runs.flatMap(({ test, train }) => [...test, ...train].map(({ x }) => x)));
  const agents = [...new Set(runs.map(({ agent }) => agent))];
  const ours = runs.flatMap(({ agent, train, test }): FigureLine[] => {
    const color = agents.indexOf(agent);
    const name = `${agent}, ${seedsOf(runs.filter((run) => run.agent === agent))}`;
    return [
      { name: `${name}, test graphs`, points: test, color },
      { name: `${name}, training graphs`, points: train, color, look: "dashed" },
    ];
  });
  const logs = runs.flatMap(({ agent, published }) =>
    published ? [{ ...published, drawnWith: agent }] : [],
  );
  const theirs = logs
    .filter(({ agent }, i) => logs.findIndex((log) => log.agent === agent) === i)
    .flatMap(({ agent, curve, drawnWith }): FigureLine[] => {
      const color = agents.indexOf(agents.includes(agent) ? agent : drawnWith);
      const shown = curve.filter(({ episode }) => episode <= most);
      const line = (split: "train" | "test") => shown.map((point) => ({ x: point.episode, y: point[split] }));
      return [
        { name: `authors, ${agent}, test graphs`, points: line("test"), color, look: "circles" },
        { name: `authors, ${agent}, training graphs`, points: line("train"), color, look: "squares" },
      ];
    })
    .filter(({ points }) => points.length > 0);
  const marks = frameMarks(runs.map(({ frame }) => frame));
  const lowest = Math.min(...[...ours, ...theirs].flatMap(({ points }) => points.map(({ y }) => y)));
  const floor = Math.min(lowest, ...marks.map(({ y }) => y));
  const ceiling = Math.max(...marks.map(({ y }) => y));
  return {
    title: `Mean total reward per episode (curves: means of ${neighbours} neighbouring lines of the log)`,
    x: "episode",
    y: "mean total reward",
    lines: [...ours, ...theirs],
    marks,
    height: 400,
    // Room for the names of the marks, which stand outside the curves.
    range: [Math.floor((floor - 12) / 10) * 10, Math.ceil((ceiling + 8) / 10) * 10],
  };
}

function seedsOf(runs: readonly RewardRun[]): string {
  const seeds = [...new Set(runs.map(({ seed }) => seed))].sort((a, b) => a - b);
  return seeds.length === 1
    ? `seed ${seeds[0]}`
    : `seeds ${seeds.slice(0, -1).join(", ")} and ${seeds.at(-1)}`;
}

/** A line for each set of rules; of lines that lie close together one carries the name of both. */
function frameMarks(frames: readonly RewardRun["frame"][]): FigureMark[] {
  const sets = frames.filter(({ rules }, i) => frames.findIndex((frame) => frame.rules === rules) === i);
  const named = (what: string, of: "random" | "shortestPath", label: "above" | "below"): FigureMark[] => {
    const values = sets.map((frame) => ({ rules: frame.rules, y: frame[of] }));
    const outermost = (label === "above" ? Math.max : Math.min)(...values.map(({ y }) => y));
    const text = values.map(({ rules, y }) => `${y.toFixed(1)}${sets.length > 1 ? ` (${rules})` : ""}`);
    const name = `${what}: ${text.join(", ")}`;
    return values.map(({ y }) => ({ name: y === outermost ? name : "", y, label }));
  };
  return [
    ...named("shortest path, graph known", "shortestPath", "above"),
    ...named("random play", "random", "below"),
  ];
}
