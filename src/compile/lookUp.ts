/**
 * A pass for programs whose weights do not change: what is computed from a row of a table alone is computed once per row
 * and looked up. An embedding and the products behind it become one table.
 *
 *   table[ids] W + b   →   (table W + b)[ids]
 *
 * What is left in front of the look-up depends on weights only, and the runtime computes it when the program is loaded.
 */
import { add } from "../graph/ops/elementwise.ts";
import { gatherRows } from "../graph/ops/gather.ts";
import { type MatmulAttrs, matmul } from "../graph/ops/matmul.ts";
import { reshape } from "../graph/ops/shape.ts";
import { rewrite } from "../graph/rewrite.ts";
import { type Node, sizeOf, type Tensor, topological, within } from "../graph/tensor.ts";

/** A table may have so many times the elements of the weights it stands for. */
const mostGrowth = 4;

/** The same outputs with look-ups as late as possible; `isWeight` names the sources that never change. */
export function lookUpLate(outputs: readonly Tensor[], isWeight: (source: Tensor) => boolean): Tensor[] {
  const isFixed = (tensor: Tensor): boolean =>
    topological([tensor]).every(
      ({ op, inputs, outputs: made }) => inputs.length > 0 || op.name === "constant" || isWeight(made[0]!),
    );
  return rewrite(outputs, new Map(), (node, inputs) => {
    const [picked, weight] = inputs;
    if (picked?.node.op.name !== "gatherRows") return undefined;
    const [table, ids] = picked.node.inputs as [Tensor, Tensor];
    if (table.rank !== 2 || !isFixed(table)) return undefined;
    const [output] = node.outputs as [Tensor];
    return within(node.scope, () => {
      // The rows in another arrangement, as around a product.
      if (node.op.name === "reshape" && output.shape.at(-1) === table.shape[1]) {
        return [gatherRows(table, reshape(ids, output.shape.slice(0, -1)))];
      }
      if (!weight || !isFixed(weight)) return undefined;
      const made = overRows(node, table, weight);
      if (!made || sizeOf(made.shape) > mostGrowth * (sizeOf(table.shape) + sizeOf(weight.shape))) {
        return undefined;
      }
      return [gatherRows(made, ids)];
    });
  });
}

/** The node with a table [V, ·] in place of rows picked from it, if it makes each row into a row. */
function overRows({ op, attrs }: Node, table: Tensor, weight: Tensor): Tensor | undefined {
  if (op.name === "matmul") {
    const { transA, ...rest } = attrs as MatmulAttrs;
    return weight.rank === 2 && !transA ? matmul(table, weight, rest) : undefined;
  }
  const isRow = weight.rank === 1 && weight.shape[0] === table.shape[1];
  return op.name === "add" && isRow ? add(table, weight) : undefined;
}
