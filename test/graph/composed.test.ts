/** What is composed of ops, against its definition in plain loops: einsum, relative shift, log-sum-exp, clip, one-hot. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { grad } from "../../src/compile/grad.ts";
import {
  clip,
  crossEntropy,
  einsum,
  input,
  logSumExp,
  mean,
  oneHot,
  relativeShift,
  type Shape,
  stack,
  sum,
  type Tensor,
} from "../../src/graph/index.ts";
import type { Value } from "../../src/graph/op.ts";
import { interpret } from "../../src/runtime/oracle.ts";
import { expectClose, normals, runOrt } from "../support/check.ts";

const exact = { rtol: 1e-12, atol: 1e-12 };

function values(shapes: readonly Shape[]): { tensors: Tensor[]; given: Map<Tensor, Value> } {
  const tensors = shapes.map((shape, i) => input(`x${i}`, shape));
  return { tensors, given: new Map(tensors.map((tensor, i) => [tensor, normals(tensor.shape, i)])) };
}

/** Σ over all letters, one index at a time. */
function slowEinsum(
  formula: string,
  operands: readonly Value[],
  sizes: ReadonlyMap<string, number>,
): number[] {
  const [left, right] = formula.split("->") as [string, string];
  const terms = left.split(",");
  const letters = [...sizes.keys()];
  const out = new Array<number>([...right].reduce((n, letter) => n * sizes.get(letter)!, 1)).fill(0);
  const at = (term: string, index: ReadonlyMap<string, number>): number =>
    [...term].reduce((offset, letter) => offset * sizes.get(letter)! + index.get(letter)!, 0);
  const walk = (depth: number, index: Map<string, number>): void => {
    if (depth === letters.length) {
      out[at(right, index)]! += terms.reduce((p, term, i) => p * operands[i]!.data[at(term, index)]!, 1);
      return;
    }
    for (let n = 0; n < sizes.get(letters[depth]!)!; n++) walk(depth + 1, index.set(letters[depth]!, n));
  };
  walk(0, new Map());
  return out;
}

describe("einsum", () => {
  const formulas = [
    "ij,jk->ik",
    "bi,bj,bijk->bk",
    "bi,bj,bk->bijk",
    "ij->j",
    "ijk->kij",
    "bi,bi->b",
    "i,j->ji",
    "bij,jk->bk",
  ];
  test.each(formulas)("%s", (formula) => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(1, 3, 2), { minLength: 4, maxLength: 4 }), (drawn) => {
        const letters = [...new Set(formula.replace(/[^a-z]/g, ""))];
        const sizes = new Map(letters.map((letter, i) => [letter, drawn[i]!]));
        const terms = formula.split("->")[0]!.split(",");
        const { tensors, given } = values(terms.map((term) => [...term].map((letter) => sizes.get(letter)!)));
        const [got] = interpret([einsum(formula, ...tensors)], given);
        const operands = tensors.map((tensor) => given.get(tensor)!);
        expectClose(got!.data, slowEinsum(formula, operands, sizes), exact);
      }),
      { numRuns: 12, seed: 3 },
    );
  });

  test("says what does not fit", () => {
    const { tensors } = values([
      [2, 3],
      [4, 5],
    ]);
    expect(() => einsum("ij,jk->ik", ...tensors)).toThrow("axis j is both 3 and 4");
    expect(() => einsum("ij->ik", tensors[0]!)).toThrow("axis k is not in any term");
    expect(() => einsum("ij,jk->ik", tensors[0]!)).toThrow("one term per operand");
  });
});

test.each([
  [1, 1],
  [3, 3],
  [2, 5],
  [7, 7],
])("relative shift of %i queries over %i keys", async (q, k) => {
  const { tensors, given } = values([[2, q, k]]);
  const shifted = relativeShift(tensors[0]!);
  const x = given.get(tensors[0]!)!.data;
  for (const y of [
    interpret([shifted], given)[0]!.data,
    (await runOrt([shifted], given))[0]! as Float32Array,
  ]) {
    for (let b = 0; b < 2; b++) {
      for (let i = 0; i < q; i++) {
        for (let j = 0; j <= k - q + i; j++) {
          const want = x[(b * q + i) * k + j + (q - 1 - i)]!;
          expect(Math.abs(y[(b * q + i) * k + j]! - want)).toBeLessThan(1e-6);
        }
      }
    }
  }
});

test("log-sum-exp does not overflow, over one axis and over all", () => {
  const x = input("x", [2, 3]);
  const data = Float64Array.of(1000, 1000, 999, -2000, -2001, -1999);
  const given = new Map([[x, { shape: [2, 3], data }]]);
  const [rows, all] = interpret([logSumExp(x, { axes: 1 }), logSumExp(x)], given);
  const want = (values: readonly number[]): number => {
    const top = Math.max(...values);
    return top + Math.log(values.reduce((sum, value) => sum + Math.exp(value - top), 0));
  };
  expectClose(rows!.data, [want([...data.slice(0, 3)]), want([...data.slice(3)])], exact);
  expectClose(all!.data, [want([...data])], exact);
});

test("log-sum-exp of infinities is an infinity, on ONNX Runtime too, and -∞ alone has a finite gradient", async () => {
  const x = input("x", [4, 3]);
  const none = Number.NEGATIVE_INFINITY;
  const data = Float64Array.of(none, none, none, none, 1, none, Number.POSITIVE_INFINITY, 0, none, 1, 2, 3);
  const given = new Map([[x, { shape: [4, 3], data }]]);
  const y = logSumExp(x, { axes: 1 });
  const want = [none, 1, Number.POSITIVE_INFINITY, 3 + Math.log(1 + Math.exp(-1) + Math.exp(-2))];
  expectClose(interpret([y], given)[0]!.data, want, exact);
  expectClose((await runOrt([y], given))[0]!, want, { rtol: 1e-6, atol: 0 });
  const dx = grad(sum(y), [x])[0]!;
  const softmaxOf3 = [3, 2, 1].map((k) => Math.exp(1 - k) / (1 + Math.exp(-1) + Math.exp(-2)));
  for (const got of [interpret([dx], given)[0]!.data, (await runOrt([dx], given))[0]!]) {
    expect(Array.from(got.slice(0, 3), Number).every(Number.isFinite)).toBe(true);
    expectClose(got.slice(3, 6), [0, 1, 0], exact);
    expectClose(got.slice(9), softmaxOf3, { rtol: 1e-5, atol: 0 });
  }
});

test("cross entropy counts nothing at a masked position, also where its loss is infinite", async () => {
  const logits = input("logits", [2, 3]);
  const classes = input("classes", [2], "i32");
  const none = Number.NEGATIVE_INFINITY;
  for (const mask of [input("mask", [2], "bool"), input("mask", [2])]) {
    const given = new Map<Tensor, Value>([
      [logits, { shape: [2, 3], data: Float64Array.of(1, 2, 3, 0, none, 0) }],
      [classes, { shape: [2], data: Float64Array.of(0, 1) }],
      [mask, { shape: [2], data: Float64Array.of(1, 0) }],
    ]);
    const loss = crossEntropy(logits, classes, mask);
    const want = Math.log(Math.exp(1) + Math.exp(2) + Math.exp(3)) - 1;
    const dlogits = grad(loss, [logits])[0]!;
    const got = interpret([loss, dlogits], given);
    expectClose(got[0]!.data, [want], exact);
    expect([...got[1]!.data.slice(3)].map(Math.abs)).toEqual([0, 0, 0]);
    const [ort, dort] = await runOrt([loss, dlogits], given);
    expectClose(ort!, [want], { rtol: 1e-6, atol: 0 });
    expectClose(dort!, got[1]!.data, { rtol: 1e-5, atol: 1e-7 });
  }
});

test("clip, mean, stack and one-hot", () => {
  const x = input("x", [3]);
  const ids = input("ids", [2], "i32");
  const given = new Map<Tensor, Value>([
    [x, { shape: [3], data: Float64Array.of(-2, 0.5, 3) }],
    [ids, { shape: [2], data: Float64Array.of(2, 0) }],
  ]);
  const [clipped, average, stacked, hot] = interpret(
    [clip(x, -1, 1), mean(x), stack([x, x], 1), oneHot(ids, 3)],
    given,
  );
  expect([...clipped!.data]).toEqual([-1, 0.5, 1]);
  expectClose(average!.data, [0.5], exact);
  expect([...stacked!.data]).toEqual([-2, -2, 0.5, 0.5, 3, 3]);
  expect([...hot!.data]).toEqual([0, 0, 1, 1, 0, 0]);
});
