/** Affine maps and the initial values PyTorch gives them. */
import { add, type Initial, matmul, state, type Tensor } from "../graph/index.ts";

/** Weights of y = x W + b. W is stored as [in, out]. */
export interface LinearWeights {
  readonly W: Tensor;
  readonly b?: Tensor;
}

/** Uniform in ±limit. */
export function symmetric(limit: number): Initial {
  return { kind: "uniform", low: -limit, high: limit };
}

/** Declares an affine map; initial values as PyTorch's Linear by default. */
export function linearWeights(
  name: string,
  sizes: { in: number; out: number },
  { bias = true, weight, biasInit }: { bias?: boolean; weight?: Initial; biasInit?: Initial } = {},
): LinearWeights {
  const usual = symmetric(1 / Math.sqrt(sizes.in));
  return {
    W: state(`${name}.W`, [sizes.in, sizes.out], weight ?? usual),
    ...(bias ? { b: state(`${name}.b`, [sizes.out], biasInit ?? usual) } : {}),
  };
}

/** x W + b over the last axis. */
export function linear({ W, b }: LinearWeights, x: Tensor): Tensor {
  const y = matmul(x, W);
  return b ? add(y, b) : y;
}
