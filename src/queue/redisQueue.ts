/**
 * The queue of a sweep over many machines: tasks go to Redis, results come from there into the members' folders.
 *
 * Redis only distributes. Events say at once when a task has ended; besides, every task that is out is looked at now and
 * then, so that a lost event, a Redis that was restarted empty or another sweep's clearing costs a moment and no result.
 */
import { hostname } from "node:os";
import { setTimeout } from "node:timers/promises";
import type { Job, JobsOptions, Queue, QueueEvents } from "bullmq";
import { FwmError } from "../errors.ts";
import type { MemberQueue, MemberTask, SweepCallbacks, TaskEnd } from "../experiment/sweep/queue.ts";
import {
  inTime,
  loadBullmq,
  parseQueueUrl,
  type QueueAddress,
  reachRedis,
  tellConnection,
} from "./connection.ts";
import { writeFailure, writeMember } from "./memberFolder.ts";
import { checkResult, queueName, type TaskData, taskData, taskId } from "./task.ts";
import { receiveWeights } from "./weights.ts";

/** How a sweep uses a queue. */
export interface RedisQueueOptions {
  readonly queue: string;
  /** Name of the sweep: with the member's, the folder that a worker trains in. */
  readonly sweep: string;
  readonly packageVersion: string;
  readonly command: readonly string[];
  /** Whether best checkpoints come back. */
  readonly weights: boolean;
  readonly signal: AbortSignal;
  readonly callbacks?: SweepCallbacks;
  readonly onProgress?: (member: string, step: number) => void;
  readonly onNote: (text: string) => void;
  readonly onWarning: (text: string) => void;
}

/** How often, in milliseconds, tasks that are out are looked at, and how many of them at a time. */
const lookInterval = 2000;
const lookCount = 100;

/** A task that crashes is tried twice; results are kept a day, for a sweep that was stopped meanwhile. */
const jobOptions: JobsOptions = {
  attempts: 2,
  removeOnComplete: { age: 86_400 },
  removeOnFail: { age: 86_400 },
};

/** Connects to the queue of a sweep. */
export async function redisQueue(options: RedisQueueOptions): Promise<MemberQueue> {
  const bullmq = await loadBullmq("fwm sweep --queue");
  const address = parseQueueUrl(options.queue, "--queue");
  await reachRedis(address, options.signal, options.onNote);
  const telling = tellConnection(address, options.onWarning);
  const { options: connection } = address;
  // Events hold what a task returned: a few are enough, since they are only read as they come.
  const queue = new bullmq.Queue(queueName, { connection, streams: { events: { maxLen: 500 } } });
  const events = new bullmq.QueueEvents(queueName, { connection });
  queue.on("error", telling.onError);
  events.on("error", telling.onError);
  return new RedisQueue(options, address, bullmq, queue, events, telling.onReady);
}

/** A task that was given to the workers. */
interface Out {
  readonly task: MemberTask;
  readonly data: TaskData;
  isShown: boolean;
}

class RedisQueue implements MemberQueue {
  readonly #out = new Map<string, Out>();
  readonly #ended: TaskEnd[] = [];
  readonly #collecting = new Set<string>();
  #failure: unknown;
  #wake: () => void = () => undefined;
  readonly #looking = new AbortController();

  constructor(
    private readonly options: RedisQueueOptions,
    private readonly address: QueueAddress,
    private readonly bullmq: Awaited<ReturnType<typeof loadBullmq>>,
    private readonly queue: Queue,
    private readonly events: QueueEvents,
    private readonly onReady: () => void,
  ) {}

  open(): Promise<void> {
    this.events.on("completed", ({ jobId }) => void this.#collect(jobId));
    this.events.on("failed", ({ jobId }) => void this.#collect(jobId));
    this.events.on("active", ({ jobId }) => this.#show(jobId));
    this.events.on("progress", ({ jobId, data }) => {
      const step = (data as { step?: unknown } | null)?.step;
      const member = this.#out.get(jobId)?.task.member.name;
      if (member && typeof step === "number") this.options.onProgress?.(member, step);
    });
    this.#lookOften();
    return Promise.resolve();
  }

  async add(tasks: readonly MemberTask[]): Promise<void> {
    await unlessStopped(this.#add(tasks), this.options.signal);
  }

  async #add(tasks: readonly MemberTask[]): Promise<void> {
    for (let i = 0; i < tasks.length; i += lookCount) {
      const some = tasks.slice(i, i + lookCount).map((task) => {
        const data = taskData(task, this.options);
        return { id: taskId(data), out: { task, data, isShown: false } };
      });
      // What failed when the sweep ran before is tried again; only then is the task looked at.
      await Promise.all(some.map(async ({ id }) => (await this.queue.getJob(id).then(failedOnly))?.remove()));
      for (const { id, out } of some) this.#out.set(id, out);
      await this.#put(some.map(({ id }) => id));
      await Promise.all(some.map(({ id }) => this.#collect(id)));
    }
  }

  async next(signal: AbortSignal): Promise<TaskEnd | undefined> {
    const onAbort = (): void => this.#wake();
    signal.addEventListener("abort", onAbort);
    try {
      while (!signal.aborted) {
        if (this.#failure !== undefined) throw this.#failure;
        const end = this.#ended.shift();
        if (end) return end;
        await new Promise<void>((resolve) => (this.#wake = resolve));
      }
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
    await inTime(this.#withdraw());
    return undefined;
  }

  async close(): Promise<void> {
    this.#looking.abort();
    await inTime(Promise.allSettled([this.events.close(), this.queue.close()]));
    await inTime(Promise.allSettled([this.events.disconnect(), this.queue.disconnect()]));
  }

  /** Puts tasks into the queue; those that are there already stay as they are. */
  async #put(ids: readonly string[]): Promise<void> {
    const jobs = ids.flatMap((id) => {
      const out = this.#out.get(id);
      // BullMQ takes 0 as "no priority, before all others".
      const opts = { ...jobOptions, jobId: id, priority: (out?.task.priority ?? 0) + 1 };
      return out ? [{ name: "member", data: out.data, opts }] : [];
    });
    await this.queue.addBulk(jobs);
  }

  /** Looks at some of the tasks that are out; those that are gone are put again. */
  #lookOften(): void {
    const { signal } = this.#looking;
    const loop = async (): Promise<void> => {
      for (;;) {
        await setTimeout(lookInterval, undefined, { signal });
        await this.#look().catch((error: unknown) =>
          this.options.onWarning(this.address.hide(String(error))),
        );
      }
    };
    loop().catch(() => undefined);
  }

  async #look(): Promise<void> {
    const some = [...this.#out.keys()].slice(0, lookCount);
    const gone: string[] = [];
    await Promise.all(
      some.map(async (id) => {
        const job = await this.queue.getJob(id);
        if (!job) gone.push(id);
        else if (job.finishedOn) await this.#collect(id);
      }),
    );
    this.onReady();
    await this.#put(gone);
    // The others have their turn next time.
    for (const id of some) {
      const out = this.#out.get(id);
      if (!out || !this.#out.delete(id)) continue;
      this.#out.set(id, out);
    }
  }

  /** Takes over what a task came to, if it has come to its end. */
  async #collect(id: string): Promise<void> {
    const out = this.#out.get(id);
    if (!out || this.#collecting.has(id)) return;
    this.#collecting.add(id);
    try {
      const job = await this.queue.getJob(id);
      const end = job?.finishedOn ? await this.#endOf(id, out, job) : undefined;
      if (!end || !this.#out.delete(id)) return;
      this.#ended.push(end);
    } catch (error) {
      // What cannot be written here ends the sweep; a lost connection does not.
      if (error instanceof FwmError) this.#failure = error;
      else this.options.onWarning(this.address.hide(String(error)));
    } finally {
      this.#collecting.delete(id);
      this.#wake();
    }
  }

  async #endOf(id: string, { task, data }: Out, job: Job): Promise<TaskEnd | undefined> {
    const state = await job.getState();
    if (state === "failed") return this.#failed(task, job);
    if (state !== "completed") return undefined;
    let result: ReturnType<typeof checkResult>;
    try {
      result = checkResult(job.returnvalue, task);
    } catch (error) {
      return this.#fail(task, `refused by ${hostname()}: ${(error as Error).message}`);
    }
    await writeMember(task, result);
    if (data.weights && !(await this.#receive(id, task))) {
      this.options.onWarning(`${task.member.name}: no weights came with the result`);
    }
    const { record } = result;
    return { task, state: record.state, note: record.note };
  }

  async #receive(id: string, { member }: MemberTask): Promise<boolean> {
    try {
      return await receiveWeights(this.bullmq, this.address.options, id, member.folder);
    } catch (error) {
      this.options.onWarning(`${member.name}: ${(error as Error).message}`);
      return false;
    }
  }

  #failed(task: MemberTask, job: Job): Promise<TaskEnd> {
    const tries = job.attemptsMade > 1 ? ` (tried ${job.attemptsMade} times)` : "";
    return this.#fail(task, `${job.failedReason ?? "failed"}${tries}`);
  }

  async #fail(task: MemberTask, note: string): Promise<TaskEnd> {
    const said = this.address.hide(note).slice(0, 4000);
    await writeFailure(task, said, this.options);
    return { task, state: "failed", note: said };
  }

  #show(id: string): void {
    const out = this.#out.get(id);
    if (!out || out.isShown) return;
    out.isShown = true;
    this.options.callbacks?.onMember?.(out.task.member, out.task.round === 0 ? "waiting" : "interrupted");
  }

  /** Takes back what no worker has begun; what is being trained ends, and its result waits in the queue. */
  async #withdraw(): Promise<void> {
    const ids = [...this.#out.keys()];
    for (let i = 0; i < ids.length; i += lookCount) {
      await Promise.all(
        ids.slice(i, i + lookCount).map(async (id) => {
          const job = await this.queue.getJob(id);
          // One that a worker holds cannot be removed.
          if (job && !job.finishedOn) await job.remove().catch(() => undefined);
        }),
      );
    }
  }
}

/** The work, or the moment the signal comes. */
async function unlessStopped(work: Promise<void>, signal: AbortSignal): Promise<void> {
  let stop = (): void => undefined;
  const stopped = new Promise<void>((resolve) => (stop = resolve));
  signal.addEventListener("abort", stop);
  if (signal.aborted) stop();
  await Promise.race([work, stopped]).finally(() => signal.removeEventListener("abort", stop));
}

async function failedOnly(job: Job | undefined): Promise<Job | undefined> {
  return job?.finishedOn && (await job.isFailed()) ? job : undefined;
}
