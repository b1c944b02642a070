/**
 * Export: a forward program becomes a standard `.onnx` file with its weights inside, for any ONNX Runtime.
 *
 * Weights are stored in the file. A state that the program replaces at the end of a run, such as a recurrent
 * state, becomes an input of its own name and an output `next_<name>`: the caller carries it from run to run.
 */
import { create, toBinary } from "@bufbuild/protobuf";
import { type GraphProto, ModelProtoSchema, StringStringEntryProtoSchema } from "onnx-buf";
import { ShapeError, UsageError } from "../errors.ts";
import { type SourceAttrs, stateAttrs } from "../graph/ops/source.ts";
import { sameShape, showType, sizeOf, type Tensor, topological } from "../graph/tensor.ts";
import { lowerToModel } from "./lower.ts";
import { simplify } from "./simplify.ts";

/** What to export. Anything that can be compiled and does not change its weights fits. */
export interface ExportSpec {
  readonly name?: string;
  readonly outputs: Readonly<Record<string, Tensor>>;
  /** Pairs of a state and what replaces it at the end of a run. */
  readonly updates?: Iterable<readonly [state: Tensor, next: Tensor]>;
}

/** What the file says about itself; viewers and runtimes show it. */
export interface ExportNotes {
  /** What the model does. */
  readonly doc?: string;
  /** What an input or output is, by name. */
  readonly docs?: Readonly<Record<string, string>>;
  /** Version of this program. */
  readonly producerVersion?: string;
  /** Entries of `metadata_props`, such as the model's configuration as JSON. */
  readonly metadata?: Readonly<Record<string, string>>;
}

/** Largest file that Protocol Buffers, and so ONNX without external data, allow. */
const largestModel = 2 ** 31 - 1;

/** Name of the output that holds the next value of a state. */
export function nextName(state: string): string {
  return `next_${state}`;
}

/** The bytes of an `.onnx` file that uses operators of the ONNX standard alone; `weights` by name of the state. */
export function exportOnnx(
  { name = "program", outputs, updates = [] }: ExportSpec,
  weights: ReadonlyMap<string, ArrayLike<number>>,
  notes: ExportNotes = {},
): Uint8Array {
  const pairs = [...updates].map(([before, next]) => ({ name: stateName(before), before, next }));
  for (const { name: state, before, next } of pairs) {
    if (before.dtype === next.dtype && sameShape(before.shape, next.shape)) continue;
    throw new ShapeError(`export: the next value of state ${state} has another type`, {
      state: showType(before),
      next: showType(next),
    });
  }
  const names = [...Object.keys(outputs), ...pairs.map((pair) => nextName(pair.name))];
  const roots = simplify([...Object.values(outputs), ...pairs.map(({ next }) => next)]);
  const carried = pairs.map(({ before }) => before);
  const { inputs, embedded } = sourcesOf(
    [...roots, ...carried],
    weights,
    new Set(pairs.map((pair) => pair.name)),
  );
  const taken = [...inputs.keys(), ...embedded.keys(), ...names];
  const twice = taken.find((each, i) => taken.indexOf(each) !== i);
  if (twice !== undefined) {
    throw new UsageError(`export: two inputs, outputs or weights are called ${twice}`, {
      hint: "a model file needs one name for each",
    });
  }
  const model = lowerToModel(
    { name, inputs, outputs: new Map(names.map((each, i) => [each, roots[i]!])), embedded },
    { portable: true },
  );
  model.producerVersion = notes.producerVersion ?? "";
  model.modelVersion = 1n;
  model.docString = notes.doc ?? "";
  model.metadataProps = Object.entries(notes.metadata ?? {}).map(([key, value]) =>
    create(StringStringEntryProtoSchema, { key, value }),
  );
  describeEnds(model.graph!, notes.docs ?? {});
  return toBinary(ModelProtoSchema, model);
}

function stateName(tensor: Tensor): string {
  const attrs = stateAttrs(tensor);
  if (attrs) return attrs.name;
  throw new UsageError("export: only states can be updated", { tensor: showType(tensor) });
}

/** The program's sources: what is asked for at each run, and what is stored. */
function sourcesOf(
  roots: readonly Tensor[],
  weights: ReadonlyMap<string, ArrayLike<number>>,
  carried: ReadonlySet<string>,
) {
  const inputs = new Map<string, Tensor>();
  const embedded = new Map<string, { tensor: Tensor; data: ArrayLike<number> }>();
  let bytes = 0;
  for (const { op, attrs, outputs } of topological(roots)) {
    const tensor = outputs[0]!;
    const { name } = (attrs ?? {}) as SourceAttrs;
    if (op.name === "randomMask") {
      throw new UsageError(`export: the program draws the dropout mask ${name}`, {
        hint: "export the form without dropout, the one that answers",
      });
    }
    if (op.name === "input" || (op.name === "state" && carried.has(name))) addOnce(inputs, name, tensor);
    if (op.name !== "state") continue;
    const data = weights.get(name);
    if (carried.has(name)) {
      if (!data) continue;
      throw new UsageError(`export: the program changes the weight ${name}`, {
        hint: "export the forward program; a training step keeps its weights outside",
      });
    }
    if (!data) throw new UsageError(`export: the weight ${name} is missing`, { expected: showType(tensor) });
    if (data.length !== sizeOf(tensor.shape)) {
      throw new ShapeError(`export: weight ${name}: ${data.length} values given`, {
        expected: showType(tensor),
      });
    }
    bytes += 4 * data.length;
    addOnce(embedded, name, { tensor, data });
  }
  if (bytes > largestModel) {
    throw new UsageError(`export: the weights take ${bytes} bytes, more than a model file can hold`, {
      most: `${largestModel} bytes`,
    });
  }
  return { inputs, embedded };
}

function addOnce<V>(map: Map<string, V>, name: string, value: V): void {
  if (map.has(name)) throw new UsageError(`export: two sources are called ${name}`);
  map.set(name, value);
}

/** Writes the notes beside the inputs and outputs they are about. */
function describeEnds({ input, output }: GraphProto, docs: Readonly<Record<string, string>>): void {
  const ends = new Map([...input, ...output].map((end) => [end.name, end]));
  for (const [name, doc] of Object.entries(docs)) {
    const end = ends.get(name);
    if (!end) throw new UsageError(`export: there is no input or output ${name} to describe`);
    end.docString = doc;
  }
}
