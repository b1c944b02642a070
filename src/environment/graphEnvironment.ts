/**
 * The environment of the meta-reinforcement-learning experiment: one agent per graph, all stepped together.
 *
 * An agent walks its graph towards the reward location. Reaching it pays 10 and places both anew; an action
 * without an edge costs 0.05; after six steps without success both are placed anew too. The graph itself is
 * never shown: within its 30 steps an agent has to find out where its actions lead, and use it.
 *
 * The paper and the authors' released code differ in three rules, each of which is an option here:
 *
 *   option           paper          released     meaning
 *   rewardInput      "cumulative"   "none"       observation 16: the sum so far, the last reward, success, or 0
 *   timerOnSuccess   "reset"        "kept"       whether reaching the reward sets the count of failures to 0
 *   layout           "paper"        "released"   observations 10 to 14, see `observe`
 *
 * An observation may have room for more locations than a graph has (`names`): then the locations of every graph have other
 * names of these in each episode, and an agent that has learned all of them can act on larger graphs.
 *
 * All places depend on (seed, split, episode, step, agent) alone, see draws.ts: `reset(episode)` is all that
 * resuming needs.
 */
import { ShapeError, UsageError } from "../errors.ts";
import { below, mostSteps, type Purpose, purpose } from "./draws.ts";
import {
  actions as actionCount,
  checkSeed,
  type GraphSplit,
  type Graphs,
  states as paperStates,
} from "./sampler.ts";

/** What distinguishes the paper's environment from the one its released code has. */
export interface GraphRules {
  /** What the agent observes of its reward; "success": 1 after a step that reached it, else 0. */
  readonly rewardInput: "none" | "success" | "last" | "cumulative";
  /** Whether reaching the reward sets the count of failures back, or it goes on counting. */
  readonly timerOnSuccess: "reset" | "kept";
  /** Where the previous action and the constant bit stand in the observation. */
  readonly layout: "paper" | "released";
}

/** The two named sets of rules. */
export const graphRules = {
  paper: { rewardInput: "cumulative", timerOnSuccess: "reset", layout: "paper" },
  released: { rewardInput: "none", timerOnSuccess: "kept", layout: "released" },
} as const satisfies Record<string, GraphRules>;

/** How an environment is made; every rule given by name wins over the set in `rules`. */
export interface GraphEnvironmentOptions extends Partial<GraphRules> {
  /** One graph per agent. */
  readonly graphs: Graphs;
  /** Seed of the places; a whole number of 32 bits. */
  readonly seed: number;
  /** Environments of one seed on different sets draw different places. */
  readonly split: GraphSplit;
  /** The named set of rules. */
  readonly rules: keyof typeof graphRules;
  /** Steps per episode; the paper's is 30. */
  readonly steps?: number;
  /** Names that locations may have, at least as many as there are; as many unless given. */
  readonly names?: number;
  /** Number of the first agent, where these are some of many; 0 unless given. */
  readonly firstAgent?: number;
}

/** Numbers of an observation besides the two locations: previous action, constant, progress, reward. */
const otherNumbers = 7;

/** Length of an observation where locations have so many names. */
export function observationSizeOf(names: number): number {
  return 2 * names + otherNumbers;
}

/** Length of an observation of the paper's graphs. */
export const observationSize = observationSizeOf(paperStates);

/** Paid on reaching the reward location. */
export const successReward = 10;

/** Paid for an action that has no edge at the agent's location. */
const invalidReward = -0.05;

/** Failures after which reward and agent are placed anew. */
const mostFailures = 6;

const none = -1;

/** A batch of agents, each on its own graph; see the head of this file. */
export class GraphEnvironment {
  readonly graphs: Graphs;
  readonly rules: GraphRules;
  readonly agents: number;
  readonly steps: number;
  /** Names that locations may have. */
  readonly names: number;
  /** Location of the reward, per agent. */
  readonly rewardAt: Int8Array;
  /** Location of the agent, per agent. */
  readonly agentAt: Int8Array;
  /** The action before, or -1 at the start and after a failed attempt, per agent. */
  readonly previousAction: Int8Array;
  /** Failures counted so far, per agent: see `timerOnSuccess`. */
  readonly timer: Int8Array;
  /** Sum of the episode's rewards so far, per agent. */
  readonly returns: Float64Array;
  /** Rewards of the last step, per agent; `step` returns this same array each time. */
  readonly rewards: Float32Array;
  readonly #seed: number;
  readonly #purpose: Purpose;
  readonly #firstAgent: number;
  /** The name of every location, as it is observed: [agent, location]. */
  readonly #nameOf: Int8Array;
  #episode = -1;
  #step = 0;

  constructor(options: GraphEnvironmentOptions) {
    const { graphs, seed, split, rules, steps = 30 } = options;
    checkSeed(seed);
    if (!Number.isInteger(steps) || steps < 1 || steps >= mostSteps) {
      throw new UsageError("graphs: steps must be a whole number above 0", { steps });
    }
    const { names = graphs.states } = options;
    if (names < graphs.states) {
      throw new UsageError("graphs: a graph has more locations than there are names for", {
        states: graphs.states,
        names,
      });
    }
    const named = graphRules[rules];
    this.graphs = graphs;
    this.rules = {
      rewardInput: options.rewardInput ?? named.rewardInput,
      timerOnSuccess: options.timerOnSuccess ?? named.timerOnSuccess,
      layout: options.layout ?? named.layout,
    };
    this.agents = graphs.count;
    this.steps = steps;
    this.names = names;
    this.rewardAt = new Int8Array(this.agents);
    this.agentAt = new Int8Array(this.agents);
    this.previousAction = new Int8Array(this.agents);
    this.timer = new Int8Array(this.agents);
    this.returns = new Float64Array(this.agents);
    this.rewards = new Float32Array(this.agents);
    this.#seed = seed;
    this.#purpose = purpose[`${split}Places`];
    this.#firstAgent = options.firstAgent ?? 0;
    this.#nameOf = Int8Array.from({ length: this.agents * graphs.states }, (_, i) => i % graphs.states);
  }

  /** The current episode; -1 before the first `reset`. */
  get episode(): number {
    return this.#episode;
  }

  /** Steps taken in this episode. */
  get stepsTaken(): number {
    return this.#step;
  }

  /** True when the episode's steps are used up. */
  get done(): boolean {
    return this.#step === this.steps;
  }

  /** Starts an episode: reward uniform over the locations, agent uniform over the others. */
  reset(episode: number): void {
    if (!Number.isInteger(episode) || episode < 0 || episode > 0xffffffff) {
      throw new UsageError("graphs: an episode is a whole number from 0 to 4294967295", { episode });
    }
    this.#episode = episode;
    this.#step = 0;
    this.timer.fill(0);
    this.returns.fill(0);
    this.rewards.fill(0);
    this.previousAction.fill(none);
    if (this.names > this.graphs.states) this.#drawNames();
    const { states } = this.graphs;
    for (let agent = 0; agent < this.agents; agent++) {
      const draw = this.#draw(states * (states - 1), agent);
      this.#place(agent, draw % states, Math.floor(draw / states));
    }
  }

  /**
   * Takes one action per agent and returns the rewards, [agents]: the environment's own array, which the next
   * step overwrites.
   */
  step(actions: Int32Array | Uint8Array): Float32Array {
    this.#checkStep(actions);
    this.#step++;
    const { agents, agentAt, rewardAt, previousAction, timer, returns, rewards } = this;
    const { next, states } = this.graphs;
    const resetsTimer = this.rules.timerOnSuccess === "reset";
    for (let agent = 0; agent < agents; agent++) {
      const action = actions[agent]!;
      if (action < 0 || action >= actionCount) this.#throwAction(agent, action);
      const to = next[(agent * states + agentAt[agent]!) * actionCount + action]!;
      previousAction[agent] = action;
      let reward = 0;
      if (to === rewardAt[agent]) {
        reward = successReward;
        if (resetsTimer) timer[agent] = 0;
        this.#placeAnew(agent);
      } else {
        if (to === none) reward = invalidReward;
        else agentAt[agent] = to;
        if (++timer[agent]! >= mostFailures) {
          timer[agent] = 0;
          previousAction[agent] = none;
          this.#placeAnew(agent);
        }
      }
      rewards[agent] = reward;
      returns[agent]! += reward;
    }
    return rewards;
  }

  /**
   * Writes what the agents see now, [agents, 2 names + 7] in row order, from position `offset` of `into`. With five names:
   *
   *   index    layout "paper"                     layout "released"
   *   0-4      reward location, one-hot           the same
   *   5-9      agent location, one-hot            the same
   *   10       previous action was 0              always 0
   *   11       previous action was 1              previous action was 0
   *   12       previous action was 2              previous action was 1
   *   13       there is no previous action        previous action was 2
   *   14       always 1                           always 1: the constant covers "no previous action"
   *   15       steps taken / steps                the same
   *   16       reward, see `rewardInput`          the same
   */
  observe(into: Float32Array, offset = 0): void {
    const { agents, agentAt, rewardAt, previousAction, rewards, returns, names } = this;
    const { states } = this.graphs;
    const length = observationSizeOf(names);
    if (into.length < offset + agents * length) {
      throw new ShapeError("graphs: the array to observe into is too short", {
        needed: offset + agents * length,
        length: into.length,
      });
    }
    const isPaper = this.rules.layout === "paper";
    const { rewardInput } = this.rules;
    const progress = this.#step / this.steps;
    into.fill(0, offset, offset + agents * length);
    for (let agent = 0; agent < agents; agent++) {
      const row = offset + agent * length;
      into[row + this.#nameOf[agent * states + rewardAt[agent]!]!] = 1;
      into[row + names + this.#nameOf[agent * states + agentAt[agent]!]!] = 1;
      const rest = row + 2 * names;
      const action = previousAction[agent]!;
      if (isPaper) into[rest + (action === none ? actionCount : action)] = 1;
      else if (action !== none) into[rest + 1 + action] = 1;
      into[rest + 4] = 1;
      into[rest + 5] = progress;
      if (rewardInput === "success") into[rest + 6] = rewards[agent] === successReward ? 1 : 0;
      else if (rewardInput === "last") into[rest + 6] = rewards[agent]!;
      else if (rewardInput === "cumulative") into[rest + 6] = returns[agent]!;
    }
  }

  /** Mean over the agents of the episode's reward so far: the number the paper's curves show. */
  meanReturn(): number {
    let sum = 0;
    for (let agent = 0; agent < this.agents; agent++) sum += this.returns[agent]!;
    return sum / this.agents;
  }

  /** Places the reward anywhere but where it is, and the agent anywhere but there: one draw for both. */
  #placeAnew(agent: number): void {
    const others = this.graphs.states - 1;
    const draw = this.#draw(others * others, agent);
    this.#place(agent, skip(draw % others, this.rewardAt[agent]!), Math.floor(draw / others));
  }

  /** Gives the locations of every graph some of the names, each in every order alike. */
  #drawNames(): void {
    const { states } = this.graphs;
    for (let agent = 0; agent < this.agents; agent++) {
      const left = Array.from({ length: this.names }, (_, name) => name);
      for (let location = 0; location < states; location++) {
        const address = [this.#seed, purpose.names, this.#episode, location] as const;
        const drawn = below(left.length, ...address, this.#firstAgent + agent);
        this.#nameOf[agent * states + location] = left.splice(drawn, 1)[0]!;
      }
    }
  }

  /** A whole number from 0 to n - 1 for an agent at this step. */
  #draw(n: number, agent: number): number {
    return below(n, this.#seed, this.#purpose, this.#episode, this.#step, this.#firstAgent + agent);
  }

  /** `other` counts the locations that are not the reward's. */
  #place(agent: number, reward: number, other: number): void {
    this.rewardAt[agent] = reward;
    this.agentAt[agent] = skip(other, reward);
  }

  #checkStep(actions: Int32Array | Uint8Array): void {
    if (this.#episode < 0) throw new UsageError("graphs: reset(episode) comes before the first step");
    if (this.done) {
      throw new UsageError("graphs: the episode is over", {
        steps: this.steps,
        hint: "call reset(episode) to start the next one",
      });
    }
    if (actions.length !== this.agents) {
      throw new ShapeError("graphs: one action per agent is needed", {
        agents: this.agents,
        actions: actions.length,
      });
    }
  }

  #throwAction(agent: number, action: number): never {
    throw new UsageError("graphs: no such action", { agent, action, actions: actionCount });
  }
}

/** The location with number `other` when `left` is left out of the count. */
function skip(other: number, left: number): number {
  return other < left ? other : other + 1;
}
