/** The vectorised environment against a slow one in plain loops, step by step, under every rule set. */
import { describe, expect, it } from "vitest";
import {
  GraphEnvironment,
  type GraphRules,
  graphRules,
  sampleGraphSets,
} from "../../src/environment/index.ts";
import { ShapeError, UsageError } from "../../src/errors.ts";

/** One agent of the reference: the rules written once more, sharing no code with the environment. */
interface Agent {
  /** A[action][from][to], as the paper writes a graph. */
  A: number[][][];
  reward: number;
  at: number;
  failures: number;
  previous: number | "none";
  last: number;
  sum: number;
}

/** Moves one agent; `placed` says that reward and agent must now be placed anew. */
function referenceStep(agent: Agent, action: number, rules: GraphRules): { placed: boolean } {
  const successors = agent.A[action]![agent.at]!;
  const to = successors.indexOf(1);
  agent.previous = action;
  if (to === agent.reward) {
    agent.last = 10;
    agent.sum += 10;
    if (rules.timerOnSuccess === "reset") agent.failures = 0;
    return { placed: true };
  }
  agent.last = to === -1 ? -0.05 : 0;
  agent.sum += agent.last;
  if (to !== -1) agent.at = to;
  agent.failures += 1;
  if (agent.failures > 5) {
    agent.failures = 0;
    agent.previous = "none";
    return { placed: true };
  }
  return { placed: false };
}

function referenceObservation(agent: Agent, step: number, steps: number, rules: GraphRules): number[] {
  const oneHot = (size: number, index: number) =>
    Array.from({ length: size }, (_, i) => (i === index ? 1 : 0));
  const previous = agent.previous === "none" ? -1 : agent.previous;
  const middle =
    rules.layout === "paper"
      ? [...oneHot(3, previous), previous === -1 ? 1 : 0, 1]
      : [0, ...oneHot(3, previous), 1];
  const reward = { none: 0, success: agent.last === 10 ? 1 : 0, last: agent.last, cumulative: agent.sum }[
    rules.rewardInput
  ];
  return [...oneHot(5, agent.reward), ...oneHot(5, agent.at), ...middle, step / steps, reward].map(
    Math.fround,
  );
}

const allRules: GraphRules[] = (["none", "success", "last", "cumulative"] as const).flatMap((rewardInput) =>
  (["reset", "kept"] as const).flatMap((timerOnSuccess) =>
    (["paper", "released"] as const).map((layout) => ({ rewardInput, timerOnSuccess, layout })),
  ),
);

const seed = 3;
const { train } = sampleGraphSets(seed, 31, 7);

describe("the environment", () => {
  it.each(allRules)("agrees with plain loops: $rewardInput, $timerOnSuccess, $layout", (rules) => {
    const environment = new GraphEnvironment({
      graphs: train,
      seed,
      split: "train",
      rules: "paper",
      ...rules,
    });
    const count = environment.agents;
    const observation = new Float32Array(count * 17);
    const actions = new Int32Array(count);
    let successes = 0;
    let timeouts = 0;
    for (let episode = 0; episode < 3; episode++) {
      environment.reset(episode);
      const agents: Agent[] = Array.from({ length: count }, (_, i) => ({
        A: [0, 1, 2].map((action) =>
          [0, 1, 2, 3, 4].map((from) =>
            [0, 1, 2, 3, 4].map((to) => (train.next[i * 15 + from * 3 + action] === to ? 1 : 0)),
          ),
        ),
        reward: environment.rewardAt[i]!,
        at: environment.agentAt[i]!,
        failures: 0,
        previous: "none",
        last: 0,
        sum: 0,
      }));
      for (const agent of agents) expect(agent.at).not.toBe(agent.reward);
      for (let step = 0; step < 30; step++) {
        environment.observe(observation);
        agents.forEach((agent, i) => {
          const row = [...observation.subarray(i * 17, i * 17 + 17)];
          expect(row).toEqual(referenceObservation(agent, step, 30, rules));
          actions[i] = (i * 7 + step * step + episode * 5 + agent.at) % 3;
        });
        const rewards = environment.step(actions);
        agents.forEach((agent, i) => {
          const oldReward = agent.reward;
          const { placed } = referenceStep(agent, actions[i]!, rules);
          expect(rewards[i]).toBe(Math.fround(agent.last));
          expect(environment.timer[i]).toBe(agent.failures);
          if (placed) {
            // Where to is random: any legal place will do, and the spread is tested below.
            agent.reward = environment.rewardAt[i]!;
            agent.at = environment.agentAt[i]!;
            expect(agent.reward).not.toBe(oldReward);
            expect(agent.at).not.toBe(agent.reward);
            if (agent.last === 10) successes++;
            else timeouts++;
          }
          expect([environment.rewardAt[i], environment.agentAt[i]]).toEqual([agent.reward, agent.at]);
        });
      }
      expect(environment.done).toBe(true);
      const mean = agents.reduce((sum, agent) => sum + agent.sum, 0) / count;
      expect(environment.meanReturn()).toBeCloseTo(mean, 9);
    }
    // The comparison has to have seen both reasons for a new placement.
    expect(successes).toBeGreaterThan(100);
    expect(timeouts).toBeGreaterThan(100);
  });

  it("has the paper's and the released rules by name, and lets an option win", () => {
    const make = (options: Partial<GraphRules> & { rules: "paper" | "released" }) =>
      new GraphEnvironment({ graphs: train, seed, split: "train", ...options }).rules;
    expect(make({ rules: "paper" })).toEqual(graphRules.paper);
    expect(make({ rules: "released" })).toEqual(graphRules.released);
    expect(make({ rules: "released", rewardInput: "last" })).toEqual({
      rewardInput: "last",
      timerOnSuccess: "kept",
      layout: "released",
    });
  });

  it("writes observations at an offset and leaves the rest alone", () => {
    const environment = new GraphEnvironment({ graphs: train, seed, split: "train", rules: "paper" });
    environment.reset(0);
    const alone = new Float32Array(31 * 17);
    environment.observe(alone);
    const stored = new Float32Array(3 * 31 * 17).fill(9);
    environment.observe(stored, 31 * 17);
    expect(stored.subarray(31 * 17, 2 * 31 * 17)).toEqual(alone);
    expect(stored.subarray(0, 31 * 17).every((x) => x === 9)).toBe(true);
    expect(stored.subarray(2 * 31 * 17).every((x) => x === 9)).toBe(true);
  });

  it("says what is wrong with a call it cannot answer", () => {
    const environment = new GraphEnvironment({
      graphs: train,
      seed,
      split: "train",
      rules: "paper",
      steps: 1,
    });
    const actions = new Uint8Array(31);
    expect(() => environment.step(actions)).toThrow(/reset/);
    environment.reset(0);
    expect(() => environment.step(new Uint8Array(30))).toThrow(ShapeError);
    expect(() => environment.observe(new Float32Array(31 * 17 - 1))).toThrow(ShapeError);
    environment.step(actions);
    expect(() => environment.step(actions)).toThrow(/episode is over/);
    environment.reset(1);
    actions[5] = 3;
    expect(() => environment.step(actions)).toThrow(/no such action/);
    expect(() => environment.reset(-1)).toThrow(UsageError);
  });
});

describe("places", () => {
  const actionsAt = (step: number) => Uint8Array.from({ length: 31 }, (_, i) => (i + step) % 3);

  function play(environment: GraphEnvironment, episode: number): number[] {
    const trace: number[] = [];
    environment.reset(episode);
    while (!environment.done) {
      trace.push(...environment.rewardAt, ...environment.agentAt);
      environment.step(actionsAt(environment.stepsTaken));
    }
    return trace;
  }

  it("depend on seed, split and episode, not on what was played before", () => {
    const make = (options: { seed?: number; split?: "train" | "test" } = {}) =>
      new GraphEnvironment({ graphs: train, seed, split: "train", rules: "paper", ...options });
    const long = make();
    const traces = [0, 1, 2, 3].map((episode) => play(long, episode));
    expect(play(make(), 3)).toEqual(traces[3]);
    expect(play(long, 1)).toEqual(traces[1]);
    expect(traces[0]).not.toEqual(traces[1]);
    expect(play(make({ seed: 4 }), 3)).not.toEqual(traces[3]);
    expect(play(make({ split: "test" }), 3)).not.toEqual(traces[3]);
  });

  it("of an agent do not depend on how many agents there are", () => {
    const few = new GraphEnvironment({
      graphs: { count: 5, states: 5, next: train.next.slice(0, 75) },
      seed,
      split: "train",
      rules: "paper",
    });
    const many = new GraphEnvironment({ graphs: train, seed, split: "train", rules: "paper" });
    few.reset(2);
    many.reset(2);
    while (!few.done) {
      const actions = actionsAt(few.stepsTaken);
      few.step(actions.slice(0, 5));
      many.step(actions);
      expect(few.rewardAt).toEqual(many.rewardAt.slice(0, 5));
      expect(few.agentAt).toEqual(many.agentAt.slice(0, 5));
    }
  });

  it("are spread evenly, at the start and after", () => {
    const environment = new GraphEnvironment({ graphs: train, seed, split: "train", rules: "released" });
    const atStart = new Map<string, number>();
    const after = new Map<string, number>();
    const count = (map: Map<string, number>, key: string) => map.set(key, (map.get(key) ?? 0) + 1);
    const place = (i: number) => `${environment.rewardAt[i]},${environment.agentAt[i]}`;
    for (let episode = 0; episode < 200; episode++) {
      environment.reset(episode);
      for (let i = 0; i < 31; i++) count(atStart, place(i));
      while (!environment.done) {
        const before = environment.rewardAt.slice();
        environment.step(actionsAt(environment.stepsTaken));
        for (let i = 0; i < 31; i++) {
          const old = before[i]!;
          if (environment.rewardAt[i] !== old) count(after, `${old}>${place(i)}`);
        }
      }
    }
    const chiSquare = (counts: number[], expected: number) =>
      counts.reduce((sum, n) => sum + (n - expected) ** 2 / expected, 0);
    // 20 starts; after, each of 16 places given the old reward. Five deviations above the chi-square mean.
    expect(atStart.size).toBe(20);
    expect(chiSquare([...atStart.values()], (200 * 31) / 20)).toBeLessThan(19 + 5 * Math.sqrt(38));
    expect(after.size).toBe(80);
    for (let old = 0; old < 5; old++) {
      const counts = [...after].filter(([key]) => key.startsWith(`${old}>`)).map(([, n]) => n);
      const expected = counts.reduce((sum, n) => sum + n, 0) / 16;
      expect(chiSquare(counts, expected)).toBeLessThan(15 + 5 * Math.sqrt(30));
    }
  });
});
