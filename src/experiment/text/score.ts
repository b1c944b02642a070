/** How a model of text is scored: the loss of every token counts the same. */
import { evaluationBatches, type TextBatch } from "../../data/text/columns.ts";
import type { TokenStream } from "../../data/text/prepared.ts";
import type { SequenceEvaluator } from "../../train/sequenceEvaluator.ts";
import type { TokenBatch } from "../../train/sequenceWindow.ts";

/** The score of a split. */
export interface Score {
  /** Predictions: all tokens of the columns but the first of each. */
  readonly tokens: number;
  /** Mean negative log likelihood of a token, in nats. */
  readonly loss: number;
  /** e to the loss. */
  readonly perplexity: number;
  /** The loss in bits per word. */
  readonly bits: number;
}

/** A loss with its other forms. */
export function scoreOf(loss: number, tokens: number): Score {
  return { tokens, loss, perplexity: Math.exp(loss), bits: loss / Math.LN2 };
}

/** A window of text as a trainer takes it. It has a mask even when it is full, so that few programs are compiled. */
export function tokenBatch({ batch, window, tokens, targets, mask }: TextBatch): TokenBatch {
  return { batch, window, tokens, targets, mask, lossMask: mask };
}

/** How a split is read. */
export interface ScoreOptions {
  readonly batch: number;
  readonly window: number;
  /** Softens the output; absent: as it is. */
  readonly temperature?: number;
  readonly onWindow?: () => Promise<void> | void;
  readonly signal?: AbortSignal;
}

/** Scores a whole split, from the start state of every column; undefined when the signal cut it short. */
export async function scoreText(
  evaluator: SequenceEvaluator,
  stream: TokenStream,
  { batch, window, temperature, onWindow, signal }: ScoreOptions,
): Promise<Score | undefined> {
  evaluator.start(batch);
  let [total, tokens] = [0, 0];
  for (const cut of evaluationBatches(stream, { batch, window })) {
    const { losses } = await evaluator.run(tokenBatch(cut), temperature === undefined ? {} : { temperature });
    const counted = cut.length * batch;
    for (let at = 0; at < counted; at++) total += losses[at]!;
    tokens += counted;
    await onWindow?.();
    // The event loop gets a turn, so that ^C and the progress bar are alive between blocking windows.
    await new Promise((resolve) => setImmediate(resolve));
    if (signal?.aborted) return undefined;
  }
  return scoreOf(total / tokens, tokens);
}
