/**
 * What the studio's pages and its server say to each other: every route, and the JSON of every request and answer.
 * Types and constants only, so that the browser imports it as it is.
 *
 * Reading takes GET with a query; whatever has a body is POST with `content-type: application/json`. A failure is an
 * `ApiFailure` with a status of 400 or more. Runs, models and checkpoints are named as the listings name them; a name
 * that is in no listing is 404, whatever it looks like.
 */
import type { RolloutStep, WalkStep } from "../experiment/rollout.ts";

export type { RolloutStep, WalkStep };

/** Method and path of every route. */
export const routes = {
  /** → `About` */
  about: { method: "GET", path: "/api/about" },
  /** → `RunsAnswer`; `?since=<cursor>` leaves out what has not changed. */
  runs: { method: "GET", path: "/api/runs" },
  /** Server-sent events: `runs` with a `RunsAnswer` of what changed, `jobs` with a `JobsAnswer`; `?since=<cursor>`. */
  events: { method: "GET", path: "/api/events" },
  /** `?run=<name>` → `RunDetail` */
  run: { method: "GET", path: "/api/run" },
  /** `MetricsRequest` → `MetricsAnswer` */
  metrics: { method: "POST", path: "/api/metrics" },
  /** `CompareRequest` → `CompareAnswer` */
  compare: { method: "POST", path: "/api/compare" },
  /** → `SweepsAnswer` */
  sweeps: { method: "GET", path: "/api/sweeps" },
  /** `?sweep=<name>` → `SweepDetail` */
  sweep: { method: "GET", path: "/api/sweep" },
  /** → `ModelsAnswer` */
  models: { method: "GET", path: "/api/models" },
  /** `VocabularyRequest` → `VocabularyAnswer` */
  vocabulary: { method: "POST", path: "/api/vocabulary" },
  /** `AskRequest` → `AskAnswer` */
  ask: { method: "POST", path: "/api/ask" },
  /** `RolloutRequest` → `RolloutAnswer` */
  rollout: { method: "POST", path: "/api/rollout" },
  /** `PassageRequest` → `PassageAnswer` */
  passage: { method: "POST", path: "/api/passage" },
  /** `GenerateRequest` → `GenerateAnswer` */
  generate: { method: "POST", path: "/api/generate" },
  /** `TrainRequest` → `TrainPlan`: checks settings, starts nothing. */
  trainCheck: { method: "POST", path: "/api/train/check" },
  /** `TrainRequest` → `Job` */
  trainStart: { method: "POST", path: "/api/train/start" },
  /** `ResumeRequest` → `Job` */
  trainResume: { method: "POST", path: "/api/train/resume" },
  /** `StopRequest` → `Job`: as ^C, so the run saves first. */
  trainStop: { method: "POST", path: "/api/train/stop" },
  /** → `JobsAnswer` */
  jobs: { method: "GET", path: "/api/jobs" },
} as const;

/** Name of a route. */
export type RouteName = keyof typeof routes;

/** Limits the server holds everyone to; pages use them to say so before asking. */
export const limits = {
  /** Bytes of a request's body. */
  bodyBytes: 64 * 1024,
  /** Characters of a story. */
  storyCharacters: 8_000,
  /** Words that one request may generate. */
  generatedWords: 300,
  /** Runs whose metrics one request may ask for. */
  runsPerRequest: 250,
  /** Points of a series in one answer. */
  points: 4_000,
} as const;

/** The body of every answer with a status of 400 or more. */
export interface ApiFailure {
  readonly error: {
    /** What is wrong and what to do, as the command line says it; plain text, lines broken by "\n". */
    readonly message: string;
    readonly kind: "usage" | "data" | "forbidden" | "missing" | "busy" | "failed";
    /** Of words that the model does not know: each with the nearest known ones. */
    readonly unknownWords?: Readonly<Record<string, readonly string[]>>;
  };
}

// ─── what there is ────────────────────────────────────────────────────────────────────────────────────────────────

/** A number that training reports. */
export interface MeasureInfo {
  readonly label: string;
  readonly better: "higher" | "lower";
  /** A fraction that is shown in per cent. */
  readonly percent: boolean;
  readonly digits: number;
}

/** A kind of experiment: catbabi, metarl, text. */
export interface KindInfo {
  readonly name: string;
  /** What a step is called. */
  readonly unit: "step" | "episode";
  readonly measures: Readonly<Record<string, MeasureInfo>>;
  /** The measure that chooses the best checkpoint, and the one that figures show. */
  readonly best: string;
  readonly headline: string;
  readonly speed: { readonly name: string; readonly label: string };
}

/** An experiment that can be trained. */
export interface ExperimentInfo {
  readonly name: string;
  readonly description: string;
  readonly kind: string;
  readonly system: string;
  readonly steps: number;
}

/** Answer of `about`. */
export interface About {
  readonly version: string;
  /** The folder of runs, as it was given to the command. */
  readonly runsFolder: string;
  readonly kinds: readonly KindInfo[];
  readonly experiments: readonly ExperimentInfo[];
}

// ─── runs ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** How a run stands. */
export type RunState = "running" | "finished" | "interrupted" | "diverged" | "failed";

/** A run as a line of the table. */
export interface RunSummary {
  /** The folder's name; of a member of a sweep `<sweep>/<member>`. It is the run's name in every request. */
  readonly name: string;
  /** The sweep it is a member of. */
  readonly sweep: string | null;
  readonly experiment: string;
  /** Name of its kind; null where this version does not know it. */
  readonly kind: string | null;
  readonly system: string;
  readonly seed: number;
  readonly state: RunState;
  readonly step: number;
  /** Steps the run is to make. */
  readonly steps: number | null;
  readonly bestStep: number | null;
  /** The measures of its kind at the best evaluation, and at the last one. */
  readonly best: Readonly<Record<string, number>>;
  readonly last: Readonly<Record<string, number>>;
  /** Work per second at the last line of the log, in its kind's unit of speed. */
  readonly speed: number | null;
  /** Settings that are not as the experiment has them, by path: `training.batch`. */
  readonly changed: Readonly<Record<string, string>>;
  readonly created: string;
  readonly updated: string;
  readonly note: string | null;
  /** Whether this studio trains it and can stop it. */
  readonly trainedHere: boolean;
  /** Grows with every line of metrics: another number means there is more to fetch. */
  readonly metricsVersion: number;
}

/** Answer of `runs`, and data of the event `runs`. */
export interface RunsAnswer {
  /** Give it as `since` to be told only what changed after this. */
  readonly cursor: string;
  /** True if `runs` is the whole list, false if only what changed. */
  readonly whole: boolean;
  readonly runs: readonly RunSummary[];
  /** Names of runs that are gone. */
  readonly removed: readonly string[];
  /** Folders that are no whole runs, each with the reason. */
  readonly damaged: readonly { readonly name: string; readonly problem: string }[];
}

/** A checkpoint of a run. */
export interface CheckpointInfo {
  /** `checkpoint-500` */
  readonly name: string;
  readonly step: number;
  readonly best: boolean;
  readonly last: boolean;
}

/** Answer of `run`. */
export interface RunDetail {
  readonly run: RunSummary;
  readonly description: string;
  /** Settings by path. */
  readonly settings: Readonly<Record<string, string>>;
  /** The command that started it, to copy; and the one that resumes it, where that makes sense. */
  readonly command: string;
  readonly resumeCommand: string | null;
  readonly checkpoints: readonly CheckpointInfo[];
  readonly environment: Readonly<Record<string, string | number | null>>;
  readonly commit: string | null;
  readonly packageVersion: string;
  readonly resumed: readonly { readonly at: string; readonly step: number }[];
  readonly hours: number;
}

/** Body of `metrics`. */
export interface MetricsRequest {
  /** `cursor`: what the last answer gave; without it, everything. */
  readonly runs: readonly { readonly name: string; readonly cursor?: string }[];
  /** Series to send, as `<split>/<measure>`; all of the kind's measures without it. */
  readonly series?: readonly string[];
  /** Most points of a series; the rest is downsampled so that every minimum and maximum stays visible. */
  readonly points: number;
  /** Weight of the smoothed line, 0 (none) to 0.999: a debiased moving average over all points, sent beside the raw ones. */
  readonly smoothing?: number;
}

/** Points of one series, column by column. NaN and infinities are null. */
export interface SeriesPoints {
  readonly steps: readonly number[];
  readonly values: readonly (number | null)[];
  /** Smoothed over the whole history, not over the points sent; absent without smoothing. */
  readonly smoothed?: readonly (number | null)[];
  /** Hours of training up to each point, pauses left out. */
  readonly hours: readonly number[];
}

/** New points of one run. */
export interface RunMetrics {
  readonly name: string;
  readonly cursor: string;
  /** True if the points replace what the page has: the first answer, or the run was rewound to an earlier checkpoint. */
  readonly reset: boolean;
  /** Tokens a step reads, where the settings say. */
  readonly tokensPerStep: number | null;
  readonly series: Readonly<Record<string, SeriesPoints>>;
  /** Names of all series the run has. */
  readonly available: readonly string[];
}

/** Answer of `metrics`. */
export interface MetricsAnswer {
  readonly runs: readonly RunMetrics[];
  /** Runs that are gone since. */
  readonly missing: readonly string[];
}

/** Body of `compare`. */
export interface CompareRequest {
  readonly runs: readonly string[];
}

/** Answer of `compare`. */
export interface CompareAnswer {
  /** Settings in which the runs differ: one value per run, null where it has no such setting. */
  readonly settings: readonly { readonly key: string; readonly values: readonly (string | null)[] }[];
  /** Measures by task at the best evaluation, one entry per run that has them. */
  readonly tasks: readonly {
    readonly run: string;
    readonly step: number;
    /** Accuracy by number of the task. */
    readonly accuracy: Readonly<Record<string, number>>;
  }[];
  /** Published numbers beside the runs, by series: lines across the figure, and curves. */
  readonly published: readonly {
    readonly series: string;
    readonly name: string;
    readonly value: number | null;
    readonly curve: readonly { readonly step: number; readonly value: number }[];
  }[];
}

// ─── sweeps ───────────────────────────────────────────────────────────────────────────────────────────────────────

/** A sweep as a line of the list. */
export interface SweepSummary {
  readonly name: string;
  readonly experiment: string;
  readonly members: number;
  readonly states: Readonly<Partial<Record<RunState, number>>>;
  /** The measure it is judged by, its best value, and the member that has it. */
  readonly measure: string | null;
  readonly best: { readonly run: string; readonly value: number } | null;
}

/** Answer of `sweeps`. */
export interface SweepsAnswer {
  readonly sweeps: readonly SweepSummary[];
}

/** A member of a sweep. */
export interface SweepMember {
  /** `<sweep>/<member>` */
  readonly run: string;
  readonly member: string;
  readonly state: RunState;
  readonly seed: number;
  readonly created: string;
  /** Values of the settings that differ within the sweep. */
  readonly values: Readonly<Record<string, string | number | boolean | null>>;
  readonly best: Readonly<Record<string, number>>;
  readonly bestStep: number | null;
}

/** Answer of `sweep`. */
export interface SweepDetail {
  readonly sweep: SweepSummary;
  readonly kind: string | null;
  /** Settings that differ within the sweep, by path; the seed last. */
  readonly keys: readonly string[];
  /** In the order they were started in. */
  readonly members: readonly SweepMember[];
  /** By measure: the share of the measure's variance that each setting explains by itself, largest first. */
  readonly importance: Readonly<
    Record<string, readonly { readonly key: string; readonly importance: number }[]>
  >;
}

// ─── models ───────────────────────────────────────────────────────────────────────────────────────────────────────

/** What a model can be used for: answering questions, acting on graphs, modelling text. */
export type ModelUse = "answers" | "agent" | "text";

/** A model: a shipped one, or a run with at least one checkpoint. */
export interface ModelEntry {
  /** `shipped:catbabi-qa`, `run:<name>` */
  readonly id: string;
  readonly label: string;
  readonly use: ModelUse;
  readonly system: string;
  readonly experiment: string;
  /** Whether it has a fast weight memory, so that the Memory page can look at it. */
  readonly memory: boolean;
  /** Oldest first; empty for a shipped model. */
  readonly checkpoints: readonly CheckpointInfo[];
}

/** Answer of `models`. */
export interface ModelsAnswer {
  readonly models: readonly ModelEntry[];
}

/** A model in a request. */
export interface ModelRef {
  readonly id: string;
  /** Name of a checkpoint, "best" or "last"; the best one without it. */
  readonly checkpoint?: string;
}

/** Body of `vocabulary`. */
export interface VocabularyRequest {
  readonly model: ModelRef;
}

/** Answer of `vocabulary`: the words that may be typed. */
export interface VocabularyAnswer {
  readonly words: readonly string[];
}

// ─── asking ───────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Body of `ask`. The story is text as `fwm ask` takes it: statements and questions; a question may have its true answer
 * behind a tab, else the model continues with its own.
 */
export interface AskRequest {
  readonly model: ModelRef;
  readonly story: string;
  /** Answers to give for each question; 5 by default. */
  readonly top?: number;
  /** Whether to send what each word wrote to the memory, for `StoryMemory`; it is the larger part of the answer. */
  readonly writes?: boolean;
}

/** A possible answer. */
export interface AnswerInfo {
  readonly word: string;
  readonly probability: number;
}

/** One token as the model read it. */
export interface StoryTokenInfo {
  readonly word: string;
  /** Line of the story it stands in, from 0; -1 for `<eos>` at the beginning. */
  readonly line: number;
  /** Whether it is the answer read after a question: given with the story, or the model's own. */
  readonly answer: "given" | "own" | null;
  /** β: strength of the write, 0 to 1; null where the system has no such memory. */
  readonly beta: number | null;
  /** Frobenius norm of the fast weights after the write. */
  readonly norm: number | null;
}

/** A question of the story, and what the model makes of it. */
export interface AskedQuestion {
  /** Index of its "?" among the tokens, and of its first word. */
  readonly at: number;
  readonly from: number;
  readonly question: string;
  /** Best first. */
  readonly answers: readonly AnswerInfo[];
  /** The true answer, where the story gave one, and its probability. */
  readonly given: AnswerInfo | null;
  /** One per read, or attention head: a number for every token up to the "?". */
  readonly rows: readonly { readonly name: string; readonly values: readonly number[] }[];
}

/** Answer of `ask`: a `StoryTrace` of `src/inference`, numbers to six digits, and what it came from. */
export interface AskAnswer {
  readonly tokens: readonly StoryTokenInfo[];
  readonly questions: readonly AskedQuestion[];
  /** What the rows are: reads of a fast weight memory, attention heads, or nothing. */
  readonly shows: "reads" | "attention" | "nothing";
  /** What each token wrote; absent for a system without a Fast Weight Memory, or if it was not asked for. */
  readonly writes?: {
    readonly keys: "product" | "concat";
    readonly scale: number;
    readonly k1: readonly (readonly number[])[];
    readonly k2: readonly (readonly number[])[];
    readonly v: readonly (readonly number[])[];
    readonly beta: readonly number[];
  };
  readonly system: string;
  /** Steps the model was trained for, where known. */
  readonly step: number | null;
  /** Milliseconds the model took. */
  readonly ms: number;
}

// ─── agents ───────────────────────────────────────────────────────────────────────────────────────────────────────

/** Body of `rollout`. */
export interface RolloutRequest {
  readonly model: ModelRef;
  /** Seed of the graph, the places and the sampled actions: another one is another graph. */
  readonly seed: number;
}

/** Answer of `rollout`: one episode on a graph the agent was not trained on. */
export interface RolloutAnswer {
  /** graph[from][action]: where the action leads, or null. */
  readonly graph: readonly (readonly (number | null)[])[];
  readonly steps: readonly RolloutStep[];
  readonly total: number;
  /** The explorer from the same start: it has to find the graph out, forgets nothing and plans. */
  readonly explorer: readonly WalkStep[];
  readonly explorerTotal: number;
  /** Total of one who knows the graph and takes shortest paths. */
  readonly shortestPath: number;
  readonly experiment: string;
  readonly step: number | null;
}

// ─── text ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Body of `passage`: of a model of text. */
export interface PassageRequest {
  readonly model: ModelRef;
  readonly text: string;
}

/** Answer of `passage`: how surprising each word is after those before it. */
export interface PassageAnswer {
  readonly words: readonly {
    /** `<eos>` at the end of a line. */
    readonly word: string;
    /** Whether the model knows it; if not, the bits are those of `<unk>`. */
    readonly known: boolean;
    readonly bits: number;
  }[];
  readonly system: string;
  readonly step: number | null;
}

/** Body of `generate`: of a model of text. */
export interface GenerateRequest {
  readonly model: ModelRef;
  readonly prompt: string;
  readonly words: number;
  /** Divides the logits; 0: always the most probable word. */
  readonly temperature: number;
  /** Among so many of the most probable words; 0: all. */
  readonly topK: number;
  readonly seed: number;
}

/** Answer of `generate`. */
export interface GenerateAnswer {
  /** Each with the probability that the model gave it; `<eos>` ends a line. */
  readonly words: readonly { readonly word: string; readonly probability: number }[];
  /** Words of the prompt that the model does not know, read as `<unk>`. */
  readonly unknown: readonly string[];
}

// ─── training from the page ───────────────────────────────────────────────────────────────────────────────────────

/** A run to start: what `fwm train` takes. */
export interface TrainRequest {
  readonly experiment: string;
  readonly smoke?: boolean;
  readonly steps?: number;
  readonly seed?: number;
  readonly batch?: number;
  /** Changed settings, each as `training.optimizer.learningRate=2e-3`. */
  readonly set?: readonly string[];
  /** Name of the run folder; `<experiment>-seed<seed>` without it. */
  readonly name?: string;
}

/** Settings that passed the checks, and what would be run. */
export interface TrainPlan {
  readonly name: string;
  /** To copy into a shell. */
  readonly command: string;
  /** Each setting with where it came from. */
  readonly settings: readonly { readonly key: string; readonly value: string; readonly from: string }[];
  /** Why it cannot start although the settings are right: a folder of that name exists. */
  readonly problem: string | null;
}

/** Body of `trainResume`. */
export interface ResumeRequest {
  readonly run: string;
  /** More steps than the run was to make. */
  readonly steps?: number;
}

/** Body of `trainStop`. */
export interface StopRequest {
  readonly run: string;
}

/** A training process of this studio. */
export interface Job {
  readonly run: string;
  readonly command: string;
  readonly state: "starting" | "running" | "stopping" | "ended";
  /** Once it has ended: 0 finished, 130 stopped and saved, else failed. */
  readonly exitCode: number | null;
  /** The last lines it said. */
  readonly tail: readonly string[];
  readonly started: string;
}

/** Answer of `jobs`, and data of the event `jobs`. */
export interface JobsAnswer {
  readonly jobs: readonly Job[];
}
