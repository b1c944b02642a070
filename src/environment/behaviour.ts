/**
 * What agents do with what an episode has shown them: whether they explore, remember and plan.
 *
 * Every choice is one of two kinds, by what has been seen of the graph until then:
 *
 *   a way is known     the edges seen so far lead to the reward in n steps: does the action begin a shortest way?
 *   no way is known    the action is untried here (exploring), led nowhere when it was tried here (forgotten), or is
 *                      an edge seen before (walking); counted only where an untried action is left
 *
 * An agent that was placed anew at a timeout cannot know where its last action led, so nothing is seen then.
 */
import type { GraphEnvironment } from "./graphEnvironment.ts";
import { type Before, fillDistances, knownOf, learn, noEdge, untried } from "./knowledge.ts";
import { actions as actionCount, pairsOf } from "./sampler.ts";

/** How often something was chosen, and out of how many choices. */
export interface Tally {
  readonly chosen: number;
  readonly of: number;
}

/** Choices of all agents. */
export interface Behaviour {
  /** A shortest known way was begun, by the steps that it has: 1, 2, 3, 4. */
  readonly planned: readonly Tally[];
  /** No way to the reward was known, and something here untried. */
  readonly explored: Tally;
  readonly forgot: Tally;
  readonly walked: Tally;
  /** Pairs of location and action that were tried in an episode, of three per location; mean. */
  readonly tried: number;
  /** Edges that were seen in an episode, of two per location; mean. */
  readonly seen: number;
}

/** Follows agents through episodes and counts their choices. */
export class BehaviourCounter {
  private known = new Int8Array(0);
  private last: Before = { at: new Int8Array(0), goal: new Int8Array(0), action: new Uint8Array(0) };
  private planned: [number, number][] = [];
  private readonly open = { untried: 0, noEdge: 0, edge: 0 };
  private readonly sums = { tried: 0, seen: 0, episodes: 0 };

  /** Before the agents take these actions; all steps of an episode, in order. */
  before(environment: GraphEnvironment, actions: ArrayLike<number>): void {
    const { graphs, agents, stepsTaken, agentAt, rewardAt } = environment;
    const pairs = pairsOf(graphs);
    if (stepsTaken === 0) this.known = knownOf(graphs);
    if (this.planned.length === 0) this.planned = Array.from({ length: graphs.states - 1 }, () => [0, 0]);
    const distances = new Int8Array(graphs.states);
    for (let agent = 0; agent < agents; agent++) {
      const own = this.known.subarray(agent * pairs, (agent + 1) * pairs);
      this.count(own, agentAt[agent]!, rewardAt[agent]!, actions[agent]!, distances);
    }
    this.last = { at: agentAt.slice(), goal: rewardAt.slice(), action: Uint8Array.from(actions) };
  }

  /** After they were taken. */
  after(environment: GraphEnvironment): void {
    learn(this.known, this.last, environment);
    if (!environment.done) return;
    for (const to of this.known) {
      if (to !== untried) this.sums.tried++;
      if (to >= 0) this.sums.seen++;
    }
    this.sums.episodes += environment.agents;
  }

  private count(known: Int8Array, at: number, goal: number, action: number, distances: Int8Array): void {
    fillDistances(known, goal, distances);
    const here = known.subarray(at * actionCount, (at + 1) * actionCount);
    const [to, steps] = [here[action]!, distances[at]!];
    if (steps !== -1) {
      const tally = this.planned[steps - 1]!;
      tally[1]++;
      if (to >= 0 && distances[to] === steps - 1) tally[0]++;
    } else if (here.includes(untried)) {
      this.open[to === untried ? "untried" : to === noEdge ? "noEdge" : "edge"]++;
    }
  }

  /** All that was counted. */
  result(): Behaviour {
    const { untried: explored, noEdge: forgot, edge: walked } = this.open;
    const of = explored + forgot + walked;
    return {
      planned: this.planned.map(([chosen, all]) => ({ chosen: chosen!, of: all! })),
      explored: { chosen: explored, of },
      forgot: { chosen: forgot, of },
      walked: { chosen: walked, of },
      tried: this.sums.tried / this.sums.episodes,
      seen: this.sums.seen / this.sums.episodes,
    };
  }
}
