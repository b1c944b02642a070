/**
 * Evaluates a saved model on text as published: one column, the state carried from the start of the split to its end,
 * every token with the same weight; the temperature of the softmax may be tuned on the validation split. Besides, the
 * same with a neural cache and with dynamic evaluation, which are tuned on the validation split as well.
 */
import type { SplitName } from "../../data/catbabi.ts";
import { columnRows } from "../../data/text/columns.ts";
import type { TokenStream } from "../../data/text/prepared.ts";
import { UsageError } from "../../errors.ts";
import { buildModel } from "../../inference/model.ts";
import { nodeRuntime } from "../../runtime/node.ts";
import { SequenceEvaluator } from "../../train/sequenceEvaluator.ts";
import type { EvaluationContext, SavedModel } from "../kind.ts";
import { checkWords } from "../words.ts";
import { type CacheSettings, cacheCandidates, scoreCaches } from "./cache.ts";
import { openCorpus, textHint } from "./corpus.ts";
import {
  DynamicEvaluator,
  type DynamicSettings,
  dynamicTuningTokens,
  scoreDynamic,
  statisticsBatches,
  tuneDynamic,
} from "./dynamic.ts";
import {
  type SplitScores,
  type TextEvaluation,
  type TextOptions,
  type Tuned,
  usualBatch,
  usualSegment,
} from "./options.ts";
import { firstTokens, type Score, scoreText } from "./score.ts";
import { evaluationSystem, type TextSettings } from "./settings.ts";

/** Evaluates a model on a split, or on all of them. */
export async function evaluateText(
  { folder, experiment, settings }: SavedModel<TextSettings>,
  options: TextOptions,
  { env, threads, onProgress }: EvaluationContext,
): Promise<TextEvaluation> {
  checkOptions(options);
  const { split = "valid", batch = usualBatch, window = settings.training.evalWindow } = options;
  const { segment = usualSegment } = options;
  const task = { ...settings.task, ...(options.data ? { data: options.data } : {}) };
  const { system, weights } = buildModel(
    evaluationSystem(settings),
    folder.model,
    `${folder.path}/model.safetensors`,
  );
  const corpus = await openCorpus({ ...settings, task }, env);
  const compile = { runtime: nodeRuntime, ...(threads ? { threads } : {}) };
  const evaluator = new SequenceEvaluator(system, compile);
  const following = options.dynamic ? new DynamicEvaluator(system, weights, compile) : undefined;
  const names: readonly SplitName[] = split === "all" ? ["train", "valid", "test"] : [split];
  const { valid } = corpus.splits;

  const score = async (stream: TokenStream, temperature: number, onWindow: () => void): Promise<Score> => {
    const softened = temperature === 1 ? {} : { temperature };
    const found = await scoreText(evaluator, stream, { batch, window, ...softened, onWindow });
    if (!found) throw new Error("internal: nothing could have cut the evaluation short");
    return found;
  };
  const withCaches = (
    stream: TokenStream,
    candidates: readonly CacheSettings[],
    temperature: number,
    onWindow: () => void,
  ): ReturnType<typeof scoreCaches> => {
    const softened = temperature === 1 ? {} : { temperature };
    return scoreCaches(evaluator, stream, candidates, { batch, window, ...softened, compile, onWindow });
  };

  try {
    checkWords(folder, corpus.words, textHint);
    const windowsOf = (name: SplitName, rows: number, tokens: number): number =>
      Math.ceil((columnRows(corpus.splits[name], rows) - 1) / tokens);
    const passes = options.temperature === undefined || options.temperature === 1 ? 1 : 2;
    const total = names.reduce(
      (sum, name) =>
        sum + passes * windowsOf(name, batch, window) + (following ? windowsOf(name, 1, segment) : 0),
      0,
    );
    const say = (what: string) => () => onProgress?.(0, total, `windows; ${what}`);
    evaluator.load(weights);

    const tuning =
      options.temperature === "tune"
        ? await tuneTemperature(
            async (temperature) =>
              (await score(valid, temperature, say(`tuning at temperature ${temperature}`))).loss,
          )
        : null;
    const temperature =
      options.temperature === "tune" ? bestTemperature(tuning!) : (options.temperature ?? 1);

    const cache = await choose<CacheSettings>(options.cache, ["lambda", "theta", "window"], async () => {
      const candidates = cacheCandidates();
      const { cached } = await withCaches(valid, candidates, temperature, say("tuning the cache"));
      const tried = candidates.map((one, i) => ({ ...one, loss: cached[i]!.loss }));
      const { loss: _, ...best } = tried.reduce((a, b) => (b.loss < a.loss ? b : a));
      return { best, tried };
    });

    await following?.measure(
      statisticsBatches(corpus.splits.train, segment),
      say("measuring gradients of the training split"),
    );
    const adapt = async (stream: TokenStream, chosen: DynamicSettings, onWindow: () => void) =>
      scoreDynamic(following!, stream, { segment, settings: chosen, onWindow });
    const dynamic = await choose<DynamicSettings>(options.dynamic, ["rate", "decay"], () =>
      tuneDynamic(segment, async (chosen) => {
        const { rate, decay } = chosen;
        const told = say(`tuning dynamic evaluation at rate ${rate}, decay ${decay}`);
        return (await adapt(firstTokens(valid, dynamicTuningTokens), chosen, told)).loss;
      }),
    );

    const splits: Partial<Record<SplitName, SplitScores>> = {};
    let done = 0;
    for (const name of names) {
      const stream = corpus.splits[name];
      const onWindow = (): void => onProgress?.(++done, total, "windows");
      const unsoftened = temperature === 1 ? undefined : await score(stream, 1, onWindow);
      const { plain: main, cached } = cache
        ? await withCaches(stream, [cache], temperature, onWindow)
        : { plain: await score(stream, temperature, onWindow), cached: [] };
      const adapted = dynamic && (await adapt(stream, dynamic, onWindow));
      if (adapted && !Number.isFinite(adapted.loss)) throw diverged(name, dynamic);
      splits[name] = {
        ...main,
        ...(unsoftened ? { plain: unsoftened } : {}),
        ...(cached[0] ? { cache: cached[0] } : {}),
        ...(adapted ? { dynamic: adapted } : {}),
      };
    }
    const { plain: _, cache: __, dynamic: ___, ...main } = splits[names.at(-1)!]!;
    return {
      ...main,
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
      cache,
      dynamic: dynamic && { ...dynamic, segment },
      isOfficial: corpus.isOfficial,
      notes: corpus.notes,
    };
  } finally {
    corpus.close();
    await evaluator.release();
    await following?.release();
  }
}

/** Refuses options that do not go together. */
function checkOptions({ batch = usualBatch, dynamic, segment }: TextOptions): void {
  if (segment !== undefined && dynamic === undefined) {
    throw new UsageError("--segment: only with --dynamic");
  }
  if (dynamic !== undefined && batch !== 1) {
    throw new UsageError(`--dynamic: reads one column, not ${batch}`, {
      hint: "with several, a later part of the text would change the weights that read an earlier one",
    });
  }
}

/** Settings as an option gives them, in the order of its names, or those that a search finds; null without the option. */
async function choose<S extends object>(
  option: string | undefined,
  names: readonly (keyof S)[],
  search: () => Promise<{ best: S; tried: (S & { loss: number })[] }>,
): Promise<Tuned<S> | null> {
  if (option === undefined) return null;
  if (option === "tune") {
    const { best, tried } = await search();
    return { ...best, tuning: tried };
  }
  const numbers = option.split(",").map(Number);
  if (numbers.length !== names.length || !numbers.every((number) => number > 0 && Number.isFinite(number))) {
    throw new UsageError(`expected ${names.join(",")} as numbers above 0, or tune, got ${option}`);
  }
  const given = Object.fromEntries(names.map((name, i) => [name, numbers[i]!])) as S;
  return { ...given, tuning: null };
}

function diverged(name: SplitName, { rate, decay }: DynamicSettings): UsageError {
  return new UsageError(`--dynamic ${rate},${decay}: the weights diverged on ${name}`, {
    hint: "choose a lower rate, or --dynamic tune",
  });
}

/** Temperatures are searched between these, in hundredths; the upper one no sensible model reaches. */
const [coldest, warmest] = [80, 300];

/**
 * Finds what the released search finds: of 0.80, 0.81, … the last before the validation loss rises. That one is the minimum,
 * because the loss is convex in 1 / temperature (a log-sum-exp of affine functions of it). So strides of 8, 4, 2 and 1 hundredths
 * downhill from 1 come to it in some nine passes over the split instead of thirty.
 */
export async function tuneTemperature(
  lossAt: (temperature: number) => Promise<number>,
): Promise<{ temperature: number; loss: number }[]> {
  const tried = new Map<number, number>();
  const at = async (hundredths: number): Promise<number> => {
    if (hundredths < coldest || hundredths > warmest) return Number.POSITIVE_INFINITY;
    const loss = tried.get(hundredths) ?? (await lossAt(hundredths / 100));
    tried.set(hundredths, loss);
    return loss;
  };
  let best = 100;
  for (let stride = 8; stride >= 1; stride /= 2) {
    for (;;) {
      const here = await at(best);
      if ((await at(best + stride)) < here) best += stride;
      else if ((await at(best - stride)) < here) best -= stride;
      else break;
    }
  }
  return [...tried]
    .sort(([a], [b]) => a - b)
    .map(([hundredths, loss]) => ({ temperature: hundredths / 100, loss }));
}

/** The temperature with the lowest loss. */
export function bestTemperature(tried: readonly { temperature: number; loss: number }[]): number {
  return tried.reduce((best, one) => (one.loss < best.loss ? one : best)).temperature;
}
