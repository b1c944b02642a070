/** Plots, figures, cards and results: small inputs, exact outputs. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { modelCard } from "../../src/report/card.ts";
import { drawFigure } from "../../src/report/figure.ts";
import { plotShares } from "../../src/report/plot.ts";
import { collectResult, portableCommand } from "../../src/report/result.ts";

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
        settings: { training: { batch: 2, window: 3 } },
        seed: 7,
        command: ["fwm", "train", "--out", folder],
        packageVersion: "0",
        gitCommit: "abc",
        environment,
        created: "2026-01-01T00:00:00.000Z",
        updated: "2026-01-01T00:00:00.000Z",
        state: "finished",
        step: 30,
        summary: {},
        note: null,
        process: null,
        resumed: [],
      }),
    );
    const at = [0, 1800 / 4, 900, 900 + 100_000, 900 + 100_000 + 900 / 2];
    const lines = at.map((time, i) =>
      JSON.stringify({ step: (i + 1) * 6, split: "train", values: { loss: 1 / 3 }, times: { at: time } }),
    );
    writeFileSync(join(folder, "metrics.jsonl"), `${lines.join("\n")}\n`);
    const result = await collectResult(folder, {
      shows: "s",
      reportedBy: ["fwm"],
      paper: { accuracy: 0.9 },
      points: 3,
    });
    expect(result).toMatchObject({ experiment: "e", seed: 7, commit: "abc", steps: 30, hours: 0.375 });
    expect(result.command).not.toContain("/");
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
        remarks: [],
        perTask: { 15: { accuracy: 1, questions: 500 }, 16: { accuracy: 0.5, questions: 500 } },
      },
      { name: "m", weights: 1234, step: 30 },
    );
    expect(card).toContain("**95.00 %** of 1,000 questions (paper: 90.00 %)");
    expect(card).toContain("| 15 | basic deduction | 500 | 100.00 % |");
    expect(card).toContain("Weak tasks: 16 (50.00 %)");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
