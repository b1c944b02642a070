/** `fwm train` and `fwm rollout` of an agent, as a person uses them. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sampleGraphSets } from "../../src/environment/index.ts";
import { type Rollout, rollOut, type WalkStep } from "../../src/experiment/rollout.ts";
import { FakeProcess, run } from "../cli/support.ts";

const scratch = mkdtempSync(join(tmpdir(), "fwm-rollout-test-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const agent = join(scratch, "agent");

beforeAll(async () => {
  const words = ["train", "metarl-fwm", "--smoke", "--steps", "4", "--threads", "1", "--out", agent];
  const { code, stdout, stderr } = await run([...words, "--json"]);
  expect(code, stderr).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ step: 4, reason: "finished", bestStep: 4 });
});

describe("fwm train", () => {
  test("shows the settings of either kind", async () => {
    const shown = await run(["train", "metarl-lstm-512", "--print-config", "--batch", "50"]);
    expect(shown.stdout).toMatch(/system\.hidden = 512 +\(experiment\)/);
    expect(shown.stdout).toMatch(/training\.agents = 50 +\(flag\)/);
  });

  test("refuses settings of the other kind", async () => {
    const { code, stderr } = await run(["train", "metarl-fwm", "--smoke", "--set", "training.window=20"]);
    expect(code).toBe(2);
    expect(stderr).toContain("window");
  });

  test("goes on with a run without being told its experiment, and stops at ^C", async () => {
    const signals = new FakeProcess();
    const going = run(["train", "--resume", agent, "--steps", "100000", "--threads", "1"], { signals });
    const timer = setInterval(() => signals.emit("SIGINT"), 700);
    const { code, stdout, stderr } = await going.finally(() => clearInterval(timer));
    expect(signals.exited ?? code, stderr).toBe(130);
    expect(stdout).toMatch(/interrupted after \d+ episodes.*resume with: fwm train --resume/s);
  });
});

describe("fwm rollout", () => {
  test("plays on graphs the agent was not trained on, by its rules", async () => {
    const { episodes, experiment, step } = await rollOut(agent, { seed: 666, episodes: 8 });
    expect([experiment, step]).toEqual(["metarl-fwm", expect.any(Number)]);
    const { train } = sampleGraphSets(666, 40, 40);
    const known = Array.from({ length: 40 }, (_, i) => train.next.slice(i * 15, (i + 1) * 15).join());
    for (const episode of episodes) {
      expect(known).not.toContain(
        episode.graph
          .flat()
          .map((to) => to ?? -1)
          .join(),
      );
      checkEpisode(episode);
    }
    const sum = (of: "total" | "explorer" | "shortestPath"): number =>
      episodes.reduce((total, episode) => total + episode[of], 0);
    expect(sum("explorer")).toBeGreaterThan(sum("total"));
    expect(sum("explorer")).toBeLessThan(sum("shortestPath"));
    expect(new Set(episodes.map(({ graph }) => JSON.stringify(graph))).size).toBe(8);
  });

  test("gives the same episode for the same seed, and another for another", async () => {
    const [a, b, c] = await Promise.all(
      ["5", "5", "6"].map((seed) => run(["rollout", agent, "--seed", seed, "--json"])),
    );
    expect(a!.code).toBe(0);
    expect(a!.stdout).toBe(b!.stdout);
    expect(c!.stdout).not.toBe(a!.stdout);
  });

  test("prints every step, the graph, and what was tried", async () => {
    const { code, stdout } = await run(["rollout", agent, "--seed", "5", "--episodes", "2"]);
    await expect(rollOut(agent, { seed: 5, episodes: 1, states: 6 })).rejects.toThrow(
      /names for 5 locations/,
    );
    const { episodes } = await rollOut(agent, { seed: 5, episodes: 2 });
    expect(code).toBe(0);
    const parts = stdout.split(/^episode \d+\n/m).slice(1);
    expect(parts).toHaveLength(2);
    parts.forEach((text, i) => {
      const { graph, steps, total } = episodes[i]!;
      expect(text.match(/^\d+ /gm)).toHaveLength(30);
      expect(text).toContain(`return ${total.toFixed(2)}`);
      const tried = new Set(steps.map(({ agent: at, action }) => at * 3 + action));
      const shown = [...text.matchAll(/^ {3}([A-E]) (.*)$/gm)];
      expect(shown).toHaveLength(5);
      shown.forEach(([, , cells], from) => {
        const want = graph[from]!.map((to, action) => {
          const name = to === null ? "-" : "ABCDE"[to]!;
          return tried.has(from * 3 + action) ? name : `(${name})`;
        });
        expect(cells!.trim().split(/ +/)).toEqual(want);
      });
    });
  });

  test("animates on a terminal, each picture drawn over the one before", async () => {
    const { code, stdout } = await run(["rollout", agent, "--delay", "0"], { terminal: true });
    expect(code).toBe(0);
    const shown = stdout.replaceAll("\u001b", "ESC");
    const pictures = shown.split(/ESC\[\d+A/);
    expect(pictures).toHaveLength(30);
    const heights = pictures.slice(0, -1).map((picture) => picture.split("\n").length - 1);
    const moves = [...shown.matchAll(/ESC\[(\d+)A/g)].map(([, rows]) => Number(rows));
    expect(moves).toEqual(heights);
    expect(pictures[6]).toContain("step 7 of 30");
  });

  test("says what is wrong with a model of another kind", async () => {
    const story = join(scratch, "story");
    const words = ["train", "catbabi-qa-fwm", "--smoke", "--steps", "1", "--threads", "1", "--out", story];
    expect((await run(words)).code).toBe(0);
    const { code, stderr } = await run(["rollout", story]);
    expect(code).toBe(2);
    expect(stderr).toMatch(/a model of the kind catbabi, not an agent.*fwm ask/s);
    expect((await run(["rollout", join(scratch, "nowhere")])).code).toBe(3);
  });
});

/** The steps of an episode follow the graph and the released rules. */
function checkEpisode({ graph, steps, total, explorer, explorerSteps, shortestPath }: Rollout): void {
  checkWalk(graph, steps, total);
  checkWalk(graph, explorerSteps, explorer);
  expect([explorerSteps[0]!.agent, explorerSteps[0]!.goal]).toEqual([steps[0]!.agent, steps[0]!.goal]);
  for (const { policy } of steps) expect(policy.reduce((a, b) => a + b)).toBeCloseTo(1, 5);
  expect(shortestPath).toBeGreaterThan(total);
}

function checkWalk(graph: Rollout["graph"], steps: readonly WalkStep[], total: number): void {
  expect(steps).toHaveLength(30);
  let [sum, failures] = [0, 0];
  steps.forEach(({ agent: at, goal, action, to, reward, placed, total: so }, t) => {
    expect(to).toBe(graph[at]![action]);
    expect(reward).toBe(to === goal ? 10 : to === null ? -0.05 : 0);
    sum += reward;
    expect(so).toBeCloseTo(sum, 9);
    if (to !== goal) failures++;
    const timeIsUp = to !== goal && failures === 6;
    if (timeIsUp) failures = 0;
    expect(placed).toBe(to === goal || timeIsUp);
    const next = steps[t + 1];
    if (next && !placed) expect([next.agent, next.goal]).toEqual([to ?? at, goal]);
    if (next && placed) expect(next.goal).not.toBe(goal);
  });
  expect(total).toBeCloseTo(sum, 9);
}
