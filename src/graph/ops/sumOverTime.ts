/** Sums over the steps of a loop that need not be made inside it. */
import { type Node, type Shape, sameShape, sizeOf, type Tensor } from "../tensor.ts";
import { add } from "./elementwise.ts";
import { type MatmulAttrs, matmul } from "./matmul.ts";
import { sum } from "./reduce.ts";
import { reshape, transpose } from "./shape.ts";

/** How a sum over time of a body expression is made after the loop from stacked values. */
export interface SumPlan {
  readonly leaves: readonly Tensor[];
  build(stacked: (leaf: Tensor) => Tensor): Tensor;
}

/** Elements of a step above which keeping them for all steps is not worth it when their product is smaller. */
const mostKept = 2 ** 18;

/**
 * The plan for Σ_t expression, or undefined when the loop has to add it up step by step. `moving` are the nodes
 * whose values change from step to step.
 */
export function planSum(expression: Tensor, moving: ReadonlySet<Node>): SumPlan | undefined {
  const { node } = expression;
  const relabelled = (again: (x: Tensor) => Tensor): SumPlan | undefined => {
    const plan = planSum(node.inputs[0]!, moving);
    return plan && { leaves: plan.leaves, build: (stacked) => again(plan.build(stacked)) };
  };
  switch (node.op.name) {
    case "matmul": {
      // Σ_t aₜᵀ bₜ is one product over time and batch together.
      const [a, b] = node.inputs as [Tensor, Tensor];
      const attrs = node.attrs as MatmulAttrs;
      if (!moving.has(a.node) || !moving.has(b.node)) return undefined;
      if (a.rank !== 2 || b.rank !== 2) return planBatched(expression, attrs);
      if (!attrs.transA || attrs.transB) return undefined;
      const kept = sizeOf(a.shape) + sizeOf(b.shape);
      if (kept > mostKept && kept > sizeOf(expression.shape)) return undefined;
      const flat = (x: Tensor): Tensor => reshape(x, [x.shape[0]! * x.shape[1]!, x.shape[2]!]);
      return {
        leaves: [a, b],
        build: (stacked) => matmul(flat(stacked(a)), flat(stacked(b)), { transA: true }),
      };
    }
    case "sum": {
      const [x] = node.inputs as [Tensor];
      const axes = (node.attrs as readonly number[]).map((axis) => axis + 1);
      if (!moving.has(x.node)) return undefined;
      return {
        leaves: [x],
        build: (stacked) => reshape(sum(stacked(x), { axes: [0, ...axes], keep: true }), expression.shape),
      };
    }
    case "add": {
      const plans: SumPlan[] = [];
      for (const term of summands(expression)) {
        const plan = sameShape(term.shape, expression.shape) && planSum(term, moving);
        if (!plan) return undefined;
        plans.push(plan);
      }
      return {
        leaves: plans.flatMap(({ leaves }) => leaves),
        build: (stacked) =>
          plans.map((plan) => plan.build(stacked)).reduce((total, term) => add(total, term)),
      };
    }
    case "reshape":
      return relabelled((x) => reshape(x, node.attrs as Shape));
    case "transpose":
      return relabelled((x) => transpose(x, node.attrs as readonly number[]));
    default:
      return undefined;
  }
}

/**
 * Σ_t of products of many small matrices, [..., m, k] · [..., k, n]: one product each, with time beside k. Only where the
 * factors are smaller than what they make, so that keeping them for all steps costs less than adding up at each.
 */
function planBatched(product: Tensor, { transA, transB }: MatmulAttrs): SumPlan | undefined {
  const [a, b] = product.node.inputs as [Tensor, Tensor];
  const leading = product.rank - 2;
  const alike = sameShape(a.shape.slice(0, -2), b.shape.slice(0, -2));
  if (!alike || sizeOf(a.shape) + sizeOf(b.shape) > sizeOf(product.shape)) return undefined;
  const beside = (x: Tensor, inner: number): Tensor => {
    // Time, first in what is stacked, goes before the inner axis and becomes part of it.
    const axes = [...Array(leading + 2).keys()].map((axis) => axis + 1);
    axes.splice(leading + inner, 0, 0);
    const shape = x.shape.slice(1);
    shape[leading + inner]! *= x.shape[0]!;
    return reshape(transpose(x, axes), shape);
  };
  return {
    leaves: [a, b],
    build: (stacked) =>
      matmul(beside(stacked(a), transA ? 0 : 1), beside(stacked(b), transB ? 1 : 0), { transA, transB }),
  };
}

/** The terms of ((a + b) + c) + …, in order: the gradient of a weight used thousands of times is that deep. */
function summands(total: Tensor): Tensor[] {
  const terms: Tensor[] = [];
  let rest = total;
  for (; rest.node.op.name === "add" && sameShape(rest.shape, total.shape); rest = rest.node.inputs[0]!) {
    terms.push(rest.node.inputs[1]!);
  }
  return [rest, ...terms.reverse()];
}
