/**
 * A third form of the LSTM's gradient, to measure beside what autodiff makes: the forward loop keeps only h and c,
 * and one large product afterwards makes all gates again. Derived by hand; only the benchmark uses it.
 */
import {
  add,
  concat,
  matmul,
  mul,
  reshape,
  scan,
  sigmoid,
  slice,
  split,
  sub,
  sum,
  type Tensor,
  tanh,
  unsqueeze,
} from "../src/graph/index.ts";
import type { LstmWeights } from "../src/model/lstm.ts";

/** Loss Σ h · coefficients and its gradients with respect to Wx, Wh and b, for x [T, B, E]. */
export function lstmByRecomputation(
  w: LstmWeights,
  x: Tensor,
  h0: Tensor,
  c0: Tensor,
  coefficients: Tensor,
): { loss: Tensor; gradients: Tensor[] } {
  const [T, B] = x.shape as [number, number];
  const H = h0.shape[1]!;
  const gates = (z: Tensor): Tensor[] => {
    const [i, f, g, o] = split(z, 4) as [Tensor, Tensor, Tensor, Tensor];
    return [sigmoid(i), sigmoid(f), tanh(g), sigmoid(o)];
  };
  const inputs = add(matmul(x, w.Wx), w.biases[0]!);
  const { ys } = scan({ carry: [h0, c0], xs: [inputs] }, ([h, c], [z]) => {
    const [i, f, g, o] = gates(add(z!, matmul(h!, w.Wh))) as [Tensor, Tensor, Tensor, Tensor];
    const next = add(mul(f, c!), mul(i, g));
    const out = mul(o, tanh(next));
    return { carry: [out, next], ys: [out, next] };
  });
  const [h, c] = ys as [Tensor, Tensor];
  const before = (first: Tensor, all: Tensor): Tensor =>
    concat([unsqueeze(first, 0), slice(all, 0, 0, T - 1)], 0);
  const hBefore = before(h0, h);
  const [i, f, g, o] = gates(add(inputs, matmul(hBefore, w.Wh))) as [Tensor, Tensor, Tensor, Tensor];
  const squashed = tanh(c);
  const slope = (y: Tensor): Tensor => mul(y, sub(1, y));
  const bend = (y: Tensor): Tensor => sub(1, mul(y, y));
  // Everything that does not depend on what comes from later steps, for all steps at once.
  const cBefore = before(c0, c);
  const factors = [
    mul(g, slope(i)),
    mul(cBefore, slope(f)),
    mul(i, bend(g)),
    mul(squashed, slope(o)),
    mul(o, bend(squashed)),
    f,
  ];
  const { ys: back } = scan(
    { carry: [mul(h0, 0), mul(c0, 0)], xs: [coefficients, ...factors], reverse: true },
    ([dh, dc], [dy, fi, ff, fg, fo, fc, forget]) => {
      const dOut = add(dh!, dy!);
      const dCell = add(dc!, mul(dOut, fc!));
      const dz = concat([mul(dCell, fi!), mul(dCell, ff!), mul(dCell, fg!), mul(dOut, fo!)]);
      return { carry: [matmul(dz, w.Wh, { transB: true }), mul(dCell, forget!)], ys: [dz] };
    },
  );
  const dz = reshape(back[0]!, [T * B, 4 * H]);
  const flat = (y: Tensor): Tensor => reshape(y, [T * B, -1]);
  return {
    loss: sum(mul(h, coefficients)),
    gradients: [
      matmul(flat(x), dz, { transA: true }),
      matmul(flat(hBefore), dz, { transA: true }),
      sum(dz, { axes: 0 }),
    ],
  };
}
