/**
 * Training in the playground: one memory, and an LSTM beside it, on the same new stories. No thread, no page, no disk: a
 * worker calls it, and so does a test in Node.
 */
import { z } from "zod";
import { type BatcherState, StreamBatcher } from "../../src/data/batches.ts";
import { parseTasks } from "../../src/data/catbabi.ts";
import { generatedSource } from "../../src/data/streams.ts";
import { catbabiVocabulary } from "../../src/data/vocabulary.ts";
import { DataError } from "../../src/errors.ts";
import { correctAnswers, objectiveOf } from "../../src/experiment/catbabi/objective.ts";
import { scoreStream } from "../../src/experiment/catbabi/score.ts";
import { toHost, toTensors } from "../../src/experiment/tensors.ts";
import { buildSystem } from "../../src/model/registry.ts";
import { countWeights } from "../../src/model/sequence.ts";
import type { Runtime } from "../../src/runtime/runtime.ts";
import { modelFormat, modelVersion } from "../../src/store/modelConfig.ts";
import {
  decodeSafetensors,
  encodeSafetensors,
  type TensorData,
  type Tensors,
} from "../../src/store/safetensors.ts";
import { optimizersOf } from "../../src/train/optimizerSettings.ts";
import { scheduleFactor } from "../../src/train/schedules.ts";
import { SequenceEvaluator } from "../../src/train/sequenceEvaluator.ts";
import { SequenceTrainer } from "../../src/train/sequenceTrainer.ts";
import { type Choices, choicesFrom, type SystemName, systemsOf } from "./choices.ts";
import { settingsOf } from "./settings.ts";

/** An evaluation on held-out stories. */
export interface Point {
  readonly step: number;
  /** Seconds of training up to then. */
  readonly seconds: number;
  /** Of the held-out stories, and by task. */
  readonly accuracy: number;
  readonly tasks: Readonly<Record<string, number>>;
  /** Of the training stories since the last evaluation. */
  readonly trainAccuracy: number;
  readonly trainLoss: number;
}

/** What a step gave, per system. */
export interface StepValues {
  readonly loss: number;
  readonly accuracy: number;
  readonly learningRate: number;
}

/** Held-out stories of an evaluation. */
const heldOutStories = 100;

const pointSchema = z.strictObject({
  step: z.int(),
  seconds: z.number(),
  accuracy: z.number(),
  tasks: z.record(z.string(), z.number()),
  trainAccuracy: z.number(),
  trainLoss: z.number(),
});

const whole = z.int().min(0);
const checkpointSchema = z.strictObject({
  version: z.literal(1),
  choices: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).transform(choicesFrom),
  step: whole,
  seconds: z.number().min(0),
  batcher: z.strictObject({
    batch: whole,
    window: whole,
    storiesPerEpoch: whole.nullable(),
    epoch: whole,
    position: whole,
    rows: z.array(z.array(whole)),
  }),
  curves: z.record(z.string(), z.array(pointSchema)),
});

/** One system under training. */
class SystemTrainer {
  readonly curve: Point[] = [];
  /** Sums since the last evaluation. */
  private seen = { correct: 0, questions: 0, loss: 0, steps: 0 };
  readonly sequence: SequenceTrainer;
  private readonly evaluator: SequenceEvaluator;
  readonly settings;

  constructor(
    choices: Choices,
    readonly name: SystemName,
    options: { runtime: Runtime; threads: number },
  ) {
    this.settings = settingsOf(choices, name);
    const { system, training } = this.settings;
    const model = buildSystem(system);
    const { clip, emaDecay, seed, optimizer } = training;
    this.sequence = new SequenceTrainer(
      model,
      { optimizers: optimizersOf(optimizer), clip, emaDecay, seed },
      options,
    );
    this.evaluator = new SequenceEvaluator(model, options);
  }

  async step(window: ReturnType<typeof objectiveOf>, step: number): Promise<StepValues> {
    const { optimizer, schedule, seed, steps } = this.settings.training;
    const rate = "learningRate" in optimizer ? optimizer.learningRate : 0;
    const learningRate = rate * scheduleFactor(schedule, { step, steps });
    const { loss, predicted, nonFinite } = await this.sequence.step(window, {
      learningRate,
      key: { seed, step },
    });
    if (nonFinite !== undefined) {
      throw new DataError(`${this.name}: ${nonFinite} is not finite any more at step ${step}`, {
        hint: "begin again with a lower learning rate",
      });
    }
    const correct = correctAnswers(window, predicted).reduce((sum, is) => sum + is, 0);
    const questions = window.questions.length;
    this.seen.correct += correct;
    this.seen.questions += questions;
    this.seen.loss += loss;
    this.seen.steps++;
    return { loss, accuracy: questions > 0 ? correct / questions : 0, learningRate };
  }

  async evaluate(at: { step: number; seconds: number }, tasks: readonly number[]): Promise<Point> {
    const { training } = this.settings;
    this.evaluator.load(this.sequence.evaluationWeights());
    const source = { ...generatedSource(training.seed + 1e6, tasks), storiesPerEpoch: heldOutStories };
    const score = await scoreStream(this.evaluator, source, {
      mode: "qa",
      batch: training.evalBatch,
      window: training.window,
      row: this.sequence.rowState(0),
    });
    const { correct, questions, loss, steps } = this.seen;
    this.seen = { correct: 0, questions: 0, loss: 0, steps: 0 };
    const perTask = Object.entries(score!.perTask).map(([task, { accuracy }]) => [task, accuracy] as const);
    const point = {
      ...at,
      accuracy: score!.accuracy,
      tasks: Object.fromEntries(perTask),
      trainAccuracy: questions > 0 ? correct / questions : 0,
      trainLoss: steps > 0 ? loss / steps : 0,
    };
    this.curve.push(point);
    return point;
  }

  /** The weights as they are now. */
  weights(): Record<string, TensorData> {
    return toTensors(this.sequence.snapshot().model);
  }

  async release(): Promise<void> {
    await this.sequence.release();
    await this.evaluator.release();
  }
}

/** Training that can be stepped, evaluated, saved and taken up again. */
export class TrainingSession {
  /** Steps made. */
  step = 0;
  /** Seconds of training, evaluations included, pauses left out. */
  seconds = 0;
  private readonly trainers: ReadonlyMap<SystemName, SystemTrainer>;
  private readonly tasks: readonly number[];
  private batches: StreamBatcher;

  constructor(
    readonly choices: Choices,
    options: { readonly runtime: Runtime; readonly threads: number },
  ) {
    this.tasks = parseTasks(choices.tasks);
    this.trainers = new Map(
      systemsOf(choices).map((name) => [name, new SystemTrainer(choices, name, options)]),
    );
    this.batches = new StreamBatcher(this.source(), choices);
  }

  private source() {
    return generatedSource(this.choices.seed, this.tasks);
  }

  /** Names of the systems that learn. */
  get systems(): readonly SystemName[] {
    return [...this.trainers.keys()];
  }

  /** The evaluations of a system so far. */
  curve(system: SystemName): readonly Point[] {
    return this.trainer(system).curve;
  }

  /** One step of every system on the same stories. */
  async train(): Promise<Readonly<Record<string, StepValues>>> {
    const start = performance.now();
    const window = objectiveOf(this.batches.next(), "qa");
    const values: Record<string, StepValues> = {};
    for (const [name, trainer] of this.trainers) values[name] = await trainer.step(window, this.step);
    this.step++;
    this.seconds += (performance.now() - start) / 1000;
    return values;
  }

  /** Scores every system on the held-out stories. */
  async evaluate(): Promise<void> {
    const start = performance.now();
    for (const trainer of this.trainers.values()) {
      await trainer.evaluate({ step: this.step, seconds: this.seconds }, this.tasks);
    }
    this.seconds += (performance.now() - start) / 1000;
  }

  /** The weights of a system as they are now. */
  weights(system: SystemName): Record<string, TensorData> {
    return this.trainer(system).weights();
  }

  /** Number of weights of a system. */
  weightCount(system: SystemName): number {
    return countWeights(this.trainer(system).sequence.model);
  }

  /** `config.json` of a system's model folder. */
  config(system: SystemName) {
    return {
      format: modelFormat,
      version: modelVersion,
      kind: "catbabi",
      experiment: `playground-${system}`,
      settings: { ...this.trainer(system).settings },
    };
  }

  /** Begins with the weights of a saved model instead of new ones. */
  init(system: SystemName, weights: Tensors, source: string): void {
    this.trainer(system).sequence.restore({ model: toHost(weights), optimizer: new Map() }, source);
  }

  /** Everything that training needs to go on, as one file. */
  checkpoint(): Uint8Array<ArrayBuffer> {
    const tensors: Record<string, TensorData> = {};
    const curves: Record<string, readonly Point[]> = {};
    for (const [name, { sequence, curve }] of this.trainers) {
      const { model, optimizer } = sequence.snapshot();
      for (const [key, value] of Object.entries(toTensors(model))) tensors[`${name}/model/${key}`] = value;
      for (const [key, value] of Object.entries(toTensors(optimizer))) {
        tensors[`${name}/optimizer/${key}`] = value;
      }
      curves[name] = curve;
    }
    const state = {
      version: 1,
      choices: this.choices,
      step: this.step,
      seconds: this.seconds,
      batcher: this.batches.state(),
      curves,
    };
    return encodeSafetensors(tensors, { playground: JSON.stringify(state) });
  }

  /** Training as a checkpoint left it. What is no checkpoint of this version is a `DataError`. */
  static resume(bytes: Uint8Array, options: { runtime: Runtime; threads: number }): TrainingSession {
    const file = "the saved checkpoint";
    const { tensors, metadata } = decodeSafetensors(bytes, { file, finite: true });
    const parsed = checkpointSchema.safeParse(jsonOf(metadata.playground));
    if (!parsed.success) {
      throw new DataError(`${file}: not of this version of the playground`, {
        reason: z.prettifyError(parsed.error),
      });
    }
    const { choices, step, seconds, batcher, curves } = parsed.data;
    const session = new TrainingSession(choices, options);
    session.step = step;
    session.seconds = seconds;
    session.batches = StreamBatcher.resume(session.source(), choices, batcher satisfies BatcherState);
    for (const [name, trainer] of session.trainers) {
      const part = (kind: string) => {
        const prefix = `${name}/${kind}/`;
        const own = Object.entries(tensors).filter(([key]) => key.startsWith(prefix));
        return toHost(Object.fromEntries(own.map(([key, value]) => [key.slice(prefix.length), value])));
      };
      trainer.sequence.restore({ model: part("model"), optimizer: part("optimizer") }, file);
      trainer.curve.push(...(curves[name] ?? []));
    }
    return session;
  }

  /** Frees the runtime's memory. */
  async release(): Promise<void> {
    for (const trainer of this.trainers.values()) await trainer.release();
  }

  private trainer(system: SystemName): SystemTrainer {
    const found = this.trainers.get(system);
    if (!found) throw new Error(`internal: no ${system} learns here`);
    return found;
  }
}

function jsonOf(text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? "null") as unknown;
  } catch {
    return null;
  }
}

/** `vocab.json` of every model of the playground. */
export const vocabularyFile = JSON.stringify(catbabiVocabulary.words);
