/** Training on catbAbI: take a batch, step; evaluate on held-out stories. */
import { z } from "zod";
import { type Batch, type BatcherState, StreamBatcher } from "../../data/batches.ts";
import { PrefetchedBatches } from "../../data/prefetch.ts";
import type { StreamSpec } from "../../data/sources/open.ts";
import { generatedStories, preparedSource, type StreamChange, type TaskShares } from "../../data/streams.ts";
import { DataError, UsageError } from "../../errors.ts";
import { buildSystem } from "../../model/registry.ts";
import { nodeRuntime } from "../../runtime/node.ts";
import type { LoadedModel } from "../../store/modelFolder.ts";
import type { StepReport, Values } from "../../train/loop.ts";
import { baseRate, optimizersOf, startsAveraging } from "../../train/optimizerSettings.ts";
import { scheduleFactor } from "../../train/schedules.ts";
import { SequenceEvaluator } from "../../train/sequenceEvaluator.ts";
import { SequenceTrainer } from "../../train/sequenceTrainer.ts";
import { Curriculum, placeSchema } from "../curriculum.ts";
import type { Session, SessionContext, SessionData, SessionSnapshot } from "../kind.ts";
import { checkSystem, fittingWeights, toHost, toTensors } from "../tensors.ts";
import { checkWords } from "../words.ts";
import { correctAnswers, objectiveOf } from "./objective.ts";
import { sharesByError } from "./sampling.ts";
import { type Score, scoreStream, TaskTallies } from "./score.ts";
import { type CatbabiSettings, catbabiSchema } from "./settings.ts";
import { openStories, type Stories, storiesHint } from "./stories.ts";

/** Where batches come from: this thread, or a worker. */
interface Batches {
  next(): Batch | Promise<Batch>;
  state(): BatcherState;
  /** Of a worker: another stream from the next batch on. */
  reopen?(spec: StreamSpec): Promise<void>;
  close?(): Promise<void>;
}

const whole = z.int().min(0);
/** From which generated story on how often each task comes, and how many entries of `task.harder` validation has come to. */
const changeSchema = z.strictObject({
  from: whole,
  shares: z.record(z.string(), z.number().min(0)).optional(),
  harder: whole.default(0),
});
type Change = z.infer<typeof changeSchema>;

const stateSchema = z.strictObject({
  /** Null before the first batch. */
  batcher: z
    .strictObject({
      batch: whole,
      window: whole,
      storiesPerEpoch: whole.nullable(),
      epoch: whole,
      position: whole,
      rows: z.array(z.array(whole)),
    })
    .nullable(),
  /** Loss of every validation so far: what the switch to averaging may depend on. */
  validLosses: z.array(z.number()),
  /** What has changed in the generated stories, from which on; as far back as stories in the buffers go. */
  shares: z.array(changeSchema).default([]),
  /** Training answers since the last validation, where shares follow them. */
  trained: z.record(z.string(), z.strictObject({ correct: whole, questions: whole })).default({}),
  /** Where the curriculum stands; absent before there were any. */
  curriculum: placeSchema.optional(),
});

/** Opens the stories and builds the system that settings describe. */
export async function openCatbabi(settings: CatbabiSettings, context: SessionContext): Promise<Session> {
  const stories = await openStories(settings.task, context.env);
  const { size } = stories.vocabulary;
  if (settings.system.vocabulary !== size) {
    const data = stories.ownTasks ? settings.task.data : "catbAbI";
    throw new UsageError(`system.vocabulary: ${data} has ${size} words, not ${settings.system.vocabulary}`, {
      hint: "leave the setting as the experiment has it",
    });
  }
  refuseFacts(settings);
  if (settings.task.mode === "qa" && settings.training.answerWeight !== 1) {
    throw new UsageError("training.answerWeight: in question answering nothing but answers is learned", {
      hint: "set training.answerWeight to 1, or task.mode to lm",
    });
  }
  return new CatbabiSession(settings, stories, context);
}

/** Refuses facts where there is nobody to tell them, or nobody who knows them. */
function refuseFacts({ task, system, training }: CatbabiSettings): void {
  if (training.factCoef === 0) return;
  const why =
    system.name !== "fwm"
      ? `only the reads of a memory (fwm) can be told what to find, not ${system.name}`
      : (training.factsUntil === "end" ? [task, ...task.curriculum] : task.curriculum).every(
            ({ source }) => source === "real",
          )
        ? `${training.factsUntil === "end" ? "prepared stories" : "stories of this curriculum"} do not say what their answers follow from, generated ones do`
        : undefined;
  if (why) throw new UsageError(`training.factCoef: ${why}`, { hint: "set training.factCoef to 0" });
}

/** What of the loss is not as usual. */
function lossNotes({ answerWeight, factCoef, factsUntil }: CatbabiSettings["training"]): string[] {
  const stories = factsUntil === "end" ? "generated stories" : "the curriculum's stories";
  return [
    ...(answerWeight === 1
      ? []
      : [`an answer weighs ${answerWeight} times as much in the loss as another token`]),
    ...(factCoef > 0 ? [`of ${stories} it is told which statements answers follow from`] : []),
  ];
}

class CatbabiSession implements Session {
  readonly data: SessionData;
  private readonly trainer: SequenceTrainer;
  private readonly evaluator: SequenceEvaluator;
  private batches: Batches | undefined;
  private validLosses: number[] = [];
  private changes: readonly Change[] = [];
  private trained = new TaskTallies();
  private curriculum: Curriculum;

  constructor(
    private readonly settings: CatbabiSettings,
    private readonly stories: Stories,
    { threads, device }: SessionContext,
  ) {
    const { system, training } = settings;
    const options = {
      runtime: nodeRuntime,
      ...(threads ? { threads } : {}),
      ...(device ? { device } : {}),
    };
    const model = buildSystem(system);
    const { clip, emaDecay, factCoef, seed } = training;
    const optimizers = optimizersOf(training.optimizer);
    this.trainer = new SequenceTrainer(model, { optimizers, clip, emaDecay, factCoef, seed }, options);
    this.evaluator = new SequenceEvaluator(model, options);
    this.curriculum = new Curriculum(settings.task.curriculum);
    this.data = { identity: stories.identity, notes: [...stories.notes, ...lossNotes(training)] };
  }

  async step(step: number): Promise<StepReport> {
    const { task, training } = this.settings;
    const { optimizer, schedule, seed, steps } = training;
    this.batches ??= await this.openBatches();
    const batch = await this.batches.next();
    const { epoch } = batch;
    const averaging =
      this.trainer.averaging || startsAveraging(optimizer, { epoch, losses: this.validLosses });
    const learningRate = baseRate(optimizer, averaging) * scheduleFactor(schedule, { step, steps, epoch });
    const { stage } = this.curriculum;
    const facts = training.factCoef > 0 && (stage !== undefined || training.factsUntil === "end");
    const window = objectiveOf(batch, task.mode, { facts, answerWeight: training.answerWeight });
    const { predicted, nonFinite, fallback, ...values } = await this.trainer.step(window, {
      learningRate,
      averaging,
      key: { seed, step },
    });
    const answers = correctAnswers(window, predicted);
    const correct = answers.reduce((sum, is) => sum + is, 0);
    if (stage === undefined && this.followsTraining) this.trained.add(window, answers, batch.tasks);
    // The next stage, or what comes after the last, is a stream of its own.
    if (this.curriculum.count(correct, window.questions.length)) await this.closeBatches();
    return {
      means: { ...values, accuracy: [correct, window.questions.length], fallbacks: fallback ? 1 : 0 },
      latest: { learningRate, ...(stage === undefined ? {} : { stage: stage + 1 }) },
      work: batch.tokens.length - batch.padded,
      ...(nonFinite === undefined ? {} : { nonFinite }),
    };
  }

  async evaluate(signal: AbortSignal, onProgress?: () => Promise<void>): Promise<Values | undefined> {
    const { seed, evalBatch, window } = this.settings.training;
    this.evaluator.load(this.trainer.evaluationWeights());
    const score = await scoreStream(this.evaluator, this.stories.heldOut("valid", seed), {
      mode: this.settings.task.mode,
      batch: evalBatch,
      window,
      row: this.trainer.rowState(0),
      signal,
      ...(onProgress ? { onWindow: onProgress } : {}),
    });
    if (!score) return undefined;
    const { accuracy, perplexity, loss, perTask } = score;
    this.validLosses.push(loss);
    const trained = this.trained.perTask();
    this.trained = new TaskTallies();
    const { shares = {}, harder } = await this.resample(this.followsTraining ? trained : perTask, accuracy);
    return {
      ...{ loss, accuracy, perplexity },
      ...(this.settings.task.harder.length > 0 ? { harder } : {}),
      ...numbered("task", perTask, (tally) => tally.accuracy),
      ...numbered("train", trained, (tally) => tally.accuracy),
      ...numbered("share", shares, (share) => share),
    };
  }

  /** Whether how often a task is generated goes by training answers, not by those of a validation. */
  private get followsTraining(): boolean {
    const { sampling } = this.settings.task;
    return sampling.name === "byError" && sampling.of === "training";
  }

  /** Decides which stories are generated from now on: how often each task, by its errors; how hard ones, by the accuracy. */
  private async resample(
    perTask: Score["perTask"],
    accuracy: number,
  ): Promise<{ readonly shares?: TaskShares; readonly harder: number }> {
    const { source, sampling, harder: levels, generatedFraction } = this.settings.task;
    const before = this.changes.at(-1)?.harder ?? 0;
    if (this.curriculum.stage !== undefined) return { harder: before };
    const harder = Math.max(before, levels.findLastIndex((level) => level.accuracy <= accuracy) + 1);
    if (sampling.name === "fixed" && harder === before) return { harder };
    const shares =
      sampling.name === "fixed" ? undefined : sharesByError(sampling, this.stories.tasks, perTask);
    const place = this.batches?.state();
    const index = (position: number): number =>
      place ? generatedStories({ ...place, position }, source === "mixed" ? generatedFraction : 1) : 0;
    // Stories in the buffers were drawn before: a resumed run draws them again.
    const oldest = Math.min(place?.position ?? 0, ...(place?.rows.flatMap(([, ...held]) => held) ?? []));
    const next = { from: index(place?.position ?? 0), harder, ...(shares ? { shares } : {}) };
    const inUse = this.changes.findLastIndex(({ from }) => from <= index(oldest));
    this.changes = [...this.changes.slice(Math.max(0, inUse)), next];
    await this.batches?.reopen?.(this.trainStories());
    return next;
  }

  /** The training stream with all that has changed. */
  private trainStories(): StreamSpec {
    const { task, training } = this.settings;
    const changes = this.changes.map(({ from, shares, harder }): StreamChange => {
      const difficulty = task.harder[harder - 1]?.difficulty;
      return { from, ...(shares ? { shares } : {}), ...(difficulty ? { difficulty } : {}) };
    });
    return this.stories.train(training.seed, changes);
  }

  init(folder: LoadedModel): void {
    checkSystem(folder, this.settings.system.name);
    const weights = fittingWeights(folder, this.trainer.model.parameters);
    if (this.stories.ownTasks) checkWords(folder, this.stories.vocabulary.words, storiesHint);
    checkEquations(folder, this.settings);
    this.trainer.restore({ model: weights, optimizer: new Map() }, folder.path);
  }

  async restore({ path, model, optimizer, state }: Parameters<Session["restore"]>[0]): Promise<void> {
    const parsed = stateSchema.safeParse(state);
    if (!parsed.success) {
      throw new DataError(`${path}/trainer_state.json: not the state of a catbAbI run`, {
        reason: z.prettifyError(parsed.error),
        hint: "resume from another checkpoint with --from",
      });
    }
    this.validLosses = parsed.data.validLosses;
    this.changes = parsed.data.shares;
    this.trained = new TaskTallies(parsed.data.trained);
    this.curriculum = new Curriculum(this.settings.task.curriculum, parsed.data.curriculum);
    this.trainer.restore({ model: toHost(model), optimizer: toHost(optimizer) }, path);
    if (parsed.data.batcher) this.batches = await this.openBatches(parsed.data.batcher);
  }

  snapshot(): SessionSnapshot {
    const { model, optimizer } = this.trainer.snapshot();
    return {
      model: toTensors(model),
      optimizer: toTensors(optimizer),
      state: {
        batcher: this.batches?.state() ?? null,
        validLosses: this.validLosses,
        shares: this.changes,
        trained: this.trained.saved(),
        curriculum: this.curriculum.saved(),
      },
      files: { "vocab.json": JSON.stringify(this.stories.vocabulary.words) },
    };
  }

  /** Real stories are cut here in a fraction of a millisecond; making new ones is a worker's job. */
  private async openBatches(state?: BatcherState): Promise<Batches> {
    const { task, training } = this.settings;
    const { stage } = this.curriculum;
    if (task.source === "real" && !task.rename && stage === undefined) {
      const source = preparedSource(this.stories.files!.splits.train, training.seed);
      return state ? StreamBatcher.resume(source, training, state) : new StreamBatcher(source, training);
    }
    const spec = stage === undefined ? this.trainStories() : this.stories.stage(training.seed, stage);
    return PrefetchedBatches.open(spec, training, state ? { state } : {});
  }

  private async closeBatches(): Promise<void> {
    await this.batches?.close?.();
    this.batches = undefined;
  }

  async release(): Promise<void> {
    await this.closeBatches();
    await this.trainer.release();
    await this.evaluator.release();
  }
}

/** A number for each task as values of a log: `task1`, `task2` and so on. */
function numbered<T>(name: string, of: Readonly<Record<string, T>>, value: (one: T) => number): Values {
  return Object.fromEntries(Object.entries(of).map(([task, one]) => [`${name}${task}`, value(one)]));
}

/** Weights that fit may still have been trained with other equations. */
function checkEquations({ path, config }: LoadedModel, { system }: CatbabiSettings): void {
  const saved = catbabiSchema.safeParse(config.settings).data?.system;
  if (saved?.name !== "fwm" || system.name !== "fwm") return;
  for (const name of ["variant", "keys"] as const) {
    if (saved[name] === system[name]) continue;
    throw new UsageError(`${path}: its weights were trained with other equations`, {
      setting: `system.${name}`,
      expected: system[name],
      found: saved[name],
      hint: `train with --set system.${name}=${saved[name]}, or start with another model`,
    });
  }
}
