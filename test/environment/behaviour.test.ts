/** What agents do with what they have seen: against a plain bookkeeping of every choice, and of baselines that are known. */
import { expect, test } from "vitest";
import {
  type Baseline,
  type Behaviour,
  BehaviourCounter,
  explorerBaseline,
  GraphEnvironment,
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

test("the explorer forgets nothing and takes a known step; random actions do neither", () => {
  const explorer = behaviourOf(explorerBaseline());
  expect(explorer.forgot.chosen).toBe(0);
  expect(explorer.planned[0]!.chosen).toBe(explorer.planned[0]!.of);
  expect(explorer.planned[0]!.of).toBeGreaterThan(500);
  const random = behaviourOf(randomBaseline(1, "valid"));
  expect(random.forgot.chosen).toBeGreaterThan(100);
  expect(random.planned[0]!.chosen / random.planned[0]!.of).toBeLessThan(0.6);
});
