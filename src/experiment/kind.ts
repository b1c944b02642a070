/**
 * A kind of experiment: what all its experiments share, from the schema of their settings to how a saved model is
 * evaluated and presented. `trainRun` trains any kind, and the commands ask the kind; none of them knows which it has.
 *
 * A new kind is a folder with `settings`, `session` and `evaluate`, and a line in `registry.ts`.
 */
import { z } from "zod";
import type { BarsSpec } from "../report/bars.ts";
import type { CardAbout } from "../report/card.ts";
import type { FigureSpec } from "../report/figure.ts";
import type { RunResult } from "../report/result.ts";
import type { Device } from "../runtime/runtime.ts";
import type { LoadedCheckpoint } from "../store/checkpoint.ts";
import type { LoadedModel } from "../store/modelFolder.ts";
import type { Tensors } from "../store/safetensors.ts";
import type { LoopTask, StepReport } from "../train/loop.ts";

const interval = z.int().min(1);

/** The part of `training` that every kind has. */
export const loopFields = {
  /** Seed of the weights and of everything else that is drawn. */
  seed: z.int().min(0).max(0xffffffff),
  /** Steps between lines of the log, evaluations, and checkpoints besides those at evaluations. */
  logEvery: interval,
  evalEvery: interval,
  saveEvery: interval,
  /** Evaluations without a better one after which training stops; 0: never. */
  patience: z.int().min(0),
  /** Minutes spent in steps after which training ends, by the clock and of processor time; 0: no limit. */
  minutes: z.number().min(0).default(0),
  processorMinutes: z.number().min(0).default(0),
};

/** Training to the last step, whatever the evaluations say and however long it takes. */
export const untilLastStep = { patience: 0, minutes: 0, processorMinutes: 0 } as const;

/** What the settings of every kind have. */
export interface BaseSettings {
  readonly task: { readonly name: string };
  readonly system: { readonly name: string };
  readonly training: { readonly [Field in keyof typeof loopFields]: number };
}

/** A number that training reports. */
export interface Measure {
  /** What tables and axes call it. */
  readonly label: string;
  readonly better: "higher" | "lower";
  /** A fraction that is shown in per cent. */
  readonly percent?: boolean;
  /** Digits after the point. */
  readonly digits: number;
}

/** The environment of a process: `FWM_DATA`, `HOME` and the like. */
export type Env = Readonly<Record<string, string | undefined>>;

/** Where and how a session computes. */
export interface SessionContext {
  readonly env: Env;
  readonly threads?: number;
  readonly device?: Device;
}

/** What is to be said of the data a session trains on. */
export interface SessionData {
  /** Two sessions with the same text here learn from and are evaluated on the same data; checked on resuming. */
  readonly identity?: string;
  /** Missing, partial or generated data: shown, and recorded with the run. */
  readonly notes: readonly string[];
}

/** Training under way: what is stepped, evaluated, saved and restored. */
export interface Session extends LoopTask {
  readonly data: SessionData;
  /** Takes over the weights of a saved model; one that does not fit is a `UsageError`. */
  init(model: LoadedModel): void;
  /** Takes over a checkpoint, before the first step. */
  restore(
    checkpoint: Pick<LoadedCheckpoint, "path" | "model" | "optimizer"> & { readonly state: unknown },
  ): Promise<void>;
  snapshot(): SessionSnapshot;
  /** The measures now; `onProgress` is called between pieces of work. */
  evaluate(signal: AbortSignal, onProgress?: () => Promise<void>): ReturnType<LoopTask["evaluate"]>;
  release(): Promise<void>;
}

/** What a checkpoint holds of a session. */
export interface SessionSnapshot {
  readonly model: Tensors;
  readonly optimizer: Tensors;
  /** Plain JSON. */
  readonly state: unknown;
  /** Further files of the model, such as `vocab.json`. */
  readonly files?: Readonly<Record<string, string>>;
}

/** An option of an evaluation, as a command offers it. */
export type EvaluationOption =
  | { readonly type: "integer"; readonly min?: number; readonly max?: number; readonly help: string }
  | {
      readonly type: "choice";
      readonly values: readonly string[];
      readonly help: string;
      /** Stands in the place of a split: for `fwm eval`, not for the score of a result file or a card. */
      readonly replacesSplit?: true;
    }
  /** A number above 0, or one of some words. */
  | { readonly type: "number"; readonly words: readonly string[]; readonly help: string }
  /** Numbers above 0 with commas between them, as many as there are names; or one of some words. */
  | {
      readonly type: "numbers";
      readonly names: readonly string[];
      readonly words: readonly string[];
      readonly help: string;
    }
  | { readonly type: "folder"; readonly help: string };

/** What an evaluation of a saved model says, whatever its kind. */
export interface BaseEvaluation {
  /** Folder the weights came from. */
  readonly model: string;
  readonly experiment: string;
  /** Steps made when the model was saved, where known. */
  readonly step: number | null;
  readonly split: string;
}

/** How an evaluation computes and tells how far it is. */
export interface EvaluationContext extends SessionContext {
  /** `what` is counted, e.g. windows. */
  readonly onProgress?: (done: number, total: number, what: string) => void;
}

/** A saved model with the settings it was trained under. */
export interface SavedModel<S> {
  readonly folder: LoadedModel;
  readonly experiment: string;
  readonly settings: S;
}

/** A run as reports show it beside others. */
export interface ReportedRun<P = unknown> {
  /** Path of the run folder. */
  readonly folder: string;
  readonly result: RunResult<P>;
}

/** One measurement of `fwm bench train`. */
export interface BenchRow {
  /** What tells this row from the others, such as mode and batch. */
  readonly label: Readonly<Record<string, string | number>>;
  /** Work per second, in the kind's unit of speed. */
  readonly perSecond: number;
  /** Median, and the least. */
  readonly stepMs: number;
  readonly leastMs: number;
  readonly peakMemoryMB: number;
  /** Operations counted from the equations over the measured time, and as a share of the measured matmul peak. */
  readonly gflops: number | null;
  readonly shareOfPeak: { readonly median: number; readonly least: number; readonly most: number } | null;
  /** Milliseconds by part of a step. */
  readonly parts: Readonly<Record<string, number>>;
}

/** What `fwm bench train` lets a person choose. */
export interface BenchOptions {
  /** Steps to time in each row. */
  readonly steps: number;
  readonly batches?: readonly number[];
  readonly window?: number;
  readonly mode?: string;
  readonly threads?: number;
}

/** A kind of experiment: `S` are its settings, `E` its evaluations, `P` what was published. */
export interface Kind<
  S extends BaseSettings = BaseSettings,
  E extends BaseEvaluation = BaseEvaluation,
  P = unknown,
> {
  /** `task.name` in settings. */
  readonly name: string;
  readonly schema: z.ZodType<S>;
  /** Settings that had another name before, old to new: for a message. */
  readonly renamed: Readonly<Record<string, string>>;
  /** What a step is called. */
  readonly unit: "step" | "episode";
  /** The settings that common options stand for. */
  readonly flags: { readonly steps: string; readonly batch: string; readonly data?: string };
  /** What evaluations during training report. */
  readonly measures: Readonly<Record<string, Measure>>;
  /** The measure that decides which checkpoint is the best, and the one that figures and sweeps show. */
  readonly best: string;
  readonly headline: string;
  /** Name of the speed in the log, and in tables. */
  readonly speed: { readonly name: string; readonly label: string };
  /** The step's value that a progress bar shows. */
  readonly shown: keyof StepReport["means"];
  /** Steps in all. */
  steps(settings: S): number;
  /** Trained weights; throws where the settings make no system. */
  countWeights(settings: S): number;
  /** Numbers in the recurrent state of so many rows, by default those of the largest batch; where there is a state. */
  countState?(settings: S, rows?: number): number;
  /** Settings of a new run as its data wants them, such as the size of the vocabulary. */
  fitToData?(settings: S): Promise<S>;
  /** Opens data and system. Everything a user may have got wrong is found here, before a run folder is made. */
  open(settings: S, context: SessionContext): Promise<Session>;

  /** What a person may choose in an evaluation. */
  readonly evaluationOptions: Readonly<Record<string, EvaluationOption>>;
  /** Evaluates a saved model; `options` holds what was chosen of `evaluationOptions`. */
  evaluate(
    model: SavedModel<S>,
    options: Readonly<Record<string, string | number | undefined>>,
    context: EvaluationContext,
  ): Promise<E>;
  /** The published number an evaluation stands beside; null where there is none. */
  published(evaluation: E, paper: P | undefined): object | null;
  /** An evaluation as a table, and in a line. */
  show(evaluation: E, paper: P | undefined): string;
  showLine(evaluation: E, paper: P | undefined): string;
  /** The command that uses a trained model, without its folder: `fwm ask`. */
  readonly use: string;

  /** A model card in Markdown. */
  card(result: RunResult<P>, evaluation: E, about: CardAbout): string;
  /** Curves of runs beside what was published. */
  figure(runs: readonly ReportedRun<P>[]): Promise<FigureSpec>;
  /** Evaluations side by side as bars, where the kind has tasks to tell apart. */
  bars?(evaluations: readonly { readonly name: string; readonly evaluation: unknown }[]): BarsSpec;
  /** Runs side by side as a table, where the kind has one beyond the curves; the first run's part goes into its file. */
  compare?(runs: readonly ReportedRun<P>[]): Promise<Comparison>;

  /** The rows that `fwm bench train` measures, each as settings and its label. */
  benchRows(settings: S, options: BenchOptions): readonly BenchCase<S>[];
  /** Measures one row in this process. */
  bench(row: BenchCase<S>, options: BenchOptions): Promise<BenchRow>;
}

/** One row to be measured. */
export interface BenchCase<S> {
  readonly label: BenchRow["label"];
  readonly settings: S;
}

/** Runs side by side. */
export interface Comparison {
  readonly name: string;
  readonly rows: readonly { readonly name: string; readonly points: readonly object[] }[];
  readonly text: string;
}

/** An experiment as `experiments/` defines it. */
export interface Experiment<S extends BaseSettings = BaseSettings, P = unknown> {
  /** What it shows, in a line. */
  readonly description: string;
  readonly settings: S;
  /** Small settings laid over the others by `--smoke`: a check, not a result. */
  readonly smoke: { readonly [Part in keyof S]?: Partial<S[Part]> };
  /** The published numbers this stands beside. */
  readonly paper?: P;
}
