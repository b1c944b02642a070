/**
 * Graphs under other names: the locations of a graph exchange their names, and so do its actions. A way through it stays a way,
 * so what an agent can learn of 600 graphs under one name each, it has to learn of graphs in general under 720.
 */
import { below, purpose } from "./draws.ts";
import { actions as actionCount, type Graphs } from "./sampler.ts";

const actionOrders = permutations(actionCount);

/** Which names an agent's graph has in an episode: known from (seed, episode, agent) alone. */
export interface Naming {
  readonly seed: number;
  readonly episode: number;
  /** Number of the first graph, where these are some of many. */
  readonly first: number;
}

/** Writes graphs under other names into a table of the same size. */
export function renameGraphs(
  { count, states, next }: Graphs,
  { seed, episode, first }: Naming,
  into: Int8Array,
): void {
  const locationOrders = ordersOf(states);
  for (let graph = 0; graph < count; graph++) {
    const names = locationOrders.length * actionOrders.length;
    const drawn = below(names, seed, purpose.rename, episode, 0, first + graph);
    const locations = locationOrders[drawn % locationOrders.length]!;
    const labels = actionOrders[Math.floor(drawn / locationOrders.length)]!;
    for (let from = 0; from < states; from++) {
      for (let action = 0; action < actionCount; action++) {
        const to = next[(graph * states + from) * actionCount + action]!;
        const renamed = (graph * states + locations[from]!) * actionCount + labels[action]!;
        into[renamed] = to === -1 ? -1 : locations[to]!;
      }
    }
  }
}

const known = new Map<number, readonly (readonly number[])[]>();

/** Every order of so many locations, made once. */
function ordersOf(states: number): readonly (readonly number[])[] {
  const orders = known.get(states) ?? permutations(states);
  known.set(states, orders);
  return orders;
}

/** Every order of 0 to n - 1. */
function permutations(n: number): number[][] {
  if (n === 0) return [[]];
  return permutations(n - 1).flatMap((order) =>
    Array.from({ length: n }, (_, at) => [...order.slice(0, at), n - 1, ...order.slice(at)]),
  );
}
