/** How sure a model is of its answers, and whether it should be. */
import { median } from "../../statistics.ts";

/** An answer: whether it was right, and the probability the model gave it. */
export interface JudgedAnswer {
  readonly correct: boolean;
  readonly confidence: number;
}

/** Answers with how sure the model was of them. */
export interface Judged {
  readonly questions: number;
  readonly correct: number;
  readonly accuracy: number;
  /** Mean probability that the model gave its answers. */
  readonly confidence: number;
  /** Expected calibration error, over ten bins. */
  readonly calibrationError: number;
}

/** How sure the model was of some of its answers. */
export interface Certainty {
  readonly answers: number;
  /** Median probability; null without answers. */
  readonly median: number | null;
  /** Answers with a probability above 0.9. */
  readonly above90: number;
}

/** How sure a model is of its answers: in all, of the right ones and of the wrong ones. */
export interface Calibration extends Pick<Judged, "confidence" | "calibrationError"> {
  readonly right: Certainty;
  readonly wrong: Certainty;
}

/** Bins of equal width for the calibration error. */
const bins = 10;

/**
 * Accuracy, mean confidence, and the expected calibration error: over ten bins of confidence, the mean distance between a
 * bin's accuracy and its confidence, weighted by its answers.
 */
export function judged(answers: readonly JudgedAnswer[]): Judged {
  const questions = answers.length;
  const binned = Array.from({ length: bins }, () => ({ correct: 0, confidence: 0 }));
  for (const { correct, confidence } of answers) {
    const bin = binned[Math.min(bins - 1, Math.floor(confidence * bins))]!;
    bin.correct += correct ? 1 : 0;
    bin.confidence += confidence;
  }
  const sum = (of: (bin: (typeof binned)[number]) => number): number =>
    binned.reduce((total, bin) => total + of(bin), 0);
  const correct = sum((bin) => bin.correct);
  return {
    questions,
    correct,
    accuracy: correct / questions,
    confidence: sum((bin) => bin.confidence) / questions,
    calibrationError: sum((bin) => Math.abs(bin.correct - bin.confidence)) / questions,
  };
}

/** The calibration of a model by its answers; undefined without any. */
export function calibrationOf(answers: readonly JudgedAnswer[]): Calibration | undefined {
  if (answers.length === 0) return undefined;
  const { confidence, calibrationError } = judged(answers);
  return {
    confidence,
    calibrationError,
    right: certainty(answers.filter(({ correct }) => correct)),
    wrong: certainty(answers.filter(({ correct }) => !correct)),
  };
}

function certainty(answers: readonly JudgedAnswer[]): Certainty {
  const sure = answers.map(({ confidence }) => confidence);
  return {
    answers: answers.length,
    median: answers.length > 0 ? median(sure) : null,
    above90: sure.filter((probability) => probability > 0.9).length,
  };
}
