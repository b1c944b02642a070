/** Run folders as experiments of every kind use them: begun with settings, or taken up again from a checkpoint. */
import type { z } from "zod";
import { DataError, UsageError } from "../errors.ts";
import type { HostTensor } from "../runtime/host.ts";
import { checkDevice, defaultThreads, ortVersion } from "../runtime/node.ts";
import type { Device } from "../runtime/runtime.ts";
import type { LoadedCheckpoint } from "../store/checkpoint.ts";
import { createRun, type Run, resumeRun } from "../store/run.ts";
import { describeEnvironment, gitCommit, type RunRecord, readRun } from "../store/runRecord.ts";
import type { TensorData } from "../store/safetensors.ts";

/** What opening a run needs to know of the command. */
export interface OpenContext {
  readonly command: readonly string[];
  readonly packageVersion: string;
  readonly threads?: number;
  readonly device?: Device;
  readonly onWarning?: (text: string) => void;
}

/** A run to begin, or one to go on with. */
export type RunPlanFor<S> =
  | {
      readonly kind: "new";
      readonly experiment: string;
      readonly settings: S;
      readonly folder: string;
      /** A run, checkpoint or model folder whose weights to begin with. */
      readonly init?: string;
    }
  | { readonly kind: "resume"; readonly folder: string; readonly from?: string; readonly steps?: number };

/** The settings of a plan: its own, or those of the run it goes on with, checked by `schema`. */
export async function settingsOf<S extends { training: { steps: number } }>(
  plan: RunPlanFor<S>,
  schema: z.ZodType<S>,
): Promise<S> {
  if (plan.kind === "new") return plan.settings;
  const record = await readRun(plan.folder);
  const known = schema.safeParse(record.settings);
  if (!known.success) {
    throw new DataError(`${plan.folder}: the run's settings are not those of this version`, {
      hint: "resume it with the version that began it",
    });
  }
  const { training } = known.data;
  return { ...known.data, training: { ...training, steps: plan.steps ?? training.steps } };
}

/** What a run's record says from its beginning, besides its settings. */
export interface RunOrigin {
  /** The run or model whose weights it begins with. */
  readonly begun?: string;
  /** Which stories it learns from and is judged on; the same on resuming. */
  readonly stories?: string;
}

/** Begins a run, or takes one up again; `checkpoint` is what to go on from, undefined at the beginning. */
export async function openRun<S extends { training: { seed: number; steps: number } }>(
  plan: RunPlanFor<S>,
  settings: S,
  context: OpenContext,
  origin: RunOrigin = {},
): Promise<{ run: Run; checkpoint: LoadedCheckpoint | undefined }> {
  checkDevice(context.device ?? "cpu");
  const about = {
    command: [...context.command],
    packageVersion: context.packageVersion,
    gitCommit: gitCommit(),
    environment: describeEnvironment({
      threads: context.threads ?? defaultThreads,
      ort: ortVersion,
      device: context.device ?? "cpu",
    }),
  };
  if (plan.kind === "new") {
    const { experiment, folder } = plan;
    const { seed } = settings.training;
    const run = await createRun(folder, { experiment, settings, seed, summary: { ...origin }, ...about });
    return { run, checkpoint: undefined };
  }
  const { run, checkpoint, skipped, differences } = await resumeRun(plan.folder, about, {
    ...(plan.from ? { from: plan.from } : {}),
    firstStep: (saved, split) => saved.step + (split === "valid" && isDue(saved) ? 0 : 1),
    check: (saved, record) => checkResumable(plan.folder, settings.training.steps, origin, saved, record),
  });
  for (const { path, problem } of skipped) context.onWarning?.(`${path}: passed over: ${problem}`);
  for (const difference of differences) {
    context.onWarning?.(
      `not the same as when the run began, so it may not continue bit for bit: ${difference}`,
    );
  }
  if (plan.steps !== undefined) await run.update({ settings });
  return { run, checkpoint };
}

/** Refuses to go on where that would make something else of the run. */
function checkResumable(
  folder: string,
  steps: number,
  { stories }: RunOrigin,
  checkpoint: LoadedCheckpoint | undefined,
  { state, summary }: RunRecord,
): void {
  if (!checkpoint && summary.begun !== undefined) {
    throw new DataError(`${folder}: the run was stopped before the weights it begins with were saved`, {
      weights: String(summary.begun),
      hint: "begin again, with --init and in another folder",
    });
  }
  if (summary.stories !== undefined && stories !== summary.stories) {
    throw new DataError(`${folder}: the stories are not those the run began with`, {
      began: String(summary.stories),
      now: stories,
      hint: "let FWM_DATA name the data it was begun with, or begin a new run with --init",
    });
  }
  const made = checkpoint?.step ?? 0;
  // One that was killed after its last step is not finished yet: there may be a validation to make up for.
  if (made > steps || (made === steps && state === "finished")) {
    throw new UsageError(`${folder}: the run has made its ${made} steps`, { hint: "give more with --steps" });
  }
}

/** Whether the run was stopped between an update and the validation after it. */
function isDue({ state }: LoadedCheckpoint): boolean {
  return (state as { progress?: { due?: boolean } }).progress?.due === true;
}

/** How a run ended, for its record: read off the error that ended it. */
export function outcomeOf(error: unknown): { outcome: "diverged" | "failed"; note?: string } {
  if (!(error instanceof Error)) return { outcome: "failed" };
  const outcome = error.name === "DivergedError" ? "diverged" : "failed";
  return { outcome, note: error.message.split("\n")[0]! };
}

/** A saved tensor as a program's state takes it. */
export function asHost({ dtype, shape, data }: TensorData): HostTensor {
  if (dtype !== "f32" && dtype !== "i32")
    throw new DataError(`a ${dtype} tensor is not part of a checkpoint`);
  return { dtype, shape, data };
}

/** A state's tensor as a file takes it. */
export function fromHost({ dtype, shape, data }: HostTensor): TensorData {
  if (dtype !== "f32") throw new Error(`internal: state of dtype ${dtype} cannot be saved`);
  return { dtype, shape: [...shape], data: data as Float32Array };
}
