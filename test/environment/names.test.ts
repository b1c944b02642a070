/** Graphs of other sizes, and more names than locations: what is drawn, what is observed, and what stays the same. */
import { expect, it } from "vitest";
import {
  edgesOf,
  explorerBaseline,
  GraphEnvironment,
  type GraphEnvironmentOptions,
  observationSizeOf,
  pairsOf,
  randomBaseline,
  runBaseline,
  sampleGraphSets,
  shortestPathBaseline,
} from "../../src/environment/index.ts";
import { sampleGraphs } from "../../src/environment/sampler.ts";

const seed = 4;

function world(states: number, options: Partial<GraphEnvironmentOptions> = {}): GraphEnvironment {
  const graphs = sampleGraphSets(seed, 50, 1, 1, states).train;
  return new GraphEnvironment({ graphs, seed, split: "train", rules: "released", ...options });
}

/** The two one-hot parts of every agent's observation, as numbers. */
function named(environment: GraphEnvironment): { reward: number; agent: number }[] {
  const { names, agents } = environment;
  const length = observationSizeOf(names);
  const into = new Float32Array(agents * length);
  environment.observe(into);
  return Array.from({ length: agents }, (_, agent) => {
    const row = [...into.subarray(agent * length, (agent + 1) * length)];
    const [reward, own] = [row.slice(0, names), row.slice(names, 2 * names)];
    for (const part of [reward, own]) {
      if (part.filter((value) => value !== 0).join() !== "1") throw new Error(`not one-hot: ${part.join()}`);
    }
    return { reward: reward.indexOf(1), agent: own.indexOf(1) };
  });
}

it.each([3, 7, 10, 20])(
  "graphs of %i locations have two edges each, no loops, and lead everywhere",
  (states) => {
    const { graphs } = sampleGraphs(seed, 40, 0, [], states);
    const pairs = pairsOf(graphs);
    expect(graphs.next.length).toBe(40 * pairs);
    for (let graph = 0; graph < graphs.count; graph++) {
      const table = graphs.next.subarray(graph * pairs, (graph + 1) * pairs);
      expect(table.filter((to) => to !== -1).length).toBe(edgesOf(graphs));
      const reached = new Set([0]);
      for (const from of reached) {
        for (const to of table.subarray(from * 3, from * 3 + 3)) {
          expect(to).not.toBe(from);
          if (to !== -1) reached.add(to);
        }
      }
      expect(reached.size).toBe(states);
    }
  },
);

it("a size that cannot be is refused", () => {
  for (const states of [2, 21, 4.5])
    expect(() => sampleGraphs(seed, 1, 0, [], states)).toThrow(/from 3 to 20/);
  expect(() => world(7, { names: 6 })).toThrow(/more locations than there are names/);
});

it("with as many names as locations, a location has its own", () => {
  const environment = world(7);
  for (let episode = 0; episode < 3; episode++) {
    environment.reset(episode);
    named(environment).forEach(({ reward, agent }, i) => {
      expect([reward, agent]).toEqual([environment.rewardAt[i], environment.agentAt[i]]);
    });
  }
});

it("with more, it keeps one name through an episode, no two share one, and all come up", () => {
  const environment = world(5, { names: 12 });
  const act = randomBaseline(seed, "train");
  const chosen = new Uint8Array(environment.agents);
  const counts = new Map<string, number>();
  for (let episode = 0; episode < 20; episode++) {
    environment.reset(episode);
    const nameOf = new Map<string, number>();
    while (!environment.done) {
      named(environment).forEach(({ reward, agent }, i) => {
        for (const [location, name] of [
          [environment.rewardAt[i], reward],
          [environment.agentAt[i], agent],
        ] as const) {
          const key = `${i} ${location}`;
          if ((nameOf.get(key) ?? name) !== name) throw new Error(`${key} was called ${nameOf.get(key)}`);
          nameOf.set(key, name);
        }
      });
      act(environment, chosen);
      environment.step(chosen);
    }
    for (let i = 0; i < environment.agents; i++) {
      const own = [...nameOf].filter(([key]) => key.startsWith(`${i} `));
      expect(new Set(own.map(([, name]) => name)).size).toBe(own.length);
      for (const [key, name] of own) {
        const pair = `${key.split(" ")[1]} ${name}`;
        counts.set(pair, (counts.get(pair) ?? 0) + 1);
      }
    }
  }
  // 5 locations with 12 names each, 1,000 draws: 83 apiece.
  expect(counts.size).toBe(60);
  for (const count of counts.values()) expect(Math.abs(count - 83.3)).toBeLessThan(5 * Math.sqrt(83.3));
});

it("names depend on the episode and the agent alone, and change nothing else", () => {
  const [plain, many] = [world(7), world(7, { names: 10 })];
  expect(runBaseline(many, 3, explorerBaseline())).toBe(runBaseline(plain, 3, explorerBaseline()));
  const few = world(7, { names: 10, graphs: { ...sampleGraphSets(seed, 50, 1, 1, 7).train, count: 20 } });
  for (const environment of [many, few]) environment.reset(8);
  expect(named(few)).toEqual(named(many).slice(0, 20));
});

it("shortest paths are the best there is, on graphs of any size", () => {
  const environment = world(10);
  const returns = [
    randomBaseline(seed, "train"),
    explorerBaseline(),
    shortestPathBaseline(environment.graphs),
  ].map((baseline) => runBaseline(environment, 0, baseline));
  expect(returns).toEqual([...returns].sort((a, b) => a - b));
  expect(returns[2]! - returns[1]!).toBeGreaterThan(10);
});
