/**
 * Where a sweep's tasks go to be done. The scheduler (`run.ts`) knows this interface alone: the queue below trains in
 * this process, one task after another; the one of `src/queue` hands tasks to workers on other machines.
 */
import { resolve } from "node:path";
import { UsageError } from "../../errors.ts";
import type { RunState } from "../../store/runRecord.ts";
import type { StepReport, Values } from "../../train/loop.ts";
import type { RunContext } from "../trainRun.ts";
import { type MemberState, memberRecord, type SweepMember } from "./members.ts";
import { trainMember } from "./trainMember.ts";

/** A member to be trained to the end of a round. */
export interface MemberTask {
  readonly member: SweepMember;
  readonly round: number;
  /** Steps the member is to have made then. */
  readonly steps: number;
  /** Whether it trains on after that, if it is kept. */
  readonly pauses: boolean;
  /** Tasks with a lower number first. */
  readonly priority: number;
}

/** How a task ended; what was reached stands in the member's folder. */
export interface TaskEnd {
  readonly task: MemberTask;
  readonly state: RunState;
  readonly note: string | null;
}

/** Where tasks go. */
export interface MemberQueue {
  /** Looks at where the members stand before anything is added. */
  open(members: readonly SweepMember[], states: readonly MemberState[]): Promise<void>;
  add(tasks: readonly MemberTask[]): Promise<void>;
  /** Waits for the next task to end; undefined once the signal has stopped it. */
  next(signal: AbortSignal): Promise<TaskEnd | undefined>;
  close(): Promise<void>;
}

/** What a person is shown while a sweep runs. */
export interface SweepCallbacks {
  /** Before a member trains; `finished` and `diverged` ones are passed over. */
  onMember?(member: SweepMember, state: MemberState): void;
  onStep?(member: SweepMember, done: number, report: StepReport, speed: number): void;
  onEvaluation?(member: SweepMember, step: number, values: Values): void;
  /** After a member was trained, paused or stopped. */
  onEnd?(member: SweepMember, state: MemberState, note: string | null): void;
}

/** How tasks are trained in this process. */
export interface EmbeddedContext extends Omit<RunContext, "callbacks" | "signal"> {
  readonly callbacks?: SweepCallbacks;
}

/** The queue of a sweep on this machine: one task after another, each with all cores. */
export function embeddedQueue(context: EmbeddedContext): MemberQueue {
  const waiting: MemberTask[] = [];
  return {
    open(members, states) {
      const busy = members.find((_, i) => states[i] === "running");
      if (!busy) return Promise.resolve();
      throw new UsageError(`${resolve(busy.folder)}: another process trains this member`, {
        hint: "let it end, or stop it, and start the sweep again",
      });
    },
    add(tasks) {
      waiting.push(...tasks);
      waiting.sort((a, b) => a.priority - b.priority);
      return Promise.resolve();
    },
    async next(signal) {
      const task = signal.aborted ? undefined : waiting.shift();
      if (!task) return undefined;
      const before = await memberRecord(task.member);
      context.callbacks?.onMember?.(task.member, before ? "interrupted" : "waiting");
      const { callbacks, ...shared } = context;
      const { member } = task;
      const { state, note } = await trainMember(member, task, {
        ...shared,
        signal,
        callbacks: {
          onStep: (done, report, speed) => callbacks?.onStep?.(member, done, report, speed),
          onEvaluation: (step, values) => callbacks?.onEvaluation?.(member, step, values),
        },
      });
      return { task, state, note };
    },
    close: () => Promise.resolve(),
  };
}
