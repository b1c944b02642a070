/**
 * The graphs of the meta-reinforcement-learning experiment: small directed graphs with labelled edges,
 * sampled by the algorithm of the paper's listing "sample_adjacency_matrix".
 *
 *   code          paper               meaning
 *   next          A[action,from,to]   next[graph, from, action] = to, or -1 where the action has no edge
 *   candidate k   one turn of "while True"; its draws are addressed by k
 *
 * Departures from the paper: the random numbers are addressed (draws.ts), not those of NumPy's generator,
 * so a seed names other graphs of the same distribution. The paper's text says that no two actions lead to
 * the same location; its listing does allow that two actions of a state share a destination (the figure
 * labels an edge with a set of actions), and the listing is followed.
 */
import { UsageError } from "../errors.ts";
import { below, purpose } from "./draws.ts";

/** Number of locations of every graph. */
export const states = 5;

/** Number of actions; at every location some of them lead nowhere. */
export const actions = 3;

/** Pairs of location and action that have an edge, in every graph: one out of and one into each location. */
export const edges = 2 * states;

/** A set of graphs as one table of successors. */
export interface Graphs {
  /** How many graphs there are. */
  readonly count: number;
  /** next[(graph * states + from) * actions + action]: the location the edge leads to, or -1 for no edge. */
  readonly next: Int8Array;
}

/** The sets of an experiment. */
const graphSplits = ["train", "valid", "test", "fresh"] as const;

/** The name of a set. */
export type GraphSplit = (typeof graphSplits)[number];

/** The four sets of an experiment: no graph of one equals a graph of another. */
export type GraphSets = Readonly<Record<GraphSplit, Graphs>>;

const tableSize = states * actions;

/**
 * Draws the test graphs, then the training graphs, the validation graphs and the fresh ones from one seed; a graph of an
 * earlier set is drawn again. The paper has 600 for training and for testing, one per agent, and none for validation; the
 * released code's seed is 666. Fresh ones, as many as for validation, are for agents whose recipe was tuned on the test graphs.
 */
export function sampleGraphSets(
  seed: number,
  trainCount = 600,
  testCount = trainCount,
  validCount = testCount,
): GraphSets {
  const { graphs: test, candidate } = sampleGraphs(seed, testCount);
  const { graphs: train, candidate: next } = sampleGraphs(seed, trainCount, candidate, [test]);
  const { graphs: valid, candidate: last } = sampleGraphs(seed, validCount, next, [test, train]);
  const { graphs: fresh } = sampleGraphs(seed, validCount, last, [test, train, valid]);
  return { train, valid, test, fresh };
}

/**
 * Draws `count` graphs that pass the listing's test and equal none of `unlike`, beginning with the seed's
 * candidate `candidate`; also returns the candidate to go on with.
 */
export function sampleGraphs(
  seed: number,
  count: number,
  candidate = 0,
  unlike: readonly Graphs[] = [],
): { graphs: Graphs; candidate: number } {
  checkSeed(seed);
  if (!Number.isInteger(count) || count < 1) {
    throw new UsageError("graphs: the number of graphs must be a whole number above 0", { count });
  }
  const refused = new Set<string>();
  for (const { count: others, next } of unlike) {
    for (let graph = 0; graph < others; graph++) {
      refused.add(next.subarray(graph * tableSize, (graph + 1) * tableSize).join());
    }
  }
  const next = new Int8Array(count * tableSize);
  let following = candidate;
  for (let graph = 0; graph < count; graph++) {
    const table = next.subarray(graph * tableSize, (graph + 1) * tableSize);
    do drawCandidate(table, seed, following++);
    while (!mixes(table) || refused.has(table.join()));
  }
  return { graphs: { count, next }, candidate: following };
}

/** The graphs of some agents, `first` and those after it. */
export function someGraphs({ next }: Graphs, first: number, count: number): Graphs {
  return { count, next: next.subarray(first * tableSize, (first + count) * tableSize) };
}

/** Throws unless `seed` is a whole number that fits in 32 bits, as the addressed draws need. */
export function checkSeed(seed: number): void {
  if (!Number.isInteger(seed) || seed < 0 || seed > 0xffffffff) {
    throw new UsageError("graphs: the seed must be a whole number from 0 to 4294967295", { seed });
  }
}

/** One turn of the listing's loop, before its test: 10 of the 15 (state, action) pairs get an edge. */
function drawCandidate(table: Int8Array, seed: number, candidate: number): void {
  table.fill(-1);
  // Every state can be left: one random other state, by one random action.
  for (let from = 0; from < states; from++) {
    const other = below(states - 1, seed, purpose.graph, candidate, from, 0);
    const action = below(actions, seed, purpose.graph, candidate, from, 1);
    table[from * actions + action] = other < from ? other : other + 1;
  }
  // Every state can be entered: from a random one of the pairs of another state that have no edge yet.
  for (let to = 0; to < states; to++) {
    let free = 0;
    for (let pair = 0; pair < tableSize; pair++) if (isFree(table, pair, to)) free++;
    let chosen = below(free, seed, purpose.graph, candidate, states + to, 0);
    let pair = 0;
    while (!isFree(table, pair, to) || chosen-- > 0) pair++;
    table[pair] = to;
  }
}

function isFree(table: Int8Array, pair: number, to: number): boolean {
  return table[pair] === -1 && Math.floor(pair / actions) !== to;
}

/**
 * The listing's acceptance test: with Q the 0/1 matrix of edges by any action, Q^32 has no zero. So every
 * state is reachable from every other (strongly connected) in exactly 32 steps (aperiodic).
 */
function mixes(table: Int8Array): boolean {
  const full = (1 << states) - 1;
  let rows = Array.from({ length: states }, (_, from) => {
    let row = 0; // bit `to` is Q[from, to]
    for (let action = 0; action < actions; action++) {
      const to = table[from * actions + action]!;
      if (to >= 0) row |= 1 << to;
    }
    return row;
  });
  for (let squaring = 0; squaring < 5; squaring++) {
    const previous = rows;
    rows = rows.map((row) => previous.reduce((all, other, via) => (row & (1 << via) ? all | other : all), 0));
  }
  return rows.every((row) => row === full);
}
