/**
 * The fast weights of the FWM in TensorFlow.js: read, write and norm, token by token over the full tensor.
 *
 * F is [B, d, d²]: for each row the matrix the paper multiplies with vec(k1 ⊗ k2). Each of the three has its
 * own gradient, for two reasons. Time: the automatic gradients ask for transposed batched products and for
 * sums over a middle axis, 4 to 20 times slower on the WebAssembly backend. Memory: the automatic gradients
 * keep up to four tensors of the size of F per token; these keep one.
 */
import * as tf from "@tensorflow/tfjs-core";

type Save = tf.GradSaveFunc;

/** key1 ⊗ key2 as one vector per row: [B, d], [B, d] → [B, 1, d²]. */
export function bind(key1: tf.Tensor, key2: tf.Tensor): tf.Tensor {
  const [rows, d] = key1.shape as [number, number];
  const both = tf.mul(tf.reshape(key1, [rows, d, 1]), tf.reshape(key2, [rows, 1, d]));
  return tf.reshape(both, [rows, 1, d * d]);
}

/** F · key: F [B, d, d²], key [B, 1, d²] → [B, d, 1]. */
export const read = tf.customGrad((...inputs) => {
  const [F, key, save] = inputs as unknown as [tf.Tensor, tf.Tensor, Save];
  save([F, key]);
  return {
    value: contractKey(F, key),
    gradFunc: (dy, saved) =>
      tf.tidy(() => {
        const [savedF, savedKey] = saved as [tf.Tensor, tf.Tensor];
        return [tf.mul(dy, savedKey), contractValue(dy, savedF)];
      }),
  };
});

/** F + value ⊗ key: F [B, d, d²], value [B, d, 1], key [B, 1, d²] → [B, d, d²]. */
export const write = tf.customGrad((...inputs) => {
  const [F, value, key, save] = inputs as unknown as [tf.Tensor, tf.Tensor, tf.Tensor, Save];
  save([value, key]);
  return {
    value: tf.add(F, tf.mul(value, key)),
    gradFunc: (dy, saved) =>
      tf.tidy(() => {
        const [savedValue, savedKey] = saved as [tf.Tensor, tf.Tensor];
        return [tf.clone(dy), contractKey(dy, savedKey), contractValue(savedValue, dy)];
      }),
  };
});

/** F / max(1, |F|) with the Frobenius norm of each row's tensor. */
export const scaleDown = tf.customGrad((...inputs) => {
  const [F, save] = inputs as unknown as [tf.Tensor, Save];
  const squared = tf.sum(tf.square(F), [1, 2], true); // [B, 1, 1]
  const scale = tf.sqrt(tf.maximum(squared, 1));
  const scaled = tf.div(F, scale);
  const isScaled = tf.cast(tf.greater(squared, 1), "float32");
  save([scaled, scale, isScaled]);
  return {
    value: scaled,
    // Above norm 1 the result U has norm 1, and dF = (dU - U <U, dU>) / scale.
    gradFunc: (dy, saved) =>
      tf.tidy(() => {
        const [U, by, applies] = saved as [tf.Tensor, tf.Tensor, tf.Tensor];
        const along = tf.mul(applies, tf.sum(tf.mul(U, dy), [1, 2], true));
        return tf.div(tf.sub(dy, tf.mul(U, along)), by);
      }),
  };
});

/** M [B, d, d²], key [B, 1, d²] → [B, d, 1]. */
function contractKey(M: tf.Tensor, key: tf.Tensor): tf.Tensor {
  return tf.matMul(M, tf.reshape(key, [key.shape[0]!, key.shape[2]!, 1]));
}

/** value [B, d, 1], M [B, d, d²] → [B, 1, d²]. */
function contractValue(value: tf.Tensor, M: tf.Tensor): tf.Tensor {
  return tf.matMul(tf.reshape(value, [value.shape[0]!, 1, value.shape[1]!]), M);
}
