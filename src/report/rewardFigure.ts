/** The figure of meta-reinforcement learning: mean reward against episodes, ours beside the authors'. */
import type { FigureLine, FigureMark, FigureSpec } from "./figure.ts";
import { authorsLogs, neighbours, type RewardRun, thinned } from "./rewards.ts";

/** Points of a curve at most. */
const finest = 250;

/** One run in the figure. */
export interface DrawnRun extends RewardRun {
  /** What the three players get by the run's rules, which `rules` names. */
  readonly frame: {
    readonly rules: string;
    readonly random: number;
    readonly explorer: number;
    readonly shortestPath: number;
  };
}

/** What to draw: the runs, the seeds of an agent in one colour, and the authors' logs of their agents as far as the runs went. */
export function rewardFigure(runs: readonly DrawnRun[]): FigureSpec {
  const most = Math.max(0, ...runs.flatMap(({ test, train }) => [...test, ...train].map(({ x }) => x)));
  const agents = [...new Set(runs.map(({ agent }) => agent))];
  const ours = runs.flatMap(({ agent, train, test }): FigureLine[] => {
    const color = agents.indexOf(agent);
    const name = `${agent}, ${seedsOf(runs.filter((run) => run.agent === agent))}`;
    return [
      { name: `${name}, test graphs`, points: thinned(test, finest), color },
      { name: `${name}, training graphs`, points: thinned(train, finest), color, look: "dashed" },
    ];
  });
  const theirs = authorsLogs(runs)
    .flatMap(({ agent, curve, beside }): FigureLine[] => {
      const color = agents.indexOf(agents.includes(agent) ? agent : beside);
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
function frameMarks(frames: readonly DrawnRun["frame"][]): FigureMark[] {
  const sets = frames.filter(({ rules }, i) => frames.findIndex((frame) => frame.rules === rules) === i);
  const named = (
    what: string,
    of: Exclude<keyof DrawnRun["frame"], "rules">,
    label: "above" | "below",
  ): FigureMark[] => {
    const values = sets.map((frame) => ({ rules: frame.rules, y: frame[of] }));
    const outermost = (label === "above" ? Math.max : Math.min)(...values.map(({ y }) => y));
    const text = values.map(({ rules, y }) => `${y.toFixed(1)}${sets.length > 1 ? ` (${rules})` : ""}`);
    const name = `${what}: ${text.join(", ")}`;
    return values.map(({ y }) => ({ name: y === outermost ? name : "", y, label }));
  };
  return [
    ...named("shortest path, graph known", "shortestPath", "above"),
    ...named("explorer, forgets nothing", "explorer", "above"),
    ...named("random play", "random", "below"),
  ];
}
