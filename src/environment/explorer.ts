/**
 * A baseline that has to find out its graph within the episode, as an agent does, but forgets nothing and plans.
 * It sees locations, its action and its success, never the graph, so an agent can reach what it reaches.
 *
 * With w(s) the value of a location, 1 at the reward:
 *
 *   tried, leads to t      γ w(t)
 *   tried, no edge         0
 *   not tried yet          γ (p · mean of w over the other locations + (1 - p) · w(s))
 *
 * w(s) is the best of its actions, and p the fraction of edges among what has not been tried: every graph has two per location.
 *
 * As a teacher it says what it would do in the place of agents that act for themselves, with what they have seen.
 */
import type { Baseline } from "./baselines.ts";
import type { GraphEnvironment } from "./graphEnvironment.ts";
import { knownOf, learn, noEdge, untried } from "./knowledge.ts";
import { actions as actionCount, edgesOf, pairsOf } from "./sampler.ts";

/** The discount γ per step, and the sweeps of value iteration: 0.5⁸ is too little to change a choice. */
const [discount, sweeps] = [0.5, 8];

/** Takes the action that leads soonest to the reward by what the episode has shown, with the prior for the rest. */
export function explorerBaseline(): Baseline {
  const explorer = new Explorer();
  return (environment, into) =>
    explorer.plan(environment, (agent, values, best) => {
      into[agent] = values.indexOf(best);
    });
}

/** Writes 1 for each action that the explorer might take in an agent's place, 0 for the others: [agents, actions]. */
export type Teacher = (environment: GraphEnvironment, into: Float32Array) => void;

/** The explorer as a teacher; it follows all steps of an episode, in order. Equally good actions are all advised. */
export function explorerTeacher(): Teacher {
  const explorer = new Explorer();
  return (environment, into) =>
    explorer.plan(environment, (agent, values, best) => {
      for (let action = 0; action < actionCount; action++) {
        into[agent * actionCount + action] = values[action] === best ? 1 : 0;
      }
    });
}

/** What agents have seen in an episode, and plans by it. */
class Explorer {
  private known = new Int8Array(0);
  private before = { at: new Int8Array(0), goal: new Int8Array(0) };
  private values = new Float64Array(0);
  private readonly here = new Float64Array(actionCount);

  /**
   * Takes in where the last step led, then tells of every agent the values of its actions, and the highest of them. The
   * array is used again.
   */
  plan(
    environment: GraphEnvironment,
    tell: (agent: number, values: Float64Array, best: number) => void,
  ): void {
    const { graphs, agents, stepsTaken, agentAt, rewardAt, previousAction } = environment;
    const pairs = pairsOf(graphs);
    if (stepsTaken === 0) {
      this.known = knownOf(graphs);
      this.values = new Float64Array(graphs.states);
    } else learn(this.known, { ...this.before, action: previousAction }, environment);
    for (let agent = 0; agent < agents; agent++) {
      const own = this.known.subarray(agent * pairs, (agent + 1) * pairs);
      const [at, goal] = [agentAt[agent]!, rewardAt[agent]!];
      fillValues(own, goal, { locations: this.values, at, actions: this.here });
      tell(agent, this.here, this.values[at]!);
    }
    this.before = { at: agentAt.slice(), goal: rewardAt.slice() };
  }
}

/** The values of all locations, each the highest of its actions, and those of the actions at one of them. */
function fillValues(
  known: Int8Array,
  goal: number,
  { locations: values, at, actions: here }: { locations: Float64Array; at: number; actions: Float64Array },
): void {
  const p = edgeFraction(known, edgesOf({ states: values.length }));
  // Own names: what is imported is looked up at every use where modules are not bundled.
  const [S, A, isUntried, isNone, gamma] = [values.length, actionCount, untried, noEdge, discount];
  values.fill(0);
  values[goal] = 1;
  let total = 1;
  for (let sweep = 0; sweep < sweeps; sweep++) {
    for (let from = 0; from < S; from++) {
      if (from === goal) continue;
      const own = values[from]!;
      const unknown = gamma * ((p * (total - own)) / (S - 1) + (1 - p) * own);
      let best = 0;
      for (let action = 0; action < A; action++) {
        const to = known[from * A + action]!;
        const value = to === isUntried ? unknown : to === isNone ? 0 : gamma * values[to]!;
        if (value > best) best = value;
        if (from === at) here[action] = value;
      }
      total += best - own;
      values[from] = best;
    }
  }
}

/** The fraction of the untried pairs that have an edge, where so many have one in all. */
function edgeFraction(known: Int8Array, edges: number): number {
  const [isUntried, isNone] = [untried, noEdge];
  let [found, left] = [0, 0];
  for (const to of known) {
    if (to === isUntried) left++;
    else if (to !== isNone) found++;
  }
  return left > 0 ? Math.min(1, (edges - found) / left) : 0;
}
