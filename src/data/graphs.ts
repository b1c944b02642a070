/**
 * Meta-reinforcement learning on random graphs: the task as the rest of the program sees it.
 *
 * sampler.ts draws the graphs, environment.ts plays on them, play.ts and explorer.ts have the three players
 * that frame every result, and draws.ts gives all of them random numbers that depend on an address instead of on history.
 */
export { fillUniform, type Purpose, purpose } from "./graphs/draws.ts";
export {
  GraphEnvironment,
  type GraphEnvironmentOptions,
  type GraphRules,
  graphRules,
  observationSize,
} from "./graphs/environment.ts";
export { explorerPlayer } from "./graphs/explorer.ts";
export {
  checkPlay,
  measurePlay,
  type PlayCheck,
  type Player,
  type PlayResult,
  type PlaySettings,
  playEpisode,
  randomPlayer,
  shortestActions,
  shortestPathPlayer,
} from "./graphs/play.ts";
export { actions, type GraphSets, type Graphs, sampleGraphSets, states } from "./graphs/sampler.ts";
