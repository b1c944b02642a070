/** Evaluates a system that reads a stream of tokens: fixed weights, a recurrent state that is carried on. */
import { UsageError } from "../errors.ts";
import { input, stateAttrs } from "../graph/index.ts";
import type { SequenceModel } from "../model/sequence.ts";
import { ProgramCache } from "../runtime/cache.ts";
import { type CompileOptions, compile } from "../runtime/program.ts";
import { State } from "../runtime/state.ts";
import {
  compileOptions,
  inputsOf,
  type LossWindow,
  lossWindow,
  readWindow,
  shapeName,
  type TokenBatch,
} from "./sequenceWindow.ts";

/** A window under evaluation; the arrays are overwritten by the next. */
export interface EvaluatedWindow {
  /** Weighted mean over the window. */
  readonly loss: number;
  /** f32, as the targets: the loss of each. */
  readonly losses: Float32Array;
  /** i32, as the targets: the most probable token at each. */
  readonly predicted: Int32Array;
  /** f32, the targets' shape and one axis more: what the output layer read, if it was asked for. */
  readonly hidden?: Float32Array;
  /** f32, as the targets: the probability of that token, where it was asked for. */
  readonly confidence?: Float32Array;
}

/** What an evaluation computes beside the losses. */
interface Wanted {
  readonly hidden?: boolean;
  readonly confidence?: boolean;
}

/** Runs a stream through fixed weights, window by window. */
export class SequenceEvaluator {
  private readonly state = new State();
  private readonly programs = new ProgramCache();

  constructor(
    private readonly model: SequenceModel,
    private readonly options: Omit<CompileOptions, "state">,
  ) {
    for (const parameter of model.parameters) this.state.declare(stateAttrs(parameter)!);
  }

  /** Takes over weights by name. */
  load(weights: ReadonlyMap<string, ArrayLike<number>>): void {
    for (const [name, values] of weights) this.state.set(name, values);
  }

  /** Starts a stream of `batch` rows, each from the same state; where none is given from the system's own start. */
  start(batch: number, row: ReadonlyMap<string, Float32Array> = new Map()): void {
    for (const part of this.model.recurrent) {
      const shape = part.shape(batch);
      const initial = part.initial ?? { kind: "zeros" as const };
      const name = evalPrefix(batch) + part.name;
      this.state.reset({ name, shape, dtype: "f32", initial });
      const values = row.get(part.name);
      const { data } = this.state.get(name);
      if (values) for (let b = 0; b < batch; b++) (data as Float32Array).set(values, b * values.length);
    }
  }

  /**
   * Reads one window and evaluates it where the batch asks for it, softened by a temperature if one is given, with what
   * else is wanted.
   */
  async run(
    batch: TokenBatch,
    { temperature, hidden = false, confidence = false }: { temperature?: number } & Wanted = {},
  ): Promise<EvaluatedWindow> {
    const isSoftened = temperature !== undefined;
    const isRead = batch.positions?.length === 0;
    // Without a state nothing is left of what was read.
    if (isRead && this.model.recurrent.length === 0) return unscored;
    const form = Object.entries({ softened: isSoftened, hidden, confidence }).filter(
      ([, isWanted]) => isWanted,
    );
    const name = [shapeName(batch), ...form.map(([part]) => part)].join(" ");
    const program = await this.programs.get(name, () => {
      const prefix = evalPrefix(batch.batch);
      const how = { ...evaluation, ...(isSoftened ? { temperature: input("temperature", []) } : {}) };
      const { updates, outputs } = isRead
        ? { ...readWindow(this.model, batch, prefix, evaluation), outputs: {} }
        : evaluated(lossWindow(this.model, batch, prefix, how), { hidden, confidence });
      return compile(
        { name: "evaluate", outputs, updates },
        {
          ...compileOptions(this.model, this.options),
          state: this.state,
        },
      );
    });
    if (isSoftened && !program.plan.inputs.has("temperature")) {
      throw new UsageError("temperature: the system has none", {
        hint: "the language models awd-lstm, awd-fwm and awd-txl do",
      });
    }
    const out = await program.run({ ...inputsOf(batch), ...(isSoftened ? { temperature } : {}) });
    return {
      loss: Number(out.loss?.[0] ?? 0),
      losses: (out.losses ?? unscored.losses) as Float32Array,
      predicted: (out.predicted ?? unscored.predicted) as Int32Array,
      ...(out.hidden ? { hidden: out.hidden as Float32Array } : {}),
      ...(out.confidence ? { confidence: out.confidence as Float32Array } : {}),
    };
  }

  /** Frees all compiled programs. */
  async release(): Promise<void> {
    await this.programs.release();
  }
}

/** A window that was only read. */
const unscored: EvaluatedWindow = { loss: 0, losses: new Float32Array(0), predicted: new Int32Array(0) };

/** Nobody looks at a residual there. */
const evaluation = { training: false, exact: true };

function evaluated({ updates, loss, losses, predicted, hidden, confidence }: LossWindow, wanted: Wanted) {
  if (wanted.hidden && !hidden) {
    throw new UsageError("the system shows no hidden vectors", {
      hint: "the language models awd-lstm, awd-fwm and awd-txl do",
    });
  }
  return {
    updates,
    outputs: {
      loss,
      losses,
      ...(predicted ? { predicted } : {}),
      ...(wanted.hidden && hidden ? { hidden } : {}),
      ...(wanted.confidence && confidence ? { confidence } : {}),
    },
  };
}

function evalPrefix(batch: number): string {
  return `eval${batch}.`;
}
