/** Softmax, cross entropy and layer norm: compositions that deserve one stable, fused form. */
import { defineOp, needFloat, typeError } from "../op.ts";
import type { Tensor } from "../tensor.ts";
import { sizeOf } from "../tensor.ts";
import { cast, equal, where } from "./compare.ts";
import { add, clip, div, exp, log, max, mul, sub } from "./elementwise.ts";
import { fromZero, oneHot, requireBelow } from "./gather.ts";
import { mean, type Reduction, reduceMax, sum } from "./reduce.ts";
import { reshape, unsqueeze } from "./shape.ts";

/** Applies `row` to each run of the last axis. */
function byRow(
  x: { shape: readonly number[]; data: Float64Array },
  row: (values: Float64Array) => ArrayLike<number>,
) {
  const length = x.shape.at(-1)!;
  const out = new Float64Array(x.data.length);
  for (let at = 0; at < out.length; at += length) out.set(row(x.data.subarray(at, at + length)), at);
  return out;
}

function logSumExpOf(values: Float64Array): number {
  const largest = values.reduce((a, b) => Math.max(a, b));
  return largest + Math.log(values.reduce((total, value) => total + Math.exp(value - largest), 0));
}

const lastAxisSamples = [
  { inputs: [[3]] },
  { inputs: [[2, 5]] },
  { inputs: [[7, 1]] },
  { inputs: [[2, 3, 5]] },
];

const softmaxOp = defineOp<null>("softmax", {
  infer(inputs) {
    needFloat("softmax", inputs);
    if (inputs[0]!.shape.length < 1) throw typeError("softmax", "needs an axis", inputs);
    return { shape: inputs[0]!.shape, dtype: "f32" };
  },
  evaluate: ({ inputs: [x] }) =>
    byRow(x!, (values) => {
      const total = logSumExpOf(values);
      return values.map((value) => Math.exp(value - total));
    }),
  // dx = y (dy - Σ y dy)
  grad: ({ outputs: [y], dy }) => [mul(y!, sub(dy, sum(mul(y!, dy), { axes: -1, keep: true })))],
  onnx: ({ inputs, emit }) => emit("Softmax", inputs, { axis: -1 }),
  samples: lastAxisSamples,
});

/** Softmax over the last axis. */
export function softmax(x: Tensor): Tensor {
  return softmaxOp.apply([x], null)[0]!;
}

const logSoftmaxOp = defineOp<null>("logSoftmax", {
  infer(inputs) {
    needFloat("logSoftmax", inputs);
    if (inputs[0]!.shape.length < 1) throw typeError("logSoftmax", "needs an axis", inputs);
    return { shape: inputs[0]!.shape, dtype: "f32" };
  },
  evaluate: ({ inputs: [x] }) =>
    byRow(x!, (values) => {
      const total = logSumExpOf(values);
      return values.map((value) => value - total);
    }),
  grad: ({ outputs: [y], dy }) => [sub(dy, mul(exp(y!), sum(dy, { axes: -1, keep: true })))],
  onnx: ({ inputs, emit }) => emit("LogSoftmax", inputs, { axis: -1 }),
  samples: lastAxisSamples,
});

/** log(softmax(x)) over the last axis. */
export function logSoftmax(x: Tensor): Tensor {
  return logSoftmaxOp.apply([x], null)[0]!;
}

/** Largest finite float32. */
const largestFloat = 3.4028234663852886e38;

/** log Σ e^x over axes, without overflow; -∞ where every x is, ∞ where one is. */
export function logSumExp(x: Tensor, over: Reduction = {}): Tensor {
  const largest = reduceMax(x, { ...over, keep: true });
  // ∞ - ∞ would be NaN.
  const shift = clip(largest, -largestFloat, largestFloat);
  // Among finite numbers the largest alone adds 1, so the limit acts only where all are -∞, and keeps log from 0.
  const total = max(sum(exp(sub(x, shift)), { ...over, keep: true }), 0.5);
  const y = add(log(total), largest);
  return over.keep ? y : reshape(y, sum(x, over).shape);
}

/**
 * Negative log probability of a class at each position.
 *
 *   logits [..., V]   classes i32 [...]   →   y [...]
 */
const classLossOp = defineOp<null>("classLoss", {
  infer(inputs) {
    const [logits, classes] = inputs;
    const fits = logits!.shape.length === classes!.shape.length + 1;
    if (!fits || classes!.shape.some((size, i) => size !== logits!.shape[i])) {
      throw typeError("crossEntropy", "needs logits [..., V] and classes [...]", inputs);
    }
    if (logits!.dtype !== "f32" || classes!.dtype !== "i32") {
      throw typeError("crossEntropy", "needs f32 logits and i32 classes", inputs);
    }
    return { shape: classes!.shape, dtype: "f32" };
  },
  evaluate({ inputs: [logits, classes] }) {
    const length = logits!.shape.at(-1)!;
    return classes!.data.map((k, i) => {
      requireBelow("crossEntropy", k, length);
      const row = logits!.data.subarray(i * length, (i + 1) * length);
      return logSumExpOf(row) - row[k]!;
    });
  },
  grad: ({ inputs: [logits, classes], dy }) => [
    mul(sub(softmax(logits!), oneHot(classes!, logits!.shape.at(-1)!)), unsqueeze(dy, -1)),
    undefined,
  ],
  onnx({ inputs: [logits, classes], inputTypes, types, emit, constant }) {
    const shape = types[0]!.shape;
    const list = (values: readonly number[]): string => constant(values, [values.length], "i64");
    const chosen = fromZero({ emit, constant }, classes!, inputTypes[0]!.shape.at(-1)!);
    const index = emit("Reshape", [chosen, list([...shape, 1])]);
    const picked = emit("GatherElements", [emit("LogSoftmax", [logits!], { axis: -1 }), index], { axis: -1 });
    return emit("Neg", [emit("Reshape", [picked, list(shape)])]);
  },
  samples: [
    { inputs: [[3, 5], { shape: [3], below: 5 }] },
    { inputs: [[1, 7], { shape: [1], below: 7 }] },
    { inputs: [[2, 3, 5], { shape: [2, 3], below: 5 }] },
  ],
});

/**
 * Mean of -log softmax(logits)[class] over the positions where `mask` holds (default: all).
 * With an empty mask the loss is 0, and so is its gradient. A masked position counts nothing, also where its loss is ∞.
 */
export function crossEntropy(logits: Tensor, classes: Tensor, mask?: Tensor): Tensor {
  const losses = classLossOp.apply([logits, classes], null)[0]!;
  if (!mask) return mean(losses);
  const weights = cast(mask, "f32");
  // Not a product alone: 0 · ∞ is NaN.
  const counted = mul(where(equal(weights, 0), 0, losses), weights);
  return div(sum(counted), max(sum(weights), 1));
}

/** -log softmax(logits)[class] at every position. */
export function classLosses(logits: Tensor, classes: Tensor): Tensor {
  return classLossOp.apply([logits, classes], null)[0]!;
}

/**
 * y = (x - mean) / sqrt(var + eps) over the last axis, biased variance, no gain or bias; and 1 / sqrt(var + eps).
 *
 *   x [..., n]   →   y [..., n], r [..., 1]
 */
const layerNormOp = defineOp<number>("layerNorm", {
  infer(inputs) {
    needFloat("layerNorm", inputs);
    const { shape } = inputs[0]!;
    return [
      { shape, dtype: "f32" },
      { shape: [...shape.slice(0, -1), 1], dtype: "f32" },
    ];
  },
  evaluate({ inputs: [x], attrs: eps, types }) {
    const scales: number[] = [];
    const y = byRow(x!, (values) => {
      const centre = values.reduce((a, b) => a + b, 0) / values.length;
      const variance = values.reduce((total, value) => total + (value - centre) ** 2, 0) / values.length;
      scales.push(1 / Math.sqrt(variance + eps));
      return values.map((value) => (value - centre) * scales.at(-1)!);
    });
    return [y, Float64Array.from(scales).subarray(0, sizeOf(types[1]!.shape))];
  },
  // dx = r (dy - mean(dy) - y mean(y dy))
  grad({ inputs: [x], outputs: [y, r], dys: [dy, dr] }) {
    const over = { axes: -1, keep: true };
    const fromY = dy ? mul(r!, sub(sub(dy, mean(dy, over)), mul(y!, mean(mul(y!, dy), over)))) : undefined;
    // dr/dx = -r² y / n
    const fromR = dr ? mul(mul(mul(dr, mul(r!, r!)), y!), -1 / x!.shape.at(-1)!) : undefined;
    return [fromY && fromR ? add(fromY, fromR) : (fromY ?? fromR)];
  },
  onnx({ inputs, inputTypes, attrs: eps, emitMany, constant }) {
    const n = inputTypes[0]!.shape.at(-1)!;
    const gain = constant(new Array<number>(n).fill(1), [n], "f32");
    const [y, , r] = emitMany("LayerNormalization", [inputs[0]!, gain], 3, {
      axis: -1,
      epsilon: { float: eps },
    });
    return [y!, r!];
  },
  samples: [
    { inputs: [[3]], attrs: 1e-5 },
    { inputs: [[2, 5]], attrs: 1e-5 },
    { inputs: [[7, 2, 3]], attrs: 1e-3 },
  ],
});

/** Layer norm over the last axis, without gain and bias. */
export function layerNorm(x: Tensor, eps = 1e-5): Tensor {
  return layerNormOp.apply([x], eps)[0]!;
}
