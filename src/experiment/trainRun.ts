/** Trains an experiment of any kind in a run folder: new or resumed, ended well or badly, everything is closed. */
import { totalmem } from "node:os";
import { basename, dirname, resolve } from "node:path";
import { z } from "zod";
import { DataError, UsageError } from "../errors.ts";
import { formatChain } from "../report/chain.ts";
import { checkDevice, defaultThreads, ortVersion } from "../runtime/node.ts";
import type { LoadedCheckpoint } from "../store/checkpoint.ts";
import { parseModelConfig } from "../store/modelConfig.ts";
import { type LoadedModel, loadModelFolder } from "../store/modelFolder.ts";
import { createRun, type Run, resumeRun } from "../store/run.ts";
import {
  describeEnvironment,
  gitCommit,
  type RunRecord,
  type RunState,
  readRun,
} from "../store/runRecord.ts";
import {
  freshProgress,
  isBudgetSpent,
  type LoopCallbacks,
  type LoopEnd,
  type LoopProgress,
  type LoopSettings,
  nothingSpent,
  progressSchema,
  type SpentTime,
  spentSchema,
  train,
} from "../train/loop.ts";
import type { BaseSettings, Kind, Session, SessionContext } from "./kind.ts";
import { chainOf } from "./lineage.ts";
import { kindNamed, kindOf } from "./registry.ts";
import { modelConfig } from "./savedModel.ts";
import { checkSettings, withAbsoluteData, withSetting } from "./settings.ts";

/** A run to start, or one to resume. */
export type RunPlan = (
  | {
      readonly action: "start";
      readonly experiment: string;
      readonly settings: BaseSettings;
      readonly folder: string;
      /** A run, checkpoint or model folder whose weights to start with. */
      readonly init?: string;
    }
  | {
      readonly action: "resume";
      readonly folder: string;
      readonly from?: string;
      /** More steps or minutes than the run was given. */
      readonly steps?: number;
      readonly minutes?: number;
      readonly processorMinutes?: number;
    }
) & {
  /** Steps after which the run pauses, to be resumed; an evaluation's. */
  readonly pauseAt?: number;
};

/** How a command trains. */
export interface RunContext extends SessionContext {
  readonly command: readonly string[];
  readonly packageVersion: string;
  readonly signal: AbortSignal;
  readonly callbacks?: LoopCallbacks;
  readonly onNote?: (text: string) => void;
  readonly onWarning?: (text: string) => void;
}

/** How a run ended. */
export interface RunEnd extends LoopEnd {
  /** Absolute path of the run folder. */
  readonly folder: string;
}

/** The settings of a plan: its own, or those of the run that it resumes. */
export async function plannedSettings(plan: RunPlan): Promise<BaseSettings> {
  if (plan.action === "start") {
    const own = kindOf(plan.settings);
    const absolute = withAbsoluteData(own, plan.settings);
    return own.fitToData ? own.fitToData(absolute) : absolute;
  }
  const { settings } = await readRun(plan.folder);
  const kind = kindNamed((settings.task as { name?: unknown } | undefined)?.name, plan.folder);
  const known = checkSettings(kind, settings, plan.folder);
  const given = {
    [kind.flags.steps]: plan.steps,
    "training.minutes": plan.minutes,
    "training.processorMinutes": plan.processorMinutes,
  };
  return Object.entries(given).reduce(
    (settings, [path, value]) => (value === undefined ? settings : withSetting(settings, path, value)),
    known,
  );
}

/** Trains, from the start or from a checkpoint; the run folder holds everything. */
export async function trainRun(plan: RunPlan, context: RunContext): Promise<RunEnd> {
  // Everything the user may have got wrong is found before a run folder is made or touched.
  const settings = await plannedSettings(plan);
  const kind = kindOf(settings);
  const init = plan.action === "start" && plan.init ? await loadInit(plan.init, kind) : undefined;
  checkDevice(context.device ?? "cpu");
  refuseTooLarge(kind, settings);
  const session = await kind.open(settings, context);
  try {
    for (const note of session.data.notes) context.onNote?.(note);
    if (init) session.init(init);
    const chain = init ? formatChain(await chainOf(init)) : undefined;
    const origin = { ...session.data, ...(init ? { initFrom: originOf(init), chain } : {}) };
    const { run, checkpoint } = await openRun(plan, kind, settings, context, origin);
    return await closing(run, async () => {
      const loop = await loopIn(run, session, kind, settings, checkpoint);
      // A run that is killed early must not resume from other weights.
      if (init) await loop.run.save(0, { best: false, progress: freshProgress, spent: nothingSpent });
      const { firstStep, progress, spent } = loop;
      const end = await train(
        { step: (step) => session.step(step), evaluate: (signal) => session.evaluate(signal, loop.beat) },
        loop.run,
        { ...loop.settings, ...(plan.pauseAt === undefined ? {} : { pauseAt: plan.pauseAt }) },
        { firstStep, progress, spent },
        context.signal,
        context.callbacks,
      );
      return { ...end, folder: run.folder };
    });
  } finally {
    await session.release();
  }
}

/** Refuses settings whose weights and state alone do not fit into the machine's memory. */
function refuseTooLarge(kind: Kind, settings: BaseSettings): void {
  const weights = kind.countWeights(settings);
  const state = kind.countState?.(settings) ?? 0;
  // In float32: a weight, its gradient and two moments of the optimizer; the state before and after a step.
  const bytes = 4 * (4 * weights + 2 * state);
  if (bytes <= totalmem()) return;
  const size = (of: number): string => `${(of / 2 ** 30).toFixed(1)} GiB`;
  throw new UsageError(
    `the settings need at least ${size(bytes)} of memory, and this machine has ${size(totalmem())}`,
    {
      weights: `${weights.toLocaleString("en-US")} (4 numbers each in training)`,
      ...(state > 0 ? { "recurrent state": `${state.toLocaleString("en-US")} numbers in a batch` } : {}),
      hint: "make the system smaller (system.…) or the batch",
    },
  );
}

/** A saved model of the same kind, whose weights a run is to start with. */
async function loadInit(path: string, { name }: Kind): Promise<LoadedModel> {
  const model = await loadModelFolder(path);
  const { kind } = parseModelConfig(model.config, `${model.path}/config.json`);
  if (kind === name) return model;
  throw new UsageError(`--init ${path}: a model of the kind ${kind}, not of ${name}`, {
    hint: "start with a model of the same kind of experiment",
  });
}

/** Whether training ended at a number that is not finite: found by the step, or only when it was to be saved. */
export function isDivergence(error: unknown): boolean {
  return error instanceof Error && (error.name === "DivergedError" || error.name === "NonFiniteError");
}

/** Does the work of a run and closes it with how that ended, whatever happens. */
async function closing(run: Run, work: () => Promise<RunEnd>): Promise<RunEnd> {
  let state: Exclude<RunState, "running"> = "failed";
  let note: string | undefined;
  try {
    const end = await work();
    const { reason, step } = end;
    state = reason === "interrupted" || reason === "paused" ? "interrupted" : "finished";
    if (reason === "paused") note = `paused after ${step} steps`;
    return end;
  } catch (error) {
    if (error instanceof Error) {
      if (isDivergence(error)) state = "diverged";
      note = error.message.split("\n")[0]!;
    }
    throw error;
  } finally {
    await run.close(state, note);
  }
}

/** A run folder and a session as the training loop sees them, restored if there is a checkpoint. */
async function loopIn(
  run: Run,
  session: Session,
  kind: Kind,
  settings: BaseSettings,
  checkpoint: LoadedCheckpoint | undefined,
) {
  const { logEvery, evalEvery, saveEvery, patience, minutes, processorMinutes } = settings.training;
  const summarise = (progress: LoopProgress, time: SpentTime): Promise<void> =>
    run.update({ summary: { ...run.record.summary, ...summaryOf(kind, progress), ...time } });
  const spent = spentOf(run.record);
  let progress = freshProgress;
  if (checkpoint) {
    const saved = stateOf(checkpoint);
    await session.restore({ ...checkpoint, state: saved.session });
    progress = saved.progress;
    // A run that was killed between its checkpoint and its record has the older summary.
    await summarise(progress, spent);
  }
  return {
    firstStep: checkpoint?.step ?? 0,
    progress,
    spent,
    beat: () => run.heartbeat(run.record.step),
    settings: {
      steps: kind.steps(settings),
      ...{ logEvery, evalEvery, saveEvery, patience, minutes, processorMinutes },
      best: { measure: kind.best, better: kind.measures[kind.best]!.better },
      speed: kind.speed.name,
      unit: kind.unit,
    },
    run: {
      log: (record: Parameters<Run["log"]>[0]) => run.log(record),
      heartbeat: (step: number) => run.heartbeat(step),
      async save(
        step: number,
        about: { readonly best: boolean; readonly progress: LoopProgress; readonly spent: SpentTime },
      ) {
        const { state, ...content } = session.snapshot();
        await run.save({
          step,
          best: about.best,
          config: modelConfig(kind, run.record.experiment, settings),
          ...content,
          state: { session: state, progress: about.progress },
        });
        await summarise(about.progress, about.spent);
      },
    },
  };
}

const stateSchema = z.strictObject({
  session: z.unknown(),
  progress: progressSchema,
});

/**
 * The time that a run has spent, which its record has: the files of a checkpoint have no times, so that those of equal runs
 * are equal. Records of earlier versions do not say.
 */
function spentOf({ summary: { seconds, processorSeconds } }: Pick<RunRecord, "summary">): SpentTime {
  const { success, data } = spentSchema.safeParse({ seconds, processorSeconds });
  return success ? data : nothingSpent;
}

/** What `trainer_state.json` holds. */
function stateOf({ path, state }: LoadedCheckpoint): z.infer<typeof stateSchema> {
  const parsed = stateSchema.safeParse(state);
  if (parsed.success) return parsed.data;
  throw new DataError(`${path}/trainer_state.json: not a training state this version understands`, {
    reason: z.prettifyError(parsed.error),
    hint: "resume with the version of fwm that saved it, or start a new run with --init",
  });
}

/** What lists show of a run: its measures at the best and at the last evaluation. */
function summaryOf(
  kind: Kind,
  { bestStep, bestValues, lastValues }: LoopProgress,
): Record<string, number | null> {
  const summary: Record<string, number | null> = { bestStep };
  for (const name of Object.keys(kind.measures)) {
    summary[`best.${name}`] = bestValues[name] ?? null;
    summary[`last.${name}`] = lastValues[name] ?? null;
  }
  return summary;
}

/** The run or model whose weights a run starts with: its name, and the steps it had made. */
function originOf({ path, kind, step }: LoadedModel): string {
  // The name of a checkpoint's folder says no more than its step does.
  const name = basename(kind === "model" ? resolve(path) : dirname(path));
  return `${name}${step === undefined ? "" : ` after ${step} steps`}`;
}

/** What a run's record says from its start, besides its settings. */
interface RunOrigin {
  readonly identity?: string;
  readonly notes: readonly string[];
  readonly initFrom?: string;
  /** The runs behind these weights, as a text. */
  readonly chain?: string | undefined;
}

/** Makes a run folder, or opens one to resume; `checkpoint` is what to resume from, undefined at the start. */
async function openRun(
  plan: RunPlan,
  kind: Kind,
  settings: BaseSettings,
  context: RunContext,
  { identity, notes, initFrom, chain }: RunOrigin,
): Promise<{ run: Run; checkpoint: LoadedCheckpoint | undefined }> {
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
  const data = notes.length > 0 ? { data: notes.join("; ") } : {};
  if (plan.action === "start") {
    const { experiment, folder } = plan;
    const summary = {
      ...(identity ? { identity } : {}),
      ...data,
      ...(initFrom ? { initFrom } : {}),
      ...(chain ? { chain } : {}),
    };
    const described = { experiment, settings: { ...settings }, seed: settings.training.seed, summary };
    return { run: await createRun(folder, { ...described, ...about }), checkpoint: undefined };
  }
  const { run, checkpoint, skipped, differences } = await resumeRun(plan.folder, about, {
    ...(plan.from ? { from: plan.from } : {}),
    firstStep: (saved, split) => saved.step + (split === "valid" && isEvalPending(saved) ? 0 : 1),
    check: (saved, record) => {
      checkResumable(
        plan.folder,
        { steps: kind.steps(settings), ...settings.training },
        identity,
        saved,
        record,
      );
    },
  });
  for (const { path, problem } of skipped) context.onWarning?.(`${path}: passed over: ${problem}`);
  for (const difference of differences) {
    context.onWarning?.(`not as when the run started, so it may not continue bit for bit: ${difference}`);
  }
  const extended = [plan.steps, plan.minutes, plan.processorMinutes].some((more) => more !== undefined);
  if (extended) await run.update({ settings: { ...settings } });
  return { run, checkpoint };
}

/** Refuses to resume where that would make something else of the run. */
function checkResumable(
  folder: string,
  limits: Pick<LoopSettings, "steps" | "minutes" | "processorMinutes">,
  identity: string | undefined,
  checkpoint: LoadedCheckpoint | undefined,
  { state, summary }: RunRecord,
): void {
  if (!checkpoint && summary.initFrom !== undefined) {
    throw new DataError(`${folder}: the run was stopped before the weights it starts with were saved`, {
      weights: String(summary.initFrom),
      hint: "start again, with --init and in another folder",
    });
  }
  if (summary.identity !== undefined && identity !== summary.identity) {
    throw new DataError(`${folder}: the data is not what the run started with`, {
      before: String(summary.identity),
      now: identity,
      hint: "let FWM_DATA name the data it was started with, or start a new run with --init",
    });
  }
  const made = checkpoint?.step ?? 0;
  // One that was killed after its last step is not finished yet: there may be an evaluation to make up for.
  if (made > limits.steps || (made === limits.steps && state === "finished")) {
    throw new UsageError(`${folder}: the run has made its ${made} steps`, { hint: "give more with --steps" });
  }
  if (checkpoint && state === "finished" && isBudgetSpent(spentOf({ summary }), limits)) {
    const budgets = [
      { name: "minutes", flag: "--minutes", minutes: limits.minutes },
      { name: "processor minutes", flag: "--processor-minutes", minutes: limits.processorMinutes },
    ].filter(({ minutes }) => minutes > 0);
    throw new UsageError(`${folder}: the run has had its minutes`, {
      ...Object.fromEntries(budgets.map(({ name, minutes }) => [name, minutes])),
      hint: `give more with ${budgets.map(({ flag }) => flag).join(" and ")}`,
    });
  }
}

/** Whether the run was stopped between a step and the evaluation after it. */
function isEvalPending({ state }: LoadedCheckpoint): boolean {
  return (state as { progress?: { evalPending?: boolean } }).progress?.evalPending === true;
}
