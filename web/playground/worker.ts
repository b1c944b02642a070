/** The worker of the playground: trains, answers and saves, so that the page stays free to move. */
import mjs from "onnxruntime-web/ort-wasm-simd-threaded.mjs?url";
import wasm from "onnxruntime-web/ort-wasm-simd-threaded.wasm?url";
import config from "../../models/catbabi-qa/config.json?url";
import safetensors from "../../models/catbabi-qa/model.safetensors?url";
import vocab from "../../models/catbabi-qa/vocab.json?url";
import { UnknownWordError } from "../../src/inference/text.ts";
import { availableThreads, setWasmPaths, webRuntime } from "../../src/runtime/web.ts";
import { CheckpointFile } from "./checkpointFile.ts";
import { type Choices, choicesFrom, sameChoices } from "./choices.ts";
import { folderOf, onnxOf, readFolder } from "./folder.ts";
import type { CallMessage, CallName, Calls, Curves, Phase, Status, WorkerMessage } from "./messages.ts";
import { PlaygroundModels } from "./models.ts";
import { serialRuntime } from "./serialRuntime.ts";
import { TrainingSession } from "./trainingSession.ts";

setWasmPaths({ wasm, mjs });

/** Small products gain little from more threads. */
const mostThreads = 4;
/** Milliseconds between two reports while it trains, and between two checkpoints. */
const reportEvery = 120;
const saveEvery = 5_000;

const threads = Math.min(mostThreads, availableThreads());

/** ONNX Runtime, which says when it compiles. */
const runtime = serialRuntime(webRuntime, async (change) => {
  trainer.compiling(change);
  // Let the page hear of it: compiling keeps this thread busy.
  if (change === 1) await nextTask();
});

/** Training: playing or not, one step after the other. */
class Trainer {
  private session: TrainingSession | undefined;
  private playing = false;
  private isBusy = false;
  private beingCompiled = 0;
  private reason: string | null = null;
  private failed = false;
  private restored = false;
  private last: Status["last"] = {};
  private speed: number | null = null;
  private saved: Status["saved"] = null;
  private savedAt = 0;
  private reportedAt = 0;
  /** Seconds of training at the last evaluation, and how many that one took. */
  private evaluatedAt = 0;
  private evaluationTook = 0;
  private readonly file = new CheckpointFile();
  readonly models = new PlaygroundModels({ runtime, threads }, { config, safetensors, vocab });
  /** The loop, or what else touches the session; the next one waits for it. */
  private work: Promise<void> = Promise.resolve();

  /** Steps between evaluations. */
  private get evalEvery(): number {
    return Math.max(5, Math.round((this.session?.choices.steps ?? 1000) / 40));
  }

  current(): TrainingSession {
    if (!this.session) throw new Error("There is no training yet.");
    return this.session;
  }

  compiling(change: 1 | -1): void {
    this.beingCompiled += change;
    if (this.session) this.report(true);
  }

  async start(choices: Choices): Promise<void> {
    await this.replace(new TrainingSession(choicesFrom({ ...choices }), { runtime, threads }));
  }

  async load(files: Parameters<Calls["load"]>[0]): Promise<Choices> {
    const { choices, weights } = readFolder(files);
    const session = new TrainingSession(choices, { runtime, threads });
    session.init("fwm", weights, "model.safetensors");
    await this.replace(session);
    return choices;
  }

  async restore(wanted: Choices | null): Promise<boolean> {
    const bytes = await this.file.read();
    if (!bytes) return false;
    let session: TrainingSession;
    try {
      session = TrainingSession.resume(bytes, { runtime, threads });
    } catch {
      // Of another version, or damaged: nothing to go on from.
      return false;
    }
    if (wanted && !sameChoices(wanted, session.choices)) return false;
    await this.replace(session);
    this.restored = true;
    this.saved = { step: session.step };
    this.report(true);
    return true;
  }

  private async replace(session: TrainingSession): Promise<void> {
    await this.stop(null);
    const before = this.session;
    this.session = session;
    this.last = {};
    this.speed = null;
    this.failed = false;
    this.restored = false;
    this.saved = null;
    this.evaluatedAt = 0;
    this.evaluationTook = 0;
    await this.models.use(session);
    await before?.release();
    if (session.step > 0) this.models.snapshot();
    this.report(true);
    this.reportCurves();
  }

  play(): void {
    if (this.playing) return;
    this.playing = true;
    this.reason = null;
    this.restored = false;
    this.work = this.work.then(() => this.loop());
  }

  async stop(reason: string | null): Promise<void> {
    const wasPlaying = this.playing;
    this.playing = false;
    await this.work;
    if (!wasPlaying) return;
    this.reason = reason;
    await this.save();
    this.report(true);
  }

  async single(): Promise<void> {
    await this.stop(null);
    this.work = this.work.then(() => this.guarded(() => this.advance()));
    await this.work;
    await this.save();
    this.report(true);
  }

  async forget(): Promise<void> {
    await this.file.remove();
    this.saved = null;
    this.report(true);
  }

  private async loop(): Promise<void> {
    await this.guarded(async () => {
      while (this.playing) {
        await this.advance();
        this.report(false);
        if (performance.now() - this.savedAt > saveEvery) await this.save();
        await nextTask();
      }
    });
  }

  /** Runs training; whatever goes wrong ends it with the reason. */
  private async guarded(train: () => Promise<void>): Promise<void> {
    this.isBusy = true;
    try {
      await train();
    } catch (error) {
      this.playing = false;
      this.failed = true;
      this.reason = error instanceof Error ? error.message : String(error);
    } finally {
      this.isBusy = false;
      this.report(true);
    }
  }

  private async advance(): Promise<void> {
    const session = this.current();
    // Before the first step: what chance gives.
    if (session.step === 0) await this.evaluate(session);
    const start = performance.now();
    this.last = await session.train();
    const now = 1000 / (performance.now() - start);
    // The first steps compile.
    this.speed = this.speed === null || session.step < 3 ? now : 0.9 * this.speed + 0.1 * now;
    if (session.step % this.evalEvery === 0 && this.mayEvaluate(session)) await this.evaluate(session);
  }

  /** Evaluations take a sixth of the time at most, so that small settings are not slowed down by them; the last step has one. */
  private mayEvaluate({ seconds, step, choices }: TrainingSession): boolean {
    return step === choices.steps || seconds - this.evaluatedAt >= 5 * this.evaluationTook;
  }

  private async evaluate(session: TrainingSession): Promise<void> {
    const before = session.seconds;
    await session.evaluate();
    this.evaluatedAt = session.seconds;
    this.evaluationTook = session.step === 0 ? 0 : session.seconds - before;
    this.models.snapshot();
    this.reportCurves();
  }

  private async save(): Promise<void> {
    const { session } = this;
    if (!session || session.step === 0) return;
    const { step } = session;
    const problem = await this.file.write(session.checkpoint());
    this.savedAt = performance.now();
    this.saved = problem === undefined ? { step } : { problem };
  }

  private get phase(): Phase {
    if (this.failed) return "failed";
    if (!this.session) return "idle";
    if (this.playing || this.isBusy) return this.beingCompiled > 0 ? "compiling" : "training";
    return this.session.step > 0 ? "paused" : "idle";
  }

  private report(always: boolean): void {
    const now = performance.now();
    if (!always && now - this.reportedAt < reportEvery) return;
    this.reportedAt = now;
    const { session } = this;
    send({
      kind: "status",
      status: {
        phase: this.phase,
        reason: this.reason,
        choices: session?.choices ?? null,
        weights: session?.weightCount("fwm") ?? null,
        step: session?.step ?? 0,
        seconds: session?.seconds ?? 0,
        stepsPerSecond: this.speed,
        last: this.last,
        threads,
        saved: this.saved,
        restored: this.restored,
      },
    });
  }

  private reportCurves(): void {
    const { session } = this;
    if (!session) return;
    const curves: Curves = Object.fromEntries(session.systems.map((name) => [name, session.curve(name)]));
    send({ kind: "curves", curves });
  }
}

const trainer = new Trainer();

type Handlers = {
  readonly [Name in CallName]: (
    argument: Parameters<Calls[Name]>[0],
  ) => ReturnType<Calls[Name]> | Promise<ReturnType<Calls[Name]>>;
};

const handlers: Handlers = {
  restore: (choices) => trainer.restore(choices),
  start: (choices) => trainer.start(choices),
  load: (files) => trainer.load(files),
  play: () => trainer.play(),
  pause: (reason) => trainer.stop(reason),
  step: () => trainer.single(),
  forget: () => trainer.forget(),
  models: () => trainer.models.list(),
  vocabulary: () => trainer.models.words(),
  ask: (request) => trainer.models.ask(request),
  folder: (system) => folderOf(trainer.current(), system),
  onnx: (system) => onnxOf(trainer.current(), system),
};

addEventListener("message", ({ data }: MessageEvent<CallMessage>) => {
  const { id, name, argument } = data;
  const handle = handlers[name] as (argument: unknown) => unknown;
  // In a promise of its own, so that a handler that throws at once is a refusal too.
  Promise.resolve()
    .then(() => handle(argument))
    .then(
      (value) => send({ kind: "answer", id, value }),
      (error: unknown) =>
        send({
          kind: "refusal",
          id,
          message: error instanceof Error ? error.message : String(error),
          unknownWords: error instanceof UnknownWordError ? Object.fromEntries(error.suggestions) : {},
        }),
    );
});

function send(message: WorkerMessage): void {
  postMessage(message);
}

const channel = new MessageChannel();
const waiting: (() => void)[] = [];
channel.port1.onmessage = () => waiting.shift()?.();

/** Lets messages in: a promise alone would keep them out until training ends. */
function nextTask(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    channel.port2.postMessage(null);
  });
}
