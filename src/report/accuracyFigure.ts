/** The figure of answers: validation accuracy against updates, beside the authors' run and the paper's test result. */
import type { FigureLine, FigureSpec } from "./figure.ts";
import { origin, type RunResult } from "./result.ts";

/** One run in the figure. */
export interface AccuracyRun extends Pick<RunResult, "curves" | "begun" | "paper"> {
  readonly name: string;
  /** The name of its folder, by which runs that began with its weights call it. */
  readonly folder: string;
}

/** Updates made by the weights a run began with; a chain of runs counts as far as its members are drawn. */
function stepsBefore(begun: string | null, runs: readonly AccuracyRun[]): number {
  const from = origin(begun);
  if (!from) return 0;
  const source = runs.find(({ folder, begun: own }) => folder === from.run && own !== begun);
  return from.steps + (source ? stepsBefore(source.begun, runs) : 0);
}

/** What to draw: every run, the authors' points as far as the runs went, and the first published result. */
export function accuracyFigure(runs: readonly AccuracyRun[]): FigureSpec {
  // A run that began with the weights of another goes on where that one stood.
  const ours = runs.map(({ name, curves, begun }): FigureLine => {
    const before = stepsBefore(begun, runs);
    const points = (curves.valid ?? []).map(({ step, values }) => ({
      x: before + step,
      y: values.accuracy!,
    }));
    return { name, points };
  });
  const last = Math.max(...ours.flatMap(({ points }) => points.map(({ x }) => x)));
  const paper = runs.find((run) => run.paper)?.paper;
  const theirs: FigureLine = {
    name: "the authors' released run (read off their plot)",
    points: (paper?.curve ?? [])
      .filter(({ step }) => step <= last)
      .map(({ step, accuracy }) => ({ x: step, y: accuracy })),
    look: "circles",
  };
  return {
    title: "Validation accuracy",
    x: "update",
    y: "answers right",
    percent: true,
    lines: theirs.points.length > 0 ? [...ours, theirs] : ours,
    marks: paper ? [{ name: `paper, test: ${(100 * paper.accuracy).toFixed(2)} %`, y: paper.accuracy }] : [],
  };
}
