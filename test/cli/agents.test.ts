/** `fwm eval`, `fwm report` and `fwm runs` of agents, and what they say where something is for answers only. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { MetarlEvaluation } from "../../src/experiment/metarl/options.ts";
import { readMetrics } from "../../src/store/metrics.ts";
import { trainSmall } from "../inference/trained.ts";
import { run } from "./support.ts";

const scratch = mkdtempSync(join(tmpdir(), "fwm-agents-test-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const runs = join(scratch, "runs");
const agent = join(runs, "agent");
const other = join(runs, "corrected");
let story: string;

beforeAll(async () => {
  mkdirSync(runs);
  const train = async (...words: string[]) => {
    const { code, stderr } = await run(["train", ...words, "--threads", "1"]);
    expect(code, stderr).toBe(0);
  };
  await train("metarl-fwm", "--smoke", "--steps", "20", "--out", agent);
  await train("--resume", agent, "--steps", "30");
  await train("metarl-fwm-corrected", "--smoke", "--steps", "10", "--out", other);
  story = await trainSmall(scratch, "story");
});

async function json<T>(...words: string[]): Promise<T> {
  const { code, stdout, stderr } = await run([...words, "--json"]);
  expect(code, stderr).toBe(0);
  return JSON.parse(stdout) as T;
}

describe("fwm eval", () => {
  test("gives the reward of an agent between random play and the graph known, and the authors'", async () => {
    const evaluation = await json<MetarlEvaluation & { paper: unknown }>("eval", agent, "--threads", "1");
    expect(evaluation).toMatchObject({
      experiment: "metarl-fwm",
      split: "test",
      graphs: 40,
      episodes: 10,
      length: 30,
      paper: { episodes: 51_000, return: 107.1 },
    });
    const { return: reached, random, explorer, shortestPath } = evaluation;
    for (const { mean, standardError, graphError } of [reached, random, explorer, shortestPath]) {
      expect(mean).toBeGreaterThan(30);
      expect(standardError).toBeGreaterThan(0);
      expect(graphError).toBeGreaterThan(standardError!);
    }
    expect(shortestPath.mean).toBeGreaterThan(reached.mean + 50);
  });

  test("plays by the other timer, where the graph known pays more and the authors have no number", async () => {
    const words = ["eval", agent, "--episodes", "20", "--threads", "1"];
    const kept = await json<MetarlEvaluation>(...words);
    const reset = await json<MetarlEvaluation & { paper: unknown }>(...words, "--timer", "reset");
    expect([kept.rules.timerOnSuccess, reset.rules.timerOnSuccess]).toEqual(["kept", "reset"]);
    expect(reset.shortestPath.mean).toBeGreaterThan(kept.shortestPath.mean + 1);
    expect(reset.paper).toBeNull();
    expect(await json("eval", agent, "--episodes", "20", "--threads", "1", "--timer", "kept")).toEqual(kept);
  });

  test("plays longer and shorter episodes than it was trained with", async () => {
    const at = (length: number) =>
      json<MetarlEvaluation & { paper: unknown }>(
        ...["eval", agent, "--episodes", "20", "--threads", "1", "--length", String(length)],
      );
    const [short, trained, long] = [await at(10), await at(30), await at(60)];
    expect([short.length, trained.length, long.length]).toEqual([10, 30, 60]);
    expect(trained).toEqual(await json("eval", agent, "--episodes", "20", "--threads", "1"));
    expect(long.shortestPath.mean).toBeGreaterThan(1.9 * trained.shortestPath.mean);
    expect(short.shortestPath.mean).toBeLessThan(0.4 * trained.shortestPath.mean);
    expect(short.return.mean).toBeLessThan(trained.return.mean);
    expect([short.paper, long.paper]).toEqual([null, null]);
  });

  test("shows a table, on the training graphs too", async () => {
    const { code, stdout, stderr } = await run([
      ...["eval", agent, "--split", "train", "--episodes", "2", "--seed", "3", "--checkpoint", "last"],
    ]);
    expect(code, stderr).toBe(0);
    expect(stdout).toMatch(/checkpoint-30, after 30 episodes\n40 train graphs, 2 episodes of 30 steps/);
    expect(stdout).toContain("released rules");
    const number = "\\d+\\.\\d\\d";
    for (const name of [
      "agent",
      "random actions",
      "explorer, forgets nothing",
      "shortest path, graph known",
    ]) {
      expect(stdout).toMatch(new RegExp(`^${name} +${number} +${number} +${number}$`, "m"));
    }
    expect(stdout).toMatch(/^paper, train, after 51,000 episodes +109\.98$/m);
    expect(stdout).toMatch(/^1 known step to the reward: took it +\d+\.\d\d% +100\.00%$/m);
    expect(stdout).toMatch(/^no known way: tried again what led nowhere +\d+\.\d\d% +0\.00%$/m);
  });

  test("stands beside no number of another timer", async () => {
    const { paper } = await json<{ paper: unknown }>("eval", other, "--episodes", "1", "--threads", "1");
    expect(paper).toBeNull();
    const changed = join(scratch, "changed");
    const words = ["--smoke", "--steps", "1", "--set", "task.timerOnSuccess=reset", "--out", changed];
    expect((await run(["train", "metarl-fwm", ...words])).code).toBe(0);
    const { code, stdout } = await run(["eval", changed, "--episodes", "1"]);
    expect(code).toBe(0);
    expect(stdout).toContain("1 episode of 30 steps on each, rules of its own");
    expect(stdout).toMatch(/^agent +\d+\.\d\d +- +\d+\.\d\d$/m);
    expect(stdout).not.toContain("paper,");
  });

  test.each([
    ["--state: not for models of the kind metarl", () => ["eval", agent, "--state", "zero"]],
    ["--batch: not for models of the kind metarl", () => ["report", agent, "--batch", "4", "--out", scratch]],
    ["--split train: not for models of the kind catbabi", () => ["eval", story, "--split", "train"]],
    ["--episodes: not for models of the kind catbabi", () => ["eval", story, "--episodes", "3"]],
    [
      "no curve in common",
      () => ["report", agent, "--also", story, "--out", scratch, "--figure", join(scratch, "both.svg")],
    ],
    ["--also: further runs are for a figure", () => ["report", story, "--also", story, "--out", scratch]],
    ["--figure x.png: figures are SVG files", () => ["report", agent, "--out", scratch, "--figure", "x.png"]],
    ["--name a/b: expected a plain file name", () => ["report", agent, "--name", "a/b", "--out", scratch]],
  ])("%s", async (message, words) => {
    const { code, stderr } = await run(words());
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
  });
});

test.each([
  ["ask", () => ["ask", agent]],
  ["export", () => ["export", agent, "--onnx", join(scratch, "agent.onnx")]],
])("fwm %s says that an agent is one, and what is for agents", async (_, words) => {
  const { code, stderr } = await run(words());
  expect(code).toBe(3);
  expect(stderr).toMatch(
    /config\.json: a model of the kind metarl; it reads no words and does not answer\n +hint +evaluate it with fwm eval/,
  );
  expect(stderr.trim().split("\n")).toHaveLength(2);
});

test("fwm package makes a folder of an agent that is watched and scored like the run, with a card", async () => {
  const packaged = join(scratch, "packaged");
  const words = ["package", agent, "--out", packaged, "--episodes", "3", "--threads", "1"];
  const { score } = await json<{ score: MetarlEvaluation }>(...words);
  const again = await json<MetarlEvaluation>("eval", packaged, "--episodes", "3", "--threads", "1");
  expect(again.return).toEqual(score.return);
  const card = readFileSync(join(packaged, "README.md"), "utf8");
  expect(card).toContain(`**${score.return.mean.toFixed(2)} ± ${score.return.standardError!.toFixed(2)}**`);
  expect(card).toContain("(paper: 107.10 after 51,000 episodes)");
  expect(card).toMatch(/\| from episode 20 \| `fwm/);
  expect((await run(["rollout", packaged])).code).toBe(0);
  const refused = await run(["package", agent, "--out", join(scratch, "no"), "--batch", "4"]);
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("--batch: not for models")]);
});

test("fwm package looks where it is to write before it scores", async () => {
  const { code, stderr } = await run(["package", story, "--out", runs]);
  expect(code).toBe(2);
  expect(stderr).toMatch(/^error: .*: the folder exists and is not empty/);
});

describe("fwm report", () => {
  test("files conditions, resumptions, curves and score, and draws the runs beside the authors'", async () => {
    const [out, figure] = [join(scratch, "results"), join(scratch, "figures", "returns.svg")];
    const { path } = await json<{ path: string }>(
      ...["report", agent, "--also", other, "--figure", figure, "--out", out],
      ...["--episodes", "2", "--threads", "1", "--checkpoint", "last"],
    );
    expect(path).toBe(join(out, "agent.json"));
    const text = readFileSync(path, "utf8");
    expect(text).not.toContain(scratch);
    const result = JSON.parse(text) as {
      curves: Record<string, { step: number; values: { return: number } }[]>;
      [key: string]: unknown;
    };
    expect(result).toMatchObject({
      experiment: "metarl-fwm",
      seed: 1,
      steps: 30,
      state: "finished",
      resumed: [{ step: 20 }],
      score: { model: "checkpoint-30", step: 30, split: "test", episodes: 2, graphs: 40 },
      paper: { testReturn: 107.1, trainReturn: 109.98 },
    });
    const logged = (await readMetrics(agent)).filter(({ split }) => split === "valid");
    expect(result.curves.valid!.map(({ step }) => step)).toEqual(logged.map(({ step }) => step));
    expect(result.curves.valid!.at(-1)!.values.return).toBeCloseTo(logged.at(-1)!.values.return!, 3);
    const svg = readFileSync(figure, "utf8");
    for (const part of [
      "metarl-fwm, seed 1, validation graphs",
      "metarl-fwm-corrected, seed 1, training graphs",
      "authors, metarl-fwm, test graphs",
      "means over 550 episodes",
      "(released rules)",
      "(paper rules)",
    ]) {
      expect(svg).toContain(part);
    }
  });

  test("says in a line what was reached, and in a table after how many episodes", async () => {
    const { code, stdout } = await run([
      ...[
        "report",
        agent,
        "--also",
        other,
        "--out",
        join(scratch, "results"),
        "--episodes",
        "2",
        "--threads",
        "1",
      ],
    ]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/metarl-fwm, 30 episodes, \d/);
    expect(stdout).toMatch(
      /test: mean return [\d.]+ ± [\d.]+ in 2 episodes.*\(paper: 107\.10 after 51,000 episodes\)/,
    );
    const logged = (await readMetrics(agent)).filter(({ split }) => split === "valid");
    const mean = logged.reduce((sum, { values }) => sum + values.return!, 0) / logged.length;
    const rows = stdout
      .slice(stdout.indexOf("return on held-out graphs after episodes"))
      .trimEnd()
      .split("\n");
    expect(rows.map((row) => row.split(/ {2,}/)[0])).toEqual([
      "return on held-out graphs after episodes",
      "metarl-fwm, seed 1",
      "metarl-fwm-corrected, seed 1",
    ]);
    expect(rows[0]).toMatch(/ 30$/);
    expect(rows[1]).toContain(mean.toFixed(1));
    const file = JSON.parse(readFileSync(join(scratch, "results", "agent.json"), "utf8")) as {
      returns: object[];
    };
    expect(file.returns).toEqual([
      { episode: 30, train: expect.any(Number) as number, heldOut: Number(mean.toPrecision(6)) },
    ]);
  });
});

describe("fwm runs", () => {
  test("shows the validation return of agents at the best checkpoint", async () => {
    const list = await json<{ runs: Record<string, unknown>[] }>("runs", runs, "--sort", "name");
    const [line] = list.runs as [{ bestStep: number; best: { return: number }; last: { return: number } }];
    const valid = (await readMetrics(agent)).filter(({ split }) => split === "valid");
    expect(line.best.return).toBe(valid.find(({ step }) => step === line.bestStep)!.values.return);
    expect(line.last.return).toBe(valid.at(-1)!.values.return);
    const { stdout } = await run(["runs", runs, "--sort", "return"]);
    expect(stdout).toMatch(/^run +experiment +state +step +best return +at step +last change$/m);
    const shown = line.best.return.toFixed(2).replace(".", "\\.");
    expect(stdout).toMatch(new RegExp(`^agent .* ${shown} +${line.bestStep} `, "m"));
  });

  test("sorts by return, and keeps both kinds apart in their columns", async () => {
    const list = await json<{ runs: { best: { return?: number } }[] }>("runs", scratch, "--sort", "return");
    const returns = list.runs.map(({ best }) => best.return ?? -1);
    expect(returns).toEqual([...returns].sort((a, b) => b - a));
    const { stdout } = await run(["runs", scratch]);
    expect(stdout).toMatch(/best loss +best accuracy +best perplexity +best return +at step/);
    expect(stdout).toMatch(/^story .* \d+\.\d{4} +\d+\.\d\d% +\d+\.\d{3} +- +\d+ /m);
  });
});
