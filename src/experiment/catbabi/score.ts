/** How answers are scored: accuracy over all questions and per task, and the authors' perplexity. */

import { epochBatches } from "../../data/batches.ts";
import type { EvaluatedWindow, SequenceEvaluator } from "../../train/sequenceEvaluator.ts";
import type { JudgedAnswer } from "./calibration.ts";
import { answerLoss, correctAnswers, type Mode, type Objective, objectiveOf } from "./objective.ts";

/** Right answers out of questions. */
export interface Tally {
  readonly correct: number;
  readonly questions: number;
}

/** The score of a stream. */
export interface Score extends Tally {
  readonly accuracy: number;
  /** e to the unweighted mean over windows of the window's mean answer loss; a window without questions counts 0. */
  readonly perplexity: number;
  /** Mean over windows of the loss in the training mode. */
  readonly loss: number;
  readonly perTask: Readonly<Record<number, Tally & { readonly accuracy: number }>>;
}

/** Counts the right answers of each task. */
export class TaskTallies {
  private readonly tallies: Map<number, Tally>;

  constructor(saved: Readonly<Record<string, Tally>> = {}) {
    this.tallies = new Map(Object.entries(saved).map(([task, tally]) => [Number(task), tally]));
  }

  /** Counts the answers of one window, 1 where right; `tasks` is time-major like the window's tokens. */
  add({ questions }: Objective, answers: Uint8Array, tasks: ArrayLike<number>): void {
    answers.forEach((correct, i) => {
      const task = tasks[questions[i]!]!;
      const before = this.tallies.get(task) ?? { correct: 0, questions: 0 };
      this.tallies.set(task, { correct: before.correct + correct, questions: before.questions + 1 });
    });
  }

  /** What was counted, task by task in their order. */
  perTask(): Score["perTask"] {
    return Object.fromEntries(
      [...this.tallies]
        .sort(([a], [b]) => a - b)
        .map(([task, tally]) => [task, { ...tally, accuracy: tally.correct / tally.questions }]),
    );
  }

  /** The counts alone, for a checkpoint. */
  saved(): Record<string, Tally> {
    return Object.fromEntries(this.tallies);
  }
}

/** Adds up windows. */
export class Scorer {
  private windows = 0;
  private loss = 0;
  private answerLoss = 0;
  private readonly tallies = new TaskTallies();

  /** Adds one window; `tasks` is time-major like the window's tokens. */
  add(window: Objective, { loss, losses, predicted }: EvaluatedWindow, tasks: ArrayLike<number>): void {
    this.windows++;
    this.loss += loss;
    this.answerLoss += answerLoss(window, losses);
    this.tallies.add(window, correctAnswers(window, predicted), tasks);
  }

  /** The score so far. */
  score(): Score {
    const perTask = this.tallies.perTask();
    const total = (of: keyof Tally): number =>
      Object.values(perTask).reduce((sum, tally) => sum + tally[of], 0);
    const [correct, questions] = [total("correct"), total("questions")];
    return {
      correct,
      questions,
      accuracy: questions > 0 ? correct / questions : 0,
      perplexity: Math.exp(this.answerLoss / Math.max(1, this.windows)),
      loss: this.loss / Math.max(1, this.windows),
      perTask,
    };
  }
}

/** Scores a whole split from a given state of every row; undefined when the signal cut it short. */
export async function scoreStream(
  evaluator: SequenceEvaluator,
  source: Parameters<typeof epochBatches>[0],
  options: {
    readonly mode: Mode;
    readonly batch: number;
    readonly window: number;
    readonly row?: ReadonlyMap<string, Float32Array>;
    readonly onWindow?: (done: number) => Promise<void> | void;
    /** Asks for the probability of every answer, where the system says it. */
    readonly onAnswer?: (answer: JudgedAnswer) => void;
    readonly signal?: AbortSignal;
  },
): Promise<Score | undefined> {
  const scorer = new Scorer();
  evaluator.start(options.batch, options.row);
  let done = 0;
  for (const batch of epochBatches(source, options)) {
    const window = objectiveOf(batch, options.mode);
    const evaluated = await evaluator.run(window, { confidence: options.onAnswer !== undefined });
    scorer.add(window, evaluated, batch.tasks);
    if (options.onAnswer) judgeAnswers(window, evaluated, options.onAnswer);
    await options.onWindow?.(++done);
    // The event loop gets a turn, so that ^C and the progress bar are alive between blocking windows. A timer, because
    // browsers have no setImmediate.
    await new Promise((resolve) => setTimeout(resolve, 0));
    if (options.signal?.aborted) return undefined;
  }
  return scorer.score();
}

function judgeAnswers(
  window: Objective,
  { predicted, confidence }: EvaluatedWindow,
  onAnswer: (answer: JudgedAnswer) => void,
): void {
  if (!confidence) return;
  correctAnswers(window, predicted).forEach((correct, i) => {
    onAnswer({ correct: correct === 1, confidence: confidence[window.slots[i]!]! });
  });
}
