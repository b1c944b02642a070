/** The training loop: step, log, evaluate, save. It knows neither the system nor the task. */
import { z } from "zod";
import { exitCode, FwmError } from "../errors.ts";

/** Numbers by name. */
export type Values = Readonly<Record<string, number>>;

/** What a step tells the loop. */
export interface StepReport {
  /** Averaged over the steps between two lines of the log: a number, or a sum and what it is a sum over. */
  readonly means: Readonly<Record<string, number | readonly [sum: number, count: number]>>;
  /** Logged as it is at the last of these steps, such as the learning rate. */
  readonly latest?: Values;
  /** How much the step was, for the speed: tokens, episodes. */
  readonly work: number;
  /** Whether a pass over the data ended with it. */
  readonly endOfEpoch?: boolean;
  /** The first tensor that was not finite; the step was not applied. */
  readonly nonFinite?: string;
}

/** What the loop works on. */
export interface LoopTask {
  step(step: number): Promise<StepReport>;
  /** The measures now; undefined when the signal cut it short. */
  evaluate(signal: AbortSignal): Promise<Values | undefined>;
}

/** Where the loop writes. */
export interface LoopRun {
  log(record: { step: number; split: string; values: Values; times?: Values }): void;
  /** Saves everything needed to resume after `step` steps; `progress` and `spent` have to come back then. */
  save(
    step: number,
    about: { readonly best: boolean; readonly progress: LoopProgress; readonly spent: SpentTime },
  ): Promise<void>;
  heartbeat(step: number): Promise<void>;
}

/** How the loop runs. */
export interface LoopSettings {
  readonly steps: number;
  /** Steps after which to pause, an evaluation's: what follows when resumed equals a run that never paused. */
  readonly pauseAt?: number;
  readonly logEvery: number;
  /** Steps between evaluations; 0: at the end of every epoch. */
  readonly evalEvery: number;
  readonly saveEvery: number;
  /** Evaluations without a better one after which training stops; 0: never. */
  readonly patience: number;
  /** Minutes of training, by the clock and of processor time, after which it ends; 0: no limit. */
  readonly minutes: number;
  readonly processorMinutes: number;
  /** The measure that decides which checkpoint is the best. */
  readonly best: { readonly measure: string; readonly better: "higher" | "lower" };
  /** Name of the speed in the log, and what a step is called in messages. */
  readonly speed: string;
  readonly unit: string;
}

const nullable = z.number().nullable();

/** Where a run stands, besides its tensors and its data stream. */
export const progressSchema = z.strictObject({
  best: nullable,
  bestStep: nullable,
  /** All measures of the best evaluation, and of the last one. */
  bestValues: z.record(z.string(), z.number()),
  lastValues: z.record(z.string(), z.number()),
  evalsSinceBest: z.int().min(0),
  /** The run was stopped between a step and the evaluation after it. */
  evalPending: z.boolean(),
  /** Sums and counts since the last line of the log. */
  sums: z.record(z.string(), z.tuple([z.number(), z.number()])),
});

/** Where a run stands, besides its tensors and its data stream. */
export type LoopProgress = z.infer<typeof progressSchema>;

/** The start of a run. */
export const freshProgress: LoopProgress = {
  best: null,
  bestStep: null,
  bestValues: {},
  lastValues: {},
  evalsSinceBest: 0,
  evalPending: false,
  sums: {},
};

/** Time spent in steps, all resumptions together. It is no part of the progress: that two equal runs have alike. */
export const spentSchema = z.strictObject({
  /** By the clock. */
  seconds: z.number().min(0),
  /** Of all threads of the process. */
  processorSeconds: z.number().min(0),
});

/** Time spent in steps. */
export type SpentTime = z.infer<typeof spentSchema>;

/** Before the first step. */
export const nothingSpent: SpentTime = { seconds: 0, processorSeconds: 0 };

/** What a person is shown while it runs. */
export interface LoopCallbacks {
  /** After every step; `speed` is work per second. */
  onStep?(done: number, report: StepReport, speed: number): void;
  onLog?(step: number, values: Values): void;
  onEvaluation?(step: number, values: Values, best: boolean): void;
  onSave?(step: number): void;
}

/** How a run ended. */
export interface LoopEnd {
  readonly step: number;
  readonly reason: "finished" | "interrupted" | "paused" | "patience" | "budget";
  readonly progress: LoopProgress;
}

/** Both times, each since some moment. */
export type LoopClock = () => SpentTime;

const processClock: LoopClock = () => {
  const { user, system } = process.cpuUsage();
  return { seconds: performance.now() / 1000, processorSeconds: (user + system) / 1e6 };
};

/** Whether a run has had the minutes that its settings give it. */
export function isBudgetSpent(
  { seconds, processorSeconds }: SpentTime,
  { minutes, processorMinutes }: Pick<LoopSettings, "minutes" | "processorMinutes">,
): boolean {
  const reached = (time: number, limit: number): boolean => limit > 0 && time >= 60 * limit;
  return reached(seconds, minutes) || reached(processorSeconds, processorMinutes);
}

/** Training that stopped because a number was not finite. The last good checkpoint is untouched. */
export class DivergedError extends FwmError {
  override readonly name = "DivergedError";
  override readonly exitCode = exitCode.diverged;
}

/** Trains from `firstStep` on. `signal` ends it after the step at hand, with everything saved. */
export async function train(
  task: LoopTask,
  run: LoopRun,
  settings: LoopSettings,
  from: { readonly firstStep: number; readonly progress: LoopProgress; readonly spent: SpentTime },
  signal: AbortSignal,
  callbacks: LoopCallbacks = {},
  clock: LoopClock = processClock,
): Promise<LoopEnd> {
  const { steps, logEvery, evalEvery, saveEvery, patience, best: by } = settings;
  let { progress, spent } = from;
  let saved = from.firstStep;
  const speed = new Speedometer();
  const last = Math.min(settings.pauseAt ?? steps, steps);

  const save = async (step: number, best: boolean): Promise<void> => {
    await run.save(step, { best, progress, spent });
    saved = step;
    speed.pause();
    callbacks.onSave?.(step);
  };
  const end = (step: number, reason: LoopEnd["reason"]): LoopEnd => ({ step, reason, progress });
  const interrupted = async (step: number, evalPending: boolean): Promise<LoopEnd> => {
    progress = { ...progress, evalPending };
    if (step > saved || evalPending) await save(step, false);
    return end(step, "interrupted");
  };
  const hours = (): Values => ({
    hours: spent.seconds / 3600,
    processorHours: spent.processorSeconds / 3600,
  });
  const exhausted = (): boolean => patience > 0 && progress.evalsSinceBest >= patience;
  /** Evaluates and saves; gives the end of the run if this was it. */
  const evaluate = async (done: number): Promise<LoopEnd | undefined> => {
    const values = signal.aborted ? undefined : await task.evaluate(signal);
    if (!values) return interrupted(done, true);
    const best = isBetter(values[by.measure]!, progress.best, by.better);
    progress = {
      ...progress,
      lastValues: values,
      evalPending: false,
      evalsSinceBest: best ? 0 : progress.evalsSinceBest + 1,
      ...(best ? { best: values[by.measure]!, bestStep: done, bestValues: values } : {}),
    };
    run.log({ step: done, split: "valid", values, times: hours() });
    callbacks.onEvaluation?.(done, values, best);
    await save(done, best);
    return exhausted() ? end(done, "patience") : undefined;
  };

  if (progress.evalPending) {
    const over = await evaluate(from.firstStep);
    if (over) return over;
  } else if (exhausted()) return end(from.firstStep, "patience");
  if (isBudgetSpent(spent, settings)) return end(from.firstStep, "budget");
  for (let i = from.firstStep; i < last; i++) {
    if (signal.aborted) return interrupted(i, false);
    const before = clock();
    const report = await task.step(i);
    const after = clock();
    if (report.nonFinite !== undefined) throw diverged(i, report, saved, settings.unit);
    const done = i + 1;
    speed.add(report.work);
    spent = {
      seconds: spent.seconds + after.seconds - before.seconds,
      processorSeconds: spent.processorSeconds + after.processorSeconds - before.processorSeconds,
    };
    progress = { ...progress, sums: added(progress.sums, report.means) };
    const isSpent = isBudgetSpent(spent, settings);
    const isLast = done === steps || isSpent;
    callbacks.onStep?.(done, report, speed.rate());
    if (done % logEvery === 0 || isLast) {
      const values = { ...meansOf(progress.sums), ...report.latest };
      run.log({ step: done, split: "train", values, times: { [settings.speed]: speed.rate(), ...hours() } });
      callbacks.onLog?.(done, values);
      progress = { ...progress, sums: {} };
    }
    // The event loop gets a turn, so that ^C and the progress bar are alive between blocking steps.
    await new Promise((resolve) => setImmediate(resolve));
    await run.heartbeat(done);
    const isEvalStep = evalEvery > 0 ? done % evalEvery === 0 : report.endOfEpoch === true;
    if (isEvalStep || isLast) {
      const over = await evaluate(done);
      if (over) return over;
      if (isSpent) return end(done, "budget");
    } else if (done % saveEvery === 0) await save(done, false);
  }
  return last < steps ? end(last, "paused") : end(steps, "finished");
}

function isBetter(value: number, best: number | null, better: "higher" | "lower"): boolean {
  if (best === null) return true;
  return better === "higher" ? value > best : value < best;
}

function diverged(
  step: number,
  { nonFinite, means, latest }: StepReport,
  saved: number,
  unit: string,
): DivergedError {
  const shown = Object.entries({ ...means, ...latest }).filter(([, value]) => typeof value === "number");
  return new DivergedError(`training diverged at ${unit} ${step}: ${nonFinite} is not finite`, {
    ...Object.fromEntries(shown.map(([name, value]) => [name, Number(value)])),
    "last good checkpoint": saved > 0 ? `after ${unit} ${saved}` : "none",
    hint:
      (saved > 0 ? "start a new run with --init <this run> and " : "start again with ") +
      "a lower --set training.optimizer.learningRate, or --set training.clip=1",
  });
}

type Sums = LoopProgress["sums"];

function added(sums: Sums, means: StepReport["means"]): Sums {
  const next = { ...sums };
  for (const [name, value] of Object.entries(means)) {
    const [sum, count] = typeof value === "number" ? [value, 1] : value;
    const [before, counted] = sums[name] ?? [0, 0];
    next[name] = [before + sum, counted + count];
  }
  return next;
}

function meansOf(sums: Sums): Record<string, number> {
  return Object.fromEntries(
    Object.entries(sums).map(([name, [sum, count]]) => [name, sum / Math.max(1, count)]),
  );
}

/** Work per second over the last half minute, pauses for evaluation and saving left out. */
class Speedometer {
  private readonly marks: { at: number; work: number }[] = [];
  private work = 0;

  add(work: number): void {
    if (this.marks.length > 0) this.work += work;
    this.marks.push({ at: performance.now(), work: this.work });
    while (this.marks.length > 2 && this.marks[1]!.at < performance.now() - 30_000) this.marks.shift();
  }

  pause(): void {
    this.marks.length = 0;
  }

  rate(): number {
    const [first, last] = [this.marks[0], this.marks.at(-1)];
    if (!first || !last || last.at === first.at) return 0;
    return ((last.work - first.work) / (last.at - first.at)) * 1000;
  }
}
