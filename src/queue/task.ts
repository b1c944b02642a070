/**
 * What travels between a sweep and its workers: data only, checked where it is sent and where it arrives.
 *
 * A task names an experiment and has its settings, which the kind's own schema checks. It holds no path and nothing that
 * could be run: the worker decides where it trains, with which data and how many threads.
 */
import { createHash } from "node:crypto";
import { gunzipSync, gzipSync } from "node:zlib";
import { z } from "zod";
import { UsageError } from "../errors.ts";
import type { BaseSettings } from "../experiment/kind.ts";
import { findExperiment, kindOf } from "../experiment/registry.ts";
import { settingsKey } from "../experiment/sweep/members.ts";
import type { MemberTask } from "../experiment/sweep/queue.ts";
import { flatten } from "../store/flatten.ts";
import { parseRecord, type RunRecord } from "../store/runRecord.ts";

/** The queue that all sweeps and workers of a Redis share. */
export const queueName = "fwm";

/** The name of a sweep or member: a plain file name, and not a hidden one. */
const name = z.string().regex(/^(?!\.)[\w.=+,-]{1,200}$/);

const taskSchema = z.strictObject({
  format: z.literal("fwm-task-1"),
  /** Version of fwm that the sweep runs with; a worker of another one refuses. */
  packageVersion: z.string().max(100),
  sweep: name,
  member: name,
  experiment: z.string().max(200),
  settings: z.record(z.string(), z.unknown()),
  /** Steps the member is to have made, and whether it is to be resumed after that. */
  steps: z.int().min(1),
  pauses: z.boolean(),
  /** Whether the best checkpoint is to be sent back. */
  weights: z.boolean(),
});

/** A task as it travels. */
export type TaskData = z.infer<typeof taskSchema>;

/** A task that was checked: its settings are those of a kind that this program knows. */
export interface CheckedTask extends Omit<TaskData, "settings"> {
  readonly settings: BaseSettings;
}

/** Settings take a few kilobytes. */
const largestTask = 2 ** 17;

/** The task of a sweep's member as data. */
export function taskData(
  { member, steps, pauses }: MemberTask,
  { sweep, packageVersion, weights }: Pick<TaskData, "sweep" | "packageVersion" | "weights">,
): TaskData {
  const { name: memberName, experiment, settings } = member;
  const data = {
    ...{ format: "fwm-task-1" as const, packageVersion, sweep, member: memberName, experiment },
    ...{ settings: { ...settings }, steps, pauses, weights },
  };
  checkTask(data, packageVersion);
  return data;
}

/**
 * Checks a task; what is wrong with it is a `UsageError`. A task comes from whoever can write to the queue: nothing of it
 * is used before this.
 */
export function checkTask(data: unknown, packageVersion: string): CheckedTask {
  const text = JSON.stringify(data) ?? "";
  if (text.length > largestTask)
    throw new UsageError("the task is too large", { most: `${largestTask} characters` });
  const parsed = taskSchema.safeParse(data);
  if (!parsed.success)
    throw new UsageError("not a task of a sweep", { reason: z.prettifyError(parsed.error) });
  const task = parsed.data;
  if (task.packageVersion !== packageVersion) {
    throw new UsageError(`the sweep runs with fwm ${task.packageVersion}, the worker is ${packageVersion}`, {
      hint: "install the same version on both sides",
    });
  }
  const experiment = findExperiment(task.experiment);
  if (!experiment) throw new UsageError(`there is no experiment ${JSON.stringify(task.experiment)} here`);
  const kind = kindOf(experiment.settings);
  const settings = kind.schema.safeParse(task.settings);
  if (!settings.success) {
    throw new UsageError(`the settings are not those of ${task.experiment}`, {
      reason: z.prettifyError(settings.error),
    });
  }
  const place = kind.flags.data === undefined ? "" : (flatten(settings.data)[kind.flags.data] ?? "");
  if (place !== "") {
    throw new UsageError(`${kind.flags.data}: a task names no folder`, {
      hint: "over a queue each worker finds its data by its own FWM_DATA",
    });
  }
  if (task.steps > kind.steps(settings.data) || task.pauses !== task.steps < kind.steps(settings.data)) {
    throw new UsageError("the steps of the task do not fit its settings");
  }
  return { ...task, settings: settings.data };
}

/** The id of a task: the same for the same work, so that adding it twice is harmless, whoever adds it. */
export function taskId(task: TaskData): string {
  const hash = createHash("sha256").update(settingsKey(task)).digest("hex");
  return `${task.sweep}-${task.member}`.slice(0, 100) + `-${hash.slice(0, 20)}`;
}

const resultSchema = z.strictObject({
  format: z.literal("fwm-result-1"),
  /** `run.json` of the member. */
  record: z.unknown(),
  /** `metrics.jsonl`, compressed, as base64. */
  metrics: z.string().max(2 ** 26),
});

/** What comes back of a task. */
export interface TaskResult {
  readonly record: RunRecord;
  readonly metrics: Uint8Array;
}

/** Longest `metrics.jsonl` that is taken from the queue. */
const largestMetrics = 2 ** 28;

/** A result as it travels. */
export function resultData({ record, metrics }: TaskResult): z.infer<typeof resultSchema> {
  return { format: "fwm-result-1", record, metrics: gzipSync(metrics).toString("base64") };
}

/** Checks what came back: it has to be the result of this task. */
export function checkResult(data: unknown, { member, steps, pauses }: MemberTask): TaskResult {
  const wrong = (reason: string): UsageError => new UsageError(`not a result of ${member.name}`, { reason });
  const parsed = resultSchema.safeParse(data);
  if (!parsed.success) throw wrong(z.prettifyError(parsed.error));
  const record = parseRecord(parsed.data.record);
  if (!record) throw wrong("its record is not one that this version understands");
  if (
    record.experiment !== member.experiment ||
    settingsKey(record.settings) !== settingsKey(member.settings)
  ) {
    throw wrong("its settings are not those of the member");
  }
  const isEnd =
    record.state === "finished" ||
    record.state === "diverged" ||
    (pauses && record.state === "interrupted" && record.step === steps);
  if (!isEnd) throw wrong(`it is ${record.state} after ${record.step} steps`);
  try {
    const metrics = gunzipSync(Buffer.from(parsed.data.metrics, "base64"), {
      maxOutputLength: largestMetrics,
    });
    return { record, metrics };
  } catch (error) {
    throw wrong(`its metrics cannot be read: ${(error as Error).message}`);
  }
}
