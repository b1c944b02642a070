/**
 * Models that answer, each in a child process: started when one is asked, kept for a while, limited in number. Requests
 * wait in one queue with a limit; what waits for a caller that has gone is dropped.
 */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { DataError, FwmError, UsageError } from "../../errors.ts";
import type { PassageWord } from "../../inference/passage.ts";
import type { StoryTrace } from "../../inference/storyTrace.ts";
import type { GenerateAnswer, GenerateRequest, RolloutAnswer, VocabularyAnswer } from "../api.ts";
import { startChild } from "./childProcess.ts";
import { Refusal, UnknownWords } from "./requests.ts";

/** What a model is asked. */
export type ModelQuestion =
  | { readonly kind: "ask"; readonly story: string; readonly top: number; readonly writes: boolean }
  | { readonly kind: "vocabulary" }
  | { readonly kind: "rollout"; readonly seed: number }
  | { readonly kind: "passage"; readonly text: string }
  | ({ readonly kind: "generate" } & Omit<GenerateRequest, "model">);

/** A question on its way to a child. */
export type ModelRequest = ModelQuestion & { readonly id: number };

/** What a child makes of a question. */
export type ModelResult =
  | (StoryTrace & { readonly ms: number })
  | VocabularyAnswer
  | Omit<RolloutAnswer, "experiment" | "step">
  | { readonly words: readonly PassageWord[] }
  | GenerateAnswer;

/** A child's reply: the result as JSON text, which the server hands on, or why there is none. */
export interface ModelAnswer {
  readonly id: number;
  readonly json?: string;
  readonly failure?: {
    readonly name: string;
    readonly message: string;
    readonly suggestions?: readonly (readonly [string, readonly string[]])[];
  };
}

/** Limits of a pool. */
export interface PoolOptions {
  /** Models in memory at once. */
  readonly models?: number;
  /** Milliseconds that a model nobody asks is kept. */
  readonly keep?: number;
  /** Requests that may wait. */
  readonly waiting?: number;
  /** Milliseconds that one answer may take. */
  readonly timeout?: number;
  /** Starts the child of a model folder. */
  readonly start?: (folder: string) => ChildProcess;
}

interface Pending {
  readonly folder: string;
  readonly question: ModelQuestion;
  readonly resolve: (json: string) => void;
  readonly reject: (error: Error) => void;
}

/** A child and what it is doing. */
interface Worker {
  readonly folder: string;
  readonly child: ChildProcess;
  current: { readonly pending: Pending; readonly timer: NodeJS.Timeout } | undefined;
  lastUse: number;
  idle: NodeJS.Timeout | undefined;
}

/** The models that answer. */
export class ModelPool {
  private readonly workers = new Map<string, Worker>();
  private queue: Pending[] = [];
  private nextId = 1;
  private closed = false;
  private readonly limits: Required<PoolOptions>;

  constructor(options: PoolOptions = {}) {
    this.limits = {
      models: 4,
      keep: 5 * 60_000,
      waiting: 2_000,
      timeout: 60_000,
      start: (folder) => startChild("modelChild", [folder]),
      ...options,
    };
  }

  /** Asks the model in a folder; the answer is JSON text. `signal` takes back what still waits. */
  ask(folder: string, question: ModelQuestion, signal?: AbortSignal): Promise<string> {
    if (this.closed) throw new Refusal(503, "busy", "the studio is closing");
    if (this.queue.length >= this.limits.waiting) {
      throw new Refusal(503, "busy", `${this.queue.length} questions wait already; try again in a moment`);
    }
    return new Promise<string>((resolve, reject) => {
      const pending: Pending = { folder, question, resolve, reject };
      signal?.addEventListener("abort", () => this.drop(pending), { once: true });
      this.queue.push(pending);
      this.dispatch();
    });
  }

  /** Process ids of the children, and what waits: for tests and the log. */
  get state(): { readonly pids: readonly number[]; readonly waiting: number } {
    const pids = [...this.workers.values()].flatMap(({ child }) => child.pid ?? []);
    return { pids, waiting: this.queue.length };
  }

  /** Ends all children; what waits is refused. */
  async close(): Promise<void> {
    this.closed = true;
    const refused = new Refusal(503, "busy", "the studio is closing");
    for (const pending of this.queue.splice(0)) pending.reject(refused);
    await Promise.all([...this.workers.values()].map((worker) => this.end(worker)));
  }

  private drop(pending: Pending): void {
    const at = this.queue.indexOf(pending);
    if (at < 0) return;
    this.queue.splice(at, 1);
    pending.reject(new Refusal(503, "busy", "the question was taken back"));
  }

  /** Gives what waits to workers that are free. */
  private dispatch(): void {
    const busy = new Set<string>();
    const left: Pending[] = [];
    for (const pending of this.queue) {
      const { folder } = pending;
      const worker = busy.has(folder) ? undefined : this.workerFor(folder);
      if (worker) this.give(worker, pending);
      else left.push(pending);
      // The first that waits for a model keeps its place before later ones.
      busy.add(folder);
    }
    this.queue = left;
  }

  /** A worker for a folder that is free; one is started if there is room, or if one can go. */
  private workerFor(folder: string): Worker | undefined {
    const known = this.workers.get(folder);
    if (known) return known.current ? undefined : known;
    if (this.workers.size >= this.limits.models) {
      const idle = [...this.workers.values()].filter(({ current }) => !current);
      const oldest = idle.sort((a, b) => a.lastUse - b.lastUse)[0];
      if (!oldest) return undefined;
      void this.end(oldest);
    }
    return this.start(folder);
  }

  private start(folder: string): Worker {
    const child = this.limits.start(folder);
    const worker: Worker = { folder, child, current: undefined, lastUse: 0, idle: undefined };
    this.workers.set(folder, worker);
    child.on("message", (answer: ModelAnswer) => this.receive(worker, answer));
    const lost = (what: string) => () => this.lost(worker, what);
    child.once("error", lost("could not be started"));
    child.once("exit", lost("ended unexpectedly"));
    return worker;
  }

  private give(worker: Worker, pending: Pending): void {
    clearTimeout(worker.idle);
    const timer = setTimeout(() => {
      this.lost(worker, `took longer than ${this.limits.timeout / 1000} seconds`);
      void this.end(worker);
    }, this.limits.timeout);
    worker.current = { pending, timer };
    worker.lastUse = performance.now();
    const request: ModelRequest = { ...pending.question, id: this.nextId++ };
    // A child that is gone is told of by its exit.
    worker.child.send(request, () => undefined);
  }

  private receive(worker: Worker, { json, failure }: ModelAnswer): void {
    const { current } = worker;
    if (!current) return;
    clearTimeout(current.timer);
    worker.current = undefined;
    worker.idle = setTimeout(() => void this.end(worker), this.limits.keep);
    worker.idle.unref();
    if (json !== undefined) current.pending.resolve(json);
    else current.pending.reject(failureOf(failure!));
    this.dispatch();
  }

  private lost(worker: Worker, what: string): void {
    if (this.workers.get(worker.folder) === worker) this.workers.delete(worker.folder);
    clearTimeout(worker.idle);
    const { current } = worker;
    worker.current = undefined;
    if (current) {
      clearTimeout(current.timer);
      current.pending.reject(new FwmError(`the model's process ${what}`));
    }
    if (!this.closed) this.dispatch();
  }

  private async end(worker: Worker): Promise<void> {
    if (this.workers.get(worker.folder) === worker) this.workers.delete(worker.folder);
    clearTimeout(worker.idle);
    const { child } = worker;
    if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
    const ended = once(child, "exit");
    // It holds nothing that has to be saved.
    child.kill("SIGKILL");
    await ended;
  }
}

/** The child's error in this process: a user's mistake stays one. */
function failureOf({ name, message, suggestions }: NonNullable<ModelAnswer["failure"]>): Error {
  if (suggestions) return new UnknownWords(message, new Map(suggestions));
  if (name === "UsageError" || name === "ShapeError") return new UsageError(message);
  if (name === "DataError") return new DataError(message);
  return name === "Error" ? new Error(message) : new FwmError(message);
}
