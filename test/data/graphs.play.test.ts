/** Random play and shortest paths: against exact expectations, and against the specification's values. */
import { describe, expect, it } from "vitest";
import {
  checkPlay,
  GraphEnvironment,
  type Graphs,
  playEpisode,
  randomPlayer,
  sampleGraphSets,
  shortestActions,
  shortestPathPlayer,
} from "../../src/data/graphs.ts";

/**
 * The expected total of a player on one graph, exactly: backwards over the 30 steps, over every reward
 * location, agent location and count of failures. `act` gives the probabilities of the three actions.
 */
function expectedTotal(
  next: (from: number, action: number) => number,
  act: (reward: number, at: number) => number[],
  resets: boolean,
): number {
  const every = [0, 1, 2, 3, 4];
  type Values = number[][][]; // [reward][agent][failures]
  let V: Values = every.map(() => every.map(() => [0, 0, 0, 0, 0, 0]));
  const mean = (values: number[]) => values.reduce((a, b) => a + b, 0) / values.length;
  for (let left = 0; left < 30; left++) {
    const after = V;
    const onto = every.map((reward) =>
      [0, 1, 2, 3, 4, 5].map((failures) =>
        mean(every.filter((at) => at !== reward).map((at) => after[reward]![at]![failures]!)),
      ),
    );
    const anew = every.map((old) =>
      [0, 1, 2, 3, 4, 5].map((failures) =>
        mean(every.filter((reward) => reward !== old).map((reward) => onto[reward]![failures]!)),
      ),
    );
    V = every.map((reward) =>
      every.map((at) =>
        [0, 1, 2, 3, 4, 5].map((failures) =>
          act(reward, at).reduce((sum, probability, action) => {
            const to = next(at, action);
            if (to === reward) return sum + probability * (10 + anew[reward]![resets ? 0 : failures]!);
            const paid = to === -1 ? -0.05 : 0;
            const then =
              failures === 5 ? anew[reward]![0]! : after[reward]![to === -1 ? at : to]![failures + 1]!;
            return sum + probability * (paid + then);
          }, 0),
        ),
      ),
    );
  }
  const starts = every.flatMap((reward) =>
    every.filter((at) => at !== reward).map((at) => V[reward]![at]![0]!),
  );
  return mean(starts);
}

function nextOf(graphs: Graphs, graph: number) {
  return (from: number, action: number) => graphs.next[graph * 15 + from * 3 + action]!;
}

describe("shortestActions", () => {
  it("leads from every state to every goal in as many steps as the distance", () => {
    const { train: graphs } = sampleGraphSets(9, 300, 1);
    const first = shortestActions(graphs);
    for (let graph = 0; graph < graphs.count; graph++) {
      const next = nextOf(graphs, graph);
      for (let goal = 0; goal < 5; goal++) {
        for (let from = 0; from < 5; from++) {
          // The distance by spreading a set of states along the edges.
          let reached = new Set([from]);
          let distance = 0;
          for (; !reached.has(goal) && distance < 6; distance++) {
            reached = new Set(
              [...reached].flatMap((s) => [0, 1, 2].map((a) => next(s, a))).filter((s) => s >= 0),
            );
          }
          let at = from;
          for (let step = 0; step < distance; step++) {
            expect(at).not.toBe(goal);
            at = next(at, first[(graph * 5 + goal) * 5 + at]!);
          }
          expect(at).toBe(goal);
        }
      }
    }
  });
});

describe("mean totals", () => {
  const seed = 21;
  const { train: graphs } = sampleGraphSets(seed, 200, 1);

  it.each([
    { player: "random", timerOnSuccess: "kept" },
    { player: "random", timerOnSuccess: "reset" },
    { player: "shortest path", timerOnSuccess: "kept" },
    { player: "shortest path", timerOnSuccess: "reset" },
  ] as const)("of $player play, timer $timerOnSuccess, are those of the exact calculation", (line) => {
    const first = shortestActions(graphs);
    let exact = 0;
    for (let graph = 0; graph < graphs.count; graph++) {
      const act =
        line.player === "random"
          ? () => [1 / 3, 1 / 3, 1 / 3]
          : (reward: number, at: number) =>
              [0, 1, 2].map((a) => (a === first[(graph * 5 + reward) * 5 + at] ? 1 : 0));
      exact += expectedTotal(nextOf(graphs, graph), act, line.timerOnSuccess === "reset") / graphs.count;
    }
    const environment = new GraphEnvironment({
      graphs,
      seed,
      split: "train",
      rules: "released",
      timerOnSuccess: line.timerOnSuccess,
    });
    const player = line.player === "random" ? randomPlayer(seed, "train") : shortestPathPlayer(graphs);
    const episodes = 400;
    const totals = Array.from({ length: episodes }, (_, e) => playEpisode(environment, e, player));
    const mean = totals.reduce((a, b) => a + b, 0) / episodes;
    const variance = totals.reduce((sum, total) => sum + (total - mean) ** 2, 0) / (episodes - 1);
    const standardError = Math.sqrt(variance / episodes);
    // About 0.07: small enough to tell the rules apart (0.8 for random play, 4.8 for shortest paths).
    expect(standardError).toBeLessThan(0.1);
    expect(Math.abs(mean - exact)).toBeLessThan(4 * standardError);
  });

  it("agree with the values of the specification", () => {
    const seeds = Array.from({ length: 20 }, (_, i) => i);
    const lines = checkPlay(seeds, 8);
    for (const line of lines) {
      // Ours has a known standard error. Theirs is rounded to 0.1 and rests on an unstated number of graph
      // draws, at worst one: its standard deviation, without our episode noise, is 0.2 for random play and
      // 0.65 for shortest paths (measured between draws with the exact calculation).
      const theirs = 0.05 + (line.player === "random" ? 0.2 : 0.65);
      expect(line.standardError).toBeLessThan(line.player === "random" ? 0.1 : 0.2);
      expect(
        Math.abs(line.mean - line.expected),
        `${line.player}, ${line.rules}: ${line.mean} ± ${line.standardError}, expected ${line.expected}`,
      ).toBeLessThan(theirs + 3 * line.standardError);
    }
    // On the same graphs, with the same draws, the paper's timer costs random play and helps shortest paths.
    const [randomReleased, randomPaper, shortestReleased, shortestPaper] = lines.map((line) => line.mean);
    expect(randomReleased! - randomPaper!).toBeGreaterThan(0.4);
    expect(shortestPaper! - shortestReleased!).toBeGreaterThan(4);
  });
});
