/** The training loop: take a batch, step, look, save. It knows neither the system nor the task. */
import { exitCode, FwmError } from "../errors.ts";

/** What a step tells the loop. */
export interface LoopStep {
  readonly loss: number;
  readonly gradNorm: number;
  readonly correct: number;
  readonly questions: number;
  readonly tokens: number;
  /** The tensor that was not finite, when the update was refused. */
  readonly refused?: string;
}

/** What a validation tells the loop. */
export interface LoopScore {
  /** Lower is better; decides which checkpoint is the best. */
  readonly loss: number;
  /** Numbers to record. */
  readonly values: Readonly<Record<string, number>>;
}

/** What the loop works on. */
export interface LoopTask {
  step(step: number, learningRate: number): Promise<LoopStep>;
  /** Undefined when it was cut short by the signal. */
  validate(signal: AbortSignal): Promise<LoopScore | undefined>;
}

/** Where a training loop writes; `P` is where a run of its kind stands. */
export interface LoopRun<P = LoopProgress> {
  log(record: {
    step: number;
    split: string;
    values: Record<string, number>;
    times?: Record<string, number>;
  }): void;
  /** Saves everything needed to go on after `step` updates; `progress` has to come back on resuming. */
  save(step: number, options: { best: boolean; progress: P }): Promise<void>;
  heartbeat(step: number): Promise<void>;
}

/** Where a run stands, besides its tensors and its data stream. */
export interface LoopProgress {
  readonly bestLoss: number | null;
  readonly bestStep: number | null;
  /** Accuracy at the best validation. */
  readonly bestAccuracy: number | null;
  /** Validations since the best one. */
  readonly waited: number;
  /** The run was stopped when a validation was due. */
  readonly due: boolean;
  /** Sums since the last line of the log. */
  readonly sums: { steps: number; loss: number; gradNorm: number; correct: number; questions: number };
}

/** The beginning of a run. */
export const freshProgress: LoopProgress = {
  bestLoss: null,
  bestStep: null,
  bestAccuracy: null,
  waited: 0,
  due: false,
  sums: { steps: 0, loss: 0, gradNorm: 0, correct: 0, questions: 0 },
};

/** How the loop runs. */
export interface LoopSettings {
  readonly steps: number;
  readonly logEvery: number;
  readonly validEvery: number;
  readonly saveEvery: number;
  readonly patience: number;
  rate(step: number): number;
}

/** What a person is shown while it runs. */
export interface LoopWatch {
  onStep?(step: number, result: LoopStep, tokensPerSecond: number): void;
  onLog?(step: number, values: Readonly<Record<string, number>>): void;
  onValidation?(step: number, score: LoopScore, best: boolean): void;
  onSave?(step: number): void;
}

/** How a run ended. */
export interface LoopEnd {
  readonly step: number;
  readonly reason: "finished" | "interrupted" | "patience";
  readonly progress: LoopProgress;
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
  from: { readonly firstStep: number; readonly progress: LoopProgress },
  signal: AbortSignal,
  watch: LoopWatch = {},
): Promise<LoopEnd> {
  let progress = structuredClone(from.progress);
  let saved = from.firstStep;
  const speed = new Speedometer();

  const save = async (step: number, best: boolean): Promise<void> => {
    await run.save(step, { best, progress });
    saved = step;
    watch.onSave?.(step);
  };
  const end = (step: number, reason: LoopEnd["reason"]): LoopEnd => ({ step, reason, progress });
  const interrupted = async (step: number, due: boolean): Promise<LoopEnd> => {
    progress = { ...progress, due };
    if (step > saved || due) await save(step, false);
    return end(step, "interrupted");
  };
  /** Validates and saves; gives the end of the run if this was it. */
  const look = async (done: number): Promise<LoopEnd | undefined> => {
    const score = signal.aborted ? undefined : await task.validate(signal);
    if (!score) return interrupted(done, true);
    const best = progress.bestLoss === null || score.loss < progress.bestLoss;
    progress = { ...progress, due: false, waited: best ? 0 : progress.waited + 1 };
    if (best) {
      const bestAccuracy = score.values.accuracy ?? null;
      progress = { ...progress, bestLoss: score.loss, bestStep: done, bestAccuracy };
    }
    run.log({ step: done, split: "valid", values: score.values });
    watch.onValidation?.(done, score, best);
    await save(done, best);
    speed.pause();
    return settings.patience > 0 && progress.waited >= settings.patience ? end(done, "patience") : undefined;
  };

  if (progress.due) {
    const over = await look(from.firstStep);
    if (over) return over;
  }
  for (let i = from.firstStep; i < settings.steps; i++) {
    if (signal.aborted) return interrupted(i, false);
    const learningRate = settings.rate(i);
    const result = await task.step(i, learningRate);
    if (result.refused !== undefined) throw diverged(i, learningRate, result, saved);
    speed.add(result.tokens);
    progress = { ...progress, sums: added(progress.sums, result) };
    watch.onStep?.(i, result, speed.rate());
    const done = i + 1;
    if (done % settings.logEvery === 0 || done === settings.steps) {
      const values = { ...means(progress.sums), learningRate };
      run.log({ step: done, split: "train", values, times: { tokensPerSecond: speed.rate() } });
      watch.onLog?.(done, values);
      progress = { ...progress, sums: freshProgress.sums };
    }
    // The event loop gets a turn, so that ^C and the progress bar are alive between blocking steps.
    await new Promise((resolve) => setImmediate(resolve));
    await run.heartbeat(done);
    if (done % settings.validEvery === 0 || done === settings.steps) {
      const over = await look(done);
      if (over) return over;
    } else if (done % settings.saveEvery === 0) {
      await save(done, false);
    }
  }
  return end(settings.steps, "finished");
}

function diverged(step: number, learningRate: number, result: LoopStep, saved: number): DivergedError {
  return new DivergedError(`training diverged at step ${step}: ${result.refused} is not finite`, {
    loss: result.loss,
    "gradient norm": result.gradNorm,
    "learning rate": learningRate,
    "last good checkpoint": saved > 0 ? `after step ${saved}` : "none",
    hint:
      (saved > 0 ? "begin a new run with --init <this run> and " : "begin again with ") +
      "a lower learning rate, or --set training.clip=1",
  });
}

type Sums = LoopProgress["sums"];

function added(sums: Sums, result: LoopStep): Sums {
  return {
    steps: sums.steps + 1,
    loss: sums.loss + result.loss,
    gradNorm: sums.gradNorm + result.gradNorm,
    correct: sums.correct + result.correct,
    questions: sums.questions + result.questions,
  };
}

function means(sums: Sums): Record<string, number> {
  return {
    loss: sums.loss / sums.steps,
    gradNorm: sums.gradNorm / sums.steps,
    accuracy: sums.correct / Math.max(1, sums.questions),
  };
}

/** Tokens per second over the last half minute, pauses for validation left out. */
class Speedometer {
  private readonly marks: { at: number; tokens: number }[] = [];
  private tokens = 0;

  add(tokens: number): void {
    if (this.marks.length === 0) this.marks.push({ at: performance.now(), tokens: this.tokens });
    else {
      this.tokens += tokens;
      this.marks.push({ at: performance.now(), tokens: this.tokens });
    }
    while (this.marks.length > 2 && this.marks[1]!.at < performance.now() - 30_000) this.marks.shift();
  }

  pause(): void {
    this.marks.length = 0;
  }

  rate(): number {
    const [first, last] = [this.marks[0], this.marks.at(-1)];
    if (!first || !last || last.at === first.at) return 0;
    return ((last.tokens - first.tokens) / (last.at - first.at)) * 1000;
  }
}
