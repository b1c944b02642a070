/** A compiled graph with typed inputs, outputs and state: what models are trained and run with. */
import { lower } from "../compile/lower.ts";
import { simplify } from "../compile/simplify.ts";
import { nearest, ShapeError, UsageError } from "../errors.ts";
import { type MaskAttrs, type SourceAttrs, stateAttrs } from "../graph/ops/source.ts";
import { sameShape, showType, type Tensor, topological } from "../graph/tensor.ts";
import { fillMask, keyOf } from "../random.ts";
import { allocate, type HostData, type HostTensor, type HostValue, toHost } from "./host.ts";
import type { Runtime, Session, SessionOptions } from "./runtime.ts";
import { State } from "./state.ts";

/** Tensors by the name that their values get. */
export type Outputs = Readonly<Record<string, Tensor>>;

/** The value of each output. */
export type OutputValues<O extends Outputs> = { -readonly [Name in keyof O]: HostData };

/** What a program computes: named outputs, and the next values of states. */
export interface ProgramSpec<O extends Outputs = Outputs> {
  readonly name?: string;
  readonly outputs: O;
  /** Pairs of a state tensor and the tensor that replaces it at the end of a run. */
  readonly updates?: Iterable<readonly [state: Tensor, next: Tensor]>;
}

/** How a program is compiled. */
export interface CompileOptions extends SessionOptions {
  readonly runtime: Runtime;
  /** State shared with other programs; by default the program's own, drawn under seed 0. */
  readonly state?: State;
}

/** The seed and step that dropout masks are drawn under. */
export interface RunKey {
  readonly seed: number;
  readonly step: number;
}

/** Differentiated or not, a graph becomes a session of the runtime. */
export async function compile<O extends Outputs>(
  spec: ProgramSpec<O>,
  options: CompileOptions,
): Promise<Program<O>> {
  const plan = planProgram(spec);
  const state = options.state ?? new State();
  for (const tensor of plan.states.values()) state.declare(stateAttrs(tensor)!);
  const session = await options.runtime.createSession(lower(plan.graph), options);
  return new Program<O>(plan, state, session);
}

/** Everything known of a program before a runtime sees it. */
export interface ProgramPlan {
  readonly graph: { name: string; inputs: Map<string, Tensor>; outputs: Map<string, Tensor> };
  readonly inputs: ReadonlyMap<string, Tensor>;
  readonly states: ReadonlyMap<string, Tensor>;
  readonly masks: ReadonlyMap<string, MaskAttrs>;
  readonly outputs: ReadonlyMap<string, Tensor>;
  /** States that a run replaces. */
  readonly updated: readonly string[];
}

const nextPrefix = "next:";

/** Simplifies a program's graph and names its ends. */
export function planProgram({ name = "program", outputs, updates = [] }: ProgramSpec): ProgramPlan {
  const pairs = [...updates];
  for (const [from, to] of pairs) {
    if (!stateAttrs(from))
      throw new UsageError("compile: only states can be updated", { tensor: showType(from) });
    if (from.dtype !== to.dtype || !sameShape(from.shape, to.shape)) {
      throw new ShapeError(`compile: the next value of state ${stateAttrs(from)!.name} has another type`, {
        state: showType(from),
        next: showType(to),
      });
    }
  }
  const names = Object.keys(outputs);
  const reserved = names.find((key) => key.startsWith(nextPrefix));
  if (reserved !== undefined) {
    throw new UsageError(`compile: the output ${reserved} has the name of a state's next value`, {
      hint: `names that begin with ${nextPrefix} are taken`,
    });
  }
  const roots = simplify([...names.map((key) => outputs[key]!), ...pairs.map(([, next]) => next)]);
  const named = new Map(names.map((key, i) => [key, roots[i]!]));
  const updated = pairs.map(([from]) => stateAttrs(from)!.name);
  const twice = updated.find((key, i) => updated.indexOf(key) !== i);
  if (twice !== undefined) throw new UsageError(`compile: state ${twice} is updated twice`);
  const nexts = updated.map((key, i) => [nextPrefix + key, roots[names.length + i]!] as const);
  const inputs = new Map<string, Tensor>();
  const states = new Map<string, Tensor>();
  const masks = new Map<string, MaskAttrs>();
  const sources = new Map<string, Tensor>();
  const updatedTensors = pairs.map(([from]) => from);
  // What the caller wrote decides which inputs there are, not what the simplifier left of it.
  const written = [...Object.values(outputs), ...pairs.map(([, next]) => next)];
  const kept = new Set(topological([...roots, ...updatedTensors]));
  for (const node of new Set([...kept, ...topological(written)])) {
    if (!kept.has(node) && node.op.name !== "input") continue;
    const tensor = node.outputs[0]!;
    const kind = { input: inputs, state: states, randomMask: masks }[node.op.name];
    if (!kind) continue;
    const attrs = node.attrs as SourceAttrs & MaskAttrs;
    const twin = sources.get(attrs.name);
    if (twin && twin !== tensor) {
      throw new UsageError(`compile: two sources are called ${attrs.name}`, { hint: "names must be unique" });
    }
    if (named.has(attrs.name)) {
      throw new UsageError(`compile: an output has the name of the ${node.op.name} ${attrs.name}`, {
        hint: "give the output another name",
      });
    }
    sources.set(attrs.name, tensor);
    (kind as Map<string, unknown>).set(attrs.name, node.op.name === "randomMask" ? attrs : tensor);
  }
  const used = new Set(topological(roots));
  return {
    graph: {
      name,
      inputs: new Map([...sources].filter(([, tensor]) => used.has(tensor.node))),
      outputs: new Map([...named, ...nexts]),
    },
    inputs,
    states,
    masks,
    outputs: named,
    updated,
  };
}

/** A compiled program with the outputs of its spec. Release it when it is no longer needed. */
export class Program<O extends Outputs = Outputs> {
  private readonly feeds = new Map<string, HostTensor>();
  private readonly results = new Map<string, HostTensor>();
  private readonly maskTensors = new Map<string, HostTensor>();

  constructor(
    readonly plan: ProgramPlan,
    readonly state: State,
    private readonly session: Session,
  ) {
    for (const [name, { shape, dtype }] of plan.outputs) this.results.set(name, allocate(shape, dtype));
    for (const [name, { shape }] of plan.masks) this.maskTensors.set(name, allocate(shape, "bool"));
  }

  /**
   * Runs once and gives the outputs by name; states with an update take their next values. The arrays are
   * overwritten by the next run. `key` is needed when the program draws dropout masks. When `accept` says no to
   * the outputs, all states keep their values.
   */
  async run(
    inputs: Readonly<Record<string, HostValue>> = {},
    key?: RunKey,
    accept: (outputs: Readonly<OutputValues<O>>) => boolean = () => true,
  ): Promise<OutputValues<O>> {
    const end = this.state.begin(this.plan.updated.length > 0);
    try {
      this.feedInputs(inputs);
      this.drawMasks(key);
      const into = new Map(this.results);
      for (const name of this.plan.states.keys()) {
        if (this.plan.graph.inputs.has(name)) this.feeds.set(name, this.state.get(name));
      }
      for (const name of this.plan.updated) into.set(nextPrefix + name, this.state.spare(name));
      await this.session.run(this.feeds, into);
      // The plan's outputs are the spec's, name by name.
      const outputs = Object.fromEntries(
        [...this.results].map(([name, { data }]) => [name, data]),
      ) as OutputValues<O>;
      if (accept(outputs)) for (const name of this.plan.updated) this.state.swap(name);
      return outputs;
    } finally {
      end();
    }
  }

  /** From the next run on, an output is written into this array, which may be a part of a larger one. */
  bindOutput(output: string, data: HostData): void {
    const type = this.plan.outputs.get(output);
    if (!type) {
      throw new UsageError(`place: the program has no output ${output}`, {
        outputs: [...this.plan.outputs.keys()].join(", "),
        "did you mean": nearest(output, [...this.plan.outputs.keys()]).join(", "),
      });
    }
    this.results.set(output, toHost(output, data, type));
  }

  /** Frees the runtime's memory. State is JavaScript's and stays. */
  async release(): Promise<void> {
    await this.session.release();
  }

  private feedInputs(inputs: Readonly<Record<string, HostValue>>): void {
    for (const name of Object.keys(inputs)) {
      if (!this.plan.inputs.has(name)) {
        throw new UsageError(`run: the program has no input ${name}`, {
          inputs: [...this.plan.inputs.keys()].join(", "),
          "did you mean": nearest(name, [...this.plan.inputs.keys()]).join(", "),
        });
      }
    }
    for (const [name, type] of this.plan.inputs) {
      const value = Object.hasOwn(inputs, name) ? inputs[name] : undefined;
      if (value === undefined) {
        throw new UsageError(`run: input ${name} is missing`, { expected: showType(type) });
      }
      const given = toHost(name, value, type);
      if (this.plan.graph.inputs.has(name)) this.feeds.set(name, given);
    }
  }

  private drawMasks(key: RunKey | undefined): void {
    if (this.plan.masks.size === 0) return;
    if (!key) throw new UsageError("run: the program draws dropout masks and needs a key { seed, step }");
    for (const [name, { keep }] of this.plan.masks) {
      const mask = this.maskTensors.get(name)!;
      fillMask(mask.data as Uint8Array, keep, keyOf(key.seed, "mask", name, key.step));
      this.feeds.set(name, mask);
    }
  }
}
