/**
 * The LSTM of `tfjsLstm.ts` with the library's own parts: `tf.basicLSTMCell` in a loop and `tf.variableGrads`,
 * as its documentation suggests. `tfjsLstm.ts` is what a profile makes of it.
 */
import * as tf from "@tensorflow/tfjs-core";
import { type Peer, startTfjs } from "./tfjsBackend.ts";
import { type LstmSizes, lstmProblem } from "./tfjsLstm.ts";

/** An LSTM whose `run` computes the loss and the gradients of all weights. */
export async function tfjsLstmPlain(sizes: LstmSizes): Promise<Peer> {
  const about = await startTfjs();
  const { inputs, units, batch, steps } = sizes;
  const problem = lstmProblem(sizes);
  const x = tf.tensor3d(problem.x, [steps, batch, inputs]);
  const g = tf.tensor3d(problem.g, [steps, batch, units]);
  const kernel = tf.tidy(() => {
    const joined = tf.concat2d(
      [tf.tensor2d(problem.Wx, [inputs, 4 * units]), tf.tensor2d(problem.Wh, [units, 4 * units])],
      0,
    );
    // The library's gate order is i, g, f, o; ours is i, f, g, o.
    const [i, f, c, o] = tf.split(joined, 4, 1) as [tf.Tensor2D, tf.Tensor2D, tf.Tensor2D, tf.Tensor2D];
    return tf.variable(tf.concat2d([i, c, f, o], 1));
  });
  const bias = tf.tidy(() => {
    const [i, f, c, o] = tf.split(tf.tensor1d(problem.b), 4) as [
      tf.Tensor1D,
      tf.Tensor1D,
      tf.Tensor1D,
      tf.Tensor1D,
    ];
    return tf.variable(tf.concat1d([i, c, f, o]));
  });

  function loss(): tf.Scalar {
    const noForgetBias = tf.scalar(0);
    let h = tf.zeros([batch, units]) as tf.Tensor2D;
    let c = tf.zeros([batch, units]) as tf.Tensor2D;
    const outputs = tf.unstack(x).map((xt) => {
      [c, h] = tf.basicLSTMCell(
        noForgetBias,
        kernel as tf.Tensor2D,
        bias as tf.Tensor1D,
        xt as tf.Tensor2D,
        c,
        h,
      );
      return h;
    });
    return tf.sum(tf.mul(tf.stack(outputs), g));
  }

  return {
    ...about,
    async run() {
      const { value, grads } = tf.variableGrads(loss, [kernel, bias]);
      const [result] = await value.data();
      tf.dispose([value, grads]);
      return result!;
    },
    dispose() {
      tf.dispose([x, g, kernel, bias]);
    },
  };
}
