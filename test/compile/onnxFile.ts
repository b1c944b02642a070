/** Looking at and running `.onnx` files without any code of ours: the schema's decoder and a stock ONNX Runtime. */
import { fromBinary } from "@bufbuild/protobuf";
import { type GraphProto, type ModelProto, ModelProtoSchema, TensorProto_DataLocation } from "onnx-buf";
import { InferenceSession, Tensor } from "onnxruntime-node";

/** A tensor to feed. */
export interface Fed {
  readonly dtype: "f32" | "i32" | "bool" | "i64";
  readonly shape: readonly number[];
  readonly data: ArrayLike<number>;
}

/** Runs a model file once. Without the runtime's own rewriting, if told: the file must be valid as it stands. */
export async function runFile(
  bytes: Uint8Array,
  feeds: Readonly<Record<string, Fed>>,
  { optimized = true } = {},
): Promise<Record<string, number[]>> {
  const session = await InferenceSession.create(
    bytes,
    optimized ? {} : { graphOptimizationLevel: "disabled" },
  );
  try {
    const given = Object.entries(feeds).map(([name, fed]) => [name, tensorOf(fed)] as const);
    const results = await session.run(Object.fromEntries(given));
    return Object.fromEntries(
      Object.entries(results).map(([name, { data }]) => [name, Array.from(data as Float32Array, Number)]),
    );
  } finally {
    await session.release();
  }
}

function tensorOf({ dtype, shape, data }: Fed): Tensor {
  const dims = [...shape];
  switch (dtype) {
    case "f32":
      return new Tensor("float32", Float32Array.from(data), dims);
    case "i32":
      return new Tensor("int32", Int32Array.from(data), dims);
    case "i64":
      return new Tensor("int64", BigInt64Array.from(Array.from(data, BigInt)), dims);
    case "bool":
      return new Tensor("bool", Uint8Array.from(data), dims);
  }
}

/** Decodes a model file. */
export function decodeModel(bytes: Uint8Array): ModelProto {
  return fromBinary(ModelProtoSchema, bytes);
}

/**
 * What is wrong with the structure of a model: a value used before it is made, a name given twice (also in a
 * subgraph of the graph that has it), an operator outside the standard, data outside the file, an output that
 * nobody makes or that has no type. Empty for a sound model.
 */
export function faults(model: ModelProto): string[] {
  const found: string[] = [];
  const domains = model.opsetImport.map(({ domain, version }) => `${domain}:${version}`);
  if (domains.join() !== ":20") found.push(`operator sets ${domains.join()}`);
  if (model.functions.length > 0) found.push("local functions");
  if (!model.graph) return [...found, "no graph"];
  checkGraph(model.graph, new Set(), "", found);
  const nodes = new Set<string>();
  for (const { name } of nodesOf(model.graph)) {
    if (nodes.has(name)) found.push(`two nodes are called ${name}`);
    nodes.add(name);
  }
  return found;
}

function checkGraph(graph: GraphProto, outer: ReadonlySet<string>, path: string, found: string[]): void {
  const known = new Set(outer);
  const define = (name: string, what: string): void => {
    if (known.has(name)) found.push(`${path}${what} ${name} is there already`);
    known.add(name);
  };
  for (const { name } of graph.input) define(name, "input");
  for (const { name, dims, rawData, dataLocation, externalData } of graph.initializer) {
    define(name, "stored tensor");
    if (dataLocation === TensorProto_DataLocation.EXTERNAL || externalData.length > 0) {
      found.push(`${name} is stored outside the file`);
    }
    const size = dims.reduce((product, dim) => product * Number(dim), 1);
    if (rawData.length % Math.max(size, 1) !== 0)
      found.push(`${name} has ${rawData.length} bytes for ${size}`);
  }
  for (const node of graph.node) {
    if (node.domain !== "") found.push(`${path}${node.name} is of ${node.domain}`);
    for (const input of node.input) {
      if (input !== "" && !known.has(input))
        found.push(`${path}${node.name} uses ${input} before it is made`);
    }
    for (const { g, name } of node.attribute)
      if (g) checkGraph(g, known, `${path}${node.name}.${name}/`, found);
    for (const output of node.output) if (output !== "") define(output, "value");
  }
  for (const { name, type } of graph.output) {
    if (!known.has(name) || outer.has(name)) found.push(`${path}output ${name} is not made`);
    if (type?.value.case !== "tensorType" || !type.value.value.shape)
      found.push(`${path}${name} has no type`);
  }
}

/** Every node of a graph and of the graphs inside it. */
export function nodesOf(graph: GraphProto): GraphProto["node"] {
  return graph.node.flatMap((node) => [node, ...node.attribute.flatMap(({ g }) => (g ? nodesOf(g) : []))]);
}
