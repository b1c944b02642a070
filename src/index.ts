/**
 * The library: `import { loadModel } from "fwm"`. Models that answer, agents that play, the memory alone, training, data
 * and run folders; the layers that models are made of are `fwm/model`, and the engine below (graphs, gradients,
 * runtimes) is `fwm/engine`. docs/library.md shows each part at work. This is the library for Node;
 * `inference/index.ts` is the part that a browser can import.
 */

// The experiments of the package, by name
import "../experiments/index.ts";

export {
  formatStories,
  type Line,
  parseStories,
  type Question,
  type Statement,
  type Story,
  storyTokens,
} from "./babi/format.ts";
export { type Difficulty, ordinary as ordinaryDifficulty } from "./babi/generator/difficulty.ts";
export { generateStories, generateStory, streamStory } from "./babi/generator/generate.ts";
export type { Answer as StoryAnswer } from "./babi/reader/answer.ts";
export { StoryReader } from "./babi/reader/reader.ts";
export { type Solution, solveStories } from "./babi/reader/solve.ts";
// Data: stories, the words they are made of, and the batches they become
export {
  type Batch,
  type BatcherState,
  type BatchSettings,
  epochBatches,
  StreamBatcher,
} from "./data/batches.ts";
export { type OwnStories, type OwnStoriesOptions, prepareOwnStories } from "./data/sources/ownStories.ts";
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
// Meta-reinforcement learning: random graphs, their rules, and the baselines an agent is measured by
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
  observationSizeOf,
  randomBaseline,
  runBaseline,
  sampleGraphSets,
  shortestPathBaseline,
} from "./environment/index.ts";
// Errors, each with the exit code it gives a program
export { DataError, exitCode, FwmError, ShapeError, UsageError } from "./errors.ts";
// Training: an experiment is settings; a run folder is what it leaves. A kind, a system or an experiment of one's own is
// registered and then trained, evaluated, swept and reported like those that come with the package
export type { CatbabiEvaluation, CatbabiOptions } from "./experiment/catbabi/options.ts";
export type { Score, Tally } from "./experiment/catbabi/score.ts";
export {
  type CatbabiExperiment,
  type CatbabiSettings,
  catbabiExperiment,
  catbabiSchema,
  catbabiSystem,
  catbabiTask,
  releasedTraining,
} from "./experiment/catbabi/settings.ts";
export { defineKind, type KindSpec } from "./experiment/defineKind.ts";
export {
  type BaseEvaluation,
  type BaseSettings,
  type Comparison,
  type EvaluationContext,
  type EvaluationOption,
  type Experiment,
  type Kind,
  loopFields,
  type Measure,
  type ReportedRun,
  type SavedModel,
  type Session,
  type SessionContext,
  type SessionData,
  type SessionSnapshot,
} from "./experiment/kind.ts";
// Agents: evaluated with fixed weights, and watched step by step
export { baselineReturns } from "./experiment/metarl/evaluate.ts";
export type {
  BaselineReturns,
  MeanReturn,
  MetarlEvaluation,
  MetarlOptions,
} from "./experiment/metarl/options.ts";
export {
  fwmAgentSettings,
  type MetarlExperiment,
  type MetarlSettings,
  metarlExperiment,
  metarlSchema,
  releasedMetarlTraining,
  releasedTask as releasedMetarlTask,
} from "./experiment/metarl/settings.ts";
export {
  experimentNames,
  findExperiment,
  kindOf,
  registerExperiments,
  registerKind,
} from "./experiment/registry.ts";
export { type Rollout, type RolloutOptions, type RolloutStep, rollOut } from "./experiment/rollout.ts";
export { type EvaluateOptions, evaluateSaved, loadSaved } from "./experiment/savedModel.ts";
export {
  type Change,
  type Grid,
  type MemberState,
  type SweepMember,
  sweepMembers,
  sweepStates,
} from "./experiment/sweep/members.ts";
export type { Rounds } from "./experiment/sweep/rounds.ts";
export { type RoundResult, runSweep, type SweepContext, type SweepEnd } from "./experiment/sweep/run.ts";
export { fittingWeights, toHost as hostTensors, toTensors as savedTensors } from "./experiment/tensors.ts";
// Language models: word by word beside each other
export {
  type ComparedModel,
  type CompareOptions,
  compareModels,
  type LossComparison,
  type Passage,
} from "./experiment/text/compare.ts";
export type { SplitScores, TextEvaluation, TextOptions } from "./experiment/text/options.ts";
export {
  type TextExperiment,
  type TextSettings,
  textExperiment,
  textSchema,
} from "./experiment/text/settings.ts";
export { type RunContext, type RunEnd, type RunPlan, trainRun } from "./experiment/trainRun.ts";
// Answering: models, streams, the memory alone
export * from "./inference/index.ts";
export { type LoadOptions, loadModel } from "./inference/load.ts";
export { buildSystem, registerSystem, type SystemSettings } from "./model/registry.ts";
export type { SequenceModel, System, Tracer } from "./model/sequence.ts";
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
// What a session of one's own trains and scores with
export { DivergedError, type LoopCallbacks, type LoopEnd, type StepReport } from "./train/loop.ts";
export {
  baseRate,
  optimizerSchema,
  optimizersOf,
  scheduleSchema,
  startsAveraging,
} from "./train/optimizerSettings.ts";
export { type EvaluatedWindow, SequenceEvaluator } from "./train/sequenceEvaluator.ts";
export {
  SequenceTrainer,
  type TrainerSettings,
  type TrainerTensors,
  type TrainStep,
} from "./train/sequenceTrainer.ts";
export type { TokenBatch } from "./train/sequenceWindow.ts";
