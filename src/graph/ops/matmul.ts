/** Matrix products. */
import { broadcastOffsets, broadcastShapes } from "../broadcast.ts";
import { defineOp, needFloat, typeError } from "../op.ts";
import type { Shape, Tensor } from "../tensor.ts";
import { sizeOf } from "../tensor.ts";
import { sumTo } from "./reduce.ts";
import { reshape } from "./shape.ts";

/** Operands that are taken with their last two axes exchanged; set by the transpose-folding pass too. */
export interface MatmulAttrs {
  readonly transA: boolean;
  readonly transB: boolean;
}

function lastTwo(shape: Shape, transposed: boolean): [number, number] {
  const [rows, columns] = [shape.at(-2)!, shape.at(-1)!];
  return transposed ? [columns, rows] : [rows, columns];
}

/**
 * y = a · b over the last two axes; leading axes broadcast.
 *
 *   a [..., m, k]   b [..., k, n]   →   y [..., m, n]
 */
const matmulOp = defineOp<MatmulAttrs>("matmul", {
  infer(inputs, { transA, transB }) {
    const [a, b] = inputs;
    needFloat("matmul", inputs);
    if (a!.shape.length < 2 || b!.shape.length < 2) {
      throw typeError("matmul", "operands need at least two axes", inputs, "use unsqueeze(x, axis)");
    }
    const [m, k] = lastTwo(a!.shape, transA);
    const [k2, n] = lastTwo(b!.shape, transB);
    if (k !== k2) {
      throw typeError(
        "matmul",
        `inner sizes differ: a ends in ${k}, b begins with ${k2}`,
        inputs,
        b!.shape.at(-1) === k ? "if b is stored as [out, in], pass transpose(b)" : undefined,
      );
    }
    const leading = broadcastShapes("matmul", a!.shape.slice(0, -2), b!.shape.slice(0, -2), inputs);
    return { shape: [...leading, m, n], dtype: "f32" };
  },
  evaluate({ inputs: [a, b], attrs: { transA, transB }, types }) {
    const leading = types[0]!.shape.slice(0, -2);
    const [m, k] = lastTwo(a!.shape, transA);
    const [, n] = lastTwo(b!.shape, transB);
    const batchA = broadcastOffsets(a!.shape.slice(0, -2), leading);
    const batchB = broadcastOffsets(b!.shape.slice(0, -2), leading);
    const out = new Float64Array(sizeOf(types[0]!.shape));
    for (let batch = 0; batch < batchA.length; batch++) {
      const startA = batchA[batch]! * m * k;
      const startB = batchB[batch]! * k * n;
      for (let i = 0; i < m; i++) {
        for (let l = 0; l < k; l++) {
          const left = a!.data[startA + (transA ? l * m + i : i * k + l)]!;
          const to = (batch * m + i) * n;
          for (let j = 0; j < n; j++) {
            out[to + j]! += left * b!.data[startB + (transB ? j * k + l : l * n + j)]!;
          }
        }
      }
    }
    return out;
  },
  // da = dy · bᵀ,  db = aᵀ · dy; an axis that was broadcast forward is summed backward
  grad({ inputs: [a, b], attrs: { transA, transB }, dy, needs }) {
    const product = (x: Tensor, tx: boolean, y: Tensor, ty: boolean): Tensor =>
      matmulOp.apply([x, y], { transA: tx, transB: ty })[0]!;
    const da = (): Tensor => (transA ? product(b!, transB, dy, true) : product(dy, false, b!, !transB));
    const db = (): Tensor => (transB ? product(dy, true, a!, transA) : product(a!, !transA, dy, false));
    return [needs(0) ? sumTo(da(), a!.shape) : undefined, needs(1) ? sumTo(db(), b!.shape) : undefined];
  },
  onnx({ inputs, inputTypes, attrs: { transA, transB }, emit }) {
    if (!transA && !transB) return emit("MatMul", inputs);
    if (inputTypes.every(({ shape }) => shape.length === 2)) {
      return emit("Gemm", inputs, { transA: transA ? 1 : 0, transB: transB ? 1 : 0 });
    }
    return emit("com.microsoft.FusedMatMul", inputs, { transA: transA ? 1 : 0, transB: transB ? 1 : 0 });
  },
  samples: [
    {
      inputs: [
        [2, 3],
        [3, 5],
      ],
      attrs: { transA: false, transB: false },
    },
    {
      inputs: [
        [7, 2, 3],
        [3, 5],
      ],
      attrs: { transA: false, transB: false },
    },
    {
      inputs: [
        [2, 1],
        [1, 2],
      ],
      attrs: { transA: false, transB: false },
    },
    {
      inputs: [
        [3, 2],
        [3, 5],
      ],
      attrs: { transA: true, transB: false },
    },
    {
      inputs: [
        [7, 2, 3],
        [7, 5, 3],
      ],
      attrs: { transA: false, transB: true },
    },
    {
      inputs: [
        [7, 3, 2],
        [7, 5, 3],
      ],
      attrs: { transA: true, transB: true },
    },
    {
      inputs: [
        [7, 1, 2, 3],
        [2, 3, 5],
      ],
      attrs: { transA: false, transB: false },
    },
  ],
});

/** a · b over the last two axes, with leading axes broadcast. */
export function matmul(a: Tensor, b: Tensor, { transA = false, transB = false } = {}): Tensor {
  if (b.rank === 2 && a.rank > 2 && !transA) {
    // One large product instead of a batch of small ones; its gradient is one large product as well.
    const y = matmulOp.apply([reshape(a, [-1, a.shape.at(-1)!]), b], { transA, transB })[0]!;
    return reshape(y, [...a.shape.slice(0, -1), y.shape[1]!]);
  }
  return matmulOp.apply([a, b], { transA, transB })[0]!;
}
