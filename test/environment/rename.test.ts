/** Graphs under other names: the same graphs, up to which location and which action is which. */
import { expect, test } from "vitest";
import { type Graphs, renameGraphs, sampleGraphSets } from "../../src/environment/index.ts";

const { train: graphs } = sampleGraphSets(5, 200, 1);
const naming = { seed: 3, episode: 8, first: 0 };

function renamed(change: Partial<typeof naming> = {}, from = 0, count = graphs.count): Int8Array {
  const next = graphs.next.slice(from * 15, (from + count) * 15);
  const into = new Int8Array(next.length).fill(99);
  renameGraphs({ count, states: 5, next }, { ...naming, first: from, ...change }, into);
  return into;
}

/** Successors of each location as a list of [action, to], -1 where there is no edge. */
const rows = (next: Int8Array, graph: number): number[][] =>
  [0, 1, 2, 3, 4].map((from) => [...next.subarray((graph * 5 + from) * 3, (graph * 5 + from + 1) * 3)]);

/** Every order of 0 to n - 1. */
const ordersOf = (n: number): number[][] =>
  n === 0
    ? [[]]
    : ordersOf(n - 1).flatMap((order) =>
        Array.from({ length: n }, (_, at) => [...order.slice(0, at), n - 1, ...order.slice(at)]),
      );

const known = new Map([3, 5].map((n) => [n, ordersOf(n)]));
const orders = (n: number): number[][] => known.get(n)!;

test("a graph under other names is the graph, with one exchange of locations and one of actions", () => {
  const next = renamed();
  let changed = 0;
  for (let graph = 0; graph < 60; graph++) {
    const [before, after] = [rows(graphs.next, graph), rows(next, graph)];
    const fits = orders(5).some((place) =>
      orders(3).some((label) =>
        before.every((row, from) =>
          row.every((to, action) => after[place[from]!]![label[action]!] === (to === -1 ? -1 : place[to])),
        ),
      ),
    );
    expect(fits, `graph ${graph}`).toBe(true);
    if (JSON.stringify(before) !== JSON.stringify(after)) changed++;
  }
  expect(changed).toBeGreaterThan(50);
});

test("names are known from seed, episode and graph", () => {
  expect(renamed()).toEqual(renamed());
  expect(renamed({ episode: 9 })).not.toEqual(renamed());
  expect(renamed({ seed: 4 })).not.toEqual(renamed());
  expect(renamed({}, 50, 30)).toEqual(renamed().slice(50 * 15, 80 * 15));
});

test("every name is as likely as the others", () => {
  const counts = new Map<string, number>();
  for (let episode = 0; episode < 50; episode++) {
    const next = renamed({ episode });
    for (let graph = 0; graph < graphs.count; graph++) {
      const key = rows(next, graph)
        .map((row) => row.filter((to) => to !== -1).length)
        .join("");
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
  }
  // Numbers of edges out of each location: an order of them and its mirror image come equally often.
  for (const [key, count] of counts) {
    if (count < 200) continue;
    const mirrored = counts.get([...key].reverse().join("")) ?? 0;
    expect(Math.abs(count - mirrored), key).toBeLessThan(6 * Math.sqrt(count + mirrored));
  }
});

test("no graph that agents are judged on is one of the training graphs under other names", () => {
  const sets = sampleGraphSets(666);
  /** The first in order of all a graph's tables: the same for a graph under whatever names. */
  const canonical = (table: Int8Array): string => {
    const into = new Int8Array(15);
    let first = "~";
    for (const place of orders(5)) {
      for (const label of orders(3)) {
        table.forEach((to, pair) => {
          into[place[Math.floor(pair / 3)]! * 3 + label[pair % 3]!] = to === -1 ? -1 : place[to]!;
        });
        const text = into.join();
        if (text < first) first = text;
      }
    }
    return first;
  };
  const all = ({ count, next }: Graphs): string[] =>
    Array.from({ length: count }, (_, graph) => canonical(next.subarray(graph * 15, (graph + 1) * 15)));
  const trained = new Set(all(sets.train));
  for (const split of ["valid", "test", "fresh"] as const) {
    expect(
      all(sets[split]).filter((graph) => trained.has(graph)),
      split,
    ).toEqual([]);
  }
}, 60_000);
