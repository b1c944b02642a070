/**
 * Evaluates a saved model on a split by the paper's protocol: the whole split once, in its fixed order, with the
 * recurrent state carried from window to window; accuracy and perplexity at the questions.
 */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { experiments } from "../../experiments/index.ts";
import { epochBatches } from "../data/batches.ts";
import { DataError, UsageError } from "../errors.ts";
import { scoreStream } from "../experiment/catbabi.ts";
import { type Experiment, type Settings, settingsSchema } from "../experiment/settings.ts";
import { openStories } from "../experiment/stories.ts";
import type { SequenceModel } from "../model/sequence.ts";
import { nodeRuntime } from "../runtime/node.ts";
import { loadCheckpoint } from "../store/checkpoint.ts";
import { type LoadedModel, loadModelFolder } from "../store/modelFolder.ts";
import { readRun, runFile } from "../store/runRecord.ts";
import type { Score } from "../train/score.ts";
import { SequenceEvaluator, trainPrefix } from "../train/sequenceTrainer.ts";
import { buildModel, type ModelConfig, parseModelConfig } from "./model.ts";

/** A split that is evaluated on. */
export type EvaluationSplit = "valid" | "test";

/** Where the stream begins: zeros, or the state that row 0 of the training batch was in. */
export type StartState = "zero" | "train";

/** Rows per split unless told: the paper tests with one and validates with 128. */
const usualBatch: Readonly<Record<EvaluationSplit, number>> = { valid: 128, test: 1 };

/** How to evaluate. */
export interface EvaluateOptions {
  readonly split: EvaluationSplit;
  /** Rows the split is dealt out to; 1 for test and 128 for valid unless told. */
  readonly batch?: number;
  /** `train` where the folder has the training state (the paper's protocol), else `zero` (the released code's). */
  readonly state?: StartState;
  /** Folder of prepared data; by default where the run's settings or `FWM_DATA` say. */
  readonly data?: string;
  readonly threads?: number;
  /** Of a run: its best checkpoint (else its last), or the last. */
  readonly which?: "best" | "last";
  /** The environment: `FWM_DATA`, `HOME` and the like; the process's unless told. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Called after every window, with how many are done and how many there are. */
  readonly onWindow?: (done: number, total: number) => void;
}

/** A score, and what it is a score of. */
export interface Evaluation extends Score {
  /** Folder the weights came from. */
  readonly model: string;
  readonly experiment: string;
  readonly mode: ModelConfig["mode"];
  /** Updates made when the model was saved, where known. */
  readonly step: number | null;
  readonly split: EvaluationSplit;
  readonly batch: number;
  readonly window: number;
  readonly state: StartState;
  /** Whether the stories were generated, not bAbI's own. */
  readonly generated: boolean;
  /** What has to be said of the data: missing, filled or generated tasks. */
  readonly remarks: readonly string[];
}

/** Evaluates a run, checkpoint or model folder, or what was loaded from one, on a split. */
export async function evaluateModel(
  from: string | LoadedModel,
  options: EvaluateOptions,
): Promise<Evaluation> {
  const { split, batch = usualBatch[split], env = process.env, onWindow } = options;
  const folder =
    typeof from === "string"
      ? await loadModelFolder(from, options.which ? { which: options.which } : {})
      : from;
  const config = parseModelConfig(folder.config, `${folder.path}/config.json`);
  const { system, weights } = buildModel(config, folder.model, `${folder.path}/model.safetensors`);
  const settings = await settingsOf(folder, config);
  const state = options.state ?? (folder.kind === "model" ? "zero" : "train");
  const row = state === "train" ? await trainedState(folder, system) : new Map<string, Float32Array>();

  const task = { ...settings.task, ...(options.data ? { data: options.data } : {}) };
  const stories = await openStories(task, env);
  const { window, seed } = settings.training;
  const source = stories.held(split, seed);
  let total = 0;
  if (onWindow) for (const _ of epochBatches(source, { batch, window })) total++;

  const { threads } = options;
  const evaluator = new SequenceEvaluator(system, config.mode, {
    runtime: nodeRuntime,
    ...(threads ? { threads } : {}),
  });
  try {
    evaluator.load(weights);
    const score = await scoreStream(evaluator, source, {
      batch,
      window,
      row,
      onWindow: (done) => onWindow?.(done, total),
    });
    if (!score) throw new Error("internal: nothing could have cut the evaluation short");
    return {
      ...score,
      model: folder.path,
      experiment: config.experiment,
      mode: config.mode,
      step: folder.step ?? null,
      split,
      batch,
      window,
      state,
      generated: stories.files === undefined,
      remarks: stories.remarks,
    };
  } finally {
    await evaluator.release();
  }
}

/** The settings a model was trained under: those of its run, or of the experiment its config names. */
async function settingsOf(folder: LoadedModel, config: ModelConfig): Promise<Settings> {
  const run = dirname(folder.path);
  const isRun = folder.kind !== "model" && existsSync(join(run, runFile));
  const record = isRun ? await readRun(run) : undefined;
  if (record) {
    const parsed = settingsSchema.safeParse(record.settings);
    if (parsed.success) return parsed.data;
    throw new DataError(`${run}: the run's settings are not those of this version`, {
      hint: "evaluate it with the version that trained it",
    });
  }
  const known = (experiments as Readonly<Record<string, Experiment>>)[config.experiment];
  if (known) return known.settings;
  throw new DataError(`${folder.path}/config.json: there is no experiment ${config.experiment}`, {
    hint: "evaluate the run folder, which has its settings",
  });
}

/** Row 0 of the recurrent state that training carried, by name. */
async function trainedState(
  folder: LoadedModel,
  system: SequenceModel,
): Promise<ReadonlyMap<string, Float32Array>> {
  const hint = "a model folder has none; use --state zero, or give the run or a checkpoint of it";
  if (folder.kind === "model") {
    throw new UsageError(`${folder.path}: the training state is not here`, { hint });
  }
  const { optimizer } = await loadCheckpoint(folder.path);
  return new Map(
    system.recurrent.map(({ name, shape }) => {
      const saved = optimizer[trainPrefix + name];
      const size = shape(1).reduce((a, b) => a * b, 1);
      if (saved?.dtype !== "f32" || saved.data.length < size || saved.data.length % size !== 0) {
        throw new DataError(
          `${folder.path}/optimizer.safetensors: no state ${trainPrefix + name} that fits`,
          {
            hint,
          },
        );
      }
      return [name, saved.data.slice(0, size)];
    }),
  );
}
