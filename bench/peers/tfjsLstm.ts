/**
 * An LSTM in TensorFlow.js, forward and backward, as a peer in the benchmarks.
 *
 *   z = [x_t, h] · W + b, split into (i, f, g, o);  c = σ(f) c + σ(i) tanh(g);  h = σ(o) tanh(c)
 *   loss = Σ_t Σ h_t ⊙ g_t   with fixed g, so that every output has a gradient
 *
 * Written for speed within the library's public interface, as its profiler suggests: the affine map has a
 * gradient of its own (tfjsAffine.ts); `split`, whose gradient is one concat, makes the gates; inputs are one
 * tensor per step, because slicing a step out of a large tensor copies the whole of it on this backend.
 */
import * as tf from "@tensorflow/tfjs-core";
import { affine, type Weight } from "./tfjsAffine.ts";
import { fixedNumbers, type Peer, startTfjs } from "./tfjsBackend.ts";

/** Sizes of the LSTM benchmark. */
export interface LstmSizes {
  readonly inputs: number;
  readonly units: number;
  readonly batch: number;
  readonly steps: number;
}

/** The sizes the benchmark reports. */
export const lstmBenchSizes: LstmSizes = { inputs: 256, units: 256, batch: 64, steps: 200 };

/** Everything the work is a function of, so that another implementation can do the same work. */
export interface LstmProblem {
  /** [steps, batch, inputs] */
  readonly x: Float32Array;
  /** [inputs, 4 units], gates in the order i, f, g, o */
  readonly Wx: Float32Array;
  /** [units, 4 units] */
  readonly Wh: Float32Array;
  /** [4 units] */
  readonly b: Float32Array;
  /** [steps, batch, units]: what the outputs are multiplied with */
  readonly g: Float32Array;
}

/** The gradients of the loss with respect to the weights, shaped as the weights. */
export type LstmGradients = Record<"Wx" | "Wh" | "b", Float32Array>;

/** The same numbers for the same sizes, always. */
export function lstmProblem({ inputs, units, batch, steps }: LstmSizes): LstmProblem {
  const bound = 1 / Math.sqrt(units);
  return {
    x: fixedNumbers(steps * batch * inputs, 1, 1),
    Wx: fixedNumbers(inputs * 4 * units, bound, 2),
    Wh: fixedNumbers(units * 4 * units, bound, 3),
    b: fixedNumbers(4 * units, bound, 4),
    g: fixedNumbers(steps * batch * units, 1, 5),
  };
}

/** One LSTM step; `forgetBias` is added inside the forget gate. */
export function lstmCell(
  x: tf.Tensor,
  [h, c]: readonly [tf.Tensor, tf.Tensor],
  weight: Weight,
  b: tf.Tensor,
  forgetBias = 0,
): [h: tf.Tensor, c: tf.Tensor] {
  const [i, f, g, o] = tf.split(affine(h, weight, b, x), 4, 1) as [
    tf.Tensor,
    tf.Tensor,
    tf.Tensor,
    tf.Tensor,
  ];
  const forget = tf.sigmoid(forgetBias === 0 ? f : tf.add(f, forgetBias));
  const next = tf.add(tf.mul(forget, c), tf.mul(tf.sigmoid(i), tf.tanh(g)));
  return [tf.mul(tf.sigmoid(o), tf.tanh(next)), next];
}

/** An LSTM whose `run` computes the loss and the gradients of all weights. */
export async function tfjsLstm(sizes: LstmSizes): Promise<Peer & { gradients(): Promise<LstmGradients> }> {
  const about = await startTfjs();
  const { inputs, units, batch, steps } = sizes;
  const problem = lstmProblem(sizes);
  const perStep = (values: Float32Array, width: number) =>
    Array.from({ length: steps }, (_, t) =>
      tf.tensor2d(values.slice(t * batch * width, (t + 1) * batch * width), [batch, width]),
    );
  const x = perStep(problem.x, inputs);
  const g = perStep(problem.g, units);
  const W = tf.tidy(() =>
    tf.variable(
      tf.concat2d(
        [tf.tensor2d(problem.Wx, [inputs, 4 * units]), tf.tensor2d(problem.Wh, [units, 4 * units])],
        0,
      ),
    ),
  );
  const b = tf.tidy(() => tf.variable(tf.tensor1d(problem.b)));

  function loss(weight: Weight): tf.Scalar {
    let state: [tf.Tensor, tf.Tensor] = [tf.zeros([batch, units]), tf.zeros([batch, units])];
    const parts = x.map((xt, t) => {
      state = tf.tidy(() => lstmCell(xt, state, weight, b));
      return tf.tidy(() => tf.sum(tf.mul(state[0], g[t]!)));
    });
    return tf.addN(parts) as tf.Scalar;
  }

  function lossAndGradients() {
    // Made outside the loss: it would be freed with the forward pass, and the backward pass needs it.
    const transposed = tf.tidy(() =>
      tf.transpose(tf.slice2d(W as tf.Tensor2D, [inputs, 0], [units, 4 * units])),
    );
    const result = tf.variableGrads(() => loss({ w: W as tf.Tensor2D, transposed }), [W, b]);
    transposed.dispose();
    return result;
  }

  return {
    ...about,
    async run() {
      const { value, grads } = lossAndGradients();
      const [result] = await value.data();
      tf.dispose([value, grads]);
      return result!;
    },
    async gradients() {
      const { value, grads } = lossAndGradients();
      const dW = Float32Array.from(await grads[W.name]!.data());
      const db = Float32Array.from(await grads[b.name]!.data());
      tf.dispose([value, grads]);
      return { Wx: dW.slice(0, inputs * 4 * units), Wh: dW.slice(inputs * 4 * units), b: db };
    },
    dispose() {
      tf.dispose([x, g, W, b]);
    },
  };
}
