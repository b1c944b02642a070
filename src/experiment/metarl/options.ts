/** An evaluation of an agent: what may be chosen, and what it says. */
import type { Behaviour, GraphRules, GraphSplit, PartMatch, WayPart } from "../../environment/index.ts";
import type { BaseEvaluation, EvaluationOption } from "../kind.ts";

/** Episodes on every graph by default. */
export const usualEpisodes = 10;

/** What a person may choose. */
export const evaluationOptions = {
  split: {
    type: "choice",
    values: ["valid", "test", "train", "fresh"],
    help: "graphs to act on; default: test",
  },
  episodes: {
    type: "integer",
    min: 1,
    max: 100_000,
    help: `episodes on every graph; default: ${usualEpisodes}`,
  },
  seed: { type: "integer", max: 0xffffffff, help: "seed of places and sampled actions; default: 1" },
  length: { type: "integer", min: 1, max: 1000, help: "steps per episode; default: as it was trained" },
  states: {
    type: "integer",
    min: 3,
    max: 20,
    help: "locations of the graphs, if the agent knows so many names; default: 5",
  },
  timer: {
    type: "choice",
    values: ["kept", "reset"],
    help: "whether success sets the count of failures back; default: as it was trained",
  },
} as const satisfies Record<string, EvaluationOption>;

/** What was chosen of them. */
export interface MetarlOptions {
  readonly split?: GraphSplit;
  /** Episodes on every graph. */
  readonly episodes?: number;
  /** Seed of the places and the sampled actions. */
  readonly seed?: number;
  /** Steps per episode; as many as it was trained with by default. */
  readonly length?: number;
  /** Locations of the graphs; as many as the paper's have by default. */
  readonly states?: number;
  /** Whether success sets the count of failures to 0; by the rules it was trained by by default. */
  readonly timer?: GraphRules["timerOnSuccess"];
}

/** A mean return, and how sure it is. */
export interface MeanReturn {
  readonly mean: number;
  /** Standard error of `mean` on these graphs: what other places and actions would change. Null for one episode. */
  readonly standardError: number | null;
  /** Standard error of `mean` when the graphs are drawn anew too. Null for one graph. */
  readonly graphError: number | null;
}

/** What baselines reach on the same graphs by the same rules. */
export interface BaselineReturns {
  /** Uniformly random actions. */
  readonly random: MeanReturn;
  /** One who has to find the graph out in each episode, but forgets nothing and plans: an agent could get as much. */
  readonly explorer: MeanReturn;
  /** Shortest paths by one who knows the graph. */
  readonly shortestPath: MeanReturn;
  /** What the explorer did with what it had seen; absent in files of version 0.1. */
  readonly explorerBehaviour?: Behaviour;
}

/** What an agent reached, and what it is measured by. */
export interface MetarlEvaluation extends BaseEvaluation, BaselineReturns {
  readonly split: GraphSplit;
  /** Graphs, each acted on by one agent in each of the episodes. */
  readonly graphs: number;
  readonly episodes: number;
  /** Steps of an episode. */
  readonly length: number;
  /** Locations of the graphs; absent in older files, where it is five. */
  readonly states?: number;
  readonly seed: number;
  readonly rules: GraphRules;
  /** The agent: actions sampled from its policy, no update. */
  readonly return: MeanReturn;
  /** What it did with what it had seen; absent in files of version 0.1. */
  readonly behaviour?: Behaviour;
  /** Of an agent with a memory: the shares of the edges of a known way in each read, in one episode. */
  readonly reads?: Readonly<Partial<Record<WayPart, PartMatch>>> | undefined;
}
