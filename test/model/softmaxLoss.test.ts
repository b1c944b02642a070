/** The chunked softmax loss against the plain one: value, each loss and every gradient. */
import { expect, test } from "vitest";
import { grad } from "../../src/compile/grad.ts";
import { add, classLosses, input, matmul, mul, sum, type Tensor } from "../../src/graph/index.ts";
import type { Value } from "../../src/graph/op.ts";
import { softmaxLoss, softmaxLosses } from "../../src/model/softmaxLoss.ts";
import { interpret } from "../../src/runtime/oracle.ts";
import { expectClose, normals, runOrt } from "../support/check.ts";

test.each([
  { N: 7, E: 3, V: 5, logits: 1000, chunks: "one chunk" },
  { N: 7, E: 3, V: 5, logits: 15, chunks: "three chunks, the last one not full" },
  { N: 6, E: 1, V: 4, logits: 1, chunks: "more chunks than rows fill" },
])("$chunks", async ({ N, E, V, logits }) => {
  const x = input("x", [N, E]);
  const W = input("W", [V, E]);
  const b = input("b", [V]);
  const classes = input("classes", [N], "i32");
  const weights = input("weights", [N]);
  const plain = classLosses(add(matmul(x, W, { transB: true }), b), classes);
  const plainLoss = sum(mul(plain, weights));
  // A factor outside: the gradient that arrives is not 1.
  const outside = (loss: Tensor) => mul(loss, 3);
  const wanted = [plainLoss, plain, ...grad(outside(plainLoss), [x, W, b])];
  const loss = softmaxLoss({ x, W, b }, classes, weights, logits);
  const got = [loss, softmaxLosses({ x, W, b }, classes, logits), ...grad(outside(loss), [x, W, b])];
  const given = new Map<Tensor, Value>([
    [x, normals([N, E], 1)],
    [W, normals([V, E], 2)],
    [b, normals([V], 3)],
    [classes, { shape: [N], data: Float64Array.from({ length: N }, (_, i) => (i * 3) % Math.min(V, 4)) }],
    [
      weights,
      { shape: [N], data: Float64Array.from({ length: N }, (_, i) => (i === 1 ? 0 : 0.1 * i + 0.1)) },
    ],
  ]);
  const [a, c] = [interpret(wanted, given), interpret(got, given)];
  const onOrt = await runOrt(got, given);
  expect(got).toHaveLength(5);
  a.forEach(({ data }, i) => {
    expectClose(c[i]!.data, data, { rtol: 1e-9, atol: 1e-11, label: `output ${i} in the oracle` });
    const largest = data.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-3);
    expectClose(onOrt[i]! as Float32Array, data, { rtol: 0, atol: 1e-4 * largest, label: `output ${i}` });
  });
});
