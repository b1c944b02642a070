/**
 * One training step of the FWM on catbAbI in question mode in TensorFlow.js, as a peer in the benchmarks.
 *
 *   (s, r, u, β) = h A + a0;  k1, k2, v = tanh(s, r, u);  β = σ(β + 1)       released catbAbI variant
 *   F' = F + (k1 ⊗ k2) ⊗ β (v - F k1 k2) / d;  F = F' / max(1, |F'|)
 *   (n, q1 .. qN) = h B + b0;  n = LN(F n tanh(q_i)), i = 1 .. N;  logits = (n Wo + bo) Ws
 *
 * Token by token, as the paper writes it, because that is how the library is used: each token has its F. What
 * a user of the library can do about time is done: reads only at steps where some row has a question, logits
 * and cross entropy once for all of them, gradients of its own for the fast weights (tfjsFwmMemory.ts) and
 * the maps (tfjsAffine.ts), and the embedding multiplied into the LSTM's input weights once per step.
 *
 * Memory: the library frees nothing of a tape before its backward pass is over, tensors of the size of F
 * among it: measured, 44 MB per token at B = 32. WebAssembly addresses 4 GB, so a segment of 200 tokens does not fit
 * in one tape beyond B = 14 or so. `tokensPerTape` tokens share a tape; with several windows, the states between
 * them are computed first, without a tape, and the windows are gone through backwards (checkpointing). The
 * gradients are those of one tape over all tokens, at the price of a second forward pass.
 */
import * as tf from "@tensorflow/tfjs-core";
import { type FwmSizes, type FwmWeightName, fwmProblem } from "./fwmProblem.ts";
import { affine, product, type Weight } from "./tfjsAffine.ts";
import { type Peer, startTfjs } from "./tfjsBackend.ts";
import { bind, read, scaleDown, write } from "./tfjsFwmMemory.ts";
import { lstmCell } from "./tfjsLstm.ts";

/** Recurrent state: LSTM output and cell [B, H], fast weights [B, d, d²]. */
type State = [h: tf.Tensor, c: tf.Tensor, F: tf.Tensor];

/** A run of tokens that shares a tape, and the one-hot answers at the steps that ask, [steps · B, V]. */
interface Window {
  readonly first: number;
  readonly end: number;
  readonly answers: tf.Tensor;
}

/** The transposed weights the maps' gradients use. */
type Transposed = Record<"Wh" | "A" | "B", tf.Tensor2D>;

/** Rows times tokens that fit in one tape with room to spare, about 2.2 GB of 4 at d = 32. */
const mostPerTape = 1600;

/** A training step of the FWM: `run` updates the weights with Adam (0.001) and carries the state on. */
export async function tfjsFwm(
  sizes: FwmSizes,
  tokensPerTape = Math.max(1, Math.min(sizes.steps, Math.floor(mostPerTape / sizes.batch))),
): Promise<Peer & { gradients(): Promise<Record<FwmWeightName, Float32Array>> }> {
  const about = await startTfjs();
  const { batch, steps, hidden, memory: d, reads, vocabulary } = sizes;
  const { inputs, targets, questions, weights } = fwmProblem(sizes);
  const names = Object.keys(weights) as FwmWeightName[];
  const w = Object.fromEntries(
    names.map((name) => [
      name,
      tf.tidy(() => tf.variable(tf.tensor(weights[name].values, [...weights[name].shape]))),
    ]),
  ) as Record<FwmWeightName, tf.Variable>;

  // Cast afterwards: asked for float32, the backend's oneHot writes integers into the float tensor.
  const oneHot = (tokens: Int32Array) =>
    tf.tidy(() => tf.cast(tf.oneHot(tf.tensor1d(tokens, "int32"), vocabulary), "float32"));
  const x = Array.from({ length: steps }, (_, t) => oneHot(inputs.slice(t * batch, (t + 1) * batch)));
  const asks = Array.from({ length: steps }, (_, t) =>
    questions.subarray(t * batch, (t + 1) * batch).includes(1),
  );
  const windows: Window[] = Array.from({ length: Math.ceil(steps / tokensPerTape) }, (_, i) => {
    const [first, end] = [i * tokensPerTape, Math.min(steps, (i + 1) * tokensPerTape)];
    const places = Array.from(questions.keys()).filter((place) => {
      const t = Math.floor(place / batch);
      return asks[t] && t >= first && t < end;
    });
    // Rows without a question get no target: oneHot gives zeros for -1.
    const answers = oneHot(Int32Array.from(places, (place) => (questions[place] ? targets[place]! : -1)));
    return { first, end, answers };
  });
  const questionCount = questions.reduce((sum, q) => sum + q, 0);

  let state: State = [tf.zeros([batch, hidden]), tf.zeros([batch, hidden]), tf.zeros([batch, d, d * d])];

  /** Writes, and reads if asked to: returns the next state and, when reading, n [B, d]. */
  function step(t: number, [h0, c0, F0]: State, lstm: Weight, transposed: Transposed): tf.Tensor[] {
    const [h, c] = lstmCell(x[t]!, [h0, c0], lstm, w.b, 1);
    const maps = affine(h, { w: w.A as tf.Tensor2D, transposed: transposed.A }, w.a0);
    const [s, r, u, strength] = tf.split(maps, [d, d, d, 1], 1) as [
      tf.Tensor,
      tf.Tensor,
      tf.Tensor,
      tf.Tensor,
    ];
    const key = bind(tf.tanh(s), tf.tanh(r));
    const old = tf.reshape(read(F0, key), [batch, d]);
    const change = tf.mul(tf.div(tf.sigmoid(tf.add(strength, 1)), d), tf.sub(tf.tanh(u), old));
    const F = scaleDown(write(F0, tf.reshape(change, [batch, d, 1]), key));
    if (!asks[t]) return [h, c, F];

    const queries = affine(h, { w: w.B as tf.Tensor2D, transposed: transposed.B }, w.b0);
    const [n0, ...q] = tf.split(queries, reads + 1, 1);
    const n = q.reduce(
      (last, qi) => normalise(tf.reshape(read(F, bind(last, tf.tanh(qi))), [batch, d])),
      n0!,
    );
    return [h, c, F, n];
  }

  /** Goes through a window: the state after it and the n found, each [B, d]. */
  function forward({ first, end }: Window, start: State, transposed: Transposed): [State, tf.Tensor2D[]] {
    const kernel = tf.concat2d([product(w.embedding, w.Wx), w.Wh as tf.Tensor2D], 0);
    let current = start;
    const found: tf.Tensor2D[] = [];
    for (let t = first; t < end; t++) {
      const [h, c, F, n] = tf.tidy(() =>
        step(t, current, { w: kernel, transposed: transposed.Wh }, transposed),
      );
      current = [h!, c!, F!];
      if (n) found.push(n as tf.Tensor2D);
    }
    return [current, found];
  }

  /** The window's part of the mean cross entropy. */
  function crossEntropy({ answers }: Window, found: tf.Tensor2D[]): tf.Tensor {
    if (found.length === 0) return tf.scalar(0);
    const logits = product(tf.add(product(tf.concat2d(found, 0), w.Wo), w.bo), w.Ws);
    return tf.div(tf.neg(tf.sum(tf.mul(answers, tf.logSoftmax(logits)))), questionCount);
  }

  /** Loss and gradients of the whole segment, and the state after it. */
  function lossAndGradients() {
    const transposed: Transposed = {
      Wh: tf.transpose(w.Wh as tf.Tensor2D),
      A: tf.transpose(w.A as tf.Tensor2D),
      B: tf.transpose(w.B as tf.Tensor2D),
    };
    const starts: State[] = [state];
    for (const window of windows.slice(0, -1)) {
      starts.push(tf.tidy(() => forward(window, starts.at(-1)!, transposed)[0]));
    }
    let next: State | undefined;
    let dEnd: State | undefined; // gradient with respect to the state at the end of the window
    const losses: tf.Tensor[] = [];
    const sums: Record<string, tf.Tensor> = {};
    for (const [i, window] of [...windows.entries()].reverse()) {
      const start = starts[i]!.map((part) => tf.variable(part)) as [tf.Variable, tf.Variable, tf.Variable];
      const later = dEnd;
      const { value, grads } = tf.variableGrads(() => {
        const [end, found] = forward(window, start, transposed);
        next ??= end.map((part) => tf.keep(tf.clone(part))) as State;
        const loss = crossEntropy(window, found);
        losses.push(tf.keep(tf.clone(loss)));
        const along = later?.map((d, j) => tf.sum(tf.mul(d, end[j]!))) ?? [];
        return tf.addN([loss, ...along]) as tf.Scalar;
      }, [...names.map((name) => w[name]), ...start]);
      dEnd = start.map((part) => grads[part.name] ?? tf.zerosLike(part)) as State;
      for (const name of names.map((weight) => w[weight].name)) {
        const [sum, grad] = [sums[name], grads[name]];
        if (!grad) continue; // a window without questions has no gradient for the output weights
        sums[name] = sum ? tf.add(sum, grad) : grad;
        if (sum) tf.dispose([sum, grad]);
      }
      tf.dispose([value, start, later ?? []]);
    }
    const value = tf.addN(losses);
    tf.dispose([transposed, losses, dEnd!, starts.slice(1)]);
    return { value, grads: sums, next: next! };
  }

  const optimizer = tf.train.adam(1e-3);
  return {
    ...about,
    async run() {
      const { value, grads, next } = lossAndGradients();
      optimizer.applyGradients(Object.entries(grads).map(([name, tensor]) => ({ name, tensor })));
      const [result] = await value.data();
      tf.dispose([value, grads, state]);
      state = next;
      return result!;
    },
    async gradients() {
      const { value, grads, next } = lossAndGradients();
      const entries = await Promise.all(
        names.map(async (name) => [name, Float32Array.from(await grads[w[name].name]!.data())] as const),
      );
      tf.dispose([value, grads, next]);
      return Object.fromEntries(entries) as Record<FwmWeightName, Float32Array>;
    },
    dispose() {
      optimizer.dispose();
      tf.dispose([x, windows.map(({ answers }) => answers), state, w]);
    },
  };
}

/** Layer norm without gain and bias over the last axis. */
function normalise(n: tf.Tensor): tf.Tensor {
  const { mean, variance } = tf.moments(n, 1, true);
  return tf.div(tf.sub(n, mean), tf.sqrt(tf.add(variance, 1e-5)));
}
