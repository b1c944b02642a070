/** Two language models word by word: where one of them knows better what comes next, as in the paper's figure. */
import type { SplitName } from "../../data/catbabi.ts";
import { UsageError } from "../../errors.ts";
import { buildModel } from "../../inference/model.ts";
import { nodeRuntime } from "../../runtime/node.ts";
import { SequenceEvaluator } from "../../train/sequenceEvaluator.ts";
import type { EvaluationContext, Kind, SavedModel } from "../kind.ts";
import { loadSaved } from "../savedModel.ts";
import { checkWords } from "../words.ts";
import { type Corpus, openCorpus, textHint } from "./corpus.ts";
import { text } from "./kind.ts";
import { firstTokens, readText } from "./score.ts";
import { evaluationSystem, type TextSettings } from "./settings.ts";

/** What is compared. */
export interface CompareOptions {
  readonly split: SplitName;
  /** Words of a passage. */
  readonly words: number;
  /** Where the passage begins: the number of its first word in the split, from 1 on. */
  readonly at?: number;
  /** Instead: how many passages to find where the second model is ahead most. */
  readonly search?: number;
  /** Folder of prepared text; by default where the models' settings or `FWM_DATA` say. */
  readonly data?: string;
}

/** A passage of the text, and how surprising each model found its words. */
export interface Passage {
  /** Number of the first word in the split; the split's very first word, 0, is given and never predicted. */
  readonly at: number;
  readonly words: readonly string[];
  /** Bits of each word: the first model's, and the second's. */
  readonly bits: readonly [readonly number[], readonly number[]];
  /** The first model's bits less the second's: above 0 where the second is ahead. */
  readonly difference: readonly number[];
}

/** A model that was compared. */
export interface ComparedModel {
  readonly model: string;
  readonly experiment: string;
  readonly step: number | null;
  /** Mean bits of a word over all that was read. */
  readonly bits: number;
}

/** Two models side by side. */
export interface LossComparison {
  readonly split: SplitName;
  /** Words of the split that were read. */
  readonly tokens: number;
  readonly models: readonly [ComparedModel, ComparedModel];
  readonly passages: readonly Passage[];
}

/**
 * Reads a split with two models, one column from its start, the state carried, and gives the passages asked for. Both
 * must have been trained on this text.
 */
export async function compareModels(
  paths: readonly [string, string],
  { split, words, at = 1, search, data }: CompareOptions,
  context: EvaluationContext,
): Promise<LossComparison> {
  const saved = [await loadText(paths[0]), await loadText(paths[1])] as const;
  const wanted = search === undefined ? at + words : Number.POSITIVE_INFINITY;
  const first = await readModel(saved[0], { split, wanted, data, pass: 0 }, context);
  const second = await readModel(saved[1], { split, wanted, data, pass: 1 }, context);
  const differs = first.words.findIndex((word, i) => word !== second.words[i]);
  if (differs >= 0 || first.words.length !== second.words.length) {
    throw new UsageError("the two models read different texts", {
      [paths[0]]: `${first.words.length} words${differs >= 0 ? `, word ${differs} is ${first.words[differs]}` : ""}`,
      [paths[1]]: `${second.words.length} words${differs >= 0 ? `, word ${differs} is ${second.words[differs]}` : ""}`,
    });
  }
  const length = first.words.length;
  if (search === undefined && at >= length) {
    throw new UsageError(`--at ${at}: the ${split} split has words 1 to ${length - 1} to predict`);
  }
  const difference = first.bits.map((bits, i) => bits - second.bits[i]!);
  const starts = search === undefined ? [at] : bestPassages(difference, words, search);
  const meanOf = (bits: Float64Array): number => bits.subarray(1).reduce((a, b) => a + b, 0) / (length - 1);
  return {
    split,
    tokens: length - 1,
    models: [
      { ...aboutOf(saved[0]), bits: meanOf(first.bits) },
      { ...aboutOf(saved[1]), bits: meanOf(second.bits) },
    ],
    passages: starts.map((start) => {
      const part = (values: Float64Array): number[] => Array.from(values.subarray(start, start + words));
      return {
        at: start,
        words: first.words.slice(start, start + words),
        bits: [part(first.bits), part(second.bits)],
        difference: part(difference),
      };
    }),
  };
}

/**
 * Where passages of a length begin that have the highest sums, best first; no two share a word. Word 0 has no value.
 */
export function bestPassages(values: Float64Array, words: number, most: number): number[] {
  const last = Math.max(1, values.length - words);
  const sums = new Float64Array(last + 1).fill(Number.NEGATIVE_INFINITY);
  let sum = 0;
  for (let i = 1; i < values.length; i++) {
    sum += values[i]!;
    if (i - words >= 1) sum -= values[i - words]!;
    const start = i - words + 1;
    if (start >= 1) sums[start] = sum;
  }
  // A text that is shorter than a passage is one.
  if (values.length <= words) return values.length > 1 ? [1] : [];
  const order = Array.from(sums.keys())
    .slice(1)
    .sort((a, b) => sums[b]! - sums[a]! || a - b);
  const taken = new Uint8Array(values.length);
  const found: number[] = [];
  for (const start of order) {
    if (found.length === most) break;
    if (taken[start] || taken[start + words - 1]) continue;
    taken.fill(1, start, start + words);
    found.push(start);
  }
  return found;
}

async function loadText(path: string): Promise<SavedModel<TextSettings>> {
  const { kind, ...saved } = await loadSaved(path);
  if (kind === (text as unknown as Kind)) return saved as SavedModel<TextSettings>;
  throw new UsageError(`${path}: a model of the kind ${kind.name}, not of text`, {
    hint: `use it with: ${kind.use} ${path}; runs of any kind stand side by side in fwm report`,
  });
}

function aboutOf({ folder, experiment }: SavedModel<TextSettings>): Omit<ComparedModel, "bits"> {
  return { model: folder.path, experiment, step: folder.step ?? null };
}

/** The words of a split, or of its beginning, and the bits a model needs for each; 0 for the very first. */
async function readModel(
  { folder, settings }: SavedModel<TextSettings>,
  { split, wanted, data, pass }: { split: SplitName; wanted: number; data: string | undefined; pass: 0 | 1 },
  { env, threads, onProgress }: EvaluationContext,
): Promise<{ words: string[]; bits: Float64Array }> {
  const { system, weights } = buildModel(
    evaluationSystem(settings),
    folder.model,
    `${folder.path}/model.safetensors`,
  );
  const task = { ...settings.task, ...(data ? { data } : {}) };
  const corpus: Corpus = await openCorpus({ ...settings, task }, env);
  const evaluator = new SequenceEvaluator(system, {
    runtime: nodeRuntime,
    ...(threads ? { threads } : {}),
  });
  try {
    checkWords(folder, corpus.words, textHint);
    evaluator.load(weights);
    const stream = firstTokens(corpus.splits[split], wanted);
    const ids = new Int32Array(stream.length);
    stream.read(0, ids);
    const bits = new Float64Array(stream.length);
    let at = 1;
    const { evalWindow: window } = settings.training;
    for await (const { cut, losses } of readText(evaluator, stream, { batch: 1, window })) {
      for (let t = 0; t < cut.length; t++) bits[at++] = losses[t]! / Math.LN2;
      onProgress?.(pass * stream.length + at, 2 * stream.length, "words");
    }
    return { words: Array.from(ids, (id) => corpus.words[id]!), bits };
  } finally {
    corpus.close();
    await evaluator.release();
  }
}
