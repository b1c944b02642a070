/** One token per row through a system: its plain step, compiled with the weights inside. */
import { lower } from "../compile/lower.ts";
import { UsageError } from "../errors.ts";
import { input, state, stateAttrs } from "../graph/index.ts";
import type { SequenceModel } from "../model/sequence.ts";
import { Program, type ProgramPlan, planProgram } from "../runtime/program.ts";
import type { Runtime, Session, SessionOptions } from "../runtime/runtime.ts";
import { State } from "../runtime/state.ts";

/** Prefix of the outputs that are insights into the step. */
export const tracePrefix = "trace.";

/** A compiled step for a number of rows. */
export class StepProgram {
  private constructor(
    readonly plan: ProgramPlan,
    readonly session: Session,
  ) {}

  /** Compiles the step for `rows` rows. */
  static async compile(
    model: SequenceModel,
    weights: ReadonlyMap<string, Float32Array>,
    rows: number,
    runtime: Runtime,
    options: SessionOptions,
  ): Promise<StepProgram> {
    const before = model.recurrent.map(({ name, shape }) => state(name, shape(rows)));
    const { logits, state: after, trace } = model.step(input("tokens", [rows], "i32"), before);
    const insights = Object.entries(trace).map(([name, tensor]) => [tracePrefix + name, tensor] as const);
    const whole = planProgram({
      name: "step",
      outputs: { logits, ...Object.fromEntries(insights) },
      updates: before.map((tensor, i) => [tensor, after[i]!] as const),
    });
    // The weights go into the program, so that a stream's state is its own and nothing else.
    const isWeight = (name: string): boolean => weights.has(name);
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

interface Kept {
  readonly step: Promise<StepProgram>;
  /** Calls that need it at the moment. */
  users: number;
}

/**
 * The compiled steps of a model, by their number of rows. Each holds a copy of the weights, so only those used last
 * are kept; a stream whose step was let go has it compiled again.
 */
export class StepPrograms {
  private readonly kept = new Map<number, Kept>();
  private released = false;

  constructor(
    private readonly compile: (rows: number) => Promise<StepProgram>,
    private readonly most = 3,
  ) {}

  /** The program for a number of rows over a state of its own, all zeros. */
  instance(rows: number): Promise<Program> {
    return this.use(rows, ({ plan }) => {
      const own = new State();
      for (const tensor of plan.states.values()) own.declare(stateAttrs(tensor)!);
      return new Program(plan, own, {
        run: (feeds, into) => this.use(rows, ({ session }) => session.run(feeds, into)),
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

  private async use<T>(rows: number, act: (step: StepProgram) => T | Promise<T>): Promise<T> {
    if (this.released) throw new UsageError("the model was released and cannot run any more");
    const found = this.kept.get(rows) ?? { step: this.compile(rows), users: 0 };
    this.kept.delete(rows);
    this.kept.set(rows, found);
    found.users++;
    try {
      // One that cannot be compiled is not kept: the next call tries again.
      const step = await found.step.catch((error: unknown) => {
        if (this.kept.get(rows) === found) this.kept.delete(rows);
        throw error;
      });
      return await act(step);
    } finally {
      found.users--;
      await this.evict();
    }
  }

  /** Lets the steps go that were not used for longest, as long as nobody needs them. */
  private async evict(): Promise<void> {
    for (const [rows, { step, users }] of this.kept) {
      if (this.kept.size <= this.most) return;
      if (users > 0) continue;
      this.kept.delete(rows);
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
