/**
 * Which of the edges it has seen an agent's memory gives back, read by read.
 *
 * At every step an agent writes what came of its last action, an edge or nothing, and reads several times in a row. Where the
 * edges seen so far lead to the reward in one or two steps, the writes of these edges are told from the others, and
 * their shares in each read are averaged: an agent that plans two steps finds the second edge first.
 */
import type { GraphEnvironment } from "./graphEnvironment.ts";
import { type Before, fillDistances, knownOf, learn } from "./knowledge.ts";
import { actions as actionCount, pairsOf } from "./sampler.ts";

/** What a write is to the known way from agent to reward. */
export const wayParts = ["theStep", "firstOfTwo", "secondOfTwo"] as const;
export type WayPart = (typeof wayParts)[number];

/** Mean share of one part of the way. */
export interface PartMatch {
  /** In each read. */
  readonly reads: readonly number[];
  /** In the number of writes: what reads that take all writes alike would have. */
  readonly writes: number;
  /** Steps with such a way. */
  readonly choices: number;
}

/** What was so before a step, for every agent. */
interface Moment {
  readonly at: Int8Array;
  readonly goal: Int8Array;
  readonly known: Int8Array;
  /** The edge that the present write is about; -1 where there is none. */
  readonly from: Int8Array;
  readonly to: Int8Array;
}

/** Follows agents through an episode, then counts what their reads matched. */
export class ReadCounter {
  /** Locations of the graphs. */
  private states = 0;
  private known = new Int8Array(0);
  private moments: Moment[] = [];
  private move: Pick<Moment, "from" | "to"> = { from: new Int8Array(0), to: new Int8Array(0) };
  private last: Before = { at: new Int8Array(0), goal: new Int8Array(0), action: new Uint8Array(0) };
  private readonly sums = new Map<WayPart, { reads: number[]; writes: number; choices: number }>();

  /** Before the agents take these actions; all steps of an episode, in order. */
  before(environment: GraphEnvironment, actions: ArrayLike<number>): void {
    const { graphs, agents, stepsTaken, agentAt, rewardAt } = environment;
    if (stepsTaken === 0) {
      this.states = graphs.states;
      this.known = knownOf(graphs);
      this.moments = [];
      this.move = { from: new Int8Array(agents).fill(-1), to: new Int8Array(agents).fill(-1) };
    }
    const [at, goal] = [agentAt.slice(), rewardAt.slice()];
    this.moments.push({ at, goal, known: this.known.slice(), ...this.move });
    this.last = { at, goal, action: Uint8Array.from(actions) };
  }

  /** After they were taken. */
  after(environment: GraphEnvironment): void {
    learn(this.known, this.last, environment);
    const { at, action } = this.last;
    const pairs = pairsOf(environment.graphs);
    const to = Int8Array.from(at, (from, agent) =>
      // An agent that was placed anew at a timeout cannot know where its action led.
      environment.previousAction[agent] === -1
        ? -1
        : Math.max(-1, this.known[agent * pairs + from * actionCount + action[agent]!]!),
    );
    this.move = { from: Int8Array.from(at, (from, agent) => (to[agent] === -1 ? -1 : from)), to };
  }

  /** The shares of every write in each read of the episode: [agent, step, write] for each. */
  count(matches: readonly ArrayLike<number>[]): void {
    const steps = this.moments.length;
    const { states } = this;
    const pairs = pairsOf({ states });
    const distances = new Int8Array(states);
    this.moments.forEach(({ at, goal, known }, step) => {
      for (let agent = 0; agent < at.length; agent++) {
        const own = known.subarray(agent * pairs, (agent + 1) * pairs);
        fillDistances(own, goal[agent]!, distances);
        const row = (agent * steps + step) * steps;
        for (const [part, writes] of this.wayOf(agent, step, own, distances)) {
          const sum = this.sums.get(part) ?? { reads: matches.map(() => 0), writes: 0, choices: 0 };
          this.sums.set(part, sum);
          sum.choices++;
          sum.writes += writes.length / (step + 1);
          matches.forEach((shares, read) => {
            for (const write of writes) sum.reads[read]! += shares[row + write]!;
          });
        }
      }
    });
  }

  /** The writes of each part of a known way of one or two steps; nothing where there is none. */
  private wayOf(
    agent: number,
    step: number,
    known: Int8Array,
    distances: Int8Array,
  ): readonly (readonly [WayPart, readonly number[]])[] {
    const here = this.moments[step]!.at[agent]!;
    const writesWhere = (is: (from: number, to: number) => boolean): number[] => {
      const writes: number[] = [];
      for (let write = 0; write <= step; write++) {
        const { from, to } = this.moments[write]!;
        if (from[agent] !== -1 && is(from[agent]!, to[agent]!)) writes.push(write);
      }
      return writes;
    };
    if (distances[here] === 1) {
      return [["theStep", writesWhere((from, to) => from === here && distances[to] === 0)]];
    }
    if (distances[here] !== 2) return [];
    const next = known.subarray(here * actionCount, (here + 1) * actionCount);
    return [
      ["firstOfTwo", writesWhere((from, to) => from === here && distances[to] === 1)],
      ["secondOfTwo", writesWhere((from, to) => distances[to] === 0 && next.includes(from))],
    ];
  }

  /** Means over all that was counted. */
  result(): Partial<Record<WayPart, PartMatch>> {
    return Object.fromEntries(
      [...this.sums].map(([part, { reads, writes, choices }]) => [
        part,
        { reads: reads.map((sum) => sum / choices), writes: writes / choices, choices },
      ]),
    );
  }
}
