/** What an episode has shown of a graph: for every location and action, where it led. */
import { type GraphEnvironment, successReward } from "./graphEnvironment.ts";
import { actions as actionCount, type Graphs, pairsOf } from "./sampler.ts";

/** Marks in the place of a location: the action has no edge here, or has not been tried. */
export const [noEdge, untried] = [-1, -2];

/** Places, goals and actions of all agents before a step. */
export interface Before {
  readonly at: Int8Array;
  readonly goal: Int8Array;
  readonly action: Uint8Array | Int8Array;
}

/** Nothing is known of any graph yet: [graph, location, action]. */
export function knownOf(graphs: Graphs): Int8Array<ArrayBuffer> {
  return new Int8Array(graphs.count * pairsOf(graphs)).fill(untried);
}

/** Remembers where the last actions led. An agent that was placed anew at a timeout cannot know. */
export function learn(
  known: Int8Array,
  { at, goal, action }: Before,
  { graphs, agents, agentAt, previousAction, rewards }: GraphEnvironment,
): void {
  const pairs = pairsOf(graphs);
  for (let agent = 0; agent < agents; agent++) {
    if (previousAction[agent] === -1) continue;
    const from = at[agent]!;
    const to = rewards[agent] === successReward ? goal[agent]! : agentAt[agent]!;
    known[agent * pairs + from * actionCount + action[agent]!] = to === from ? noEdge : to;
  }
}

/** Steps to the goal from every location by the edges that are known; -1 where there is no way. */
export function fillDistances(known: Int8Array, goal: number, distances: Int8Array): void {
  const states = distances.length;
  distances.fill(-1);
  distances[goal] = 0;
  for (let near = 0; near < states - 1; near++) {
    for (let from = 0; from < states; from++) {
      if (distances[from] !== -1) continue;
      for (let action = 0; action < actionCount; action++) {
        const to = known[from * actionCount + action]!;
        if (to >= 0 && distances[to] === near) distances[from] = near + 1;
      }
    }
  }
}
