/** A catbAbI experiment put together: stories, system, trainer, loop and run folder. */
import { basename, dirname, resolve } from "node:path";
import { type Batch, type BatcherState, epochBatches, StreamBatcher } from "../data/batches.ts";
import { PrefetchedBatches } from "../data/prefetch.ts";
import { preparedSource } from "../data/streams.ts";
import { catbabiVocabulary } from "../data/vocabulary.ts";
import { UsageError } from "../errors.ts";
import { sameShape, showType, stateAttrs } from "../graph/index.ts";
import { parseModelConfig } from "../inference/model.ts";
import { buildSystem } from "../model/registry.ts";
import type { HostTensor } from "../runtime/host.ts";
import { nodeRuntime } from "../runtime/node.ts";
import type { LoadedCheckpoint } from "../store/checkpoint.ts";
import { loadModelFolder } from "../store/modelFolder.ts";
import type { Run } from "../store/run.ts";
import type { TensorData, Tensors } from "../store/safetensors.ts";
import { freshProgress, type LoopEnd, type LoopProgress, type LoopWatch, train } from "../train/loop.ts";
import { adam } from "../train/optimizers.ts";
import { rateAt } from "../train/schedules.ts";
import { type Score, Scorer } from "../train/score.ts";
import { averagePrefix, SequenceEvaluator, SequenceTrainer } from "../train/sequenceTrainer.ts";
import {
  asHost,
  fromHost,
  type OpenContext,
  openRun,
  outcomeOf,
  type RunPlanFor,
  settingsOf,
} from "./openRun.ts";
import { modelFormat, type Settings, settingsSchema } from "./settings.ts";
import { openStories, type Stories } from "./stories.ts";

/** How a command runs an experiment. */
export interface RunContext extends OpenContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  readonly watch?: LoopWatch;
  readonly onNote?: (text: string) => void;
}

/** A run to begin, or one to go on with. */
export type RunPlan = RunPlanFor<Settings>;

/** Prefix of the training state in a checkpoint's optimizer file: raw weights when the model file has the average. */
const rawPrefix = "raw.";

/** Trains, from the beginning or from a checkpoint; the run folder holds everything. */
export async function trainCatbabi(
  plan: RunPlan,
  context: RunContext,
): Promise<LoopEnd & { folder: string }> {
  // Everything the user may have got wrong is found before a run folder is made or touched.
  const settings = await settingsOf(plan, settingsSchema);
  checkVocabulary(settings);
  const stories = await openStories(settings.task, context.env);
  const begun = plan.kind === "new" && plan.init ? await weightsOf(plan.init, settings) : undefined;
  const { run, checkpoint } = await openRun(plan, settings, context, {
    stories: stories.identity,
    ...(begun ? { begun: begun.remark } : {}),
  });
  let outcome: "finished" | "interrupted" | "diverged" | "failed" = "failed";
  let note: string | undefined;
  let session: TrainingSession | undefined;
  try {
    session = await TrainingSession.open(settings, stories, context, run, checkpoint);
    if (begun) await session.begin(begun);
    const { training } = settings;
    const end = await train(
      session,
      session,
      { ...training, rate: (step) => rateAt(step, training.steps, training) },
      { firstStep: checkpoint?.step ?? 0, progress: session.progress },
      context.signal,
      context.watch,
    );
    outcome = end.reason === "interrupted" ? "interrupted" : "finished";
    return { ...end, folder: run.folder };
  } catch (error) {
    ({ outcome, note } = outcomeOf(error));
    throw error;
  } finally {
    await session?.release();
    await run.close(outcome, note);
  }
}

/** A trainer with its data stream, as the loop and the run folder see them. */
class TrainingSession {
  progress: LoopProgress = freshProgress;

  private constructor(
    private readonly settings: Settings,
    private readonly trainer: SequenceTrainer,
    private readonly evaluator: SequenceEvaluator,
    private readonly stories: Stories,
    private readonly batches: Batches,
    private readonly run: Run,
  ) {}

  /** Puts a session together, as it was at a checkpoint if there is one. */
  static async open(
    settings: Settings,
    stories: Stories,
    context: RunContext,
    run: Run,
    checkpoint: LoadedCheckpoint | undefined,
  ): Promise<TrainingSession> {
    const { task, training } = settings;
    for (const remark of stories.remarks) context.onNote?.(remark);
    const model = buildSystem(settings.system);
    const options = {
      runtime: nodeRuntime,
      ...(context.threads ? { threads: context.threads } : {}),
      ...(context.device ? { device: context.device } : {}),
    };
    const { beta1, beta2, eps, weightDecay, clip, averaging, seed } = training;
    const trainer = new SequenceTrainer(
      model,
      { mode: task.mode, optimizer: adam({ beta1, beta2, eps, decay: weightDecay }), clip, averaging, seed },
      options,
    );
    const evaluator = new SequenceEvaluator(model, task.mode, options);
    const saved = checkpoint?.state as { batcher: BatcherState; progress: LoopProgress } | undefined;
    const batches = await openBatches(settings, stories, saved?.batcher);
    const session = new TrainingSession(settings, trainer, evaluator, stories, batches, run);
    try {
      if (checkpoint && saved) {
        session.progress = { ...freshProgress, ...saved.progress };
        session.adopt(checkpoint);
        // A run killed between its checkpoint and its record is told of here.
        await session.summarize(session.progress);
      }
    } catch (error) {
      await session.release();
      throw error;
    }
    return session;
  }

  /** Begins with given weights. They are saved at once: a run killed early must not go on from random ones. */
  async begin({ model, path }: Begun): Promise<void> {
    const values = Object.entries(model).map(([name, tensor]) => [name, asHost(tensor)] as const);
    this.trainer.adopt(new Map(values), path);
    await this.save(0, { best: false, progress: this.progress });
  }

  /** Takes over the tensors of a checkpoint. */
  private adopt(checkpoint: LoadedCheckpoint): void {
    const values = new Map<string, HostTensor>();
    for (const [name, tensor] of Object.entries({ ...checkpoint.model, ...checkpoint.optimizer })) {
      if (name.startsWith(rawPrefix)) continue;
      const raw = checkpoint.optimizer[rawPrefix + name];
      values.set(name, asHost(raw ?? tensor));
      if (raw) values.set(averagePrefix + name, asHost(tensor));
    }
    this.trainer.adopt(values, checkpoint.path);
  }

  async step(step: number, learningRate: number) {
    const batch = await this.batches.next();
    const result = await this.trainer.step(batch, learningRate, { seed: this.settings.training.seed, step });
    return { ...result, tokens: batch.tokens.length - batch.padded };
  }

  async validate(signal: AbortSignal) {
    this.evaluator.load(this.trainer.evaluationWeights());
    const score = await scoreStream(this.evaluator, this.stories.held("valid", this.settings.training.seed), {
      batch: this.settings.training.validBatch,
      window: this.settings.training.window,
      row: this.trainer.rowState(0),
      signal,
      onWindow: () => this.run.heartbeat(this.run.record.step),
    });
    if (!score) return undefined;
    const { accuracy, perplexity, loss, perTask } = score;
    const tasks = Object.entries(perTask).map(([task, tally]) => [`task${task}`, tally.accuracy] as const);
    return { loss, values: { loss, accuracy, perplexity, ...Object.fromEntries(tasks) } };
  }

  log(record: Parameters<Run["log"]>[0]): void {
    this.run.log(record);
  }

  async heartbeat(step: number): Promise<void> {
    await this.run.heartbeat(step);
  }

  async save(step: number, { best, progress }: { best: boolean; progress: LoopProgress }): Promise<void> {
    const model: Record<string, TensorData> = {};
    const optimizer: Record<string, TensorData> = {};
    const weights = this.trainer.evaluationWeights();
    for (const [name, tensor] of this.trainer.state.snapshot()) {
      const averagedWeights = weights.get(name);
      if (averagedWeights) {
        model[name] = fromHost({ ...tensor, data: Float32Array.from(averagedWeights) });
        if (this.settings.training.averaging > 0) optimizer[rawPrefix + name] = fromHost(tensor);
      } else if (!name.startsWith(averagePrefix)) optimizer[name] = fromHost(tensor);
    }
    await this.run.save({
      step,
      best,
      config: modelConfig(this.settings, this.run.record.experiment),
      model,
      optimizer,
      state: { batcher: this.batches.state(), progress },
      files: { "vocab.json": JSON.stringify(catbabiVocabulary.words) },
    });
    await this.summarize(progress);
  }

  /** What lists and reports show of a run that stands there. */
  private async summarize({ bestLoss, bestStep, bestAccuracy }: LoopProgress): Promise<void> {
    await this.run.update({
      summary: {
        ...this.run.record.summary,
        bestLoss,
        bestStep,
        bestAccuracy,
        // Generated or missing stories have to be said wherever the run is looked at.
        data: this.stories.remarks.join("; ") || null,
      },
    });
  }

  async release(): Promise<void> {
    await this.batches.close?.();
    await this.trainer.release();
    await this.evaluator.release();
  }
}

/** The stories have their vocabulary, and the system must have the same. */
function checkVocabulary({ system }: Settings): void {
  const { size } = catbabiVocabulary;
  if (system.vocabulary === size) return;
  throw new UsageError(`system.vocabulary: catbAbI has ${size} words, not ${system.vocabulary}`, {
    hint: "leave the setting as the experiment has it",
  });
}

/** Weights a run begins with, and where they are from. */
interface Begun {
  readonly model: Tensors;
  readonly path: string;
  readonly remark: string;
}

/** The weights of a run, checkpoint or model folder, if they fit the system of the settings. */
async function weightsOf(folder: string, { system }: Settings): Promise<Begun> {
  const { model, path, step, kind, config } = await loadModelFolder(folder);
  const saved: Settings["system"] = parseModelConfig(config, `${path}/config.json`).system;
  const wanted = new Map(
    buildSystem(system).parameters.map((parameter) => [stateAttrs(parameter)!.name, parameter]),
  );
  for (const name of new Set([...wanted.keys(), ...Object.keys(model)])) {
    const [here, there] = [wanted.get(name), model[name]];
    if (here && there && sameShape(here.shape, there.shape)) continue;
    throw new UsageError(`${folder}: its weights do not fit the experiment's system`, {
      tensor: name,
      expected: here ? showType(here) : "none",
      found: there ? `${there.dtype} [${there.shape.join(", ")}]` : "none",
      hint: "begin with a model of the same sizes; --print-config shows the experiment's",
    });
  }
  if (saved.name === "fwm" && system.name === "fwm") {
    for (const name of ["variant", "keys"] as const) {
      if (saved[name] === system[name]) continue;
      throw new UsageError(`${folder}: its weights were trained with other equations`, {
        setting: `system.${name}`,
        expected: system[name],
        found: saved[name],
        hint: `train with --set system.${name}=${saved[name]}, or begin with another model`,
      });
    }
  }
  // The name of a checkpoint's folder says no more than its step does.
  const name = basename(kind === "checkpoint" ? dirname(path) : resolve(folder));
  const remark = `${name}${step === undefined ? "" : ` after ${step} steps`}`;
  return { model, path, remark };
}

/** Where batches come from: this thread, or a worker. */
interface Batches {
  next(): Batch | Promise<Batch>;
  state(): BatcherState;
  close?(): Promise<void>;
}

/** Real stories are cut here in a fraction of a millisecond; telling new ones is a worker's job. */
async function openBatches(
  { task, training }: Settings,
  stories: Stories,
  state: BatcherState | undefined,
): Promise<Batches> {
  if (task.source !== "real") {
    return PrefetchedBatches.open(stories.train(training.seed), training, state ? { state } : {});
  }
  const source = preparedSource(stories.files!.splits.train, training.seed);
  return state ? StreamBatcher.resume(source, training, state) : new StreamBatcher(source, training);
}

/** What `config.json` says of a model: enough to build it again. */
function modelConfig(settings: Settings, experiment: string): Record<string, unknown> {
  return { format: modelFormat, version: 1, experiment, mode: settings.task.mode, system: settings.system };
}

/** Scores a whole split from a given state of every row; undefined when the signal cut it short. */
export async function scoreStream(
  evaluator: SequenceEvaluator,
  source: Parameters<typeof epochBatches>[0],
  options: {
    batch: number;
    window: number;
    row?: ReadonlyMap<string, Float32Array>;
    onWindow?: (done: number) => Promise<void> | void;
    signal?: AbortSignal;
  },
): Promise<Score | undefined> {
  const scorer = new Scorer();
  evaluator.begin(options.batch, options.row);
  let done = 0;
  for (const batch of epochBatches(source, options)) {
    scorer.add(await evaluator.answer(batch), batch.tasks);
    await options.onWindow?.(++done);
    // The event loop gets a turn, so that ^C and the progress bar are alive between blocking windows.
    await new Promise((resolve) => setImmediate(resolve));
    if (options.signal?.aborted) return undefined;
  }
  return scorer.score();
}
