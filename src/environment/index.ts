/**
 * Meta-reinforcement learning on random graphs: the environment as the rest of the program sees it.
 *
 * sampler.ts samples the graphs, graphEnvironment.ts steps the agents on them, baselines.ts and explorer.ts have
 * the three baselines of every result, and draws.ts gives all of them random numbers by address. lessons.ts shows
 * agents a few edges and asks for ways, rename.ts gives graphs other names. knowledge.ts is what an episode has shown of
 * a graph, behaviour.ts and readMatches.ts what agents and their memories make of it.
 */

export {
  type Baseline,
  checkBaselines,
  randomBaseline,
  runBaseline,
  shortestPathBaseline,
} from "./baselines.ts";
export { type Behaviour, BehaviourCounter, type Tally } from "./behaviour.ts";
export { fillUniform, type Purpose, purpose } from "./draws.ts";
export { explorerBaseline, explorerTeacher, type Teacher } from "./explorer.ts";
export {
  GraphEnvironment,
  type GraphEnvironmentOptions,
  type GraphRules,
  graphRules,
  observationSize,
  observationSizeOf,
} from "./graphEnvironment.ts";
export { type LessonSettings, Lessons } from "./lessons.ts";
export { type PartMatch, ReadCounter, type WayPart, wayParts } from "./readMatches.ts";
export { type Naming, renameGraphs } from "./rename.ts";
export {
  actions,
  edgesOf,
  type GraphSets,
  type GraphSplit,
  type Graphs,
  pairsOf,
  sampleGraphSets,
  sampleGraphs,
  someGraphs,
  states,
} from "./sampler.ts";
