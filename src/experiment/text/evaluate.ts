/**
 * Evaluates a saved model on text as published: one column, the state carried from the start of the split to its end,
 * every token with the same weight; the temperature of the softmax may be tuned on the validation split.
 */
import type { SplitName } from "../../data/catbabi.ts";
import { columnRows } from "../../data/text/columns.ts";
import { buildModel } from "../../inference/model.ts";
import { nodeRuntime } from "../../runtime/node.ts";
import { SequenceEvaluator } from "../../train/sequenceEvaluator.ts";
import type { EvaluationContext, SavedModel } from "../kind.ts";
import { checkWords, openCorpus } from "./corpus.ts";
import { type TextEvaluation, type TextOptions, usualBatch } from "./options.ts";
import { type Score, scoreText } from "./score.ts";
import { evaluationSystem, type TextSettings } from "./settings.ts";

/** Evaluates a model on a split, or on all of them. */
export async function evaluateText(
  { folder, experiment, settings }: SavedModel<TextSettings>,
  options: TextOptions,
  { env, threads, onProgress }: EvaluationContext,
): Promise<TextEvaluation> {
  const { split = "valid", batch = usualBatch, window = settings.training.evalWindow } = options;
  const task = { ...settings.task, ...(options.data ? { data: options.data } : {}) };
  const { system, weights } = buildModel(
    evaluationSystem(settings),
    folder.model,
    `${folder.path}/model.safetensors`,
  );
  const corpus = await openCorpus({ ...settings, task }, env);
  const evaluator = new SequenceEvaluator(system, { runtime: nodeRuntime, ...(threads ? { threads } : {}) });
  const names: readonly SplitName[] = split === "all" ? ["train", "valid", "test"] : [split];
  const score = async (name: SplitName, temperature: number, onWindow: () => void): Promise<Score> => {
    const found = await scoreText(evaluator, corpus.splits[name], {
      batch,
      window,
      ...(temperature === 1 ? {} : { temperature }),
      onWindow,
    });
    if (!found) throw new Error("internal: nothing could have cut the evaluation short");
    return found;
  };
  try {
    checkWords(folder, corpus);
    const windowsOf = (name: SplitName): number =>
      Math.ceil((columnRows(corpus.splits[name], batch) - 1) / window);
    const total = names.reduce((sum, name) => sum + windowsOf(name), 0);
    evaluator.load(weights);
    const tuning =
      options.temperature === "tune"
        ? await tuneTemperature(async (temperature) => {
            const onWindow = () => onProgress?.(0, total, `windows; tuning at temperature ${temperature}`);
            return (await score("valid", temperature, onWindow)).loss;
          })
        : null;
    const temperature =
      options.temperature === "tune" ? bestTemperature(tuning!) : (options.temperature ?? 1);
    const splits: Partial<Record<SplitName, Score>> = {};
    let done = 0;
    for (const name of names) {
      splits[name] = await score(name, temperature, () => onProgress?.(++done, total, "windows"));
    }
    return {
      ...splits[names.at(-1)!]!,
      model: folder.path,
      experiment,
      step: folder.step ?? null,
      split,
      splits,
      dataset: task.dataset,
      batch,
      window,
      temperature,
      tuning,
      isOfficial: corpus.isOfficial,
      notes: corpus.notes,
    };
  } finally {
    corpus.close();
    await evaluator.release();
  }
}

/** Temperatures are tried from here on, in hundredths, up to a limit that no sensible model reaches. */
const [coldest, warmest] = [80, 300];

/** The released search: 0.80, 0.81, … up to the first temperature whose validation loss is higher than the one before. */
export async function tuneTemperature(
  lossAt: (temperature: number) => Promise<number>,
): Promise<{ temperature: number; loss: number }[]> {
  const tried: { temperature: number; loss: number }[] = [];
  for (let hundredths = coldest; hundredths <= warmest; hundredths++) {
    const temperature = hundredths / 100;
    const before = tried.at(-1)?.loss ?? Number.POSITIVE_INFINITY;
    const loss = await lossAt(temperature);
    tried.push({ temperature, loss });
    if (loss > before) break;
  }
  return tried;
}

/** The temperature with the lowest loss. */
export function bestTemperature(tried: readonly { temperature: number; loss: number }[]): number {
  return tried.reduce((best, one) => (one.loss < best.loss ? one : best)).temperature;
}
