/** Differentiation: a graph in, the graph of its gradients out. */
import { ShapeError } from "../errors.ts";
import { add } from "../graph/ops/elementwise.ts";
import { expand } from "../graph/ops/shape.ts";
import { scalar, zeros } from "../graph/ops/source.ts";
import {
  dependents,
  type Node,
  sameShape,
  showType,
  type Tensor,
  topological,
  within,
} from "../graph/tensor.ts";

/** Gradients of a scalar with respect to tensors; zeros for those it does not depend on. */
export function grad(loss: Tensor, wrt: readonly Tensor[]): Tensor[] {
  if (loss.dtype !== "f32" || loss.shape.length !== 0) {
    throw new ShapeError(`grad: the loss must be a float scalar, not ${showType(loss)}`, {
      hint: "use sum(x) or mean(x)",
    });
  }
  return gradients([loss], [scalar(1)], wrt).map((dx, i) => dx ?? zeros(wrt[i]!.shape));
}

/**
 * Gradients of Σ seeds[i] · outputs[i] with respect to `wrt`; undefined where there is no path.
 * Nothing is computed for tensors that do not lie between `wrt` and the outputs.
 */
export function gradients(
  outputs: readonly Tensor[],
  seeds: readonly (Tensor | undefined)[],
  wrt: readonly Tensor[],
): (Tensor | undefined)[] {
  const order = topological(outputs);
  const wanted = dependents(order, wrt);

  const totals = new Map<Tensor, Tensor>();
  const accumulate = (tensor: Tensor, part: Tensor): void => {
    const before = totals.get(tensor);
    totals.set(tensor, before ? within(tensor.node.scope, () => add(before, part)) : part);
  };
  outputs.forEach((output, i) => {
    const seed = seeds[i];
    if (seed && wanted.has(output.node)) accumulate(output, expand(seed, output.shape));
  });

  for (const node of order.reverse()) {
    if (!wanted.has(node) || node.inputs.length === 0) continue;
    const dys = node.outputs.map((output) => totals.get(output));
    if (dys.some((dy) => dy)) backpropagate(node, dys, wanted, accumulate);
  }
  return wrt.map((tensor) => totals.get(tensor));
}

function backpropagate(
  node: Node,
  dys: readonly (Tensor | undefined)[],
  wanted: ReadonlySet<Node>,
  accumulate: (tensor: Tensor, part: Tensor) => void,
): void {
  const rule = node.op.grad;
  if (typeof rule !== "function") {
    throw new ShapeError(`grad: ${node.op.name} has no gradient: ${rule.reason}`, {
      scope: node.scope,
      hint: "use stopGradient(x)",
    });
  }
  // What a layer's gradient costs counts as that layer's.
  const parts = within(node.scope, () =>
    rule({
      node,
      inputs: node.inputs,
      outputs: node.outputs.slice(0, dys.length),
      attrs: node.attrs,
      dys,
      dy: dys[0]!,
      needs: (i) => wanted.has(node.inputs[i]!.node),
      differentiate: gradients,
    }),
  );
  parts.forEach((part, i) => {
    const input = node.inputs[i]!;
    if (!part || !wanted.has(input.node)) return;
    if (!sameShape(part.shape, input.shape)) {
      throw new Error(
        `internal: gradient of ${node.op.name} input ${i} is ${showType(part)}, not ${showType(input)}`,
      );
    }
    accumulate(input, part);
  });
}
