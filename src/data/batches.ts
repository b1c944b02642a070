/**
 * The stream batcher: stories become the rows of a batch, and batches follow each other without a seam.
 *
 * Each row owns a buffer of whole stories. Before a cut, while some buffer holds fewer than four windows, the
 * next story goes to the shortest buffer (the first on ties); then one window is cut off the front of every
 * buffer. A story w_1 .. w_n is the input (<eos>, w_1 .. w_n) with the target (w_1 .. w_n, <eos>). When the
 * epoch's stories are used up the rows run dry one by one and are padded on the right; the epoch ends when
 * all are empty, and the next call begins the next epoch.
 *
 * What a batcher yields depends on the source, the settings and the number of calls only. `state()` is small:
 * it names the stories in the buffers instead of holding them.
 */
import { DataError } from "../errors.ts";
import type { EncodedStory, StorySource } from "./streams.ts";
import { eosId, padId } from "./vocabulary.ts";

/** One window of every row. All arrays are time-major: entry (t, b) is at `t * batch + b`. */
export interface Batch {
  readonly batch: number;
  readonly window: number;
  readonly tokens: Int32Array;
  readonly targets: Int32Array;
  /** 1 where the input token is "?", that is where the target is an answer. */
  readonly questions: Uint8Array;
  /** The task of the story the token belongs to; 0 at padding. */
  readonly tasks: Uint8Array;
  /**
   * Three numbers for each statement of the window that an answer is known to follow from: the position t · batch + b of the
   * question, the time step of the statement's first token, and that after its last. Absent where there are none.
   */
  readonly facts?: Int32Array;
  readonly epoch: number;
  /** How many of the positions are padding. */
  readonly padded: number;
}

/** The size of a batch: rows, and tokens per row. */
export interface BatchSettings {
  readonly batch: number;
  readonly window: number;
}

/** Where a batcher stands, as plain JSON. */
export interface BatcherState {
  readonly batch: number;
  readonly window: number;
  /** `null` for an endless source. */
  readonly storiesPerEpoch: number | null;
  readonly epoch: number;
  /** The position of the next story to take from the source. */
  readonly position: number;
  /** Per row: tokens already cut off its first story, then the positions of the stories it holds. */
  readonly rows: readonly (readonly number[])[];
}

/** A buffer of whole stories, of which the first may be partly used. */
interface Row {
  stories: EncodedStory[];
  positions: number[];
  /** Tokens of the first story that are already cut off. */
  used: number;
  /** Tokens left in the buffer, each story's <eos> included. */
  length: number;
}

const windowsAhead = 4;

/** Cuts batches from a stream of stories. */
export class StreamBatcher {
  readonly #source: StorySource;
  readonly #settings: BatchSettings;
  readonly #rows: Row[];
  #epoch = 0;
  #position = 0;

  constructor(source: StorySource, settings: BatchSettings) {
    for (const name of ["batch", "window"] as const) {
      if (!Number.isInteger(settings[name]) || settings[name] < 1) {
        throw new RangeError(`${name} must be a positive integer, not ${settings[name]}`);
      }
    }
    if (!(source.storiesPerEpoch > 0)) throw new RangeError("the source has no stories");
    this.#source = source;
    this.#settings = { batch: settings.batch, window: settings.window };
    this.#rows = Array.from({ length: settings.batch }, emptyRow);
  }

  /** A batcher that goes on where `state` was taken. The source and settings must be the ones of then. */
  static resume(source: StorySource, settings: BatchSettings, state: BatcherState): StreamBatcher {
    const batcher = new StreamBatcher(source, settings);
    batcher.#restore(state);
    return batcher;
  }

  /** Whether the last batch of an epoch has been cut: the next one belongs to the next epoch. */
  get endOfEpoch(): boolean {
    return this.#position === this.#source.storiesPerEpoch && this.#rows.every((row) => row.length === 0);
  }

  /** The next window of every row. */
  next(): Batch {
    if (this.endOfEpoch) {
      this.#epoch++;
      this.#position = 0;
    }
    this.#refill();
    const { batch, window } = this.#settings;
    const size = batch * window;
    const cut = {
      batch,
      window,
      tokens: new Int32Array(size).fill(padId),
      targets: new Int32Array(size).fill(padId),
      questions: new Uint8Array(size),
      tasks: new Uint8Array(size),
      epoch: this.#epoch,
      padded: 0,
    };
    const facts: number[] = [];
    this.#rows.forEach((row, b) => {
      cut.padded += window - cutRow(row, b, cut, facts);
    });
    return facts.length > 0 ? { ...cut, facts: Int32Array.from(facts) } : cut;
  }

  /** Where the batcher stands after the last batch. */
  state(): BatcherState {
    const { storiesPerEpoch } = this.#source;
    return {
      ...this.#settings,
      storiesPerEpoch: storiesPerEpoch === Number.POSITIVE_INFINITY ? null : storiesPerEpoch,
      epoch: this.#epoch,
      position: this.#position,
      rows: this.#rows.map((row) => [row.used, ...row.positions]),
    };
  }

  #refill(): void {
    const wanted = windowsAhead * this.#settings.window;
    while (this.#position < this.#source.storiesPerEpoch) {
      let shortest = this.#rows[0]!;
      for (const row of this.#rows) if (row.length < shortest.length) shortest = row;
      if (shortest.length >= wanted) return;
      this.#append(shortest, this.#position++);
    }
  }

  #append(row: Row, position: number): void {
    const story = this.#source.story(this.#epoch, position);
    row.stories.push(story);
    row.positions.push(position);
    row.length += story.tokens.length + 1;
  }

  #restore(state: BatcherState): void {
    const own = this.state();
    for (const name of ["batch", "window", "storiesPerEpoch"] as const) {
      if (state[name] !== own[name]) {
        throw doesNotFit(`${name} was ${state[name] ?? "endless"}, now it is ${own[name] ?? "endless"}`);
      }
    }
    const whole = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
    if (!whole(state.epoch) || !whole(state.position) || state.position > this.#source.storiesPerEpoch) {
      throw doesNotFit(`epoch ${state.epoch}, position ${state.position}`);
    }
    if (state.rows.length !== this.#rows.length) throw doesNotFit(`it has ${state.rows.length} rows`);
    this.#epoch = state.epoch;
    this.#position = state.position;
    this.#rows.forEach((row, b) => {
      const [used = 0, ...positions] = state.rows[b]!;
      if (!positions.every((position) => whole(position) && position < state.position)) {
        throw doesNotFit(`row ${b} holds a story that was not taken yet`);
      }
      for (const position of positions) this.#append(row, position);
      const first = row.stories[0] ? row.stories[0].tokens.length : 0;
      if (!whole(used) || used > first) throw doesNotFit(`row ${b} begins at token ${used} of ${first}`);
      row.used = used;
      row.length -= used;
    });
  }
}

/** Every batch of one epoch from the beginning: a validation or test pass. The source must end. */
export function* epochBatches(source: StorySource, settings: BatchSettings): Generator<Batch> {
  if (source.storiesPerEpoch === Number.POSITIVE_INFINITY) {
    throw new RangeError("an endless source has no epoch to go through");
  }
  const batcher = new StreamBatcher(source, settings);
  do yield batcher.next();
  while (!batcher.endOfEpoch);
}

function emptyRow(): Row {
  return { stories: [], positions: [], used: 0, length: 0 };
}

/** Moves up to one window from the row's front into column `b`, and appends its facts; returns how many tokens it had. */
function cutRow(
  row: Row,
  b: number,
  { batch, window, tokens, targets, questions, tasks }: Batch,
  facts: number[],
): number {
  const count = Math.min(window, row.length);
  let at = b;
  let finished = 0;
  for (let left = count; left > 0; ) {
    const story = row.stories[finished]!;
    const words = story.tokens;
    const end = Math.min(words.length + 1, row.used + left);
    // Input i of the story is token i - 1, and stands at time step i + shift.
    const shift = count - left - row.used;
    for (const { answer, from, to } of story.facts ?? []) {
      if (answer < row.used || answer >= end || from + 1 < row.used) continue;
      facts.push((answer + shift) * batch + b, from + 1 + shift, to + 1 + shift);
    }
    for (let i = row.used; i < end; i++, at += batch) {
      tokens[at] = i === 0 ? eosId : words[i - 1]!;
      targets[at] = i === words.length ? eosId : words[i]!;
      questions[at] = i === words.length ? 0 : story.answers[i]!;
      tasks[at] = story.task;
    }
    left -= end - row.used;
    row.used = end;
    if (end === words.length + 1) {
      finished++;
      row.used = 0;
    }
  }
  row.stories.splice(0, finished);
  row.positions.splice(0, finished);
  row.length -= count;
  return count;
}

function doesNotFit(what: string): DataError {
  return new DataError(`the saved place in the stream of batches does not fit: ${what}`, {
    hint: "resume with the data, batch size and window of the run that saved it",
  });
}
