/** Plots, figures, cards and results: small inputs, exact outputs. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { describe, expect, test } from "vitest";
import agent from "../../experiments/metarl-fwm.ts";
import { knownExperiment } from "../../src/cli/knownExperiment.ts";
import { accuracyFigure } from "../../src/report/accuracyFigure.ts";
import { modelCard } from "../../src/report/card.ts";
import { drawFigure } from "../../src/report/figure.ts";
import { plotShares } from "../../src/report/plot.ts";
import { collectResult, hoursOf, origin, portableCommand } from "../../src/report/result.ts";
import { type DrawnRun, rewardFigure } from "../../src/report/rewardFigure.ts";
import { readRewards, rewardPoints, rewardRows, smoothed, thinned } from "../../src/report/rewards.ts";

test("a plot has its points where they belong", () => {
  const plot = plotShares(
    [
      {
        name: "up",
        mark: "o",
        points: [
          { x: 0, y: 0 },
          { x: 10, y: 1 },
        ],
      },
    ],
    { columns: 11, rows: 5 },
  );
  expect(plot.split("\n")).toEqual([
    " 100% │         oo",
    "      │       oo",
    "      │    ooo",
    "  25% │  oo",
    "   0% │oo",
    "      └───────────",
    "       0   step 10",
    "       o up",
  ]);
});

test("a figure is an SVG with its lines, title and mark", async () => {
  const svg = await drawFigure({
    title: "Accuracy",
    x: "update",
    y: "right",
    percent: true,
    lines: [
      {
        name: "one run",
        points: [
          { x: 1, y: 0.2 },
          { x: 2, y: 0.9 },
        ],
      },
    ],
    marks: [{ name: "paper", y: 0.5 }],
  });
  expect(svg).toMatch(/^<svg/);
  for (const text of ["Accuracy", "update", "one run", "paper", "%"]) expect(svg).toContain(text);
});

test("commands lose the places of one machine", () => {
  expect(portableCommand(["fwm", "train", "x", "--out", "/home/me/runs/x-1"])).toBe("fwm train x --out x-1");
  expect(
    portableCommand([
      "fwm",
      "--set",
      "task.data=/home/me/data",
      "--out=/tmp/x",
      "--set=task.data=/home/me/data",
      "k=v",
    ]),
  ).toBe("fwm --set task.data=data --out=x --set=task.data=data k=v");
});

test("points get hollow marks, marks a name above or below", async () => {
  const line = (name: string, look: "solid" | "dashed" | "circles" | "squares") => ({
    name,
    look,
    color: 1,
    points: [{ x: 1, y: 50 }],
  });
  const svg = await drawFigure({
    title: "t",
    x: "x",
    y: "y",
    range: [30, 70],
    lines: [line("a", "solid"), line("b", "dashed"), line("c", "circles"), line("d", "squares")],
    marks: [
      { name: "over", y: 60 },
      { name: "under", y: 40, label: "below" },
    ],
  });
  expect(svg.match(/aria-roledescription="point"/g)).toHaveLength(2);
  const heightOf = (name: string) =>
    Number(new RegExp(`translate\\([\\d.]+,([\\d.]+)\\)"[^>]*>${name}<`).exec(svg)![1]);
  // The axis has 320 pixels for 40: the line of 60 is 80 below the top, that of 40 at 240.
  expect(heightOf("over")).toBeLessThan(80);
  expect(heightOf("under")).toBeGreaterThan(240);
});

test("a smoothed curve is the mean of the neighbours there are", () => {
  const points = [0, 3, 9, 0, 6].map((y, x) => ({ x, y }));
  expect(smoothed(points, 3).map(({ y }) => y)).toEqual([1.5, 4, 4, 5, 3]);
  expect(smoothed(points, 1)).toEqual(points);
});

describe("the figure of answers", () => {
  const curves = (...steps: number[]) => ({
    valid: steps.map((step) => ({ step, values: { accuracy: step / 100 } })),
  });
  const paper = {
    accuracy: 0.9675,
    curve: [
      { step: 20, accuracy: 0.5 },
      { step: 40, accuracy: 0.8 },
      { step: 60, accuracy: 0.9 },
    ],
  };

  test("draws a run that began with another's weights where that one stood, and the authors' as far", () => {
    const figure = accuracyFigure([
      { name: "a", folder: "one", curves: curves(10, 30), begun: null, paper: null },
      { name: "b", folder: "two", curves: curves(5, 10), begun: "one after 30 steps", paper },
      { name: "c", folder: "three", curves: curves(5), begun: "two after 10 steps", paper },
      { name: "d", folder: "four", curves: curves(5), begun: "elsewhere after 7 steps", paper },
    ]);
    expect(figure.lines.map(({ name, points }) => [name, points.map(({ x }) => x)])).toEqual([
      ["a", [10, 30]],
      ["b", [35, 40]],
      ["c", [45]],
      ["d", [12]],
      ["the authors' released run (read off their plot)", [20, 40]],
    ]);
    expect(figure.marks).toEqual([{ name: "paper, test: 96.75 %", y: 0.9675 }]);
  });

  test("is the run alone where nothing was published, and where it was stopped before it was validated", () => {
    const alone = accuracyFigure([{ name: "a", folder: "a", curves: curves(50), begun: null, paper: null }]);
    expect([alone.lines.length, alone.marks]).toEqual([1, []]);
    const empty = accuracyFigure([{ name: "a", folder: "a", curves: {}, begun: null, paper }]);
    expect(empty.lines).toEqual([{ name: "a", points: [] }]);
  });
});

describe("the figure of agents", () => {
  const frame = { rules: "released rules", random: 45.4, explorer: 116, shortestPath: 166.3 };
  const published = {
    agent: "a",
    curve: [
      { episode: 0, train: 45, test: 44 },
      { episode: 100, train: 50, test: 49 },
      { episode: 5000, train: 60, test: 59 },
    ],
  };
  const points = (last: number) => [
    { x: 0, y: 45 },
    { x: last, y: 55 },
  ];
  const run = (agent: string, more: Partial<DrawnRun> = {}): DrawnRun => ({
    agent,
    seed: 1,
    train: points(200),
    test: points(200),
    frame,
    ...more,
  });

  test("has both curves of every run, and the authors' points once, as far as the runs went", () => {
    const { lines } = rewardFigure([run("b", { published }), run("c"), run("a", { published })]);
    expect(lines.map(({ name, color, look }) => [name, color, look])).toEqual([
      ["b, seed 1, test graphs", 0, undefined],
      ["b, seed 1, training graphs", 0, "dashed"],
      ["c, seed 1, test graphs", 1, undefined],
      ["c, seed 1, training graphs", 1, "dashed"],
      ["a, seed 1, test graphs", 2, undefined],
      ["a, seed 1, training graphs", 2, "dashed"],
      ["authors, a, test graphs", 2, "circles"],
      ["authors, a, training graphs", 2, "squares"],
    ]);
    // The colour of the agent it is the log of, and where that is not drawn of the first it stands beside.
    expect(rewardFigure([run("b"), run("c", { published })]).lines.at(-1)!.color).toBe(1);
    expect(lines[6]!.points).toEqual([
      { x: 0, y: 44 },
      { x: 100, y: 49 },
    ]);
  });

  test("gives the seeds of an agent one colour and one entry of the legend", async () => {
    const figure = rewardFigure([
      run("a", { seed: 3 }),
      run("b"),
      run("a", { seed: 1, test: points(90) }),
      run("a"),
    ]);
    expect(figure.lines.map(({ name, color }) => [name, color])).toEqual([
      ["a, seeds 1 and 3, test graphs", 0],
      ["a, seeds 1 and 3, training graphs", 0],
      ["b, seed 1, test graphs", 1],
      ["b, seed 1, training graphs", 1],
      ["a, seeds 1 and 3, test graphs", 0],
      ["a, seeds 1 and 3, training graphs", 0],
      ["a, seeds 1 and 3, test graphs", 0],
      ["a, seeds 1 and 3, training graphs", 0],
    ]);
    const svg = await drawFigure({
      ...figure,
      lines: [...figure.lines, { name: "long ".repeat(30), points: [] }],
    });
    expect(svg.split(">a, seeds 1 and 3, test graphs<").length - 1).toBe(1);
    // No name is cut short, and eight curves are drawn each by itself.
    expect(svg).not.toContain("…");
    expect(svg.match(/aria-roledescription="line mark"/g)?.length).toBe(8);
  });

  test("stands in a table too, the authors' logs once and as far as the runs went", () => {
    const rows = rewardRows([run("b", { published }), run("a", { seed: 2, published })]);
    expect(rows).toEqual([
      { name: "b, seed 1", points: [{ episode: 200, train: 55, test: 55 }] },
      { name: "a, seed 2", points: [{ episode: 200, train: 55, test: 55 }] },
      { name: "authors, a", points: [{ episode: 100, train: 50, test: 49 }] },
    ]);
  });

  test("is framed by the rules of all runs, with one name for lines that lie close", () => {
    const other = { rules: "paper rules", random: 44.6, explorer: 117, shortestPath: 171.1 };
    const { marks, range } = rewardFigure([run("a"), run("b"), run("c", { frame: other })]);
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
      { y: 44.6, label: "below", name: "random play: 45.4 (released rules), 44.6 (paper rules)" },
    ]);
    expect(range).toEqual([30, 180]);
    expect(rewardFigure([run("a")]).marks!.map(({ name }) => name)).toEqual([
      "shortest path, graph known: 166.3",
      "explorer, forgets nothing: 116.0",
      "random play: 45.4",
    ]);
  });

  test("reads the rewards of a run, each the mean of 11 lines, thinned to the last", async () => {
    const folder = mkdtempSync(join(tmpdir(), "fwm-report-test-"));
    try {
      const lines = Array.from({ length: 41 }, (_, i) => [
        JSON.stringify({ step: i * 50, split: "test", values: { reward: i } }),
        ...(i > 0
          ? [JSON.stringify({ step: i * 50, split: "train", values: { reward: 2 * i, loss: 1 } })]
          : []),
      ]).flat();
      writeFileSync(join(folder, "metrics.jsonl"), `${lines.join("\n")}\n`);
      const { test: held, train } = await readRewards(folder);
      expect([held.length, train.length]).toEqual([41, 40]);
      const few = thinned(held, 5);
      expect(few.map(({ x }) => x)).toEqual([200, 650, 1100, 1550, 2000]);
      expect(few.map(({ y }) => y)).toEqual([4.5, 13, 22, 31, 37.5]);
      expect(train.at(-1)).toEqual({ x: 2000, y: 75 });
      // The milestone it passed, and its end; before the first update there is no training reward.
      expect(rewardPoints({ train, test: held })).toEqual([
        { episode: 1000, train: 40, test: 20 },
        { episode: 2000, train: 75, test: 37.5 },
      ]);
      expect(rewardPoints({ train: [], test: held.slice(0, 1) })).toEqual([]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

test("a result gathers settings, hours and thinned curves; sittings apart do not count as hours", async () => {
  const folder = mkdtempSync(join(tmpdir(), "fwm-report-test-"));
  try {
    const environment = {
      node: "v20",
      os: "linux",
      cpu: "cpu",
      cores: 2,
      threads: 2,
      ort: "1",
      device: "cpu",
    };
    writeFileSync(
      join(folder, "run.json"),
      JSON.stringify({
        format: "fwm-run",
        version: 1,
        experiment: "e",
        settings: { task: { data: "/home/me/babi" }, training: { batch: 2, window: 3 } },
        seed: 7,
        command: ["fwm", "train", "--out", folder],
        packageVersion: "0",
        gitCommit: "abc",
        environment,
        created: "2026-01-01T00:00:00.000Z",
        updated: "2026-01-01T00:00:00.000Z",
        state: "finished",
        step: 30,
        summary: { begun: "base after 5 steps", data: "a story less" },
        note: null,
        process: null,
        resumed: [
          {
            at: "2026-01-02T00:00:00.000Z",
            step: 12,
            command: ["fwm", "train", "--resume", folder],
            packageVersion: "0",
            gitCommit: "def",
            environment,
          },
        ],
      }),
    );
    const at = [0, 1800 / 4, 900, 900 + 100_000, 900 + 100_000 + 900 / 2];
    const lines = at.map((time, i) =>
      JSON.stringify({ step: (i + 1) * 6, split: "train", values: { loss: 1 / 3 }, times: { at: time } }),
    );
    writeFileSync(join(folder, "metrics.jsonl"), `${lines.join("\n")}\n`);
    const result = await collectResult(folder, {
      known: {
        shows: "s",
        settings: {
          task: { data: "" },
          training: { batch: 2, window: 5, seed: 1 },
        },
        complete: (given) => given,
        paper: { accuracy: 0.9 },
      },
      reportedBy: ["fwm"],
      points: 3,
    });
    expect(result.changed).toEqual({
      "task.data": { experiment: "", run: "babi" },
      "training.window": { experiment: 5, run: 3 },
    });
    // What a later version added to the settings of agents is no change; a run's own rate is.
    const { clip: _clip, lambda: _lambda, ...earlier } = agent.settings.training;
    const settings = { ...agent.settings, training: { ...earlier, learningRate: 0.5, seed: 3 } };
    const record = JSON.parse(readFileSync(join(folder, "run.json"), "utf8")) as object;
    writeFileSync(join(folder, "run.json"), JSON.stringify({ ...record, settings }));
    const ofAgent = await collectResult<unknown>(folder, {
      known: await knownExperiment("metarl-fwm"),
      reportedBy: ["fwm"],
    });
    const { learningRate } = agent.settings.training;
    expect(ofAgent.changed).toEqual({ "training.learningRate": { experiment: learningRate, run: 0.5 } });
    const unknown = await collectResult(folder, { known: undefined, reportedBy: ["fwm"] });
    expect(unknown).toMatchObject({ shows: "e", changed: null, paper: null });
    expect(result).toMatchObject({ experiment: "e", seed: 7, commit: "abc", steps: 30, hours: 0.375 });
    expect(result).toMatchObject({ begun: "base after 5 steps", data: "a story less" });
    expect(origin(result.begun)).toEqual({ run: "base", steps: 5 });
    expect(result.command).not.toContain("/");
    expect(result.settings).toEqual({ task: { data: "babi" }, training: { batch: 2, window: 3 } });
    expect(result.resumed).toEqual([
      { step: 12, command: `fwm train --resume ${basename(folder)}`, commit: "def" },
    ]);
    expect(result.curves.train!.map(({ step }) => step)).toEqual([6, 18, 30]);
    expect(result.curves.train![0]!.values.loss).toBe(0.333333);
    const card = modelCard(
      result,
      {
        split: "test",
        batch: 1,
        state: "train",
        accuracy: 0.95,
        perplexity: 1.2,
        questions: 1000,
        generated: false,
        remarks: [],
        perTask: { 15: { accuracy: 1, questions: 500 }, 16: { accuracy: 0.5, questions: 500 } },
      },
      { name: "m", weights: 1234, step: 30 },
    );
    expect(card).toContain("**95.00 %** of 1,000 questions (paper: 90.00 %)");
    expect(card).toContain(
      "| changed | task.data babi (experiment: none), training.window 3 (experiment: 5) |\n| begun with | the weights of base after 5 steps |\n| from update 12 | `fwm train",
    );
    expect(card).toContain("| 15 | basic deduction | 500 | 100.00 % |");
    expect(card).toContain("Weak tasks: 16 (50.00 %)");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("hours: the gaps between sittings are left out, and slow logging is not a pause", () => {
  const at = (...seconds: number[]) =>
    seconds.map((time, step) => ({ step, split: "train", values: {}, times: { at: time } }));
  const hour = 3600;
  // Ten minutes a line, a night in between.
  expect(hoursOf(at(0, 600, 1200, 1200 + 9 * hour, 1800 + 9 * hour))).toBeCloseTo(0.5, 3);
  // Fifty minutes a line, with the test's record a second later.
  const slow = Array.from({ length: 11 }, (_, i) => [i * 3000, i * 3000 + 0.5]).flat();
  expect(hoursOf(at(...slow))).toBeCloseTo((10 * 3000) / hour, 2);
  expect(hoursOf([])).toBe(0);
});
