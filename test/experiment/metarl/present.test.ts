/** Curves and tables of agents: small inputs, exact outputs. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { drawReturns } from "../../../src/experiment/metarl/present.ts";
import {
  type AgentRun,
  agentRuns,
  returnPoints,
  returnRows,
  smoothed,
  thinned,
} from "../../../src/experiment/metarl/returns.ts";
import type { MetarlPaper } from "../../../src/experiment/metarl/settings.ts";
import { drawFigure } from "../../../src/report/figure.ts";
import type { RunResult } from "../../../src/report/result.ts";

test("a smoothed curve is the mean of the points within reach", () => {
  const points = [0, 3, 9, 0, 6].map((y, x) => ({ x, y }));
  expect(smoothed(points, 1).map(({ y }) => y)).toEqual([1.5, 4, 4, 5, 3]);
  expect(smoothed(points, 0)).toEqual(points);
});

describe("the figure of agents", () => {
  const released = { rules: "released rules", random: 45.4, explorer: 116, shortestPath: 166.3 };
  const drawn = (runs: readonly AgentRun[]) => drawReturns(runs, [released]);
  const published = {
    agent: "a",
    curve: [
      { episode: 0, train: 45, heldOut: 44 },
      { episode: 100, train: 50, heldOut: 49 },
      { episode: 5000, train: 60, heldOut: 59 },
    ],
  };
  const points = (last: number) => [
    { x: 0, y: 45 },
    { x: last, y: 55 },
  ];
  const run = (agent: string, more: Partial<AgentRun> = {}): AgentRun => ({
    agent,
    seed: 1,
    train: points(200),
    heldOut: points(200),
    ...more,
  });

  test("has both curves of every run, and the authors' points once, as far as the runs went", () => {
    const { lines } = drawn([run("b", { published }), run("c"), run("a", { published })]);
    expect(lines.map(({ name, color, look }) => [name, color, look])).toEqual([
      ["b, seed 1, validation graphs", 0, undefined],
      ["b, seed 1, training graphs", 0, "dashed"],
      ["c, seed 1, validation graphs", 1, undefined],
      ["c, seed 1, training graphs", 1, "dashed"],
      ["a, seed 1, validation graphs", 2, undefined],
      ["a, seed 1, training graphs", 2, "dashed"],
      ["authors, a, test graphs", 2, "circles"],
      ["authors, a, training graphs", 2, "squares"],
    ]);
    // The colour of the agent it is the log of, and where that is not drawn of the first it stands beside.
    expect(drawn([run("b"), run("c", { published })]).lines.at(-1)!.color).toBe(1);
    expect(lines[6]!.points).toEqual([
      { x: 0, y: 44 },
      { x: 100, y: 49 },
    ]);
  });

  test("gives the seeds of an agent one colour and one entry of the legend", async () => {
    const figure = drawn([
      run("a", { seed: 3 }),
      run("b"),
      run("a", { seed: 1, heldOut: points(90) }),
      run("a"),
    ]);
    expect(figure.lines.map(({ name, color }) => [name, color])).toEqual([
      ["a, seeds 1 and 3, validation graphs", 0],
      ["a, seeds 1 and 3, training graphs", 0],
      ["b, seed 1, validation graphs", 1],
      ["b, seed 1, training graphs", 1],
      ["a, seeds 1 and 3, validation graphs", 0],
      ["a, seeds 1 and 3, training graphs", 0],
      ["a, seeds 1 and 3, validation graphs", 0],
      ["a, seeds 1 and 3, training graphs", 0],
    ]);
    const svg = await drawFigure({
      ...figure,
      lines: [...figure.lines, { name: "long ".repeat(30), points: [] }],
    });
    expect(svg.split(">a, seeds 1 and 3, validation graphs<").length - 1).toBe(1);
    // No name is cut short; eight curves are drawn each by itself, and the means of the six of agent a.
    expect(svg).not.toContain("…");
    expect(svg.match(/aria-roledescription="line mark"/g)?.length).toBe(10);
  });

  test("stands in a table too, the authors' logs once and as far as the runs went", () => {
    const rows = returnRows([run("b", { published }), run("a", { seed: 2, published })]);
    expect(rows).toEqual([
      { name: "b, seed 1", points: [{ episode: 200, train: 55, heldOut: 55 }] },
      { name: "a, seed 2", points: [{ episode: 200, train: 55, heldOut: 55 }] },
      { name: "authors, a", points: [{ episode: 100, train: 50, heldOut: 49 }] },
    ]);
  });

  test("has the baselines by the rules of all runs, with one name for lines that lie close", () => {
    const other = { rules: "paper rules", random: 44.6, explorer: 117, shortestPath: 171.1 };
    const { marks, range } = drawReturns([run("a"), run("b"), run("c")], [released, released, other]);
    expect(marks).toEqual([
      { y: 166.3, label: "above", name: "" },
      {
        y: 171.1,
        label: "above",
        name: "shortest path, graph known: 166.3 (released rules), 171.1 (paper rules)",
      },
      { y: 116, label: "above", name: "" },
      {
        y: 117,
        label: "above",
        name: "explorer, forgets nothing: 116.0 (released rules), 117.0 (paper rules)",
      },
      { y: 45.4, label: "below", name: "" },
      { y: 44.6, label: "below", name: "random actions: 45.4 (released rules), 44.6 (paper rules)" },
    ]);
    expect(range).toEqual([30, 180]);
    expect(drawn([run("a")]).marks!.map(({ name }) => name)).toEqual([
      "shortest path, graph known: 166.3",
      "explorer, forgets nothing: 116.0",
      "random actions: 45.4",
    ]);
  });

  test("reads the returns of a run, each the mean of what is near, thinned to the last", async () => {
    const folder = mkdtempSync(join(tmpdir(), "fwm-returns-test-"));
    try {
      const lines = Array.from({ length: 41 }, (_, i) => [
        JSON.stringify({ step: i * 50, split: "valid", values: { return: i } }),
        ...(i > 0
          ? [JSON.stringify({ step: i * 50, split: "train", values: { return: 2 * i, loss: 1 } })]
          : []),
      ]).flat();
      writeFileSync(join(folder, "metrics.jsonl"), `${lines.join("\n")}\n`);
      const result = { experiment: "e", seed: 1, changed: null, paper: null } as RunResult<MetarlPaper>;
      const [{ heldOut, train }] = (await agentRuns([{ folder, result }])) as [AgentRun];
      expect([heldOut.length, train.length]).toEqual([41, 40]);
      const few = thinned(heldOut, 5);
      expect(few.map(({ x }) => x)).toEqual([200, 650, 1100, 1550, 2000]);
      expect(few.map(({ y }) => y)).toEqual([4.5, 13, 22, 31, 37.5]);
      expect(train.at(-1)).toEqual({ x: 2000, y: 75 });
      // The milestone it passed, and its end; before the first update there is no training return.
      expect(returnPoints({ train, heldOut })).toEqual([
        { episode: 1000, train: 40, heldOut: 20 },
        { episode: 2000, train: 75, heldOut: 37.5 },
      ]);
      expect(returnPoints({ train: [], heldOut: heldOut.slice(0, 1) })).toEqual([]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
