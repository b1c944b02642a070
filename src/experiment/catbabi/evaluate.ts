/**
 * Evaluates a saved model on a split by the paper's protocol: the whole split once, in its fixed order, with the
 * recurrent state carried from window to window; accuracy and perplexity at the questions.
 */
import { epochBatches } from "../../data/batches.ts";
import { DataError, UsageError } from "../../errors.ts";
import { buildModel } from "../../inference/model.ts";
import type { SequenceModel } from "../../model/sequence.ts";
import { nodeRuntime } from "../../runtime/node.ts";
import { loadCheckpoint } from "../../store/checkpoint.ts";
import type { LoadedModel } from "../../store/modelFolder.ts";
import { SequenceEvaluator } from "../../train/sequenceEvaluator.ts";
import { trainPrefix } from "../../train/sequenceTrainer.ts";
import type { EvaluationContext, SavedModel } from "../kind.ts";
import { checkWords } from "../words.ts";
import { calibrationOf, type JudgedAnswer } from "./calibration.ts";
import { type CatbabiEvaluation, type CatbabiOptions, usualBatch } from "./options.ts";
import { scoreStream } from "./score.ts";
import type { CatbabiSettings } from "./settings.ts";
import { openStories, storiesHint } from "./stories.ts";

/** Evaluates a model on a split. */
export async function evaluateCatbabi(
  { folder, experiment, settings }: SavedModel<CatbabiSettings>,
  options: CatbabiOptions,
  { env, threads, onProgress }: EvaluationContext,
): Promise<CatbabiEvaluation> {
  const { split = "valid", batch = usualBatch[split] } = options;
  const { task, training } = settings;
  const { system, weights } = buildModel(settings.system, folder.model, `${folder.path}/model.safetensors`);
  const state = options.state ?? (folder.kind === "model" ? "zero" : "train");
  const row = state === "train" ? await trainedState(folder, system) : new Map<string, Float32Array>();
  const stories = await openStories({ ...task, ...(options.data ? { data: options.data } : {}) }, env);
  // Models of catbAbI all have the same words.
  const isOwn = stories.ownTasks !== undefined;
  if (isOwn || settings.system.vocabulary !== stories.vocabulary.size) {
    checkWords(folder, stories.vocabulary.words, storiesHint);
  }
  const { window, seed } = training;
  const source = stories.heldOut(split, seed);
  let total = 0;
  if (onProgress) for (const _ of epochBatches(source, { batch, window })) total++;

  const evaluator = new SequenceEvaluator(system, { runtime: nodeRuntime, ...(threads ? { threads } : {}) });
  try {
    evaluator.load(weights);
    const answers: JudgedAnswer[] = [];
    const score = await scoreStream(evaluator, source, {
      mode: task.mode,
      batch,
      window,
      row,
      onWindow: (done) => onProgress?.(done, total, "windows"),
      onAnswer: (answer) => answers.push(answer),
    });
    if (!score) throw new Error("internal: nothing could have cut the evaluation short");
    return {
      ...score,
      model: folder.path,
      experiment,
      mode: task.mode,
      step: folder.step ?? null,
      split,
      batch,
      window,
      calibration: calibrationOf(answers) ?? null,
      state,
      generated: stories.files === undefined,
      ownTasks: stories.ownTasks ?? null,
      notes: stories.notes,
    };
  } finally {
    await evaluator.release();
  }
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
