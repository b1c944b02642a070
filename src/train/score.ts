/** How answers are scored: accuracy over all questions and per task, and the authors' perplexity. */

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

/** One window's share of a score. */
export interface ScoredWindow {
  readonly loss: number;
  readonly answerLoss: number;
  readonly positions: ArrayLike<number>;
  readonly correct: ArrayLike<number>;
}

/** Adds up windows. */
export class Scorer {
  private windows = 0;
  private loss = 0;
  private answerLoss = 0;
  private readonly tallies = new Map<number, { correct: number; questions: number }>();

  /** Adds one window; `tasks` is time-major like the window's positions. */
  add(window: ScoredWindow, tasks: ArrayLike<number>): void {
    this.windows++;
    this.loss += window.loss;
    this.answerLoss += window.answerLoss;
    for (let i = 0; i < window.positions.length; i++) {
      const task = tasks[window.positions[i]!]!;
      const tally = this.tallies.get(task) ?? { correct: 0, questions: 0 };
      tally.questions++;
      tally.correct += window.correct[i]!;
      this.tallies.set(task, tally);
    }
  }

  /** The score so far. */
  score(): Score {
    const perTask: Record<number, Tally & { accuracy: number }> = {};
    let [correct, questions] = [0, 0];
    for (const [task, tally] of [...this.tallies].sort(([a], [b]) => a - b)) {
      perTask[task] = { ...tally, accuracy: tally.correct / tally.questions };
      correct += tally.correct;
      questions += tally.questions;
    }
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
