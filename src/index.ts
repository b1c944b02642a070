/**
 * The library: `import { loadModel } from "fwm"`. Models that answer, agents that play, the memory alone, training, data
 * and run folders; the engine below (graphs, gradients, runtimes) is `fwm/engine`. docs/library.md shows each part at
 * work. This is the library for Node; `inference/index.ts` is the part that a browser can import.
 */

export {
  formatStories,
  type Line,
  parseStories,
  type Question,
  type Statement,
  type Story,
  storyTokens,
} from "./babi/format.ts";
export { generateStories, generateStory, streamStory } from "./babi/generator/generate.ts";
// Data: stories, the words they are made of, and the batches they become
export {
  type Batch,
  type BatcherState,
  type BatchSettings,
  epochBatches,
  StreamBatcher,
} from "./data/batches.ts";
export { type PrepareOptions, prepareCatbabi } from "./data/sources/prepare.ts";
export { type Catbabi, loadPrepared } from "./data/sources/prepared.ts";
export {
  type EncodedStory,
  encodeStory,
  endlessSource,
  generatedSource,
  mixedSource,
  preparedSource,
  type StorySource,
} from "./data/streams.ts";
export { catbabiVocabulary, Vocabulary } from "./data/vocabulary.ts";
// Meta-reinforcement learning: random graphs, the environment on them, and the baselines for agents
export {
  type Baseline,
  explorerBaseline,
  GraphEnvironment,
  type GraphEnvironmentOptions,
  type GraphRules,
  type GraphSets,
  type Graphs,
  graphRules,
  observationSize,
  randomBaseline,
  runBaseline,
  sampleGraphSets,
  shortestPathBaseline,
} from "./environment/index.ts";
// Errors, each with the exit code it gives a program
export { DataError, exitCode, FwmError, ShapeError, UsageError } from "./errors.ts";
// Training: an experiment is settings; a run folder is what it leaves
export { type RunContext, type RunPlan, trainCatbabi } from "./experiment/catbabi.ts";
// Agents: trained, evaluated with fixed weights, and watched step by step
export { type MetarlContext, trainMetarl } from "./experiment/metarl.ts";
export {
  type AgentEvaluation,
  type AgentSplit,
  type EvaluateAgentOptions,
  evaluateAgent,
  frameReward,
  type MeanReward,
  type PlayOptions,
} from "./experiment/metarlEvaluate.ts";
export {
  type AgentSettings,
  fwmAgentSettings,
  type MetarlExperiment,
  type MetarlSettings,
  metarlExperiment,
  metarlSchema,
  releasedMetarlTraining,
  releasedTask as releasedMetarlTask,
} from "./experiment/metarlSettings.ts";
export { type Rollout, type RolloutOptions, type RolloutStep, rollOut } from "./experiment/rollout.ts";
export {
  catbabiTask,
  type Experiment,
  experiment,
  fwmSystem,
  releasedTraining,
  type Settings,
  type SystemSettings,
  settingsSchema,
  type TrainingSettings,
} from "./experiment/settings.ts";
export {
  type Change,
  type Grid,
  type MemberState,
  runSweep,
  type SweepContext,
  type SweepEnd,
  type SweepMember,
  sweepMembers,
  sweepStates,
} from "./experiment/sweep.ts";
// Answering: models, streams, the memory alone
export {
  type EvaluateOptions,
  type Evaluation,
  type EvaluationSplit,
  evaluateModel,
  type StartState,
} from "./inference/evaluate.ts";
export * from "./inference/index.ts";
export { type LoadOptions, loadModel } from "./inference/load.ts";
// What training wrote
export { type LoadedCheckpoint, loadCheckpoint } from "./store/checkpoint.ts";
export { type MetricRecord, readMetrics } from "./store/metrics.ts";
export {
  type LoadedModel,
  loadModelFolder,
  type ModelContent,
  saveModelFolder,
} from "./store/modelFolder.ts";
export { listRuns, type RunListing, type RunRecord, type RunState, readRun } from "./store/runRecord.ts";
export { decodeSafetensors, encodeSafetensors, type TensorData, type Tensors } from "./store/safetensors.ts";
export type { A2cEnd, A2cWatch } from "./train/a2c.ts";
export { DivergedError, type LoopEnd, type LoopWatch } from "./train/loop.ts";
export type { Score, Tally } from "./train/score.ts";
