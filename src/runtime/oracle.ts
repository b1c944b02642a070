/** The oracle: a float64 interpreter of the graph, one op after the other in plain loops. */
import type { GraphFunction, Value } from "../graph/op.ts";
import { type Tensor, topological } from "../graph/tensor.ts";

/** Values of `outputs`, given values of the sources they depend on. */
export function interpret(outputs: readonly Tensor[], given: ReadonlyMap<Tensor, Value>): Value[] {
  const values = new Map(given);
  for (const node of topological(outputs)) {
    if (node.outputs.every((output) => values.has(output))) continue;
    const made = node.op.evaluate({
      inputs: node.inputs.map((input) => values.get(input)!),
      attrs: node.attrs,
      types: node.outputs,
      run: runBody,
    });
    (made instanceof Float64Array ? [made] : made).forEach((data, i) => {
      values.set(node.outputs[i]!, { shape: node.outputs[i]!.shape, data });
    });
  }
  return outputs.map((output) => values.get(output)!);
}

function runBody(body: GraphFunction, args: readonly Value[]): Value[] {
  return interpret(body.results, new Map(body.params.map((param, i) => [param, args[i]!])));
}
