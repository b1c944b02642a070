/** Run folders as experiments of every kind use them: begun with settings, or taken up again from a checkpoint. */
import { z } from "zod";
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
    }
  | { readonly kind: "resume"; readonly folder: string; readonly from?: string; readonly steps?: number };

/** A run folder that is open for training. */
export interface OpenedRun<S> {
  readonly run: Run;
  readonly settings: S;
  /** What to go on from; undefined at the beginning. */
  readonly checkpoint: LoadedCheckpoint | undefined;
}

/** Begins or resumes a run; settings read back from a run are checked by `schema`. */
export async function openRun<S extends { training: { seed: number; steps: number } }>(
  plan: RunPlanFor<S>,
  schema: z.ZodType<S>,
  context: OpenContext,
): Promise<OpenedRun<S>> {
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
    const { experiment, settings } = plan;
    const run = await createRun(plan.folder, {
      experiment,
      settings,
      seed: settings.training.seed,
      ...about,
    });
    return { run, settings, checkpoint: undefined };
  }
  const record = await readRun(plan.folder);
  const known = schema.safeParse(record.settings);
  if (!known.success) {
    throw new DataError(`${plan.folder}: the run's settings are not those of this version`, {
      hint: "resume it with the version that began it",
    });
  }
  const settings = plan.steps
    ? { ...known.data, training: { ...known.data.training, steps: plan.steps } }
    : known.data;
  const resumed = await resumeRun(plan.folder, about, {
    ...(plan.from ? { from: plan.from } : {}),
    firstStep: (updates) => updates + 1,
  });
  for (const { path, problem } of resumed.skipped) context.onWarning?.(`${path}: passed over: ${problem}`);
  for (const difference of resumed.differences) {
    context.onWarning?.(
      `not the same as when the run began, so it may not continue bit for bit: ${difference}`,
    );
  }
  if (resumed.checkpoint && resumed.checkpoint.step >= settings.training.steps) {
    await resumed.run.close("finished");
    throw new UsageError(`${plan.folder}: the run has made its ${settings.training.steps} steps`, {
      hint: "give more with --steps",
    });
  }
  return { run: resumed.run, settings, checkpoint: resumed.checkpoint };
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
