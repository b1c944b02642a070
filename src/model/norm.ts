/** Layer norm with a gain and a bias. */
import { add, type Initial, layerNorm, mul, state, type Tensor } from "../graph/index.ts";

/** Weights of y = gain · LN(x) + bias. */
export interface NormWeights {
  readonly gain: Tensor;
  readonly bias: Tensor;
}

/** Declares the weights: gain 1 and bias 0 by default. */
export function normWeights(
  name: string,
  width: number,
  gain: Initial = { kind: "constant", value: 1 },
): NormWeights {
  return { gain: state(`${name}.gain`, [width], gain), bias: state(`${name}.bias`, [width]) };
}

/** Layer norm over the last axis. */
export function norm({ gain, bias }: NormWeights, x: Tensor): Tensor {
  return add(mul(layerNorm(x), gain), bias);
}
