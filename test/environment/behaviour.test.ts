/** What agents do with what they have seen: against a plain bookkeeping of every choice, and of baselines that are known. */
import { expect, test } from "vitest";
import {
  type Baseline,
  type Behaviour,
  BehaviourCounter,
  explorerBaseline,
  GraphEnvironment,
  ReadCounter,
  randomBaseline,
  runBaseline,
  sampleGraphs,
  shortestPathBaseline,
} from "../../src/environment/index.ts";

const { graphs } = sampleGraphs(3, 40);

function behaviourOf(baseline: Baseline): Behaviour {
  const environment = new GraphEnvironment({ graphs, seed: 1, split: "valid", rules: "released" });
  const counter = new BehaviourCounter();
  for (let episode = 0; episode < 5; episode++) runBaseline(environment, episode, baseline, counter);
  return counter.result();
}

/** The same counts by another way: maps of what was seen, and paths searched forwards. */
function plainCounts(baseline: Baseline): Behaviour {
  const environment = new GraphEnvironment({ graphs, seed: 1, split: "valid", rules: "released" });
  const planned = [1, 2, 3, 4].map(() => ({ chosen: 0, of: 0 }));
  const open = { explored: 0, forgot: 0, walked: 0 };
  let [tried, seen] = [0, 0];
  const chosen = new Uint8Array(environment.agents);
  for (let episode = 0; episode < 5; episode++) {
    environment.reset(episode);
    const maps = Array.from({ length: environment.agents }, () => new Map<string, number>());
    while (!environment.done) {
      baseline(environment, chosen);
      const [at, goal] = [[...environment.agentAt], [...environment.rewardAt]];
      maps.forEach((map, agent) => {
        const [from, to, action] = [at[agent]!, goal[agent]!, chosen[agent]!];
        const reached = (start: number, steps: number): boolean =>
          steps === 0
            ? start === to
            : [0, 1, 2].some(
                (a) => (map.get(`${start} ${a}`) ?? -1) >= 0 && reached(map.get(`${start} ${a}`)!, steps - 1),
              );
        const steps = [1, 2, 3, 4].find((n) => reached(from, n));
        const led = map.get(`${from} ${action}`);
        if (steps !== undefined) {
          planned[steps - 1]!.of++;
          if (led !== undefined && led >= 0 && reached(led, steps - 1)) planned[steps - 1]!.chosen++;
        } else if ([0, 1, 2].some((a) => !map.has(`${from} ${a}`))) {
          open[led === undefined ? "explored" : led === -1 ? "forgot" : "walked"]++;
        }
      });
      environment.step(chosen);
      maps.forEach((map, agent) => {
        if (environment.previousAction[agent] === -1) return; // placed anew at a timeout
        const to = graphs.next[(agent * 5 + at[agent]!) * 3 + chosen[agent]!]!;
        map.set(`${at[agent]} ${chosen[agent]}`, to);
      });
    }
    for (const map of maps) {
      tried += map.size;
      seen += [...map.values()].filter((to) => to !== -1).length;
    }
  }
  const of = open.explored + open.forgot + open.walked;
  const tally = (count: number) => ({ chosen: count, of });
  return {
    planned,
    explored: tally(open.explored),
    forgot: tally(open.forgot),
    walked: tally(open.walked),
    tried: tried / (5 * graphs.count),
    seen: seen / (5 * graphs.count),
  };
}

test("choices are counted as a plain bookkeeping counts them", () => {
  const baselines = [
    () => randomBaseline(1, "valid"),
    () => explorerBaseline(),
    () => shortestPathBaseline(graphs),
  ];
  for (const make of baselines) expect(behaviourOf(make())).toEqual(plainCounts(make()));
});

test("shares of edges in reads: those of a plain bookkeeping, and of reads that take all writes alike", () => {
  const environment = new GraphEnvironment({ graphs, seed: 1, split: "valid", rules: "released" });
  const [agents, steps] = [environment.agents, environment.steps];
  const counter = new ReadCounter();
  const baseline = randomBaseline(1, "valid");
  const chosen = new Uint8Array(agents);
  /** The edge that each write is about, and where agent and reward were, [step][agent]. */
  const edges: (readonly [number, number] | undefined)[][] = [];
  const places: (readonly [number, number])[][] = [];
  environment.reset(0);
  let moved: (readonly [number, number] | undefined)[] = Array.from({ length: agents });
  while (!environment.done) {
    edges.push(moved);
    const now = Array.from(
      { length: agents },
      (_, i) => [environment.agentAt[i]!, environment.rewardAt[i]!] as const,
    );
    places.push(now);
    baseline(environment, chosen);
    counter.before(environment, chosen);
    environment.step(chosen);
    counter.after(environment);
    moved = now.map(([from], i) => {
      const to = graphs.next[(i * 5 + from) * 3 + chosen[i]!]!;
      return environment.previousAction[i] === -1 || to === -1 ? undefined : [from, to];
    });
  }
  const shares = (of: (step: number, write: number) => number): Float32Array =>
    Float32Array.from({ length: agents * steps * steps }, (_, i) =>
      of(Math.floor(i / steps) % steps, i % steps),
    );
  const alike = shares((step, write) => (write <= step ? 1 / (step + 1) : 0));
  const newest = shares((step, write) => (write === step ? 1 : 0));
  counter.count([alike, newest]);
  const want = { theStep: [0, 0, 0], firstOfTwo: [0, 0, 0], secondOfTwo: [0, 0, 0] };
  const add = (part: keyof typeof want, are: readonly boolean[]): void => {
    want[part][0]!++;
    want[part][1]! += are.filter(Boolean).length / are.length;
    if (are.at(-1)) want[part][2]!++;
  };
  for (let agent = 0; agent < agents; agent++) {
    for (let step = 0; step < steps; step++) {
      const seen = edges.slice(0, step + 1).map((row) => row[agent]);
      const [here, goal] = places[step]![agent]!;
      const has = (from: number, to: number): boolean =>
        seen.some((edge) => edge?.[0] === from && edge[1] === to);
      const between = [0, 1, 2, 3, 4].filter((mid) => has(here, mid) && has(mid, goal));
      if (has(here, goal))
        add(
          "theStep",
          seen.map((edge) => edge?.[0] === here && edge[1] === goal),
        );
      else if (between.length > 0) {
        add(
          "firstOfTwo",
          seen.map((edge) => edge?.[0] === here && between.includes(edge[1])),
        );
        add(
          "secondOfTwo",
          seen.map((edge) => edge !== undefined && between.includes(edge[0]) && edge[1] === goal),
        );
      }
    }
  }
  const got = counter.result();
  for (const [part, [choices, alikeSum, newestSum]] of Object.entries(want)) {
    const match = got[part as keyof typeof want]!;
    expect(match.choices).toBe(choices);
    expect(match.writes).toBeCloseTo(alikeSum! / choices!, 9);
    expect(match.reads[0]).toBeCloseTo(alikeSum! / choices!, 5);
    expect(match.reads[1]).toBeCloseTo(newestSum! / choices!, 9);
  }
  expect(want.firstOfTwo[0]).toBeGreaterThan(50);
});

test("the explorer forgets nothing and takes a known step; random actions do neither", () => {
  const explorer = behaviourOf(explorerBaseline());
  expect(explorer.forgot.chosen).toBe(0);
  expect(explorer.planned[0]!.chosen).toBe(explorer.planned[0]!.of);
  expect(explorer.planned[0]!.of).toBeGreaterThan(500);
  const random = behaviourOf(randomBaseline(1, "valid"));
  expect(random.forgot.chosen).toBeGreaterThan(100);
  expect(random.planned[0]!.chosen / random.planned[0]!.of).toBeLessThan(0.6);
});
