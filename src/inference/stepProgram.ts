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

/** A compiled step for a number of rows, shared by all streams of that number. */
export class StepProgram {
  private released = false;

  private constructor(
    private readonly plan: ProgramPlan,
    private readonly session: Session,
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

  /** The program over a state of its own, all zeros. */
  instance(): Program {
    const own = new State();
    for (const tensor of this.plan.states.values()) own.declare(stateAttrs(tensor)!);
    const { session } = this;
    return new Program(this.plan, own, {
      run: (feeds, into) => {
        if (this.released) throw new UsageError("the model was released and cannot run any more");
        return session.run(feeds, into);
      },
      release: () => Promise.resolve(),
    });
  }

  /** Frees the runtime's memory, for all streams. */
  async release(): Promise<void> {
    this.released = true;
    await this.session.release();
  }
}

function without<V>(map: ReadonlyMap<string, V>, unwanted: (name: string) => boolean): Map<string, V> {
  return new Map([...map].filter(([name]) => !unwanted(name)));
}
