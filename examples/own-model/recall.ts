/**
 * A task of one's own as a kind of experiment: pairs of a key and a value, then the keys again in another order, after
 * each of which its value is to be predicted.
 *
 *   a 3 d 1 b 5   d → 1   b → 5   a → 3
 */
import {
  type BaseEvaluation,
  baseRate,
  defineKind,
  fittingWeights,
  hostTensors,
  loopFields,
  optimizerSchema,
  optimizersOf,
  SequenceEvaluator,
  SequenceTrainer,
  type Session,
  type SessionContext,
  savedTensors,
  type TokenBatch,
} from "fwm";
import { loadNodeRuntime, random } from "fwm/engine";
import { buildSystem, countWeights, systemSchema } from "fwm/model";
import { z } from "zod";

const positive = z.int().min(1);

const schema = z.strictObject({
  task: z.strictObject({ name: z.literal("recall"), symbols: positive, pairs: positive }),
  // Every registered system, those of the package and one's own.
  system: systemSchema,
  training: z.strictObject({ ...loopFields, steps: positive, batch: positive, optimizer: optimizerSchema }),
});

/** Settings of an experiment of this kind. */
export type RecallSettings = z.infer<typeof schema>;

/** Keys and values. */
export function vocabularyOf({ symbols }: Pick<RecallSettings["task"], "symbols">): number {
  return 2 * symbols;
}

/** Batch `index` of a split: a function of the seed and the index alone, so that a resumed run sees the same. */
function batchOf({ task, training }: RecallSettings, split: string, index: number): TokenBatch {
  const { symbols, pairs } = task;
  const { batch, seed } = training;
  const window = 4 * pairs;
  const tokens = new Int32Array(window * batch); // [T, B]
  const positions = new Int32Array(batch * pairs); // [B, Q], each t · B + b
  const targets = new Int32Array(batch * pairs); // [B, Q]
  for (let row = 0; row < batch; row++) {
    const drawn = random.keyOf(seed, "recall", split, index, row);
    const keys = random.permutation(random.keyOf(seed, "keys", split, index, row), symbols);
    const values = Array.from({ length: pairs }, (_, i) => symbols + random.integer(drawn, i, symbols));
    const told = values.flatMap((value, i) => [keys[i]!, value]);
    const asked = random.permutation(random.keyOf(seed, "asked", split, index, row), pairs);
    [...told, ...[...asked].flatMap((i) => [keys[i]!, values[i]!])].forEach((word, t) => {
      tokens[t * batch + row] = word;
    });
    asked.forEach((i, q) => {
      positions[row * pairs + q] = (2 * pairs + 2 * q) * batch + row;
      targets[row * pairs + q] = values[i]!;
    });
  }
  return { batch, window, tokens, positions, targets, lossMask: new Float32Array(targets.length).fill(1) };
}

/** Mean loss and accuracy over some batches of a split. */
async function score(evaluator: SequenceEvaluator, settings: RecallSettings, split: string, batches = 8) {
  evaluator.start(settings.training.batch);
  let [loss, right, asked] = [0, 0, 0];
  for (let i = 0; i < batches; i++) {
    const batch = batchOf(settings, split, i);
    const window = await evaluator.run(batch);
    loss += window.loss / batches;
    right += window.predicted.filter((word, i) => word === batch.targets[i]).length;
    asked += batch.targets.length;
  }
  return { loss, accuracy: right / asked };
}

async function open(settings: RecallSettings, { threads }: SessionContext): Promise<Session> {
  const { optimizer, seed } = settings.training;
  const options = { runtime: await loadNodeRuntime(), ...(threads ? { threads } : {}) };
  const model = buildSystem(settings.system);
  const how = { optimizers: optimizersOf(optimizer), clip: 1, emaDecay: 0, seed };
  const trainer = new SequenceTrainer(model, how, options);
  const evaluator = new SequenceEvaluator(model, options);
  return {
    data: { notes: [] },
    async step(step) {
      const batch = batchOf(settings, "train", step);
      const learningRate = baseRate(optimizer, false);
      const { loss, gradNorm, nonFinite } = await trainer.step(batch, { learningRate, key: { seed, step } });
      return {
        means: { loss, gradNorm },
        latest: { learningRate },
        work: batch.batch,
        ...(nonFinite === undefined ? {} : { nonFinite }),
      };
    },
    async evaluate() {
      evaluator.load(trainer.evaluationWeights());
      return score(evaluator, settings, "valid");
    },
    init: (saved) =>
      trainer.restore({ model: fittingWeights(saved, model.parameters), optimizer: new Map() }, saved.path),
    restore: async ({ path, model: weights, optimizer: moments }) =>
      trainer.restore({ model: hostTensors(weights), optimizer: hostTensors(moments) }, path),
    snapshot() {
      const saved = trainer.snapshot();
      return { model: savedTensors(saved.model), optimizer: savedTensors(saved.optimizer), state: {} };
    },
    async release() {
      await trainer.release();
      await evaluator.release();
    },
  };
}

/** What an evaluation of a saved model gives. */
export interface RecallEvaluation extends BaseEvaluation {
  readonly loss: number;
  readonly accuracy: number;
}

/** The kind. Tables, cards, figures and benchmarks are made from its measures. */
export const recall = defineKind<RecallSettings, RecallEvaluation, never>({
  name: "recall",
  schema,
  unit: "step",
  flags: { steps: "training.steps", batch: "training.batch" },
  measures: {
    accuracy: { label: "accuracy", better: "higher", percent: true, digits: 2 },
    loss: { label: "loss", better: "lower", digits: 3 },
  },
  best: "accuracy",
  headline: "accuracy",
  speed: { name: "sequencesPerSecond", label: "sequences/s" },
  shown: "loss",
  steps: ({ training }) => training.steps,
  countWeights: ({ system }) => countWeights(buildSystem(system)),
  open,
  evaluationOptions: { split: { type: "choice", values: ["valid", "test"], help: "which sequences" } },
  async evaluate({ folder, experiment, settings }, { split = "valid" }, { threads }) {
    const model = buildSystem(settings.system);
    const options = { runtime: await loadNodeRuntime(), ...(threads ? { threads } : {}) };
    const evaluator = new SequenceEvaluator(model, options);
    try {
      const weights = fittingWeights(folder, model.parameters);
      evaluator.load(new Map([...weights].map(([name, { data }]) => [name, data as Float32Array])));
      const reached = await score(evaluator, settings, String(split), 32);
      return {
        ...{ model: folder.path, experiment, step: folder.step ?? null, split: String(split) },
        ...reached,
      };
    } finally {
      await evaluator.release();
    }
  },
});
