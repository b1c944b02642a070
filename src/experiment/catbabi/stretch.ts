/**
 * The stretch suite: accuracy beyond what bAbI asks, with the model's confidence and how far it is off. Each point of an axis
 * is a stream of its own that starts from zeros, dealt out to rows and cut into windows as every stream is.
 */
import { type SuiteAxis, stretchAxes } from "../../babi/generator/suite.ts";
import { encodeStory, type StorySource } from "../../data/streams.ts";
import { catbabiVocabulary } from "../../data/vocabulary.ts";
import { UsageError } from "../../errors.ts";
import { buildModel } from "../../inference/model.ts";
import { nodeRuntime } from "../../runtime/node.ts";
import { SequenceEvaluator } from "../../train/sequenceEvaluator.ts";
import type { EvaluationContext, SavedModel } from "../kind.ts";
import { checkWords } from "../words.ts";
import { type JudgedAnswer, judged } from "./calibration.ts";
import type { CatbabiOptions, StretchEvaluation, StretchPoint } from "./options.ts";
import { scoreStream } from "./score.ts";
import type { CatbabiSettings } from "./settings.ts";

/** Rows by default. */
const usualRows = 50;

/** Evaluates a model on the suite, or on some of its axes. */
export async function evaluateStretch(
  { folder, experiment, settings }: SavedModel<CatbabiSettings>,
  options: CatbabiOptions,
  { threads, onProgress }: EvaluationContext,
  axes: readonly SuiteAxis[] = stretchAxes,
): Promise<StretchEvaluation> {
  for (const name of ["split", "state", "data"] as const) {
    if (options[name] !== undefined) {
      throw new UsageError(`--${name}: not with --suite, whose stories and start are fixed`);
    }
  }
  // Models of catbAbI all have the same words, in the same number.
  if (settings.system.vocabulary !== catbabiVocabulary.size) {
    checkWords(folder, catbabiVocabulary.words, "the suite is for models of bAbI's stories");
  }
  const { batch = usualRows } = options;
  const { window } = settings.training;
  const { system, weights } = buildModel(settings.system, folder.model, `${folder.path}/model.safetensors`);
  const evaluator = new SequenceEvaluator(system, { runtime: nodeRuntime, ...(threads ? { threads } : {}) });
  const points: StretchPoint[] = [];
  const all: JudgedAnswer[] = [];
  const total = axes.reduce((sum, axis) => sum + axis.points.length, 0);
  try {
    evaluator.load(weights);
    for (const axis of axes) {
      for (const at of axis.points) {
        const answers: JudgedAnswer[] = [];
        await scoreStream(evaluator, pointSource(axis, at), {
          mode: settings.task.mode,
          batch: Math.min(batch, axis.stories),
          window,
          onAnswer: (answer) => answers.push(answer),
        });
        points.push({ axis: axis.name, at, ...judged(answers) });
        for (const answer of answers) all.push(answer);
        onProgress?.(points.length, total, "points");
      }
    }
  } finally {
    await evaluator.release();
  }
  return {
    suite: "stretch",
    version: 1,
    model: folder.path,
    experiment,
    mode: settings.task.mode,
    system: settings.system.name,
    step: folder.step ?? null,
    split: "stretch",
    batch,
    window,
    ...judged(all),
    axes: axes.map(({ name, label }) => ({ name, label })),
    points,
  };
}

/** The stories of a point, in their order. */
function pointSource(axis: SuiteAxis, at: number): StorySource {
  return {
    storiesPerEpoch: axis.stories,
    story: (_epoch, position) => encodeStory(axis.story(at, position)),
  };
}
