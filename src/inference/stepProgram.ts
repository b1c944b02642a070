/** Tokens through a system: one per row, or a chunk of them, compiled with the weights inside. */
import { lookUpLate } from "../compile/lookUp.ts";
import { lower } from "../compile/lower.ts";
import { UsageError } from "../errors.ts";
import { input, state, stateAttrs, type Tensor } from "../graph/index.ts";
import { chunkOf } from "../model/chunk.ts";
import type { SequenceModel, StepOutput } from "../model/sequence.ts";
import { Program, type ProgramPlan, planProgram } from "../runtime/program.ts";
import type { Runtime, Session, SessionOptions } from "../runtime/runtime.ts";
import { State } from "../runtime/state.ts";

/** Prefix of the outputs that are insights into the step. */
export const tracePrefix = "trace.";

/** What a program reads in one run. */
export interface StepShape {
  /** Streams at once. */
  readonly rows: number;
  /** Tokens of each: one, or a chunk. */
  readonly tokens: number;
}

/** A compiled step, or chunk of steps, for a number of rows. */
export class StepProgram {
  private constructor(
    readonly plan: ProgramPlan,
    readonly session: Session,
  ) {}

  /**
   * Compiles the system for a shape. One token: `tokens` i32 [B] → logits [B, V], trace [B, ·]. A chunk: `tokens`
   * i32 [T, B], `mask` f32 [T, B] and `positions` i32 [B, 1], t · B + b of each row's last token → logits and trace of
   * these positions, and all [T, B, ·] of what the tracer keeps.
   */
  static async compile(
    model: SequenceModel,
    weights: ReadonlyMap<string, Float32Array>,
    shape: StepShape,
    runtime: Runtime,
    options: SessionOptions,
  ): Promise<StepProgram> {
    const before = model.recurrent.map((part) => state(part.name, part.shape(shape.rows)));
    const { logits, state: after, trace } = outputsOf(model, shape, before);
    // What nobody traces is not copied out.
    const insights = Object.entries(model.tracer ? trace : {}).map(
      ([name, tensor]) => [tracePrefix + name, tensor] as const,
    );
    // The weights go into the program, so that a stream's state is its own and nothing else.
    const isWeight = (name: string): boolean => weights.has(name);
    const named = [["logits", logits] as const, ...insights];
    const ends = lookUpLate([...named.map(([, tensor]) => tensor), ...after], (source) =>
      isWeight(stateAttrs(source)?.name ?? ""),
    );
    const whole = planProgram({
      name: "step",
      outputs: Object.fromEntries(named.map(([name], i) => [name, ends[i]!])),
      updates: before.map((tensor, i) => [tensor, ends[named.length + i]!] as const),
    });
    const embedded = new Map(
      [...whole.states]
        .filter(([name]) => isWeight(name))
        .map(([name, tensor]) => [name, { tensor, data: weights.get(name)! }]),
    );
    const graph = { ...whole.graph, inputs: without(whole.graph.inputs, isWeight) };
    const session = await runtime.createSession(lower({ ...graph, embedded }), options);
    return new StepProgram({ ...whole, graph, states: without(whole.states, isWeight) }, session);
  }
}

/** What the system makes of the inputs of a shape. */
function outputsOf(
  model: SequenceModel,
  { rows: B, tokens: T }: StepShape,
  before: readonly Tensor[],
): Pick<StepOutput, "logits" | "state" | "trace"> {
  if (T === 1) return model.step(input("tokens", [B], "i32"), before);
  return chunkOf(model, {
    tokens: input("tokens", [T, B], "i32"),
    mask: input("mask", [T, B]),
    positions: input("positions", [B, 1], "i32"),
    state: before,
  });
}

interface Kept extends StepShape {
  readonly step: Promise<StepProgram>;
  /** Calls that need it at the moment. */
  users: number;
}

/**
 * The compiled steps of a model, by their shape. Each holds a copy of the weights, so only those for the numbers of rows
 * used last are kept; a stream whose step was let go has it compiled again.
 */
export class StepPrograms {
  private readonly kept = new Map<string, Kept>();
  private released = false;

  constructor(
    private readonly compile: (shape: StepShape) => Promise<StepProgram>,
    private readonly mostRowCounts = 3,
  ) {}

  /** The program for a shape over a state: of its own and all zeros, or one that programs of other lengths share. */
  instance(shape: StepShape, state = new State()): Promise<Program> {
    return this.use(shape, ({ plan }) => {
      for (const tensor of plan.states.values()) state.declare(stateAttrs(tensor)!);
      return new Program(plan, state, {
        run: (feeds, into) => this.use(shape, ({ session }) => session.run(feeds, into)),
        release: () => Promise.resolve(),
      });
    });
  }

  /** Frees the runtime's memory, for all streams. */
  async release(): Promise<void> {
    this.released = true;
    const all = [...this.kept.values()];
    this.kept.clear();
    for (const { step } of all) await free(step);
  }

  private async use<T>(shape: StepShape, act: (step: StepProgram) => T | Promise<T>): Promise<T> {
    if (this.released) throw new UsageError("the model was released and cannot run any more");
    const key = `${shape.rows} ${shape.tokens}`;
    const found = this.kept.get(key) ?? { ...shape, step: this.compile(shape), users: 0 };
    this.kept.delete(key);
    this.kept.set(key, found);
    found.users++;
    try {
      // One that cannot be compiled is not kept: the next call tries again.
      const step = await found.step.catch((error: unknown) => {
        if (this.kept.get(key) === found) this.kept.delete(key);
        throw error;
      });
      return await act(step);
    } finally {
      found.users--;
      await this.evict();
    }
  }

  /** Lets the steps go whose number of rows was not used for longest, as long as nobody needs them. */
  private async evict(): Promise<void> {
    const recent = new Set<number>();
    for (const [key, { rows, step, users }] of [...this.kept].reverse()) {
      if (recent.size < this.mostRowCounts) recent.add(rows);
      if (recent.has(rows) || users > 0) continue;
      this.kept.delete(key);
      await free(step);
    }
  }
}

/** One that was never compiled has nothing to free. */
async function free(step: Promise<StepProgram>): Promise<void> {
  await step.then(
    ({ session }) => session.release(),
    () => undefined,
  );
}

function without<V>(map: ReadonlyMap<string, V>, unwanted: (name: string) => boolean): Map<string, V> {
  return new Map([...map].filter(([name]) => !unwanted(name)));
}
