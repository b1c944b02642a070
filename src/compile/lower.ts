/** Lowering: a graph becomes an ONNX model, one or a few ONNX nodes per op. */
import { create, toBinary } from "@bufbuild/protobuf";
import {
  type AttributeProto,
  AttributeProtoSchema,
  AttributeProto_AttributeType as AttributeType,
  type GraphProto,
  GraphProtoSchema,
  type ModelProto,
  ModelProtoSchema,
  type NodeProto,
  NodeProtoSchema,
  type TensorProto,
  TensorProtoSchema,
  type ValueInfoProto,
  ValueInfoProtoSchema,
} from "onnx-buf";
import type { OnnxAttribute, OnnxBody } from "../graph/op.ts";
import { onnxType } from "../graph/ops/compare.ts";
import { lastTwoExchanged } from "../graph/ops/shape.ts";
import { type DType, type Shape, type Tensor, type TensorType, topological } from "../graph/tensor.ts";
import { constantKey } from "./constantKey.ts";

/** A graph with names for what goes in and comes out. */
export interface NamedGraph {
  readonly name: string;
  readonly inputs: ReadonlyMap<string, Tensor>;
  readonly outputs: ReadonlyMap<string, Tensor>;
  /** Values to store in the model instead of asking for them at each run, e.g. weights of an exported model. */
  readonly embedded?: ReadonlyMap<string, { readonly tensor: Tensor; readonly data: ArrayLike<number> }>;
}

/** Choices of the lowering. */
export interface LowerOptions {
  /** Only operators of the ONNX standard; ONNX Runtime fuses transposes into products by itself then. */
  readonly portable?: boolean;
}

/** The ONNX model of a graph, encoded. */
export function lower(graph: NamedGraph, options: LowerOptions = {}): Uint8Array {
  return toBinary(ModelProtoSchema, lowerToModel(graph, options));
}

/** The ONNX model of a graph. */
export function lowerToModel(graph: NamedGraph, options: LowerOptions = {}): ModelProto {
  const scope = new ModelScope(options, [
    ...graph.inputs.keys(),
    ...graph.outputs.keys(),
    ...(graph.embedded?.keys() ?? []),
  ]);
  const top = new GraphWriter(scope, graph.name);
  for (const [name, tensor] of graph.inputs) {
    top.names.set(tensor, name);
    top.inputs.push(valueInfo(name, tensor));
  }
  for (const [name, { tensor, data }] of graph.embedded ?? []) {
    top.names.set(tensor, name);
    scope.initializers.push(tensorProto(name, data, tensor.shape, tensor.dtype));
  }
  top.write([...graph.outputs.values()]);
  for (const [name, tensor] of graph.outputs) top.output(name, tensor);
  const proto = top.finish();
  proto.initializer = scope.initializers;
  return create(ModelProtoSchema, {
    irVersion: 9n,
    producerName: "fwm",
    opsetImport: [
      { domain: "", version: 20n },
      ...(scope.usesMicrosoft ? [{ domain: "com.microsoft", version: 1n }] : []),
    ],
    graph: proto,
  });
}

/** What the graphs of one model share: constants and unique names. */
class ModelScope {
  readonly initializers: TensorProto[] = [];
  private readonly constants = new Map<string, string>();
  private count = 0;
  private readonly taken: ReadonlySet<string>;
  usesMicrosoft = false;

  constructor(
    readonly options: LowerOptions,
    taken: readonly string[],
  ) {
    this.taken = new Set(taken);
  }

  unique(stem: string): string {
    const name = `${stem}_${this.count++}`;
    return this.taken.has(name) ? this.unique(stem) : name;
  }

  constant(data: ArrayLike<number>, shape: Shape, dtype: DType): string {
    const key = constantKey(data, shape, dtype);
    const known = key && this.constants.get(key);
    if (known) return known;
    const name = this.unique("constant");
    if (key) this.constants.set(key, name);
    this.initializers.push(tensorProto(name, data, shape, dtype));
    return name;
  }
}

const fusedProduct = "com.microsoft.FusedMatMul";

class GraphWriter {
  readonly names = new Map<Tensor, string>();
  readonly inputs: ValueInfoProto[] = [];
  private readonly nodes: NodeProto[] = [];
  private readonly outputs: ValueInfoProto[] = [];

  constructor(
    private readonly scope: ModelScope,
    private readonly title: string,
    /** Put before the names of a loop's nodes, so that a profile can tell them from the loop itself. */
    private readonly prefix = "",
  ) {}

  write(roots: readonly Tensor[]): void {
    for (const node of topological(roots)) {
      if (node.outputs.every((output) => this.names.has(output))) continue;
      const stem = this.prefix + (node.scope ? `${node.scope}/${node.op.name}` : node.op.name);
      const emitMany = (
        opType: string,
        inputs: readonly string[],
        outputs: number,
        attributes: Record<string, OnnxAttribute> = {},
      ): string[] => {
        if (opType !== fusedProduct || !this.scope.options.portable) {
          return this.emit(stem, opType, inputs, outputs, attributes);
        }
        const operands = this.exchanged(stem, inputs, node.inputs, attributes);
        return this.emit(stem, "MatMul", operands, 1, {});
      };
      const made = node.op.onnx({
        inputs: node.inputs.map((input) => this.names.get(input)!),
        inputTypes: node.inputs,
        types: node.outputs,
        attrs: node.attrs,
        node,
        emit: (opType, inputs, attributes) => emitMany(opType, inputs, 1, attributes)[0]!,
        emitMany,
        constant: (data, shape, dtype) => this.scope.constant(data, shape, dtype),
      });
      (typeof made === "string" ? [made] : made).forEach((name, i) => {
        this.names.set(node.outputs[i]!, name);
      });
    }
  }

  private emit(
    stem: string,
    opType: string,
    inputs: readonly string[],
    outputs: number,
    attributes: Record<string, OnnxAttribute>,
  ): string[] {
    const microsoft = opType.startsWith("com.microsoft.");
    this.scope.usesMicrosoft ||= microsoft;
    const name = this.scope.unique(stem);
    const output = Array.from({ length: outputs }, (_, i) => (outputs === 1 ? name : `${name}.${i}`));
    this.nodes.push(
      create(NodeProtoSchema, {
        name,
        opType: microsoft ? opType.slice("com.microsoft.".length) : opType,
        domain: microsoft ? "com.microsoft" : "",
        input: [...inputs],
        output,
        attribute: Object.entries(attributes).map(([key, value]) => this.attribute(key, value)),
      }),
    );
    return output;
  }

  /** The operands of a fused product as standard nodes: transposes of the last two axes where they are asked for. */
  private exchanged(
    stem: string,
    inputs: readonly string[],
    operands: readonly Tensor[],
    { transA, transB }: Record<string, OnnxAttribute>,
  ): string[] {
    return inputs.map((input, i) => {
      if (!(i === 0 ? transA : transB)) return input;
      return this.emit(stem, "Transpose", [input], 1, { perm: lastTwoExchanged(operands[i]!.rank) })[0]!;
    });
  }

  private attribute(name: string, value: OnnxAttribute): AttributeProto {
    if (typeof value === "number") {
      return create(AttributeProtoSchema, { name, type: AttributeType.INT, i: BigInt(value) });
    }
    if (typeof value === "string") {
      return create(AttributeProtoSchema, {
        name,
        type: AttributeType.STRING,
        s: new TextEncoder().encode(value),
      });
    }
    if ("float" in value)
      return create(AttributeProtoSchema, { name, type: AttributeType.FLOAT, f: value.float });
    if ("body" in value) {
      return create(AttributeProtoSchema, { name, type: AttributeType.GRAPH, g: this.subgraph(value) });
    }
    return create(AttributeProtoSchema, { name, type: AttributeType.INTS, ints: value.map(BigInt) });
  }

  private subgraph({ body, inputs, captures, resultOrder }: OnnxBody): GraphProto {
    const writer = new GraphWriter(this.scope, this.scope.unique("body"), "loop/");
    body.params.forEach((param, i) => {
      const name = i < inputs ? this.scope.unique("param") : captures[i - inputs]!;
      writer.names.set(param, name);
      if (i < inputs) writer.inputs.push(valueInfo(name, param));
    });
    const results = resultOrder.map((i) => body.results[i]!);
    writer.write(results);
    for (const result of results) writer.output(this.scope.unique("result"), result);
    return writer.finish();
  }

  /** Declares an output under a name of its own: ONNX wants outputs that are neither inputs nor given twice. */
  output(name: string, tensor: Tensor): void {
    this.nodes.push(
      create(NodeProtoSchema, {
        name: this.scope.unique("output"),
        opType: "Identity",
        input: [this.names.get(tensor)!],
        output: [name],
      }),
    );
    this.outputs.push(valueInfo(name, tensor));
  }

  finish(): GraphProto {
    this.mergeOutputs();
    return create(GraphProtoSchema, {
      name: this.title,
      node: this.nodes,
      input: this.inputs,
      output: this.outputs,
    });
  }

  /** Renames a node's output to the graph output that copies it, so that no copy is made. */
  private mergeOutputs(): void {
    const makers = new Map(this.nodes.flatMap((node) => node.output.map((name) => [name, node] as const)));
    const renamed = new Map<string, string>();
    const wanted = new Set(this.outputs.map(({ name }) => name));
    const rest = this.nodes.filter((node) => {
      const [from, to] = [node.input[0]!, node.output[0]!];
      const isOutput = node.opType === "Identity" && wanted.has(to);
      if (!isOutput || !makers.has(from) || renamed.has(from) || wanted.has(from)) return true;
      renamed.set(from, to);
      return false;
    });
    if (renamed.size === 0) return;
    const rename = (names: string[]): string[] => names.map((name) => renamed.get(name) ?? name);
    for (const node of rest) {
      node.input = rename(node.input);
      node.output = rename(node.output);
      for (const { g } of node.attribute) if (g) renameCaptures(g, renamed);
    }
    this.nodes.length = 0;
    this.nodes.push(...rest);
  }
}

/** Follows renamed outer values into a subgraph, which refers to them by name. */
function renameCaptures(graph: GraphProto, renamed: ReadonlyMap<string, string>): void {
  for (const node of graph.node) {
    node.input = node.input.map((name) => renamed.get(name) ?? name);
    for (const { g } of node.attribute) if (g) renameCaptures(g, renamed);
  }
}

function valueInfo(name: string, { shape, dtype }: TensorType): ValueInfoProto {
  const dim = shape.map((size) => ({ value: { case: "dimValue" as const, value: BigInt(size) } }));
  return create(ValueInfoProtoSchema, {
    name,
    type: { value: { case: "tensorType", value: { elemType: onnxType[dtype], shape: { dim } } } },
  });
}

/** A stored tensor. */
function tensorProto(name: string, data: ArrayLike<number>, shape: Shape, dtype: DType): TensorProto {
  const bytes = {
    f32: () => new Uint8Array(Float32Array.from(data).buffer),
    i32: () => new Uint8Array(Int32Array.from(data).buffer),
    i64: () => new Uint8Array(BigInt64Array.from(Array.from(data, BigInt)).buffer),
    bool: () => Uint8Array.from(data),
  }[dtype]();
  return create(TensorProtoSchema, {
    name,
    dataType: onnxType[dtype],
    dims: shape.map(BigInt),
    rawData: bytes,
  });
}
