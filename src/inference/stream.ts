/**
 * Streams: a model that reads word by word and answers questions, with its state kept between calls.
 *
 * As in catbAbI, a story begins with `<eos>`, a question ends in "?", and the answer is the next word of the
 * stream. So after a question the stream waits for its answer: `tell` gives it; if the stream just continues, the
 * model's own best answer is read in its place, which is right for a user who has none to give.
 */
import type { Vocabulary } from "../data/vocabulary.ts";
import { DataError, UsageError } from "../errors.ts";
import { sizeOf, type Tensor } from "../graph/tensor.ts";
import type { NamedVectors, TraceRow, Tracer } from "../model/sequence.ts";
import type { HostData } from "../runtime/host.ts";
import type { Program } from "../runtime/program.ts";
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
  /** The compiled step for a number of rows, over a state of its own. */
  program(rows: number): Promise<Program>;
}

interface Row {
  history: TracedWord[];
  pending: number | undefined;
  inStory: boolean;
}

type Outputs = Readonly<Record<string, HostData>>;

/** The token that begins a story. */
export const endOfStory = "<eos>";

/** Several streams that go through the model together, one token per row and step. */
export class Streams {
  private readonly rows: Row[];
  private readonly window: number;
  /** States to begin from, until there is a program that holds them. */
  private readonly initial = new Map<number, StreamSnapshot["state"]>();
  private program: Program | undefined;
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
    return this.enqueue(async () => {
      const program = await this.ready();
      const state = new Map(
        program.plan.updated.map((name) => {
          const { data } = program.state.get(name);
          return [name, part(data, row, data.length / this.size).slice()] as const;
        }),
      );
      const { history, pending, inStory } = this.rows[row]!;
      return { state, history: [...history], pending, inStory };
    });
  }

  /** Puts a row back to a snapshot, of this or another stream of the same model; anything else is a `UsageError`. */
  async restore(row: number, snapshot: StreamSnapshot): Promise<void> {
    this.row(row);
    await this.enqueue(async () => {
      this.checkSnapshot(snapshot, await this.ready());
      this.put(row, snapshot);
    });
  }

  private checkSnapshot({ state, history, pending, inStory }: StreamSnapshot, { plan }: Program): void {
    const { tracer, vocabulary } = this.source;
    const rowSize = (tensor: Tensor | undefined): number => sizeOf(tensor!.shape) / this.size;
    for (const name of plan.updated) checkVector(name, state.get(name), rowSize(plan.states.get(name)));
    const foreign = [...state.keys()].find((name) => !plan.updated.includes(name));
    if (foreign !== undefined) throw badSnapshot(`it has a state ${foreign}, which the model has not`);
    for (const { word, vectors } of history) {
      if (vocabulary.id(word) === undefined)
        throw badSnapshot(`${JSON.stringify(word)} is no word of the model`);
      for (const name of tracer?.keep ?? []) {
        const size = rowSize(plan.outputs.get(tracePrefix + name));
        checkVector(name, Object.hasOwn(vectors, name) ? vectors[name] : undefined, size);
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
    if (this.program) setState(this.program, b, this.size, state);
    else this.initial.set(b, state);
  }

  private async ready(): Promise<Program> {
    if (!this.program) {
      const program = await this.source.program(this.size);
      for (const [b, state] of this.initial) setState(program, b, this.size, state);
      this.program = program;
    }
    return this.program;
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

  /** Steps until every row's tokens are read; `atEnd` sees the outputs of each row's last token. */
  private async feed(
    texts: readonly (number[] | undefined)[],
    atEnd?: (row: number, outputs: Outputs) => void,
  ): Promise<void> {
    const program = await this.ready();
    const pieces = texts.map((tokens, b) => (tokens && tokens.length > 0 ? this.led(b, tokens) : []));
    const longest = Math.max(0, ...pieces.map(({ length }) => length));
    const tokens = new Int32Array(this.size);
    for (let t = 0; t < longest; t++) {
      pieces.forEach((piece, b) => {
        tokens[b] = piece[t] ?? 0;
      });
      const outputs = await program.run({ tokens }, undefined, ({ logits }) =>
        pieces.every((piece, b) => t >= piece.length || this.rowOf(logits!, b).every(Number.isFinite)),
      );
      this.refuseNonFinite(outputs.logits!, pieces, t);
      pieces.forEach((piece, b) => {
        if (t < piece.length) this.remember(b, piece[t]!, outputs);
        else this.keep(program, b);
        if (t === piece.length - 1) atEnd?.(b, outputs);
      });
    }
  }

  /** The state is as it was before the token; what weights that large would answer means nothing. */
  private refuseNonFinite(logits: HostData, pieces: readonly (readonly number[])[], t: number): void {
    pieces.forEach((piece, b) => {
      if (t >= piece.length || this.rowOf(logits, b).every(Number.isFinite)) return;
      throw new DataError(
        `the model's numbers are not finite any more at ${JSON.stringify(this.source.vocabulary.word(piece[t]!))}`,
        { row: b, hint: "its weights are too large or damaged; use another checkpoint" },
      );
    });
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

  /** Takes a step back for a row that had nothing to read: the former state is in the spare buffers. */
  private keep(program: Program, b: number): void {
    for (const name of program.plan.updated) {
      const { data } = program.state.get(name);
      const size = data.length / this.size;
      part(data, b, size).set(part(program.state.spare(name).data, b, size));
    }
  }

  private remember(b: number, token: number, outputs: Outputs): void {
    const { history } = this.rows[b]!;
    const { tracer, vocabulary } = this.source;
    const kept = (tracer?.keep ?? []).map((name) => [name, this.vector(outputs, name, b).slice()] as const);
    history.push({ word: vocabulary.word(token), vectors: Object.fromEntries(kept) });
    if (history.length > this.window) history.shift();
  }

  private trace(b: number, outputs: Outputs): Trace {
    const { history } = this.rows[b]!;
    const { tracer } = this.source;
    const words = history.map(({ word }) => word);
    if (!tracer) return { words, rows: [] };
    const { plan, state } = this.program!;
    const names = Object.keys(outputs).filter((name) => name.startsWith(tracePrefix));
    const now = names.map((name) => name.slice(tracePrefix.length));
    const rows = tracer.rows(
      history.map(({ vectors }) => vectors),
      Object.fromEntries(now.map((name) => [name, this.vector(outputs, name, b)])),
      Object.fromEntries(plan.updated.map((name) => [name, this.rowOf(state.get(name).data, b)])),
    );
    return { words, rows };
  }

  private vector(outputs: Outputs, name: string, b: number): Float32Array {
    return this.rowOf(outputs[tracePrefix + name]!, b);
  }

  private rowOf(data: HostData, b: number): Float32Array {
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

  /** Reads a text, token by token. An unknown word throws a `UsageError` before anything is read. */
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

/** Gives a row the state it is to continue from; zeros where none is given. */
function setState(program: Program, b: number, rows: number, state: StreamSnapshot["state"]): void {
  for (const name of program.plan.updated) {
    const { data } = program.state.get(name);
    const own = part(data, b, data.length / rows);
    const saved = state.get(name);
    if (saved) own.set(saved);
    else own.fill(0);
  }
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
