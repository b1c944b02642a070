/**
 * Streams: a model that reads word by word and answers questions, with its state kept between calls.
 *
 * As in catbAbI, a story begins with `<eos>`, a question ends in "?", and the answer is the next word of the
 * stream. So after a question the stream waits for its answer: `tell` gives it; if the stream just continues, the
 * model's own best answer is read in its place, which is right for a user who has none to give.
 */
import type { Vocabulary } from "../data/vocabulary.ts";
import { DataError, UsageError } from "../errors.ts";
import { sizeOf } from "../graph/tensor.ts";
import type { NamedVectors, RecurrentPart, TraceRow, Tracer } from "../model/sequence.ts";
import type { HostData } from "../runtime/host.ts";
import type { Program } from "../runtime/program.ts";
import { State } from "../runtime/state.ts";
import { tracePrefix } from "./stepProgram.ts";
import { encodeText } from "./text.ts";

/** What can be read: a text, its words, or their numbers. */
export type Readable = string | readonly string[] | Int32Array | Uint16Array;

/** A possible answer. */
export interface Answer {
  readonly word: string;
  readonly probability: number;
}

/** How the answer came about: a number for every word so far from each read, or attention head. */
export interface Trace {
  /** The words so far, oldest first; the last one is the "?" itself. */
  readonly words: readonly string[];
  /** The first read first. Empty for a system that has nothing to show. */
  readonly rows: readonly TraceRow[];
}

/** What a question gives. */
export interface Reply {
  /** The most probable answers, best first. */
  readonly answers: readonly Answer[];
  /** Which earlier words each read of the memory matched. */
  readonly trace: Trace;
}

/** A word that went by, with the vectors its system's tracer keeps. */
interface TracedWord {
  readonly word: string;
  readonly vectors: NamedVectors;
}

/** Choices for a question. */
export interface AskOptions {
  /** How many answers to give; 5 by default. */
  readonly top?: number;
}

/** Choices for streams. */
export interface StreamOptions {
  /** How many of the last words a trace looks back at; 400 by default. */
  readonly window?: number;
}

/** Everything a row of a stream remembers, as a value that does not change. */
export interface StreamSnapshot {
  /** Recurrent state by name: h, c, F. */
  readonly state: ReadonlyMap<string, Float32Array>;
  readonly history: readonly TracedWord[];
  /** The answer that will be read next unless another is given. */
  readonly pending: number | undefined;
  /** Whether `<eos>` has been read for the present story. */
  readonly inStory: boolean;
}

/** What streams need of their model. */
export interface StreamSource {
  readonly vocabulary: Vocabulary;
  /** How an answer is traced back; undefined for a system that has nothing to show. */
  readonly tracer: Tracer | undefined;
  /** How many streams can be stepped together. */
  readonly mostRows: number;
  readonly recurrent: readonly RecurrentPart[];
  /** Sizes of the vectors that a step can be traced by. */
  readonly traceSizes: ReadonlyMap<string, number>;
  /** The compiled step, or chunk of `tokens` steps, for a number of rows, over a state. */
  program(rows: number, tokens: number, state: State): Promise<Program>;
}

interface Row {
  history: TracedWord[];
  pending: number | undefined;
  inStory: boolean;
}

type Outputs = Readonly<Record<string, HostData>>;

/** The token that begins a story. */
export const endOfStory = "<eos>";

/**
 * How many tokens are read in one run when so many are left. A run costs about as much as four tokens, so a sentence is
 * padded up to 8 and a story read in chunks of 32; docs/decisions.md has the times.
 */
function chunkLength(left: number): number {
  if (left <= 3) return 1;
  return left <= 16 ? 8 : 32;
}

/** Several streams that go through the model together, one token or one chunk per row and run. */
export class Streams {
  private readonly rows: Row[];
  private readonly window: number;
  private readonly state = new State();
  private readonly traceSizes: ReadonlyMap<string, number>;
  /** By the number of tokens they read; all work on the same state. */
  private readonly programs = new Map<number, Program>();
  /** Calls follow each other in the order in which they were made. */
  private queue: Promise<unknown> = Promise.resolve();

  /** For `FwmModel`. */
  constructor(
    private readonly source: StreamSource,
    /** How many streams there are. */
    readonly size: number,
    { window = 400 }: StreamOptions = {},
  ) {
    if (!Number.isSafeInteger(size) || size < 1) {
      throw new UsageError(`streams: there must be a whole number of them, at least 1, not ${size}`);
    }
    if (size > source.mostRows) {
      throw new UsageError(`streams: ${size} are too many to step together`, {
        most: source.mostRows,
        hint: "take several groups; a group is fast from a few dozen on",
      });
    }
    this.window = window;
    this.rows = Array.from({ length: size }, freshRow);
    for (const { name, shape } of source.recurrent) {
      this.state.declare({ name, shape: shape(size), dtype: "f32", initial: { kind: "zeros" } });
    }
    this.traceSizes = source.traceSizes;
  }

  /** Reads something on each row; undefined leaves a row as it is. An unknown word throws before anything is read. */
  async read(texts: readonly (Readable | undefined)[]): Promise<void> {
    const tokens = this.encode(texts);
    await this.enqueue(() => this.feed(tokens));
  }

  /** Reads a question on each row, ending in "?", and answers it; undefined leaves a row as it is. */
  async ask(
    questions: readonly (Readable | undefined)[],
    { top = 5 }: AskOptions = {},
  ): Promise<(Reply | undefined)[]> {
    const tokens = this.encode(questions);
    const mark = this.source.vocabulary.id("?");
    tokens.forEach((row, i) => {
      if (row && row.at(-1) !== mark) {
        throw new UsageError('ask: a question ends in "?"', { question: String(questions[i]) });
      }
    });
    return this.enqueue(async () => {
      const replies: (Reply | undefined)[] = this.rows.map(() => undefined);
      await this.feed(tokens, (b, outputs) => {
        const row = this.rows[b]!;
        const { words } = this.source.vocabulary;
        const answers = mostProbable(part(outputs.logits!, b, words.length), words, Math.max(1, top));
        row.pending = this.source.vocabulary.id(answers[0]!.word)!;
        replies[b] = { answers: answers.slice(0, top), trace: this.trace(b, outputs) };
      });
      return replies;
    });
  }

  /** Gives the answer to the question just asked on a row, instead of the model's own. */
  async tell(row: number, answer: string): Promise<void> {
    this.row(row);
    const [id, ...more] = encodeText(this.source.vocabulary, [answer.trim().toLowerCase()]);
    if (id === undefined || more.length > 0) throw new UsageError(`tell: ${answer} is not one word`);
    await this.enqueue(() => {
      const asked = this.row(row);
      if (asked.pending === undefined) {
        throw new UsageError("tell: no question is waiting for its answer", {
          hint: "tell() comes right after ask(); to add to the story use read()",
        });
      }
      asked.pending = id;
    });
  }

  /** Ends the story of a row: the next thing read begins a new one, and the memory stays as it is. */
  async newStory(row: number): Promise<void> {
    this.row(row);
    await this.enqueue(() => {
      this.row(row).inStory = false;
    });
  }

  /** Forgets everything a row has read; all rows unless one is named. */
  async reset(row?: number): Promise<void> {
    const chosen = row === undefined ? [...this.rows.keys()] : [row];
    for (const b of chosen) this.row(b);
    await this.enqueue(() => {
      for (const b of chosen) this.put(b, { state: new Map(), ...freshRow() });
    });
  }

  /** Everything a row remembers. */
  async snapshot(row: number): Promise<StreamSnapshot> {
    this.row(row);
    return this.enqueue(() => {
      const { history, pending, inStory } = this.rows[row]!;
      const state = new Map(this.state.names().map((name) => [name, this.stateOf(row, name).slice()]));
      return { state, history: [...history], pending, inStory };
    });
  }

  /** Puts a row back to a snapshot, of this or another stream of the same model; anything else is a `UsageError`. */
  async restore(row: number, snapshot: StreamSnapshot): Promise<void> {
    this.row(row);
    await this.enqueue(() => {
      this.checkSnapshot(snapshot);
      this.put(row, snapshot);
    });
  }

  private checkSnapshot({ state, history, pending, inStory }: StreamSnapshot): void {
    const { tracer, vocabulary, recurrent } = this.source;
    for (const { name, shape } of recurrent) checkVector(name, state.get(name), sizeOf(shape(1)));
    const foreign = [...state.keys()].find((name) => !this.state.has(name));
    if (foreign !== undefined) throw badSnapshot(`it has a state ${foreign}, which the model has not`);
    for (const { word, vectors } of history) {
      if (vocabulary.id(word) === undefined)
        throw badSnapshot(`${JSON.stringify(word)} is no word of the model`);
      for (const name of tracer?.keep ?? []) {
        const vector = Object.hasOwn(vectors, name) ? vectors[name] : undefined;
        checkVector(name, vector, this.traceSizes.get(name)!);
      }
    }
    if (pending !== undefined && vocabulary.words[pending] === undefined) {
      throw badSnapshot(`no word has number ${pending}, which it would read next`);
    }
    if (typeof inStory !== "boolean") throw badSnapshot("it does not say whether it is inside a story");
  }

  private row(row: number): Row {
    const found = this.rows[row];
    if (!found) throw new UsageError(`streams: there is no row ${row}`, { rows: `0 to ${this.size - 1}` });
    return found;
  }

  private put(b: number, { state, history, pending, inStory }: StreamSnapshot): void {
    this.rows[b] = { history: [...history], pending, inStory };
    for (const name of this.state.names()) {
      const own = this.stateOf(b, name);
      const saved = state.get(name);
      if (saved) own.set(saved);
      else own.fill(0);
    }
  }

  /** The program that reads so many tokens of each row. */
  private async ready(tokens: number): Promise<Program> {
    const found = this.programs.get(tokens) ?? (await this.source.program(this.size, tokens, this.state));
    this.programs.set(tokens, found);
    return found;
  }

  private enqueue<T>(work: () => T | Promise<T>): Promise<T> {
    const result = this.queue.then(work);
    this.queue = result.catch(() => undefined);
    return result;
  }

  private encode(texts: readonly (Readable | undefined)[]): (number[] | undefined)[] {
    if (texts.length !== this.size) {
      throw new UsageError(`streams: ${texts.length} texts given for ${this.size} streams`, {
        hint: "give one for each row; undefined leaves a row as it is",
      });
    }
    const { vocabulary } = this.source;
    return texts.map((text) => {
      if (text === undefined || typeof text === "string")
        return text === undefined ? text : encodeText(vocabulary, text);
      const items: readonly (string | number)[] = Array.from<string | number>(text);
      if (items.every((item) => typeof item === "string")) return encodeText(vocabulary, items);
      for (const id of items)
        if (vocabulary.words[Number(id)] === undefined) throw noSuchToken(Number(id), vocabulary);
      return items.map(Number);
    });
  }

  /** Reads on until every row's tokens are read; `atEnd` sees the outputs of each row's last token. */
  private async feed(
    texts: readonly (number[] | undefined)[],
    atEnd?: (row: number, outputs: Outputs) => void,
  ): Promise<void> {
    const pieces = texts.map((tokens, b) => (tokens && tokens.length > 0 ? this.led(b, tokens) : []));
    const longest = Math.max(0, ...pieces.map(({ length }) => length));
    // Tokens before this one are read one by one.
    let oneByOne = 0;
    for (let start = 0; start < longest; ) {
      const length = start < oneByOne ? 1 : chunkLength(longest - start);
      const parts = pieces.map((piece) => piece.slice(start, start + length));
      const outputs = await this.run(parts, length);
      const wrong = parts.findIndex((tokens, b) => tokens.length > 0 && !this.isFinite(outputs, b));
      if (wrong >= 0) {
        // The state is as it was before the run; which token of a chunk it is shows when they are read one by one.
        if (length === 1) throw notFinite(this.source.vocabulary.word(parts[wrong]![0]!), wrong);
        oneByOne = start + length;
        continue;
      }
      for (const [b, tokens] of parts.entries()) {
        if (tokens.length === 0) this.keep(b);
        for (const [t, token] of tokens.entries()) this.remember(b, token, outputs, t);
        if (tokens.length > 0 && start + tokens.length === pieces[b]!.length) atEnd?.(b, outputs);
      }
      start += length;
    }
  }

  /** One run over the next tokens of every row, padded to `length`. The state stays as it was unless all is finite. */
  private async run(parts: readonly (readonly number[])[], length: number): Promise<Outputs> {
    const B = this.size;
    const program = await this.ready(length);
    const tokens = new Int32Array(length * B);
    const mask = new Float32Array(length * B);
    const positions = new Int32Array(B);
    parts.forEach((part, b) => {
      part.forEach((token, t) => {
        tokens[t * B + b] = token;
        mask[t * B + b] = 1;
      });
      positions[b] = Math.max(0, part.length - 1) * B + b;
    });
    return program.run(length === 1 ? { tokens } : { tokens, mask, positions }, undefined, (outputs) =>
      parts.every((part, b) => part.length === 0 || this.isFinite(outputs, b)),
    );
  }

  /** Whether the logits of a row's last token are numbers; what weights that large would answer means nothing. */
  private isFinite({ logits }: Outputs, b: number): boolean {
    return part(logits!, b, logits!.length / this.size).every(Number.isFinite);
  }

  /** A row's tokens behind what has to come first: the answer that is still out, and the story's beginning. */
  private led(b: number, tokens: readonly number[]): number[] {
    const row = this.rows[b]!;
    const first = row.pending === undefined ? [] : [row.pending];
    const eos = row.inStory ? undefined : this.source.vocabulary.id(endOfStory);
    row.pending = undefined;
    row.inStory = true;
    return [...first, ...(eos === undefined ? [] : [eos]), ...tokens];
  }

  /** Takes a run back for a row that had nothing to read: the former state is in the spare buffers. */
  private keep(b: number): void {
    for (const name of this.state.names()) {
      const own = this.stateOf(b, name);
      own.set(part(this.state.spare(name).data, b, own.length));
    }
  }

  /** Adds token t of a run to a row's history. */
  private remember(b: number, token: number, outputs: Outputs, t: number): void {
    const { history } = this.rows[b]!;
    const { tracer, vocabulary } = this.source;
    const kept = (tracer?.keep ?? []).map((name) => {
      return [name, this.vector(outputs, name, t * this.size + b).slice()] as const;
    });
    history.push({ word: vocabulary.word(token), vectors: Object.fromEntries(kept) });
    if (history.length > this.window) history.shift();
  }

  private trace(b: number, outputs: Outputs): Trace {
    const { history } = this.rows[b]!;
    const { tracer } = this.source;
    const words = history.map(({ word }) => word);
    if (!tracer) return { words, rows: [] };
    const rest = [...this.traceSizes.keys()].filter(
      (name) => !tracer.keep.includes(name) && Object.hasOwn(outputs, tracePrefix + name),
    );
    const rows = tracer.rows(
      history.map(({ vectors }) => vectors),
      {
        ...history.at(-1)!.vectors,
        ...Object.fromEntries(rest.map((name) => [name, this.vector(outputs, name, b)])),
      },
      Object.fromEntries(this.state.names().map((name) => [name, this.stateOf(b, name)])),
    );
    return { words, rows };
  }

  /** Vector `at` of an output of the trace. */
  private vector(outputs: Outputs, name: string, at: number): Float32Array {
    return part(outputs[tracePrefix + name]!, at, this.traceSizes.get(name)!);
  }

  /** A row's part of a recurrent state. */
  private stateOf(b: number, name: string): Float32Array {
    const { data } = this.state.get(name);
    return part(data, b, data.length / this.size);
  }
}

/** One stream. */
export class Stream {
  private readonly streams: Streams;

  /** For `FwmModel`. */
  constructor(
    private readonly source: StreamSource,
    private readonly options: StreamOptions = {},
  ) {
    this.streams = new Streams(source, 1, options);
  }

  /** Reads a text. An unknown word throws a `UsageError` before anything is read. */
  async read(text: Readable): Promise<void> {
    await this.streams.read([text]);
  }

  /** Reads a question, which ends in "?", and answers it. Then `tell` the true answer, or just continue. */
  async ask(question: Readable, options: AskOptions = {}): Promise<Reply> {
    const [reply] = await this.streams.ask([question], options);
    return reply!;
  }

  /** Gives the answer to the question just asked, instead of the model's own. */
  async tell(answer: string): Promise<void> {
    await this.streams.tell(0, answer);
  }

  /** Ends the story: the next thing read begins a new one, and the memory stays as it is. */
  async newStory(): Promise<void> {
    await this.streams.newStory(0);
  }

  /** Forgets everything: as a new stream. */
  async reset(): Promise<void> {
    await this.streams.reset(0);
  }

  /** Everything the stream remembers, as a value. */
  snapshot(): Promise<StreamSnapshot> {
    return this.streams.snapshot(0);
  }

  /** Goes back to a snapshot, of this or another stream of the same model. */
  async restore(snapshot: StreamSnapshot): Promise<void> {
    await this.streams.restore(0, snapshot);
  }

  /** A stream that remembers the same and goes its own way from here. */
  async clone(): Promise<Stream> {
    const copy = new Stream(this.source, this.options);
    await copy.restore(await this.snapshot());
    return copy;
  }
}

function freshRow(): Row {
  return { history: [], pending: undefined, inStory: false };
}

/** Row `b` of a batch of values. */
function part(data: HostData, b: number, size: number): Float32Array {
  return (data as Float32Array).subarray(b * size, (b + 1) * size);
}

function checkVector(name: string, vector: unknown, size: number): void {
  if (!(vector instanceof Float32Array) || vector.length !== size) {
    const found = vector instanceof Float32Array ? `${vector.length} numbers` : typeof vector;
    throw badSnapshot(`${name} is ${found}, not a Float32Array of ${size}`);
  }
  const at = vector.findIndex((value) => !Number.isFinite(value));
  if (at >= 0) throw badSnapshot(`${name}[${at}] is ${vector[at]}`);
}

function badSnapshot(problem: string): UsageError {
  return new UsageError(`restore: not a snapshot of this model: ${problem}`, {
    hint: "give what snapshot() of a stream of the same model gave",
  });
}

/** The words with the largest logits, best first, and their probabilities. */
export function mostProbable(logits: Float32Array, words: readonly string[], top: number): Answer[] {
  const probabilities = softmax(logits);
  return largest(probabilities, top).map((id) => ({ word: words[id]!, probability: probabilities[id]! }));
}

/** Probability of one word. */
export function probabilityOf(logits: Float32Array, id: number): number {
  return softmax(logits)[id]!;
}

function notFinite(word: string, row: number): DataError {
  return new DataError(`the model's numbers are not finite any more at ${JSON.stringify(word)}`, {
    row,
    hint: "its weights are too large or damaged; use another checkpoint",
  });
}

function softmax(logits: Float32Array): Float64Array {
  const top = logits.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  const shares = Float64Array.from(logits, (logit) => Math.exp(logit - top));
  const total = shares.reduce((a, b) => a + b, 0);
  return shares.map((share) => share / total);
}

/** Positions of the largest values, best first. */
function largest(values: Float64Array, count: number): number[] {
  return Array.from(values.keys())
    .sort((a, b) => values[b]! - values[a]! || a - b)
    .slice(0, count);
}

function noSuchToken(id: number, vocabulary: Vocabulary): UsageError {
  return new UsageError(`no word has number ${id}`, { vocabulary: `0 to ${vocabulary.size - 1}` });
}
