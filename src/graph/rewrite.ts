/** Rebuilding a graph with some of its tensors replaced. */
import { Node, type Tensor, topological } from "./tensor.ts";

/**
 * The graph behind `roots` with each key of `replaced` exchanged for its value. Nodes that do not depend on a
 * replaced tensor stay as they are. `rebuild` may make something else of a node whose inputs are already done.
 */
export function rewrite(
  roots: readonly Tensor[],
  replaced: ReadonlyMap<Tensor, Tensor>,
  rebuild?: (node: Node, inputs: readonly Tensor[]) => readonly Tensor[] | undefined,
): Tensor[] {
  const done = new Map<Tensor, Tensor>(replaced);
  const now = (tensor: Tensor): Tensor => done.get(tensor) ?? tensor;
  for (const node of topological(roots)) {
    const inputs = node.inputs.map(now);
    const changed = inputs.some((input, i) => input !== node.inputs[i]);
    const made = rebuild?.(node, inputs) ?? (changed ? remake(node, inputs) : undefined);
    made?.forEach((output, i) => {
      const old = node.outputs[i]!;
      if (!done.has(old)) done.set(old, output);
    });
  }
  return roots.map(now);
}

/** The same node over other inputs. */
export function remake(node: Node, inputs: readonly Tensor[], attrs: unknown = node.attrs): Tensor[] {
  return new Node(node.op, inputs, attrs, node.outputs, node.scope).outputs;
}
