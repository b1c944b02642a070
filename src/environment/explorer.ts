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
 * w(s) is the best of its actions, and p the fraction of edges among what has not been tried: every graph has ten.
 */
import type { Baseline } from "./baselines.ts";
import { knownOf, learn, noEdge, pairs, untried } from "./knowledge.ts";
import { actions as actionCount, edges, states } from "./sampler.ts";

/** The discount γ per step, and the sweeps of value iteration: 0.5⁸ is too little to change a choice. */
const [discount, sweeps] = [0.5, 8];

/** Takes the action that leads soonest to the reward by what the episode has shown, with the prior for the rest. */
export function explorerBaseline(): Baseline {
  let known = new Int8Array(0);
  let before = { at: new Int8Array(0), goal: new Int8Array(0), action: new Uint8Array(0) };
  const values = new Float64Array(states);
  return (environment, into) => {
    if (environment.stepsTaken === 0) known = knownOf(environment.agents);
    else learn(known, before, environment);
    for (let agent = 0; agent < into.length; agent++) {
      const own = known.subarray(agent * pairs, (agent + 1) * pairs);
      into[agent] = plan(own, environment.agentAt[agent]!, environment.rewardAt[agent]!, values);
    }
    before = { at: environment.agentAt.slice(), goal: environment.rewardAt.slice(), action: into.slice() };
  };
}

/** The action of the highest value at a location; the lower one wins a tie. */
function plan(known: Int8Array, at: number, goal: number, values: Float64Array): number {
  const p = edgeFraction(known);
  values.fill(0);
  values[goal] = 1;
  let total = 1;
  let chosen = 0;
  for (let sweep = 0; sweep < sweeps; sweep++) {
    for (let from = 0; from < states; from++) {
      if (from === goal) continue;
      const own = values[from]!;
      const unknown = discount * ((p * (total - own)) / (states - 1) + (1 - p) * own);
      let best = -1;
      for (let action = 0; action < actionCount; action++) {
        const to = known[from * actionCount + action]!;
        const value = to === untried ? unknown : to === noEdge ? 0 : discount * values[to]!;
        if (value <= best) continue;
        best = value;
        if (from === at) chosen = action;
      }
      total += best - own;
      values[from] = best;
    }
  }
  return chosen;
}

/** The fraction of the untried pairs that have an edge. */
function edgeFraction(known: Int8Array): number {
  let [found, left] = [0, 0];
  for (let pair = 0; pair < pairs; pair++) {
    if (known[pair] === untried) left++;
    else if (known[pair] !== noEdge) found++;
  }
  return left > 0 ? Math.min(1, (edges - found) / left) : 0;
}
