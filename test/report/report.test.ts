/** Plots, figures, cards and results: small inputs, exact outputs. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { expect, test } from "vitest";
import agent from "../../experiments/metarl-fwm.ts";
import type { CatbabiEvaluation } from "../../src/experiment/catbabi/options.ts";
import { answersCard } from "../../src/experiment/catbabi/present.ts";
import type { CatbabiPaper } from "../../src/experiment/catbabi/settings.ts";
import { metarlSchema } from "../../src/experiment/metarl/settings.ts";
import { changedSettings } from "../../src/report/changed.ts";
import { drawFigure, runNames } from "../../src/report/figure.ts";
import { plotShares } from "../../src/report/plot.ts";
import { collectResult, hoursOf, portableCommand, stepsOf } from "../../src/report/result.ts";

test("settings in another order are not changed ones, in lists of groups too", () => {
  const stages = [{ tasks: "16", until: 0.9 }, { tasks: "19" }];
  expect(changedSettings({ stages }, { stages: [{ until: 0.9, tasks: "16" }, { tasks: "19" }] })).toEqual({});
  expect(Object.keys(changedSettings({ stages }, { stages: stages.toReversed() }))).toEqual(["stages"]);
});

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
    x: "step",
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
  for (const text of ["Accuracy", "step", "one run", "paper", "%"]) expect(svg).toContain(text);
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
  // The circle and the square, and the two lines of a single point.
  expect(svg.match(/aria-roledescription="point"/g)).toHaveLength(4);
  const heightOf = (name: string) =>
    Number(new RegExp(`translate\\([\\d.]+,([\\d.]+)\\)"[^>]*>${name}<`).exec(svg)![1]);
  // The axis has 320 pixels for 40: the line of 60 is 80 below the top, that of 40 at 240.
  expect(heightOf("over")).toBeLessThan(80);
  expect(heightOf("under")).toBeGreaterThan(240);
});

/** Width and height of the whole picture. */
const canvasOf = (svg: string) => {
  const [, width, height] = /^<svg[^>]*? width="([\d.]+)" height="([\d.]+)"/.exec(svg)!;
  return { width: Number(width), height: Number(height) };
};
/** The texts of a picture. */
const textsOf = (svg: string) => [...svg.matchAll(/<text[^>]*>([^<]+)</g)].map(([, text]) => text!);

test("one point is drawn, in a plot with an axis around it", async () => {
  const svg = await drawFigure({
    title: "t",
    x: "step",
    y: "accuracy",
    percent: true,
    lines: [{ name: "a", points: [{ x: 4, y: 0.5 }] }],
  });
  const [, x, y] =
    /transform="translate\(([\d.]+),([\d.]+)\)"[^>]*aria-roledescription="point"|aria-roledescription="point"[^>]*transform="translate\(([\d.]+),([\d.]+)\)"/
      .exec(svg)!
      .filter((found) => found !== undefined);
  expect(Number(x)).toBeCloseTo(320, 0);
  expect(Number(y)).toBeGreaterThan(0);
  expect(textsOf(svg)).toEqual(expect.arrayContaining(["4", "50%"]));
});

test("a long title is wrapped, and no name in it makes the canvas wider than the plot and its labels", async () => {
  const title =
    "meta-RL on random graphs, FWM 32/16, our recipe: success seen, true advantage, higher rate: return";
  const lines = Array.from({ length: 6 }, (_, i) => ({
    name: `metarl-fwm-tuned-with-a-long-name, seeds 1, 2 and 3, validation graphs ${i}`,
    points: [
      { x: 1, y: i },
      { x: 2, y: i },
    ],
  }));
  const svg = await drawFigure({ title, x: "episode", y: "return", lines });
  expect(canvasOf(svg).width).toBeLessThan(640 + 80);
  const titleLines = [...svg.matchAll(/<tspan[^>]*>([^<]+)</g)].map(([, text]) => text);
  expect([titleLines.length, titleLines.join(" ")]).toEqual([2, title]);
  const small = await drawFigure({
    title: "t",
    x: "x",
    y: "y",
    lines: lines.slice(0, 1),
    width: 300,
    height: 150,
  });
  expect(canvasOf(small).height).toBeLessThan(150 + 120);
});

test("lines of one name are seeds: faint lines in one colour, their mean and a band", async () => {
  const line = (name: string, ...ys: number[]) => ({ name, points: ys.map((y, i) => ({ x: 10 * i, y })) });
  const svg = await drawFigure({
    title: "t",
    x: "step",
    y: "y",
    range: [0, 8],
    lines: [line("a", 0, 2, 4), line("a", 4, 6), line("b", 1, 1, 1)],
  });
  const paths = [
    ...svg.matchAll(/<path aria-label[^>]*aria-roledescription="([^"]+)"[^>]* d="([^"]+)"([^>]*)/g),
  ].map(([, role, d, rest]) => ({ role, d, color: /(?:stroke|fill)="(#\w+)"/.exec(rest!)?.[1] }));
  const own = paths.filter(({ color }) => color === "#0b6e4f");
  // The mean is 2 and 4 of 8, in a plot 320 high, and ends where the shorter line ends.
  expect(own.map(({ d }) => d)).toContain("M0,240L320,160");
  // The band, two faint lines and the mean.
  expect(own).toHaveLength(4);
  expect(svg).toContain("bands: lowest to highest");
});

test("ticks have no needless decimals", async () => {
  const ticks = async (percent: boolean, ...ys: number[]) =>
    textsOf(
      await drawFigure({
        title: "t",
        x: "step",
        y: "y",
        percent,
        lines: [{ name: "a", points: ys.map((y, i) => ({ x: i + 1, y })) }],
      }),
    );
  const share = await ticks(true, 0.85, 0.86, 0.87);
  expect(share).toEqual(expect.arrayContaining(["85%", "85.4%", "86%"]));
  expect(share).not.toContain("86.0%");
  // Steps are whole: 1, 2, 3 and nothing between.
  expect(share.filter((text) => /^[\d.]+$/.test(text))).toEqual(["1", "2", "3"]);
  const plain = await ticks(false, 1, 1.5, 2);
  expect(plain).toEqual(expect.arrayContaining(["1", "1.5", "2"]));
  expect(plain.filter((text) => /\.0$/.test(text))).toEqual([]);
});

test("runs that differ in the seed alone share a name", () => {
  const run = (seed: number, rate: number) => ({
    experiment: "e",
    seed,
    settings: { training: { seed, rate } },
    initFrom: null,
  });
  expect(runNames([run(2, 1), run(1, 1), run(1, 5)])).toEqual([
    "e, seeds 1 and 2",
    "e, seeds 1 and 2",
    "e, seed 1",
  ]);
});

test("a figure without any point is still one", async () => {
  expect(await drawFigure({ title: "t", x: "x", y: "y", lines: [{ name: "a", points: [] }] })).toMatch(
    /^<svg/,
  );
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
        summary: { initFrom: "base after 5 steps", data: "a story less" },
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
    const result = await collectResult<CatbabiPaper>(folder, {
      known: {
        description: "s",
        settings: {
          task: { data: "" },
          training: { batch: 2, window: 5, seed: 1 },
        },
        complete: (given) => given,
        paper: { accuracy: 0.9, perplexity: 1.5 },
      },
      reportedBy: ["fwm"],
      points: 3,
    });
    expect(result.changed).toEqual({
      "task.data": { experiment: "", run: "babi" },
      "training.window": { experiment: 5, run: 3 },
    });
    // What a schema adds to settings that lack it is no change; a run's own rate is.
    const optimizer = { name: "adam", learningRate: 0.5, eps: 1e-4 };
    const settings = { ...agent.settings, training: { ...agent.settings.training, optimizer, seed: 3 } };
    const record = JSON.parse(readFileSync(join(folder, "run.json"), "utf8")) as object;
    writeFileSync(join(folder, "run.json"), JSON.stringify({ ...record, settings }));
    const ofAgent = await collectResult<unknown>(folder, {
      known: { ...agent, complete: (given) => metarlSchema.parse(given) },
      reportedBy: ["fwm"],
    });
    expect(ofAgent.changed).toEqual({
      "training.optimizer.learningRate": { experiment: 1e-3, run: 0.5 },
    });
    const unknown = await collectResult(folder, { known: undefined, reportedBy: ["fwm"] });
    expect(unknown).toMatchObject({ description: "e", changed: null, paper: null });
    expect(result).toMatchObject({ experiment: "e", seed: 7, commit: "abc", steps: 30, hours: 0.375 });
    expect(result).toMatchObject({ initFrom: "base after 5 steps", data: "a story less" });
    expect([stepsOf(result.initFrom), stepsOf(null), stepsOf("a model")]).toEqual([5, 0, 0]);
    expect(result.command).not.toContain("/");
    expect(result.settings).toEqual({ task: { data: "babi" }, training: { batch: 2, window: 3 } });
    expect(result.resumed).toEqual([
      { step: 12, command: `fwm train --resume ${basename(folder)}`, commit: "def" },
    ]);
    expect(result.curves.train!.map(({ step }) => step)).toEqual([6, 18, 30]);
    expect(result.curves.train![0]!.values.loss).toBe(0.333333);
    const card = answersCard(
      result,
      {
        split: "test",
        batch: 1,
        state: "train",
        accuracy: 0.95,
        perplexity: 1.2,
        questions: 1000,
        generated: false,
        notes: [],
        perTask: {
          15: { accuracy: 1, questions: 500, correct: 500 },
          16: { accuracy: 0.5, questions: 500, correct: 250 },
        },
      } as unknown as CatbabiEvaluation,
      { name: "m", weights: 1234, step: 30 },
    );
    expect(card).toContain("**95.00%** of 1,000 questions (paper: 90.00%)");
    expect(card).toContain(
      "| changed | task.data babi (experiment: none), training.window 3 (experiment: 5) |\n| weights from | base after 5 steps |\n| from step 12 | `fwm train",
    );
    // The steps of the weights it started with count too.
    expect(card).toContain(
      "30 (180 tokens) after 5 of the weights it started with, this one after 35 in all",
    );
    expect(card).toContain("| 15 | basic deduction | 500 | 100.00% |");
    expect(card).toContain("Weak tasks: 16 (50.00%)");
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
