/**
 * Batches for language modelling: the text is cut into B contiguous columns of equal length (the remainder is
 * dropped), and windows run down all columns at once, so that each row of a batch goes on where it stopped.
 *
 * Training windows vary in length (Merity et al. 2018): 70 tokens, or 35 with probability 0.05, plus normal noise of
 * standard deviation 5; the learning rate of a step is to be scaled by its drawn length. A program is compiled for
 * each shape it meets, so a window is padded at its end to the next of a few sizes; `mask` is 0 there, and what comes
 * of a padded window is exactly what comes of the unpadded one.
 *
 * What a batcher yields depends on the text, the settings and the number of calls only.
 */
import { DataError, UsageError } from "../../errors.ts";
import { keyOf, normal, uniform } from "../../random.ts";
import type { TokenStream } from "./prepared.ts";

/** One window of every column. All arrays are time-major: entry (t, b) is at `t * batch + b`. */
export interface TextBatch {
  readonly batch: number;
  /** Time steps of the arrays. */
  readonly window: number;
  /** Time steps that are text; the rest is padding. */
  readonly length: number;
  readonly tokens: Int32Array;
  /** The next token of each. */
  readonly targets: Int32Array;
  /** 1 where there is text, 0 at padding. */
  readonly mask: Float32Array;
  readonly epoch: number;
  /** Whether the columns begin here: recurrent state is to be zero. */
  readonly isFirst: boolean;
  /** Factor on the learning rate: drawn length / base length. */
  readonly rateScale: number;
}

/** How the lengths of training windows are drawn. */
export interface LengthSettings {
  /** Usual mean. */
  readonly base: number;
  /** Probability of half of it. */
  readonly halfProbability: number;
  readonly std: number;
  readonly min: number;
  /** Upper limit; 0 for none. The authors' program has 80, the original has none. */
  readonly max: number;
}

/** As the authors of AWD-FWM train. */
export const releasedLengths: LengthSettings = { base: 70, halfProbability: 0.05, std: 5, min: 5, max: 80 };

/** Settings of a batcher. */
export interface ColumnSettings {
  /** Columns. */
  readonly batch: number;
  readonly seed: number;
  readonly lengths: LengthSettings;
  /** Sizes that windows are padded to, ascending; a longer window is padded to a multiple of 10. */
  readonly windows: readonly number[];
}

/** Where a batcher stands, as plain JSON. */
export interface ColumnState {
  readonly batch: number;
  readonly seed: number;
  /** Tokens of the text. */
  readonly tokens: number;
  readonly epoch: number;
  /** Windows cut in this epoch. */
  readonly windows: number;
  /** Time steps of this epoch that are behind us. */
  readonly position: number;
}

/** Cuts training windows from text. */
export class ColumnBatcher {
  readonly #stream: TokenStream;
  readonly #settings: ColumnSettings;
  /** Tokens per column. */
  readonly #rows: number;
  #epoch = 0;
  #windows = 0;
  #position = 0;

  constructor(stream: TokenStream, settings: ColumnSettings) {
    checkBatch(settings.batch);
    checkLengths(settings.lengths);
    this.#stream = stream;
    this.#settings = settings;
    this.#rows = columnRows(stream, settings.batch, 3);
  }

  /** A batcher that goes on where `state` was taken. The text and settings must be the ones of then. */
  static resume(stream: TokenStream, settings: ColumnSettings, state: ColumnState): ColumnBatcher {
    const batcher = new ColumnBatcher(stream, settings);
    const own = batcher.state();
    for (const name of ["batch", "seed", "tokens"] as const) {
      if (state[name] !== own[name]) throw doesNotFit(`${name} was ${state[name]}, now it is ${own[name]}`);
    }
    const isWhole = [state.epoch, state.windows, state.position].every(
      (n) => Number.isSafeInteger(n) && n >= 0,
    );
    if (!isWhole || state.position > batcher.#rows) {
      throw doesNotFit(`epoch ${state.epoch}, window ${state.windows}, position ${state.position}`);
    }
    batcher.#epoch = state.epoch;
    batcher.#windows = state.windows;
    batcher.#position = state.position;
    return batcher;
  }

  /** Whether the last window of an epoch has been cut: the next one belongs to the next epoch. */
  get endOfEpoch(): boolean {
    // A last column entry that would be alone is left out, as in the original.
    return this.#position >= this.#rows - 2;
  }

  /** The next window of every column. */
  next(): TextBatch {
    if (this.endOfEpoch) {
      this.#epoch++;
      this.#windows = 0;
      this.#position = 0;
    }
    const { batch, lengths } = this.#settings;
    const drawn = this.#drawLength();
    const length = Math.min(drawn, this.#rows - 1 - this.#position);
    const cut = {
      ...cutWindow(this.#stream, this.#rows, batch, this.#position, length, this.#padded(length)),
      epoch: this.#epoch,
      isFirst: this.#position === 0,
      // By the drawn length even where the text ends sooner, as in the original.
      rateScale: drawn / lengths.base,
    };
    this.#position += length;
    this.#windows++;
    return cut;
  }

  /** Where the batcher stands after the last batch. */
  state(): ColumnState {
    const { batch, seed } = this.#settings;
    return {
      batch,
      seed,
      tokens: this.#stream.length,
      epoch: this.#epoch,
      windows: this.#windows,
      position: this.#position,
    };
  }

  #drawLength(): number {
    const { seed, lengths } = this.#settings;
    const key = keyOf(seed, "length", this.#epoch, this.#windows);
    const base = uniform(key, 0) < lengths.halfProbability ? lengths.base / 2 : lengths.base;
    const length = Math.max(lengths.min, Math.floor(base + lengths.std * normal(key, 1)));
    return lengths.max > 0 ? Math.min(length, lengths.max) : length;
  }

  #padded(length: number): number {
    return this.#settings.windows.find((size) => size >= length) ?? Math.ceil(length / 10) * 10;
  }
}

/** Every window of the text once, of one length: a validation or test pass. The last one is padded. */
export function* evaluationBatches(
  stream: TokenStream,
  { batch, window }: { readonly batch: number; readonly window: number },
): Generator<TextBatch> {
  checkBatch(batch);
  if (!(Number.isInteger(window) && window >= 1))
    throw new UsageError(`window must be at least 1, got ${window}`);
  const rows = columnRows(stream, batch, 2);
  for (let position = 0; position < rows - 1; position += window) {
    const length = Math.min(window, rows - 1 - position);
    yield {
      ...cutWindow(stream, rows, batch, position, length, window),
      epoch: 0,
      isFirst: position === 0,
      rateScale: 1,
    };
  }
}

/** Tokens per column; text too short for at least `least` of them is refused. */
export function columnRows({ name, length }: TokenStream, batch: number, least = 2): number {
  const rows = Math.floor(length / batch);
  if (rows >= least) return rows;
  throw new DataError(`${name}: ${length} tokens are too few for ${batch} columns of at least ${least}`, {
    hint: "give more text or a smaller batch",
  });
}

function cutWindow(
  stream: TokenStream,
  rows: number,
  batch: number,
  position: number,
  length: number,
  window: number,
): Pick<TextBatch, "batch" | "window" | "length" | "tokens" | "targets" | "mask"> {
  const tokens = new Int32Array(window * batch);
  const targets = new Int32Array(window * batch);
  const column = new Int32Array(length + 1);
  for (let b = 0; b < batch; b++) {
    stream.read(b * rows + position, column);
    for (let t = 0; t < length; t++) {
      tokens[t * batch + b] = column[t]!;
      targets[t * batch + b] = column[t + 1]!;
    }
  }
  return {
    batch,
    window,
    length,
    tokens,
    targets,
    mask: new Float32Array(window * batch).fill(1, 0, length * batch),
  };
}

function checkBatch(batch: number): void {
  if (!(Number.isInteger(batch) && batch >= 1))
    throw new UsageError(`batch must be at least 1, got ${batch}`);
}

function checkLengths({ base, halfProbability, std, min, max }: LengthSettings): void {
  const isFine =
    base >= 2 &&
    std >= 0 &&
    halfProbability >= 0 &&
    halfProbability <= 1 &&
    min >= 2 &&
    (max === 0 || max >= min);
  if (isFine && Number.isInteger(min) && Number.isInteger(max)) return;
  throw new UsageError("the lengths of training windows do not fit together", {
    lengths: { base, halfProbability, std, min, max },
    hint: "a window needs at least 2 tokens: temporal activation regularisation compares neighbours",
  });
}

function doesNotFit(what: string): DataError {
  return new DataError(`the saved place in the text does not fit: ${what}`, {
    hint: "resume with the text, batch size and seed of the run that saved it",
  });
}
