/**
 * Trains and evaluates a system that reads a stream of tokens: the compiled step, and nothing of the loop.
 *
 * In QA mode logits are computed, and the loss is taken, only where the input is "?"; in LM mode everywhere but
 * at padding. Either way the recurrent state is carried from window to window, gradients are not.
 */
import { grad } from "../compile/grad.ts";
import { DataError } from "../errors.ts";
import {
  argmax,
  classLosses,
  crossEntropy,
  input,
  type Shape,
  sameShape,
  scoped,
  showType,
  state,
  stateAttrs,
  type Tensor,
} from "../graph/index.ts";
import type { SequenceModel } from "../model/sequence.ts";
import { ProgramCache } from "../runtime/cache.ts";
import type { HostTensor } from "../runtime/host.ts";
import {
  type CompileOptions,
  compile,
  type Program,
  type ProgramSpec,
  type RunKey,
} from "../runtime/program.ts";
import { State } from "../runtime/state.ts";
import { averaged, clipByNorm, globalNorm, type Optimizer } from "./optimizers.ts";
import { type AskedBatch, collectQueries, type Queries } from "./queries.ts";

/** QA: only answers count. LM: every next token. */
export type Mode = "qa" | "lm";

/** What a window is made of: time-major arrays, as the batcher gives them. */
export interface TokenBatch extends AskedBatch {
  readonly tokens: Int32Array;
  /** Number of padded positions. */
  readonly padded: number;
}

/** How a system is trained. */
export interface TrainerSettings {
  readonly mode: Mode;
  readonly optimizer: Optimizer;
  /** Global gradient norm, or 0 for no clipping. */
  readonly clip: number;
  /** Decay of the moving average of the weights that evaluation uses; 0: the weights themselves. */
  readonly averaging: number;
  /** Seed of the weights and of dropout. */
  readonly seed: number;
}

/** What one step tells. */
export interface StepResult {
  readonly loss: number;
  readonly gradNorm: number;
  readonly correct: number;
  readonly questions: number;
  /** Set when an iteration did not converge and the window was computed again without it. */
  readonly fallback?: true;
  /** Set when something was not finite: the weights and the state were left as they had been. */
  readonly refused?: string;
}

/** Answers of one window under evaluation. */
export interface WindowAnswers {
  /** Mean loss over the window's questions; 0 without any. */
  readonly answerLoss: number;
  /** Mean loss in the training mode. */
  readonly loss: number;
  /** Positions (t · B + b) of the questions and whether each was answered correctly. */
  readonly positions: Int32Array;
  readonly correct: Uint8Array;
}

/** Prefix of the states that belong to the training stream. */
export const trainPrefix = "train.";
/** Prefix of the averaged weights. */
export const averagePrefix = "average.";

/** What a program does with a window; only the first may leave a residual. */
type ProgramKind = "train" | "train exact" | "advance";

/** Whether a step counts: all is finite, and what was iterated converged. */
function isSound({
  loss,
  gradNorm,
  residual,
}: Readonly<Record<string, ArrayLike<number | bigint>>>): boolean {
  const finite = [loss![0], gradNorm![0]].every((x) => Number.isFinite(Number(x)));
  return finite && (residual === undefined || Number(residual[0]) <= 1);
}

/** A system under training: weights, optimizer and the stream's recurrent state live in `state`. */
export class SequenceTrainer {
  readonly state: State;
  private readonly programs = new ProgramCache();

  constructor(
    readonly model: SequenceModel,
    readonly settings: TrainerSettings,
    private readonly options: Omit<CompileOptions, "state">,
  ) {
    this.state = new State(settings.seed);
    for (const parameter of model.parameters) this.state.declare(stateAttrs(parameter)!);
  }

  /**
   * One update on one window. A window that an iteration did not get right is computed again without it. Nothing
   * changes when the loss or the gradient is not finite.
   */
  async step(batch: TokenBatch, learningRate: number, key: RunKey): Promise<StepResult> {
    const queries = collectQueries(batch);
    if (this.settings.mode === "qa" && queries.count === 0) return this.advance(batch, queries);
    const inputs = { ...this.inputs(batch, queries), learningRate };
    let program = await this.program("train", batch, queries);
    let out = await program.run(inputs, key, isSound);
    const fallback = out.residual !== undefined && !isSound(out);
    if (fallback) {
      program = await this.program("train exact", batch, queries);
      out = await program.run(inputs, key, isSound);
    }
    const [loss, gradNorm] = [Number(out.loss![0]), Number(out.gradNorm![0])];
    const correct = countCorrect(this.settings.mode, queries, out.predicted as Int32Array);
    const finite = Number.isFinite(loss) && Number.isFinite(gradNorm);
    return {
      loss,
      gradNorm,
      correct,
      questions: queries.count,
      ...(fallback ? { fallback } : {}),
      ...(finite ? {} : { refused: this.blame(program, loss) }),
    };
  }

  /** Reads a window without an update: a segment without questions in QA mode. */
  private async advance(batch: TokenBatch, queries: Queries): Promise<StepResult> {
    const program = await this.program("advance", batch, queries);
    await program.run(this.inputs(batch, queries));
    return { loss: 0, gradNorm: 0, correct: 0, questions: 0 };
  }

  /** Names the first tensor of a refused update that is not finite. */
  private blame(program: Program, loss: number): string {
    for (const name of program.plan.updated) {
      const { data } = this.state.spare(name);
      if (data instanceof Float32Array && !data.every(Number.isFinite)) return name;
    }
    return Number.isFinite(loss) ? "gradient norm" : "loss";
  }

  private inputs(batch: TokenBatch, queries: Queries): Record<string, Int32Array | Float32Array> {
    return {
      tokens: batch.tokens,
      ...(batch.padded > 0 ? { alive: aliveMask(batch) } : {}),
      ...lossInputs(this.settings.mode, batch, queries),
    };
  }

  private program(kind: ProgramKind, batch: TokenBatch, queries: Queries): Promise<Program> {
    const slots = this.settings.mode === "qa" ? queries.slots : 0;
    const name = `${kind} ${batch.batch}x${batch.window} ${slots} ${batch.padded > 0 ? "padded" : "full"}`;
    return this.programs.get(name, () =>
      compile(this.spec(kind, batch, slots), { ...this.options, state: this.state }),
    );
  }

  private spec(kind: ProgramKind, batch: TokenBatch, slots: number): ProgramSpec {
    const { mode, optimizer, clip, averaging } = this.settings;
    const built = buildWindow(this.model, mode, batch, slots, trainPrefix, kind !== "train");
    const carried = built.before.map((tensor, i) => [tensor, built.after[i]!] as const);
    if (kind === "advance") return { name: "advance", outputs: { loss: built.loss }, updates: carried };
    const { parameters } = this.model;
    const gradients = grad(built.loss, parameters);
    const { gradNorm, updates } = scoped("optimizer", () => {
      const norm = globalNorm(gradients);
      const clipped = clip > 0 ? clipByNorm(gradients, clip, norm) : gradients;
      const steps = optimizer(parameters, clipped, input("learningRate", []));
      const averages = averaging > 0 ? averaged(steps, parameters, averaging) : [];
      return { gradNorm: norm, updates: [...steps, ...averages] };
    });
    return {
      name: "train",
      outputs: {
        loss: built.loss,
        gradNorm,
        predicted: built.predicted,
        ...(built.residual ? { residual: built.residual } : {}),
      },
      updates: [...updates, ...carried],
    };
  }

  /** Takes over everything a checkpoint holds, before the first step. */
  adopt(values: ReadonlyMap<string, HostTensor>, source: string): void {
    for (const [name, { shape, dtype, data }] of values) {
      const known = this.state.has(name) ? this.state.get(name) : undefined;
      if (known && !sameShape(known.shape, shape)) {
        throw new DataError(`${source}: tensor ${name} has another shape`, {
          expected: showType(known),
          found: showType({ shape, dtype }),
        });
      }
      this.state.declare({ name, shape, dtype, initial: { kind: "zeros" } });
      this.state.set(name, data as Float32Array);
    }
    for (const parameter of this.model.parameters) {
      const { name } = stateAttrs(parameter)!;
      if (!values.has(name)) throw new DataError(`${source}: tensor ${name} is missing`);
    }
  }

  /** The weights evaluation uses: their moving average if there is one. */
  evaluationWeights(): Map<string, ArrayLike<number>> {
    const average = this.settings.averaging > 0;
    return new Map(
      this.model.parameters.map((parameter) => {
        const { name } = stateAttrs(parameter)!;
        const from = average && this.state.has(averagePrefix + name) ? averagePrefix + name : name;
        return [name, this.state.get(from).data as Float32Array];
      }),
    );
  }

  /** The recurrent state of one row of the training stream, by name. */
  rowState(row: number): Map<string, Float32Array> {
    const parts = new Map<string, Float32Array>();
    for (const { name, shape } of this.model.recurrent) {
      if (!this.state.has(trainPrefix + name)) continue;
      const size = shape(1).reduce((a, b) => a * b, 1);
      const all = this.state.get(trainPrefix + name).data as Float32Array;
      parts.set(name, all.slice(row * size, (row + 1) * size));
    }
    return parts;
  }

  /** Frees all compiled programs. */
  async release(): Promise<void> {
    await this.programs.release();
  }
}

/** Answers a stream with fixed weights, window by window. */
export class SequenceEvaluator {
  private readonly state = new State();
  private readonly programs = new ProgramCache();

  constructor(
    private readonly model: SequenceModel,
    private readonly mode: Mode,
    private readonly options: Omit<CompileOptions, "state">,
  ) {
    for (const parameter of model.parameters) this.state.declare(stateAttrs(parameter)!);
  }

  /** Takes over weights by name. */
  load(weights: ReadonlyMap<string, ArrayLike<number>>): void {
    for (const [name, values] of weights) this.state.set(name, values);
  }

  /** Begins a stream of `batch` rows, each from the same state (zeros where none is given). */
  begin(batch: number, row: ReadonlyMap<string, Float32Array> = new Map()): void {
    for (const { name, shape } of this.model.recurrent) {
      const full = shape(batch);
      this.state.declare({
        name: evalName(batch, name),
        shape: full,
        dtype: "f32",
        initial: { kind: "zeros" },
      });
      const { data } = this.state.get(evalName(batch, name));
      const values = row.get(name);
      if (!values) data.fill(0 as never);
      else for (let b = 0; b < batch; b++) (data as Float32Array).set(values, b * values.length);
    }
  }

  /** Reads one window and answers its questions. */
  async answer(batch: TokenBatch): Promise<WindowAnswers> {
    const queries = collectQueries(batch);
    const slots = this.mode === "qa" ? queries.slots : 0;
    const name = `${batch.batch}x${batch.window} ${slots} ${batch.padded > 0 ? "padded" : "full"}`;
    const program = await this.programs.get(name, () => {
      const built = buildWindow(this.model, this.mode, batch, slots, evalPrefix(batch.batch));
      return compile(
        {
          name: "evaluate",
          outputs: { loss: built.loss, losses: built.losses, predicted: built.predicted },
          updates: built.before.map((tensor, i) => [tensor, built.after[i]!] as const),
        },
        { ...this.options, state: this.state },
      );
    });
    const out = await program.run({
      tokens: batch.tokens,
      ...(batch.padded > 0 ? { alive: aliveMask(batch) } : {}),
      ...lossInputs(this.mode, batch, queries),
    });
    return gatherAnswers(this.mode, queries, out as { loss: Float32Array } & Record<string, Float32Array>);
  }

  /** Frees all compiled programs. */
  async release(): Promise<void> {
    await this.programs.release();
  }
}

function evalPrefix(batch: number): string {
  return `eval${batch}.`;
}

function evalName(batch: number, name: string): string {
  return evalPrefix(batch) + name;
}

interface BuiltWindow {
  readonly before: Tensor[];
  readonly after: readonly Tensor[];
  readonly loss: Tensor;
  readonly losses: Tensor;
  readonly predicted: Tensor;
  readonly residual?: Tensor;
}

function buildWindow(
  model: SequenceModel,
  mode: Mode,
  { batch: B, window: T, padded }: TokenBatch,
  slots: number,
  prefix: string,
  exact = true,
): BuiltWindow {
  const before = model.recurrent.map(({ name, shape }) => state(prefix + name, shape(B)));
  const positions: Shape = mode === "qa" ? [B, slots] : [T, B];
  const {
    logits,
    state: after,
    residual,
  } = model.window({
    tokens: input("tokens", [T, B], "i32"),
    state: before,
    training: prefix === trainPrefix,
    exact,
    ...(padded > 0 ? { mask: input("alive", [T, B]) } : {}),
    ...(mode === "qa" ? { positions: input("queries", positions, "i32") } : {}),
  });
  const targets = input("targets", positions, "i32");
  return scoped("output", () => ({
    before,
    after,
    loss: crossEntropy(logits, targets, input("counted", positions)),
    losses: classLosses(logits, targets),
    predicted: argmax(logits),
    ...(residual ? { residual } : {}),
  }));
}

function lossInputs(
  mode: Mode,
  batch: TokenBatch,
  queries: Queries,
): Record<string, Int32Array | Float32Array> {
  return mode === "qa"
    ? { queries: queries.ids, targets: queries.targets, counted: queries.mask }
    : { targets: batch.targets, counted: aliveMask(batch) };
}

/** 1 where the input is not padding; `<pad>` is token 0. */
function aliveMask({ tokens }: TokenBatch): Float32Array {
  return Float32Array.from(tokens, (token) => (token === 0 ? 0 : 1));
}

function countCorrect(mode: Mode, queries: Queries, predicted: Int32Array): number {
  let correct = 0;
  queries.mask.forEach((asked, i) => {
    const at = mode === "qa" ? i : queries.ids[i]!;
    if (asked && predicted[at] === queries.targets[i]) correct++;
  });
  return correct;
}

function gatherAnswers(mode: Mode, queries: Queries, out: Record<string, ArrayLike<number>>): WindowAnswers {
  const positions = new Int32Array(queries.count);
  const correct = new Uint8Array(queries.count);
  let total = 0;
  let n = 0;
  queries.mask.forEach((asked, i) => {
    if (!asked) return;
    const at = mode === "qa" ? i : queries.ids[i]!;
    total += out.losses![at]!;
    positions[n] = queries.ids[i]!;
    correct[n++] = out.predicted![at] === queries.targets[i] ? 1 : 0;
  });
  return {
    answerLoss: queries.count > 0 ? total / queries.count : 0,
    loss: Number(out.loss![0]),
    positions,
    correct,
  };
}
