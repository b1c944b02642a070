/** The graph sampler: what every graph must be like, disjoint sets, and the listing's distribution. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Graphs, sampleGraphSets } from "../../src/environment/index.ts";
import { sampleGraphs } from "../../src/environment/sampler.ts";
import { UsageError } from "../../src/errors.ts";

/** G[action][from][to] as nested arrays, the paper's A. */
function adjacency(graphs: Graphs, graph: number): number[][][] {
  return [0, 1, 2].map((action) =>
    [0, 1, 2, 3, 4].map((from) =>
      [0, 1, 2, 3, 4].map((to) => (graphs.next[graph * 15 + from * 3 + action] === to ? 1 : 0)),
    ),
  );
}

/** Lengths of shortest paths by Floyd and Warshall. */
function distances(A: number[][][]): number[][] {
  const d = [0, 1, 2, 3, 4].map((i) =>
    [0, 1, 2, 3, 4].map((j) => (i === j ? 0 : A.some((matrix) => matrix[i]![j] === 1) ? 1 : Infinity)),
  );
  for (let k = 0; k < 5; k++)
    for (let i = 0; i < 5; i++)
      for (let j = 0; j < 5; j++) d[i]![j] = Math.min(d[i]![j]!, d[i]![k]! + d[k]![j]!);
  return d;
}

/** The period of a strongly connected graph: gcd of d(0,i) + 1 - d(0,j) over all edges i → j. */
function period(A: number[][][]): number {
  const d = distances(A)[0]!;
  let gcd = 0;
  for (let i = 0; i < 5; i++)
    for (let j = 0; j < 5; j++)
      if (A.some((matrix) => matrix[i]![j] === 1)) {
        let [a, b] = [gcd, Math.abs(d[i]! + 1 - d[j]!)];
        while (b) [a, b] = [b, a % b];
        gcd = a;
      }
  return gcd;
}

/** The paper's listing, line by line, with a plain sequential generator. */
function listing(random: () => number): number[][][] {
  const choice = <T>(list: T[]): T => list[Math.floor(random() * list.length)]!;
  for (;;) {
    const A = [0, 1, 2].map(() => [0, 1, 2, 3, 4].map(() => [0, 0, 0, 0, 0]));
    for (let from = 0; from < 5; from++) {
      const to = choice([0, 1, 2, 3, 4].filter((i) => i !== from));
      A[Math.floor(random() * 3)]![from]![to] = 1;
    }
    for (let to = 0; to < 5; to++) {
      const options: [number, number][] = [];
      for (let action = 0; action < 3; action++)
        for (let from = 0; from < 5; from++)
          if (A[action]![from]!.every((entry) => entry === 0) && from !== to) options.push([from, action]);
      const [from, action] = choice(options);
      A[action]![from]![to] = 1;
    }
    let Q: number[][] = [0, 1, 2, 3, 4].map((i) =>
      [0, 1, 2, 3, 4].map((j) => (A.some((m) => m[i]![j] === 1) ? 1 : 0)),
    );
    for (let n = 0; n < 5; n++) {
      const P = Q;
      Q = P.map((row) =>
        P.map((_, j) =>
          Math.min(
            1e9,
            row.reduce((sum, q, k) => sum + q * P[k]![j]!, 0),
          ),
        ),
      );
    }
    if (Q.flat().every((entry) => entry > 0)) return A;
  }
}

/** A generator that shares nothing with draws.ts (mulberry32). */
function sequential(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const tables = (graphs: Graphs) =>
  Array.from({ length: graphs.count }, (_, i) => graphs.next.slice(i * 15, i * 15 + 15).join());

describe("every sampled graph", () => {
  it("has ten edges, no loops, ways in and out of every state, and is connected and aperiodic", () => {
    fc.assert(
      fc.property(fc.nat(0xffffffff), (seed) => {
        const { train, valid, test, fresh } = sampleGraphSets(seed, 20, 7, 5);
        for (const graphs of [train, valid, test, fresh]) {
          for (let graph = 0; graph < graphs.count; graph++) {
            const A = adjacency(graphs, graph);
            expect(A.flat(2).reduce((sum, entry) => sum + entry, 0)).toBe(10);
            for (let state = 0; state < 5; state++) {
              expect(A.every((matrix) => matrix[state]![state] === 0)).toBe(true);
              // The table holds at most one successor per (action, from); the values must be locations.
              expect(A.some((matrix) => matrix[state]!.includes(1))).toBe(true);
              expect(A.some((matrix) => matrix.some((row) => row[state] === 1))).toBe(true);
            }
            expect(Math.max(...distances(A).flat())).toBeLessThan(5);
            expect(period(A)).toBe(1);
          }
        }
      }),
      { numRuns: 200 },
    );
  });

  it("comes from the distribution of the paper's listing", () => {
    const size = 3000;
    const ours = sampleGraphSets(11, size, 1).train;
    const random = sequential(5);
    // Sum of all distances, and number of distinct (from, to): both depend on every step of the listing.
    const features = (A: number[][][]) => {
      const d = distances(A).flat();
      return [d.reduce((a, b) => a + b, 0), d.filter((x) => x === 1).length, Math.max(...d)];
    };
    const a = Array.from({ length: size }, (_, i) => features(adjacency(ours, i)));
    const b = Array.from({ length: size }, () => features(listing(random)));
    for (let f = 0; f < 3; f++) {
      const values = [...new Set([...a, ...b].map((x) => x[f]!))];
      let chiSquare = 0;
      let freedom = -1;
      for (const value of values) {
        const inA = a.filter((x) => x[f] === value).length;
        const inB = b.filter((x) => x[f] === value).length;
        if (inA + inB < 20) continue; // too rare for the approximation
        chiSquare += (inA - inB) ** 2 / (inA + inB);
        freedom++;
      }
      expect(freedom).toBeGreaterThan(0);
      // Two-sample chi-square of equal sizes: four standard deviations above its mean.
      expect(chiSquare).toBeLessThan(freedom + 4 * Math.sqrt(2 * freedom));
    }
  });
});

describe("the sets", () => {
  it("are 600 graphs each, and none of one is in another, for many seeds", () => {
    for (let seed = 0; seed < 20; seed++) {
      const { train, valid, test, fresh } = sampleGraphSets(seed);
      expect([train.count, valid.count, test.count, fresh.count]).toEqual([600, 600, 600, 600]);
      const [learned, tested] = [new Set(tables(train)), new Set(tables(test))];
      expect(tables(train).filter((table) => tested.has(table))).toEqual([]);
      expect(tables(valid).filter((table) => tested.has(table) || learned.has(table))).toEqual([]);
      const others = new Set([...tested, ...learned, ...tables(valid)]);
      expect(tables(fresh).filter((table) => others.has(table))).toEqual([]);
    }
  });

  it("pass over a candidate that equals a refused graph", () => {
    // Chance does not repeat a graph in tests of any length, so the same candidates are offered again.
    const { graphs: first, candidate } = sampleGraphs(1, 50);
    const again = sampleGraphs(1, 50).graphs;
    expect(again).toEqual(first);
    const odd = {
      count: 25,
      states: 5,
      next: Int8Array.from(first.next.filter((_, i) => Math.floor(i / 15) % 2 === 1)),
    };
    const others = sampleGraphs(1, 30, 0, [odd]).graphs;
    const even = tables(first).filter((_, i) => i % 2 === 0);
    expect(tables(others)).toEqual([...even, ...tables(sampleGraphs(1, 5, candidate).graphs)]);
  });

  it("are the same for the same seed, and smaller sets are the beginnings of larger ones", () => {
    const whole = sampleGraphSets(666);
    expect(sampleGraphSets(666)).toEqual(whole);
    const part = sampleGraphSets(666, 10, 600);
    expect(part.test).toEqual(whole.test);
    expect(part.train.next).toEqual(whole.train.next.slice(0, 150));
    expect(sampleGraphSets(667).test.next).not.toEqual(whole.test.next);
  });

  it("refuse a seed or a size that cannot be", () => {
    expect(() => sampleGraphSets(-1)).toThrow(UsageError);
    expect(() => sampleGraphSets(1.5)).toThrow(/whole number/);
    expect(() => sampleGraphSets(1, 0)).toThrow(/number of graphs/);
  });
});
