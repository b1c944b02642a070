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

/** Number of locations of the paper's graphs. */
export const states = 5;

/** Number of actions; at every location some of them lead nowhere. */
export const actions = 3;

/** The largest graphs: rows of the matrix below are bits of an integer, and 32 steps reach everywhere. */
const mostStates = 20;

/** A set of graphs as one table of successors. */
export interface Graphs {
  /** How many graphs there are. */
  readonly count: number;
  /** Locations of each. */
  readonly states: number;
  /** next[(graph * states + from) * actions + action]: the location the edge leads to, or -1 for no edge. */
  readonly next: Int8Array;
}

/** The sets of an experiment. */
const graphSplits = ["train", "valid", "test", "fresh"] as const;

/** The name of a set. */
export type GraphSplit = (typeof graphSplits)[number];

/** The four sets of an experiment: no graph of one equals a graph of another. */
export type GraphSets = Readonly<Record<GraphSplit, Graphs>>;

/** Pairs of location and action. */
export function pairsOf({ states }: Pick<Graphs, "states">): number {
  return states * actions;
}

/** Pairs that have an edge, in every graph: one out of and one into each location. */
export function edgesOf({ states }: Pick<Graphs, "states">): number {
  return 2 * states;
}

/**
 * Draws the test graphs, then the training graphs, the validation graphs and the fresh ones from one seed; a graph of an
 * earlier set is drawn again. The paper has 600 for training and for testing, one per agent, and none for validation; the
 * released code's seed is 666. Fresh ones, as many as for validation, are for agents whose recipe was tuned on the test graphs.
 * All have `size` locations, the paper's number unless given.
 */
export function sampleGraphSets(
  seed: number,
  trainCount = 600,
  testCount = trainCount,
  validCount = testCount,
  size = states,
): GraphSets {
  const { graphs: test, candidate } = sampleGraphs(seed, testCount, 0, [], size);
  const { graphs: train, candidate: next } = sampleGraphs(seed, trainCount, candidate, [test], size);
  const { graphs: valid, candidate: last } = sampleGraphs(seed, validCount, next, [test, train], size);
  const { graphs: fresh } = sampleGraphs(seed, validCount, last, [test, train, valid], size);
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
  size = states,
): { graphs: Graphs; candidate: number } {
  checkSeed(seed);
  if (!Number.isInteger(count) || count < 1) {
    throw new UsageError("graphs: the number of graphs must be a whole number above 0", { count });
  }
  if (!Number.isInteger(size) || size < 3 || size > mostStates) {
    throw new UsageError(`graphs: the number of locations must be from 3 to ${mostStates}`, { states: size });
  }
  const tableSize = size * actions;
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
  return { graphs: { count, states: size, next }, candidate: following };
}

/** The graphs of some agents, `first` and those after it. */
export function someGraphs(graphs: Graphs, first: number, count: number): Graphs {
  const pairs = pairsOf(graphs);
  return { ...graphs, count, next: graphs.next.subarray(first * pairs, (first + count) * pairs) };
}

/** Throws unless `seed` is a whole number that fits in 32 bits, as the addressed draws need. */
export function checkSeed(seed: number): void {
  if (!Number.isInteger(seed) || seed < 0 || seed > 0xffffffff) {
    throw new UsageError("graphs: the seed must be a whole number from 0 to 4294967295", { seed });
  }
}

/** One turn of the listing's loop, before its test: 10 of the 15 (state, action) pairs of five states get an edge. */
function drawCandidate(table: Int8Array, seed: number, candidate: number): void {
  const size = table.length / actions;
  table.fill(-1);
  // Every state can be left: one random other state, by one random action.
  for (let from = 0; from < size; from++) {
    const other = below(size - 1, seed, purpose.graph, candidate, from, 0);
    const action = below(actions, seed, purpose.graph, candidate, from, 1);
    table[from * actions + action] = other < from ? other : other + 1;
  }
  // Every state can be entered: from a random one of the pairs of another state that have no edge yet.
  for (let to = 0; to < size; to++) {
    let free = 0;
    for (let pair = 0; pair < table.length; pair++) if (isFree(table, pair, to)) free++;
    let chosen = below(free, seed, purpose.graph, candidate, size + to, 0);
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
  const size = table.length / actions;
  const full = (1 << size) - 1;
  let rows = Array.from({ length: size }, (_, from) => {
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
