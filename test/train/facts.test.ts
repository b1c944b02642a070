/** How far reads are from the facts, against plain loops, with its gradient. */
import { expect, test } from "vitest";
import { grad } from "../../src/compile/grad.ts";
import { input, type Tensor } from "../../src/graph/index.ts";
import type { Value } from "../../src/graph/op.ts";
import { interpret } from "../../src/runtime/oracle.ts";
import { factLoss } from "../../src/train/facts.ts";
import { centralDifferences, expectClose, normals } from "../support/check.ts";

const [B, Q, N, T] = [2, 3, 2, 5];
const shape = [B, Q, T];
const reads = [0, 1, 2].map((i) => input(`read${i}`, shape));
const facts = input("facts", [B, Q, N, T]);

/** Shares that add up to less than 1. */
const shares = [1, 2, 3].map((seed) =>
  normals(shape, seed).data.map((x) => Math.abs(x) / (1 + Math.abs(x)) / T),
);
/** Two facts of two tokens, or one, or none. */
const told = Float64Array.from({ length: B * Q * N * T }, (_, i) => {
  const [slot, fact, t] = [Math.floor(i / (N * T)), Math.floor(i / T) % N, i % T];
  return slot % 3 > fact && Math.floor(t / 2) === fact ? 1 : 0;
});

function plainLoss(all: readonly Float64Array[], wanted: Float64Array): number {
  let [total, count] = [0, 0];
  for (let slot = 0; slot < B * Q; slot++) {
    for (let fact = 0; fact < N; fact++) {
      const is = wanted.subarray((slot * N + fact) * T, (slot * N + fact + 1) * T);
      if (!is.includes(1)) continue;
      let missed = 1;
      for (const share of all) {
        let found = 0;
        for (let t = 0; t < T; t++) found += is[t]! * share[slot * T + t]!;
        missed *= 1 - found;
      }
      total -= Math.log(Math.max(1 - missed, 1e-6));
      count++;
    }
  }
  return count > 0 ? total / count : 0;
}

const given = (wanted: Float64Array): Map<Tensor, Value> =>
  new Map([
    ...reads.map((read, i): [Tensor, Value] => [read, { shape, data: shares[i]! }]),
    [facts, { shape: facts.shape, data: wanted }],
  ]);

test("equals plain loops, and so does its gradient", () => {
  const loss = factLoss(reads, facts);
  const [value, ...gradients] = interpret([loss, ...grad(loss, reads)], given(told));
  expectClose(value!.data, [plainLoss(shares, told)], { rtol: 1e-12, atol: 0 });
  gradients.forEach(({ data }, i) => {
    const moved = (x: Float64Array): Float64Array[] => shares.map((share, j) => (i === j ? x : share));
    const numeric = centralDifferences((x) => plainLoss(moved(x), told), shares[i]!, 1e-6);
    expectClose(data, numeric, { rtol: 1e-6, atol: 1e-8, label: `read ${i}` });
  });
});

test("is 0 where no facts are told, and where every fact is all that some read finds", () => {
  const loss = factLoss(reads, facts);
  expect(interpret([loss], given(new Float64Array(told.length)))[0]!.data[0]).toBe(0);
  const first = Float64Array.from({ length: B * Q * N * T }, (_, i) => (i % (N * T) === 0 ? 1 : 0));
  const found = given(first);
  // The second of three reads finds the first token and nothing else.
  found.set(reads[1]!, {
    shape,
    data: Float64Array.from({ length: B * Q * T }, (_, i) => (i % T === 0 ? 1 : 0)),
  });
  expect(interpret([loss], found)[0]!.data[0]).toBe(0);
});
