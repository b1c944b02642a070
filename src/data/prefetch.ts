/**
 * Batches made in a worker thread, so that generating stories does not hold up a training step. They are the
 * batches a `StreamBatcher` gives, in the same order; `state()` is the place after the last batch that was
 * taken, not after those made ahead, so a run resumes exactly.
 */
import { Worker } from "node:worker_threads";
import { DataError, UsageError } from "../errors.ts";
import type { Batch, BatcherState, BatchSettings } from "./batches.ts";
import type { StreamSpec } from "./sources/open.ts";

/** What the worker is given when it starts. */
export interface PrefetchOrder {
  readonly spec: StreamSpec;
  readonly settings: BatchSettings;
  readonly state: BatcherState | null;
}

/** What the worker says: where it begins, each batch with the place after it, or why it cannot go on. */
export type PrefetchReply =
  | { readonly kind: "ready"; readonly state: BatcherState }
  | { readonly kind: "batch"; readonly batch: Batch; readonly state: BatcherState }
  | { readonly kind: "failed"; readonly name: string; readonly message: string };

/** What the worker is asked: one more batch, to open another stream at a place, or to end. */
export type PrefetchRequest = "more" | "end" | Pick<PrefetchOrder, "spec" | "state">;

/** A stream of batches that a worker keeps ahead of its reader. */
export class PrefetchedBatches {
  readonly #worker: Worker;
  readonly #ready: PrefetchReply[] = [];
  #waiting: ((reply: PrefetchReply) => void) | undefined;
  #failure: Extract<PrefetchReply, { kind: "failed" }> | undefined;
  #state: BatcherState | undefined;
  readonly #ahead: number;
  /** Whether batches that still come are of a stream that was left. */
  #reopening = false;

  private constructor(order: PrefetchOrder, ahead: number) {
    this.#ahead = ahead;
    this.#worker = startWorker(order);
    this.#worker.on("message", (reply: PrefetchReply) => this.#receive(reply));
    this.#worker.on("error", (error) => {
      this.#receive({ kind: "failed", name: error.name, message: error.message });
    });
    this.#worker.on("exit", (code) => {
      this.#receive({
        kind: "failed",
        name: "Error",
        message: `the thread that makes batches ended (${code})`,
      });
    });
  }

  /** Starts a worker that keeps up to `ahead` batches ready, from the beginning or from `state` on. */
  static async open(
    spec: StreamSpec,
    settings: BatchSettings,
    options: { state?: BatcherState; ahead?: number } = {},
  ): Promise<PrefetchedBatches> {
    const { state = null, ahead = 8 } = options;
    const batches = new PrefetchedBatches({ spec, settings, state }, ahead);
    await batches.#begin();
    return batches;
  }

  /** Goes over to another stream at the same place, as if it had been opened there: batches made ahead are dropped. */
  async reopen(spec: StreamSpec): Promise<void> {
    this.#ready.length = 0;
    this.#reopening = true;
    this.#ask({ spec, state: this.state() });
    await this.#begin();
  }

  async #begin(): Promise<void> {
    this.#state = (await this.#take()).state;
    for (let i = 0; i < this.#ahead; i++) this.#ask("more");
  }

  /** The next batch. One at a time: wait for it before asking again. */
  async next(): Promise<Batch> {
    const reply = await this.#take();
    if (reply.kind !== "batch") throw new Error("the worker began twice");
    this.#state = reply.state;
    this.#ask("more");
    return reply.batch;
  }

  /** The place in the stream after the last batch that `next` gave. */
  state(): BatcherState {
    return this.#state!;
  }

  /** Ends the worker. */
  async close(): Promise<void> {
    const ended = new Promise<void>((resolve) => this.#worker.once("exit", () => resolve()));
    if (this.#worker.threadId === -1) return;
    this.#ask("end");
    await ended;
  }

  #ask(request: PrefetchRequest): void {
    this.#worker.postMessage(request);
  }

  async #take(): Promise<Exclude<PrefetchReply, { kind: "failed" }>> {
    if (this.#waiting !== undefined) throw new Error("the batch before is still being waited for");
    const early = this.#ready.shift() ?? this.#failure;
    const reply = early ?? (await new Promise<PrefetchReply>((resolve) => (this.#waiting = resolve)));
    if (reply.kind === "failed") throw failureOf(reply);
    return reply;
  }

  #receive(reply: PrefetchReply): void {
    if (this.#reopening && reply.kind === "batch") return;
    this.#reopening = false;
    const waiting = this.#waiting;
    if (reply.kind === "failed") this.#failure ??= reply;
    if (waiting !== undefined) {
      this.#waiting = undefined;
      waiting(reply);
    } else if (reply.kind !== "failed") this.#ready.push(reply);
  }
}

function startWorker(order: PrefetchOrder): Worker {
  // Run from its sources, the program needs the loader that reads TypeScript in the new thread too.
  if (import.meta.url.endsWith(".ts")) {
    const entry = new URL("./prefetchWorker.ts", import.meta.url).href;
    const start = `import("tsx/esm/api").then(({ register }) => { register(); return import(${JSON.stringify(entry)}); })`;
    return new Worker(start, { eval: true, workerData: order });
  }
  return new Worker(new URL("./prefetchWorker.js", import.meta.url), { workerData: order });
}

/** The worker's error in this thread: a user's mistake stays one. */
function failureOf({ name, message }: { name: string; message: string }): Error {
  if (name === "DataError") return new DataError(message);
  if (name === "UsageError") return new UsageError(message);
  return new Error(message);
}
