/**
 * Affine maps and matrix products with gradients that are fast on the TensorFlow.js WebAssembly backend.
 *
 * The backend hands a matrix product to XNNPACK only when neither factor is transposed; the gradients of
 * tf.matMul ask for transposed factors and fall into a plain loop, about ten times slower (64 x 1024 times
 * 1024 x 256: 16 ms against 1.2 ms). Transposing first and multiplying then is what a profile leads a user
 * of the library to write, and here the transposed weight is made once per pass, not once per step.
 */
import * as tf from "@tensorflow/tfjs-core";

/** A weight [in, out] with its transpose, which the gradient with respect to the input needs. */
export interface Weight {
  readonly w: tf.Tensor2D;
  /** [out, in]; of the rows that get an input gradient, see `affine`. */
  readonly transposed: tf.Tensor2D;
}

/**
 * [data, a] · w + b, with gradients for a, w and b but none for the data.
 *
 *   data [m, j] or none   a [m, k]   w [j + k, n]   transposed [n, k]   b [n]   →   [m, n]
 */
export function affine(a: tf.Tensor, { w, transposed }: Weight, b: tf.Tensor, data?: tf.Tensor): tf.Tensor2D {
  const map = tf.customGrad((...inputs) => {
    const [x, weight, bias, save] = inputs as unknown as [
      tf.Tensor2D,
      tf.Tensor2D,
      tf.Tensor1D,
      tf.GradSaveFunc,
    ];
    const joined = data ? tf.concat2d([data as tf.Tensor2D, x], 1) : x;
    save([joined]);
    return {
      value: tf.fused.matMul({ a: joined, b: weight, bias }),
      gradFunc: (dy, saved) =>
        tf.tidy(() => [
          tf.matMul(dy, transposed),
          tf.matMul(tf.transpose((saved as tf.Tensor[])[0]!), dy),
          tf.sum(dy, 0),
        ]),
    };
  });
  return map(a, w, b) as tf.Tensor2D;
}

/** a [m, k] · w [k, n], for a product that is made once per pass. */
export function product(a: tf.Tensor, w: tf.Tensor): tf.Tensor2D {
  const map = tf.customGrad((...inputs) => {
    const [left, right, save] = inputs as unknown as [tf.Tensor2D, tf.Tensor2D, tf.GradSaveFunc];
    save([left, right]);
    return {
      value: tf.matMul(left, right),
      gradFunc: (dy, saved) => {
        const [l, r] = saved as [tf.Tensor, tf.Tensor];
        return [tf.matMul(dy, tf.transpose(r)), tf.matMul(tf.transpose(l), dy)];
      },
    };
  });
  return map(a, w) as tf.Tensor2D;
}
