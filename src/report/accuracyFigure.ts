/** The figure of answers: validation accuracy against updates, beside the authors' run and the paper's test result. */
import type { FigureLine, FigureSpec } from "./figure.ts";
import { type RunResult, stepsBefore } from "./result.ts";

/** One run in the figure. */
export interface AccuracyRun extends Pick<RunResult, "curves" | "begun" | "paper"> {
  readonly name: string;
}

/** What to draw: every run, the authors' points as far as the runs went, and the first published result. */
export function accuracyFigure(runs: readonly AccuracyRun[]): FigureSpec {
  // A run that began with the weights of another goes on where that one stood.
  const ours = runs.map(({ name, curves, begun }): FigureLine => {
    const before = stepsBefore(begun);
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
