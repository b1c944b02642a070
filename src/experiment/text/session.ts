/** Training on text: cut a window, step; evaluate on the validation split. */
import { z } from "zod";
import { ColumnBatcher, type ColumnState, columnRows } from "../../data/text/columns.ts";
import { DataError } from "../../errors.ts";
import { buildSystem } from "../../model/registry.ts";
import { nodeRuntime } from "../../runtime/node.ts";
import type { LoadedModel } from "../../store/modelFolder.ts";
import type { StepReport, Values } from "../../train/loop.ts";
import { baseRate, optimizersOf, startsAveraging } from "../../train/optimizerSettings.ts";
import { scheduleFactor } from "../../train/schedules.ts";
import { SequenceEvaluator } from "../../train/sequenceEvaluator.ts";
import { SequenceTrainer } from "../../train/sequenceTrainer.ts";
import type { Session, SessionContext, SessionSnapshot } from "../kind.ts";
import { checkSystem, fittingWeights, toHost, toTensors } from "../tensors.ts";
import { checkWords } from "../words.ts";
import { type Corpus, openCorpus, textHint } from "./corpus.ts";
import { scoreText, tokenBatch } from "./score.ts";
import { evaluationSystem, lengthsOf, paddedWindows, type TextSettings } from "./settings.ts";

const whole = z.int().min(0);
const stateSchema = z.strictObject({
  batcher: z.strictObject({
    batch: whole,
    seed: whole,
    tokens: whole,
    epoch: whole,
    windows: whole,
    position: whole,
  }),
  /** Losses of all evaluations so far, which the switch to averaging may depend on. */
  validLosses: z.array(z.number()),
});

/** How a session is opened; with a `profile`, what the runtime measures of its training steps is written under this prefix. */
interface TextContext extends SessionContext {
  readonly profile?: string;
}

/** Opens the text and builds the system that settings describe. */
export async function openTextSession(settings: TextSettings, context: TextContext): Promise<Session> {
  const corpus = await openCorpus(settings, context.env);
  try {
    return new TextSession(settings, corpus, context);
  } catch (error) {
    corpus.close();
    throw error;
  }
}

class TextSession implements Session {
  private readonly trainer: SequenceTrainer;
  private readonly evaluator: SequenceEvaluator;
  private batcher: ColumnBatcher;
  private validLosses: number[] = [];

  constructor(
    private readonly settings: TextSettings,
    readonly data: Corpus,
    { threads, device, profile }: TextContext,
  ) {
    const { system, training } = settings;
    const options = {
      runtime: nodeRuntime,
      ...(threads ? { threads } : {}),
      ...(device ? { device } : {}),
    };
    // Text that is too short for the columns is found here, not after the first epoch.
    columnRows(data.splits.valid, training.evalBatch);
    this.batcher = this.openBatcher();
    const { clip, emaDecay, seed } = training;
    const optimizers = optimizersOf(training.optimizer);
    this.trainer = new SequenceTrainer(
      buildSystem(system),
      { optimizers, clip, emaDecay, seed },
      { ...options, ...(profile ? { profile } : {}) },
    );
    this.evaluator = new SequenceEvaluator(buildSystem(evaluationSystem(settings)), options);
  }

  async step(step: number): Promise<StepReport> {
    const { optimizer, schedule, seed, steps } = this.settings.training;
    const batch = this.batcher.next();
    const { epoch, isFirst, rateScale } = batch;
    if (isFirst) this.trainer.resetState();
    const averaging =
      this.trainer.averaging || startsAveraging(optimizer, { epoch, losses: this.validLosses });
    const factor = scheduleFactor(schedule, { step, steps, epoch }) * rateScale;
    const learningRate = baseRate(optimizer, averaging) * factor;
    const { loss, gradNorm, fallback, nonFinite } = await this.trainer.step(tokenBatch(batch), {
      learningRate,
      averaging,
      key: { seed, step },
    });
    return {
      means: { loss, gradNorm, fallbacks: fallback ? 1 : 0 },
      latest: { learningRate, epoch: this.epochs() },
      work: batch.length * batch.batch,
      endOfEpoch: this.batcher.endOfEpoch,
      ...(nonFinite === undefined ? {} : { nonFinite }),
    };
  }

  async evaluate(signal: AbortSignal, onProgress?: () => Promise<void>): Promise<Values | undefined> {
    const { evalBatch: batch, evalWindow: window } = this.settings.training;
    this.evaluator.load(this.trainer.evaluationWeights());
    const score = await scoreText(this.evaluator, this.data.splits.valid, {
      batch,
      window,
      signal,
      ...(onProgress ? { onWindow: onProgress } : {}),
    });
    if (!score) return undefined;
    const { loss, perplexity, bits } = score;
    this.validLosses.push(loss);
    return { loss, perplexity, bits, epoch: this.epochs() };
  }

  /** Passes over the training text so far. */
  private epochs(): number {
    const { epoch, position, tokens, batch } = this.batcher.state();
    return this.batcher.endOfEpoch ? epoch + 1 : epoch + position / Math.floor(tokens / batch);
  }

  init(folder: LoadedModel): void {
    checkWords(folder, this.data.words, textHint);
    checkSystem(folder, this.settings.system.name);
    const weights = fittingWeights(folder, this.trainer.model.parameters);
    this.trainer.restore({ model: weights, optimizer: new Map() }, folder.path);
  }

  async restore({ path, model, optimizer, state }: Parameters<Session["restore"]>[0]): Promise<void> {
    const parsed = stateSchema.safeParse(state);
    if (!parsed.success) {
      throw new DataError(`${path}/trainer_state.json: not the state of a run on text`, {
        reason: z.prettifyError(parsed.error),
        hint: "resume from another checkpoint with --from",
      });
    }
    this.batcher = this.openBatcher(parsed.data.batcher);
    this.validLosses = parsed.data.validLosses;
    this.trainer.restore({ model: toHost(model), optimizer: toHost(optimizer) }, path);
  }

  snapshot(): SessionSnapshot {
    const { model, optimizer } = this.trainer.snapshot();
    return {
      model: toTensors(model),
      optimizer: toTensors(optimizer),
      state: { batcher: this.batcher.state(), validLosses: this.validLosses },
      files: { "vocab.json": JSON.stringify(this.data.words) },
    };
  }

  private openBatcher(state?: ColumnState): ColumnBatcher {
    const { training } = this.settings;
    const { batch, seed } = training;
    const how = { batch, seed, lengths: lengthsOf(training), windows: paddedWindows(training) };
    const stream = this.data.splits.train;
    return state ? ColumnBatcher.resume(stream, how, state) : new ColumnBatcher(stream, how);
  }

  async release(): Promise<void> {
    this.data.close();
    await this.trainer.release();
    await this.evaluator.release();
  }
}
