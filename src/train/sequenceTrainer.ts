/**
 * Trains a system that reads a stream of tokens: the compiled step, and nothing of the loop.
 *
 * A batch says where logits and loss are wanted, and with which weight. The recurrent state is carried from window
 * to window, gradients are not.
 */
import { grad } from "../compile/grad.ts";
import { DataError } from "../errors.ts";
import { input, sameShape, scoped, showType, stateAttrs } from "../graph/index.ts";
import type { SequenceModel } from "../model/sequence.ts";
import { ProgramCache } from "../runtime/cache.ts";
import type { HostData, HostTensor } from "../runtime/host.ts";
import {
  type CompileOptions,
  compile,
  type Program,
  type ProgramSpec,
  type RunKey,
} from "../runtime/program.ts";
import { State } from "../runtime/state.ts";
import { clipByNorm, globalNorm, movingAverage, type Optimizer } from "./optimizers.ts";
import {
  compileOptions,
  inputsOf,
  lossWindow,
  readWindow,
  shapeName,
  type TokenBatch,
} from "./sequenceWindow.ts";

/** How a system is trained. */
export interface TrainerSettings {
  /** The optimizer, and the averaging one that may follow it. */
  readonly optimizers: { readonly first: Optimizer; readonly averaging?: Optimizer };
  /** Global gradient norm, or 0 for no clipping. */
  readonly clip: number;
  /** Decay of the moving average of the weights that evaluation uses; 0: the weights themselves. */
  readonly emaDecay: number;
  /** Weight of the facts in the loss, where a batch has any; 0 unless given. */
  readonly factCoef?: number;
  /** Seed of the weights and of dropout. */
  readonly seed: number;
}

/** What one step gives. */
export interface TrainStep {
  readonly loss: number;
  readonly gradNorm: number;
  /** How far reads are from the facts that the batch told. */
  readonly factLoss?: number;
  /**
   * i32, as the targets: the most probable token at each; empty for a system that has no logits of all words at once.
   * Overwritten by the next step.
   */
  readonly predicted: Int32Array;
  /** An iteration did not converge, and the window was computed again without it. */
  readonly fallback: boolean;
  /** The first tensor that was not finite: the weights and the state were left as they had been. */
  readonly nonFinite?: string;
}

/** Tensors of a trainer as a checkpoint holds them. */
export interface TrainerTensors {
  /** The weights that evaluation uses. */
  readonly model: ReadonlyMap<string, HostTensor>;
  /** All else: moments, recurrent state, and where `model` has averages, the weights themselves. */
  readonly optimizer: ReadonlyMap<string, HostTensor>;
}

/** Prefix of the states that belong to the training stream. */
export const trainPrefix = "train.";
const averagePrefix = "average.";
const asgdPrefix = "asgd.average.";
/** Prefix, in a checkpoint, of weights whose average is what evaluation uses. */
const rawPrefix = "raw.";

const nothing = new Int32Array(0);

/** Which optimizer a program steps with; `read` only carries the recurrent state on. */
type Phase = "first" | "averaging" | "read";

/** Whether a step counts: all is finite, and what was iterated converged. */
function isSound({ loss, gradNorm, residual }: Readonly<Record<string, HostData>>): boolean {
  const finite = [loss![0], gradNorm![0]].every((value) => Number.isFinite(Number(value)));
  return finite && (residual === undefined || Number(residual[0]) <= 1);
}

/** A system under training: weights, optimizer and the stream's recurrent state live in `state`. */
export class SequenceTrainer {
  readonly state: State;
  private readonly programs = new ProgramCache();
  private readonly weightNames: readonly string[];

  constructor(
    readonly model: SequenceModel,
    readonly settings: TrainerSettings,
    private readonly options: Omit<CompileOptions, "state">,
  ) {
    this.state = new State(settings.seed);
    for (const parameter of model.parameters) this.state.declare(stateAttrs(parameter)!);
    this.weightNames = model.parameters.map((parameter) => stateAttrs(parameter)!.name);
  }

  /** Whether the averaging optimizer is at work; it is from its first step on. */
  get averaging(): boolean {
    return this.state.has("asgd.steps");
  }

  /**
   * One step on one window. A window that an iteration did not get right is computed again without it. Nothing changes
   * when the loss or the gradient is not finite.
   */
  async step(
    batch: TokenBatch,
    {
      learningRate,
      key,
      averaging = this.averaging,
    }: { learningRate: number; key: RunKey; averaging?: boolean },
  ): Promise<TrainStep> {
    if (batch.positions?.length === 0) return this.read(batch, key);
    const phase = averaging ? "averaging" : "first";
    const inputs = { ...inputsOf(batch), learningRate };
    let program = await this.program(phase, batch, false);
    let out = await program.run(inputs, key, isSound);
    const fallback = out.residual !== undefined && !isSound(out);
    if (fallback) {
      program = await this.program(phase, batch, true);
      out = await program.run(inputs, key, isSound);
    }
    const [loss, gradNorm] = [Number(out.loss![0]), Number(out.gradNorm![0])];
    const step = {
      ...{ loss, gradNorm, predicted: (out.predicted ?? nothing) as Int32Array, fallback },
      ...(out.factLoss ? { factLoss: Number(out.factLoss[0]) } : {}),
    };
    return isSound(out) ? step : { ...step, nonFinite: this.firstNonFinite(program, loss) };
  }

  /** Reads a window that has nothing to learn from: only the recurrent state moves on. */
  private async read(batch: TokenBatch, key: RunKey): Promise<TrainStep> {
    // Without a state nothing is left of what was read.
    if (this.model.recurrent.length > 0) {
      const program = await this.program("read", batch, true);
      await program.run(inputsOf(batch), key);
    }
    return { loss: 0, gradNorm: 0, predicted: nothing, fallback: false };
  }

  private firstNonFinite(program: Program, loss: number): string {
    for (const name of program.plan.updated) {
      const { data } = this.state.spare(name);
      if (data instanceof Float32Array && !data.every(Number.isFinite)) return name;
    }
    return Number.isFinite(loss) ? "gradient norm" : "loss";
  }

  private program(phase: Phase, batch: TokenBatch, exact: boolean): Promise<Program> {
    return this.programs.get(`${phase} ${shapeName(batch)}${exact ? " exact" : ""}`, () =>
      compile(this.spec(phase, batch, exact), {
        ...compileOptions(this.model, this.options),
        state: this.state,
      }),
    );
  }

  private spec(phase: Phase, batch: TokenBatch, exact: boolean): ProgramSpec {
    const { optimizers, clip, emaDecay, factCoef = 0 } = this.settings;
    if (phase === "read") {
      const { updates } = readWindow(this.model, batch, trainPrefix, { training: true, exact });
      return { name: "read", outputs: {}, updates };
    }
    const window = lossWindow(this.model, batch, trainPrefix, { training: true, exact, factCoef });
    const { parameters } = this.model;
    const gradients = grad(window.objective, parameters);
    const { gradNorm, updates } = scoped("optimizer", () => {
      const norm = globalNorm(gradients);
      const clipped = clip > 0 ? clipByNorm(gradients, clip, norm) : gradients;
      const optimizer = phase === "first" ? optimizers.first : optimizers.averaging!;
      const steps = optimizer(parameters, clipped, input("learningRate", []));
      return {
        gradNorm: norm,
        updates: [...steps, ...(emaDecay > 0 ? movingAverage(steps, parameters, emaDecay) : [])],
      };
    });
    const { loss, predicted, residual, factLoss } = window;
    return {
      name: "train",
      outputs: {
        loss,
        gradNorm,
        ...(predicted ? { predicted } : {}),
        ...(residual ? { residual } : {}),
        ...(factLoss ? { factLoss } : {}),
      },
      updates: [...updates, ...window.updates],
    };
  }

  /** Everything to save. */
  snapshot(): TrainerTensors {
    const model = new Map<string, HostTensor>();
    const optimizer = new Map<string, HostTensor>();
    const average = this.averageOf();
    const averages = new Set(average ? this.weightNames.map((name) => average + name) : []);
    for (const [name, tensor] of this.state.snapshot((key) => !averages.has(key))) {
      if (!this.weightNames.includes(name)) optimizer.set(name, tensor);
      else if (!average) model.set(name, tensor);
      else {
        optimizer.set(rawPrefix + name, tensor);
        const { data } = this.state.get(average + name);
        model.set(name, { ...tensor, data: (data as Float32Array).slice() });
      }
    }
    return { model, optimizer };
  }

  /** Takes over what `snapshot` gave, or weights alone, before the first step; `source` names the file in errors. */
  restore({ model, optimizer }: TrainerTensors, source: string): void {
    for (const name of this.weightNames) {
      if (!model.has(name)) throw new DataError(`${source}: tensor ${name} is missing`);
    }
    const average = optimizer.has("asgd.steps") ? asgdPrefix : averagePrefix;
    for (const [name, tensor] of model) {
      const raw = optimizer.get(rawPrefix + name);
      this.put(name, raw ?? tensor, source);
      if (raw) this.put(average + name, tensor, source);
    }
    for (const [name, tensor] of optimizer) {
      if (!name.startsWith(rawPrefix)) this.put(name, tensor, source);
    }
  }

  private put(name: string, { shape, dtype, data }: HostTensor, source: string): void {
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

  /** The prefix of the averages that evaluation uses instead of the weights, once there are any. */
  private averageOf(): string | undefined {
    const prefix = this.averaging ? asgdPrefix : this.settings.emaDecay > 0 ? averagePrefix : undefined;
    return prefix !== undefined && this.state.has(prefix + this.weightNames[0]!) ? prefix : undefined;
  }

  /** The weights evaluation uses: their average if there is one. */
  evaluationWeights(): Map<string, ArrayLike<number>> {
    const average = this.averageOf() ?? "";
    return new Map(
      this.weightNames.map((name) => [name, this.state.get(average + name).data as Float32Array]),
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

  /** Puts the stream back to its start: every row's recurrent state is the system's initial one again. */
  resetState(): void {
    for (const part of this.model.recurrent) {
      const name = trainPrefix + part.name;
      if (!this.state.has(name)) continue;
      const { shape, dtype } = this.state.get(name);
      this.state.reset({ name, shape, dtype, initial: part.initial ?? { kind: "zeros" } });
    }
  }

  /** Frees all compiled programs. */
  async release(): Promise<void> {
    await this.programs.release();
  }
}
