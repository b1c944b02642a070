/** Run folders as experiments of every kind use them: begun with settings, or taken up again from a checkpoint. */
import type { z } from "zod";
import { DataError, UsageError } from "../errors.ts";
import type { HostTensor } from "../runtime/host.ts";
import { defaultThreads, ortVersion } from "../runtime/node.ts";
import type { Device } from "../runtime/runtime.ts";
import type { LoadedCheckpoint } from "../store/checkpoint.ts";
import { createRun, type Run, resumeRun } from "../store/run.ts";
import { describeEnvironment, gitCommit, readRun } from "../store/run-record.ts";
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

/** Begins a run, or takes one up again; `checkpoint` is what to go on from, undefined at the beginning. */
export async function openRun<S extends { training: { seed: number; steps: number } }>(
  plan: RunPlanFor<S>,
  settings: S,
  context: OpenContext,
): Promise<{ run: Run; checkpoint: LoadedCheckpoint | undefined }> {
  const about = {
    command: [...context.command],
    packageVersion: context.packageVersion,
    gitCommit: gitCommit(process.cwd()),
    environment: describeEnvironment({
      threads: context.threads ?? defaultThreads,
      ort: ortVersion,
      device: context.device ?? "cpu",
    }),
  };
  if (plan.kind === "new") {
    const { experiment, folder } = plan;
    const run = await createRun(folder, { experiment, settings, seed: settings.training.seed, ...about });
    return { run, checkpoint: undefined };
  }
  const { state } = await readRun(plan.folder);
  const { run, checkpoint, skipped, differences } = await resumeRun(plan.folder, about, {
    ...(plan.from ? { from: plan.from } : {}),
    firstStep: (updates) => updates + 1,
  });
  for (const { path, problem } of skipped) context.onWarning?.(`${path}: passed over: ${problem}`);
  for (const difference of differences) {
    context.onWarning?.(
      `not the same as when the run began, so it may not continue bit for bit: ${difference}`,
    );
  }
  // One that was killed after its last step is not finished yet: there may be a validation to make up for.
  if (checkpoint && checkpoint.step >= settings.training.steps && state === "finished") {
    await run.close("finished");
    throw new UsageError(`${plan.folder}: the run has made its ${settings.training.steps} steps`, {
      hint: "give more with --steps",
    });
  }
  if (plan.steps !== undefined) await run.update({ settings });
  return { run, checkpoint };
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
