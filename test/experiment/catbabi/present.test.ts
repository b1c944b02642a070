/** The figure of answers: small inputs, exact outputs. */
import { describe, expect, test } from "vitest";
import { accuracyFigure } from "../../../src/experiment/catbabi/present.ts";
import type { CatbabiPaper } from "../../../src/experiment/catbabi/settings.ts";
import type { ReportedRun } from "../../../src/experiment/kind.ts";
import type { RunResult } from "../../../src/report/result.ts";

describe("the figure of answers", () => {
  const curves = (...steps: number[]) => ({
    valid: steps.map((step) => ({ step, values: { accuracy: step / 100 } })),
  });
  const run = (
    experiment: string,
    folder: string,
    drawn: RunResult["curves"],
    initFrom: string | null,
    published: CatbabiPaper | null = null,
  ): ReportedRun<CatbabiPaper> => ({
    folder: `/runs/${folder}`,
    result: { experiment, seed: 1, curves: drawn, initFrom, paper: published } as RunResult<CatbabiPaper>,
  });
  const paper = {
    accuracy: 0.9675,
    perplexity: 1.36,
    curve: [
      { step: 20, accuracy: 0.5 },
      { step: 40, accuracy: 0.8 },
      { step: 60, accuracy: 0.9 },
    ],
  };

  test("draws a run that started with the weights of another where that one stood, and the authors' as far", () => {
    const figure = accuracyFigure([
      run("a", "one", curves(10, 30), null),
      run("b", "two", curves(5, 10), "one after 30 steps", paper),
      run("c", "three", curves(5), "two after 10 steps", paper),
      run("d", "four", curves(5), "elsewhere after 7 steps", paper),
    ]);
    expect(figure.lines.map(({ name, points }) => [name, points.map(({ x }) => x)])).toEqual([
      ["a, seed 1", [10, 30]],
      ["b, seed 1", [35, 40]],
      ["c, seed 1", [45]],
      ["d, seed 1", [12]],
      ["the authors' released run (read off their plot)", [20, 40]],
    ]);
    expect(figure.marks).toEqual([{ name: "paper, test: 96.75%", y: 0.9675 }]);
  });

  test("is the run alone where nothing was published, and where it was stopped before it was evaluated", () => {
    const alone = accuracyFigure([run("a", "a", curves(50), null)]);
    expect([alone.lines.length, alone.marks]).toEqual([1, []]);
    const empty = accuracyFigure([run("a", "a", {}, null, paper)]);
    expect(empty.lines).toEqual([{ name: "a, seed 1", points: [] }]);
  });
});
