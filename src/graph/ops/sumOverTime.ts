/** Sums over the steps of a loop that need not be made inside it. */
import { type Shape, sameShape, type Tensor, topological } from "../tensor.ts";
import { add } from "./elementwise.ts";
import { type MatmulAttrs, matmul } from "./matmul.ts";
import { sum } from "./reduce.ts";
import { reshape, transpose } from "./shape.ts";

/** How a sum over time of a body expression is made after the loop from stacked values. */
export interface SumPlan {
  readonly leaves: readonly Tensor[];
  build(stacked: (leaf: Tensor) => Tensor): Tensor;
}

/** The plan for Σ_t expression, or undefined when the loop has to add it up step by step. */
export function planSum(
  expression: Tensor,
  slices: readonly Tensor[],
  seeds: readonly (Tensor | undefined)[],
): SumPlan | undefined {
  const { node } = expression;
  const part = (inner: Tensor): SumPlan | undefined => planSum(inner, slices, seeds);
  const relabelled = (again: (x: Tensor) => Tensor): SumPlan | undefined => {
    const plan = part(node.inputs[0]!);
    return plan && { leaves: plan.leaves, build: (stacked) => again(plan.build(stacked)) };
  };
  switch (node.op.name) {
    case "matmul": {
      // Σ_t aₜᵀ bₜ is one product over time and batch together.
      const [a, b] = node.inputs as [Tensor, Tensor];
      const { transA, transB } = node.attrs as MatmulAttrs;
      if (
        !transA ||
        transB ||
        a.rank !== 2 ||
        b.rank !== 2 ||
        !varies(a, slices, seeds) ||
        !varies(b, slices, seeds)
      ) {
        return undefined;
      }
      const flat = (x: Tensor): Tensor => reshape(x, [x.shape[0]! * x.shape[1]!, x.shape[2]!]);
      return {
        leaves: [a, b],
        build: (stacked) => matmul(flat(stacked(a)), flat(stacked(b)), { transA: true }),
      };
    }
    case "sum": {
      const [x] = node.inputs as [Tensor];
      const axes = (node.attrs as readonly number[]).map((axis) => axis + 1);
      if (!varies(x, slices, seeds)) return undefined;
      return {
        leaves: [x],
        build: (stacked) => reshape(sum(stacked(x), { axes: [0, ...axes], keep: true }), expression.shape),
      };
    }
    case "add": {
      const plans = node.inputs.map(part);
      const [a, b] = plans;
      if (!a || !b || node.inputs.some((input) => !sameShape(input.shape, expression.shape)))
        return undefined;
      return {
        leaves: [...a.leaves, ...b.leaves],
        build: (stacked) => add(a.build(stacked), b.build(stacked)),
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

/** Whether a body expression changes from step to step. */
function varies(tensor: Tensor, slices: readonly Tensor[], seeds: readonly (Tensor | undefined)[]): boolean {
  const moving = new Set([...slices, ...seeds].map((source) => source?.node));
  return topological([tensor]).some((node) => moving.has(node));
}
