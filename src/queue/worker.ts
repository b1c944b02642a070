/**
 * A worker: takes tasks from the queue, trains each in a child process, and gives the result back.
 *
 * The queue delivers at least once. What makes it once: a member's folder has a lock, a task whose lock was lost is
 * stopped here, and only who holds the queue's lock can hand in a result.
 */
import { readdir, readFile, rm } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import type { Job } from "bullmq";
import { FwmError } from "../errors.ts";
import { listCheckpoints, readPointer } from "../store/checkpoint.ts";
import { metricsFile } from "../store/metrics.ts";
import { readRun } from "../store/runRecord.ts";
import {
  inTime,
  loadBullmq,
  parseQueueUrl,
  type QueueAddress,
  reachRedis,
  tellConnection,
} from "./connection.ts";
import { type MemberProcess, trainInChild } from "./memberProcess.ts";
import { type CheckedTask, checkTask, queueName, resultData } from "./task.ts";
import { sendWeights } from "./weights.ts";

/** How a worker works. */
export interface WorkerOptions {
  readonly queue: string;
  readonly packageVersion: string;
  /** The command line, without the queue's address: it is recorded with every run. */
  readonly command: readonly string[];
  readonly threads?: number;
  /** A folder that all workers see: a lost worker's member goes on from its newest checkpoint. */
  readonly share?: string;
  /** Where members are trained without a common folder. */
  readonly scratch: string;
  /** Seconds without a sign of life after which a worker's task is given to another one. */
  readonly lockSeconds: number;
  /** Seconds without a task after which the worker ends; without it, it waits for ever. */
  readonly idleSeconds?: number;
  readonly signal: AbortSignal;
  readonly onNote: (text: string) => void;
  readonly onWarning: (text: string) => void;
}

/** How often, in milliseconds, the sweep is told how far a member is. */
const progressInterval = 2000;
/** A worker that is lost as often as this takes the task with it: it is failed. */
const mostLosses = 5;

/** Works until the signal, or until there was nothing to do for a while. */
export async function runWorker(options: WorkerOptions): Promise<"idle" | "stopped"> {
  const { signal, onNote, onWarning } = options;
  const bullmq = await loadBullmq("fwm worker");
  const address = parseQueueUrl(options.queue, "--queue");
  await reachRedis(address, signal, onNote);
  if (signal.aborted) return "stopped";
  const lockDuration = 1000 * options.lockSeconds;
  const telling = tellConnection(address, onWarning);
  const desk = new Desk(options, bullmq, address);
  const worker = new bullmq.Worker(queueName, (job, token) => desk.take(job, token ?? ""), {
    connection: address.options,
    name: `${hostname()}:${process.pid}`,
    ...{ lockDuration, stalledInterval: lockDuration, maxStalledCount: mostLosses, runRetryDelay: 1000 },
  });
  worker.on("error", (error) => telling.onError(error));
  worker.on("ready", () => telling.onReady());
  worker.on("locksRenewed", () => {
    telling.onReady();
    desk.renewed();
  });
  worker.on("lockRenewalFailed", () => desk.lose());
  worker.on("completed", () => void desk.delivered().catch((error: Error) => onWarning(error.message)));
  // Without an answer of Redis the lock is as good as lost when its time is over.
  const watch = setInterval(() => desk.loseAfter(lockDuration), Math.max(50, lockDuration / 10));
  onNote(`${address.shown}: waiting for tasks; members are trained in ${desk.root}`);
  try {
    return await desk.until(signal, 1000 * (options.idleSeconds ?? Number.POSITIVE_INFINITY));
  } finally {
    clearInterval(watch);
    desk.close();
    // The child saves first; handing in or giving back needs Redis, and so does taking leave of it.
    await desk.trained();
    if (!(await inTime(desk.done())) || !(await inTime(worker.close()))) {
      onWarning(
        `${address.shown}: does not answer; the task is given to another worker in ${options.lockSeconds} s`,
      );
      await inTime(worker.disconnect());
    }
  }
}

/** What a worker has at hand: one task at most. */
class Desk {
  readonly root: string;
  readonly #options: WorkerOptions;
  readonly #bullmq: Awaited<ReturnType<typeof loadBullmq>>;
  readonly #address: QueueAddress;
  #training: MemberProcess | undefined;
  #leftover: string | undefined;
  #work: Promise<unknown> = Promise.resolve();
  #lastSign = Date.now();
  #lastWork = Date.now();
  #isClosing = false;

  constructor(options: WorkerOptions, bullmq: Awaited<ReturnType<typeof loadBullmq>>, address: QueueAddress) {
    this.#options = options;
    this.#bullmq = bullmq;
    this.#address = address;
    this.root = options.share ?? options.scratch;
  }

  /** Does one task; what it returns or throws is what the queue is told. */
  take(job: Job, token: string): Promise<unknown> {
    const work = this.#take(job, token).finally(() => {
      this.#lastWork = Date.now();
      this.#training = undefined;
    });
    this.#work = work.catch(() => undefined);
    return work;
  }

  async #take(job: Job, token: string): Promise<unknown> {
    const { packageVersion, onNote, onWarning } = this.#options;
    this.renewed();
    let task: CheckedTask;
    try {
      task = checkTask(job.data, packageVersion);
    } catch (error) {
      const message = `refused by ${hostname()}: ${error instanceof FwmError ? error.message : String(error)}`;
      onWarning(`task ${job.id}: ${message}`);
      throw new this.#bullmq.UnrecoverableError(message);
    }
    const label = `${task.sweep}/${task.member}`;
    const folder = join(this.root, task.sweep, task.member);
    onNote(`${label}: trains to ${task.steps}`);
    let told = 0;
    this.#training = trainInChild(
      {
        ...{
          folder,
          experiment: task.experiment,
          settings: task.settings,
          steps: task.steps,
          pauses: task.pauses,
        },
        ...{ command: this.#options.command, packageVersion },
        ...(this.#options.threads ? { threads: this.#options.threads } : {}),
      },
      {
        onStep(step) {
          if (Date.now() - told < progressInterval) return;
          told = Date.now();
          job.updateProgress({ step }).catch(() => undefined);
        },
        onWarning: (text) => onWarning(`${label}: ${text}`),
      },
    );
    if (this.#isClosing) this.#training.stop();
    const end = await this.#training.end;
    onNote(`${label}: ${end.kind === "failed" ? end.message : sayings[end.kind]}`);
    switch (end.kind) {
      case "end":
        return await this.#handIn(job, task, folder);
      case "stopped":
        // Lost, or this worker ends: the task goes back as it was, and that is no attempt.
        await job.moveToWait(token).catch(() => undefined);
        throw new this.#bullmq.WaitingError();
      case "busy":
        await job.moveToDelayed(Date.now() + 1000 * Math.min(10, this.#options.lockSeconds), token);
        throw new this.#bullmq.DelayedError();
      case "failed":
        throw new Error(`${hostname()}: ${end.message}`);
    }
  }

  async #handIn(job: Job, task: CheckedTask, folder: string): Promise<unknown> {
    const record = await readRun(folder);
    const metrics = await readFile(join(folder, metricsFile)).catch(() => new Uint8Array());
    if (task.weights)
      await sendWeights(this.#bullmq, this.#address.options, job.id!, await bestFiles(folder));
    // What is not shared and not resumed is of no use once the result has arrived.
    this.#leftover = this.#options.share || task.pauses ? undefined : folder;
    return resultData({ record: { ...record, process: null }, metrics });
  }

  /** The result has arrived in the queue. */
  async delivered(): Promise<void> {
    const folder = this.#leftover;
    this.#leftover = undefined;
    if (folder) await rm(folder, { recursive: true, force: true });
  }

  /** The queue's lock on the task was renewed. */
  renewed(): void {
    this.#lastSign = Date.now();
  }

  /** The task may be another's by now: the child saves and stops. */
  lose(): void {
    this.#training?.stop();
  }

  loseAfter(milliseconds: number): void {
    if (Date.now() - this.#lastSign > milliseconds) this.lose();
  }

  /** Resolves at the signal, or when there was no task for so long. */
  until(signal: AbortSignal, idle: number): Promise<"idle" | "stopped"> {
    return new Promise((resolve) => {
      const timer = setInterval(() => {
        if (signal.aborted) end("stopped");
        else if (!this.#training && Date.now() - this.#lastWork > idle) end("idle");
      }, 100);
      const end = (how: "idle" | "stopped"): void => {
        clearInterval(timer);
        resolve(how);
      };
    });
  }

  /** Stops what is being trained, and whatever would begin. */
  close(): void {
    this.#isClosing = true;
    this.#training?.stop();
  }

  /** Waits until nothing is being trained. */
  async trained(): Promise<void> {
    await this.#training?.end;
  }

  /** Waits until the last task has been handed in or given back. */
  async done(): Promise<void> {
    await this.#work;
  }
}

const sayings = {
  end: "done",
  stopped: "stopped; it goes back to the queue",
  busy: "another process trains it; tried again later",
} as const;

/** The files of a run's best checkpoint, and its name. */
async function bestFiles(
  folder: string,
): Promise<{ checkpoint: string; files: Record<string, Buffer> } | undefined> {
  const checkpoint = (await readPointer(folder, "best")) ?? (await listCheckpoints(folder)).at(-1)?.name;
  if (!checkpoint) return undefined;
  const files: Record<string, Buffer> = {};
  for (const name of await readdir(join(folder, checkpoint))) {
    files[name] = await readFile(join(folder, checkpoint, name));
  }
  return { checkpoint, files };
}
