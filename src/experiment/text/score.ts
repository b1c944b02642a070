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

/** The beginning of a stream. */
export function firstTokens(stream: TokenStream, most: number): TokenStream {
  if (stream.length <= most) return stream;
  return { name: stream.name, length: most, read: (start, into) => stream.read(start, into) };
}

/** How a split is read. */
export interface ReadOptions {
  readonly batch: number;
  readonly window: number;
  /** Softens the output; absent: as it is. */
  readonly temperature?: number | undefined;
  /** Whether the hidden vectors are wanted. */
  readonly hidden?: boolean;
}

/** A window of a split that was read; the arrays are overwritten by the next one. */
export interface ReadWindow {
  readonly cut: TextBatch;
  /** [T, B]: the loss of each target; those behind `cut.length` are padding. */
  readonly losses: ArrayLike<number>;
  /** [T, B, E] where they were wanted, else empty. */
  readonly hidden: Float32Array;
}

/** Reads a whole split, from the start state of every column. */
export async function* readText(
  evaluator: SequenceEvaluator,
  stream: TokenStream,
  { batch, window, temperature, hidden = false }: ReadOptions,
): AsyncGenerator<ReadWindow> {
  evaluator.start(batch);
  const how = { hidden, ...(temperature === undefined ? {} : { temperature }) };
  for (const cut of evaluationBatches(stream, { batch, window })) {
    const { losses, hidden: vectors = new Float32Array(0) } = await evaluator.run(tokenBatch(cut), how);
    yield { cut, losses, hidden: vectors };
    // The event loop gets a turn, so that ^C and the progress bar are alive between blocking windows.
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Adds up the losses of windows. */
export class Total {
  private sum = 0;
  private count = 0;

  /** Adds a window; `losses` as in `ReadWindow`. */
  add({ length, batch }: Pick<TextBatch, "length" | "batch">, losses: ArrayLike<number>): void {
    const counted = length * batch;
    for (let at = 0; at < counted; at++) this.sum += losses[at]!;
    this.count += counted;
  }

  /** The score of all that was added. */
  score(): Score {
    return scoreOf(this.sum / this.count, this.count);
  }
}

/** How a score is taken. */
export interface ScoreOptions extends ReadOptions {
  readonly onWindow?: (() => Promise<void> | void) | undefined;
  readonly signal?: AbortSignal;
}

/** Scores a whole split, from the start state of every column; undefined when the signal cut it short. */
export async function scoreText(
  evaluator: SequenceEvaluator,
  stream: TokenStream,
  { onWindow, signal, ...how }: ScoreOptions,
): Promise<Score | undefined> {
  const total = new Total();
  for await (const { cut, losses } of readText(evaluator, stream, how)) {
    total.add(cut, losses);
    await onWindow?.();
    if (signal?.aborted) return undefined;
  }
  return total.score();
}
