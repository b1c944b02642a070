/** Relative attention against the official program's numbers and against plain loops. */
import { expect, test } from "vitest";
import { grad } from "../../src/compile/grad.ts";
import { input, mul, relativeShift, sum, type Tensor } from "../../src/graph/index.ts";
import type { Value } from "../../src/graph/op.ts";
import {
  blockedAttention,
  causalMask,
  hidden,
  joinHeads,
  relativeAttention,
  sinusoid,
  splitHeads,
} from "../../src/model/relativeAttention.ts";
import { interpret } from "../../src/runtime/oracle.ts";
import { centralDifferences, expectClose, normals, runOrt } from "../support/check.ts";
import { asValue, fixture, type StoredTensor } from "../support/fixtures.ts";

const official = fixture<{
  position_embedding: { k: number; d_model: number; matrix: StoredTensor };
  rel_shift: { input: StoredTensor; output: StoredTensor };
}>("txl-official");

test("the official sinusoids", () => {
  const { k, d_model, matrix } = official.position_embedding;
  expectClose(interpret([sinusoid(k, d_model)], new Map())[0]!.data, matrix.data, { rtol: 0, atol: 1e-12 });
});

test("the official relative shift, where it means something", () => {
  const { input: before, output: after } = official.rel_shift;
  const [q, k] = before.shape as [number, number];
  const x = input("x", [q, k]);
  const [y] = interpret([relativeShift(x)], new Map([[x, asValue(before)]]));
  for (let i = 0; i < q; i++) {
    const seen = k - q + i + 1;
    expectClose(y!.data.subarray(i * k, i * k + seen), after.data.slice(i * k, i * k + seen), {
      rtol: 0,
      atol: 0,
    });
  }
});

test("heads are split and joined again", () => {
  const x = input("x", [2, 5, 6]);
  const value = normals([2, 5, 6], 1);
  const heads = splitHeads(x, 3);
  expect(heads.shape).toEqual([2, 3, 5, 2]);
  const [split, joined] = interpret([heads, joinHeads(heads)], new Map([[x, value]]));
  expect(joined!.data).toEqual(value.data);
  // Head 2 of token 4 of row 1.
  expect(Array.from(split!.data.slice(((1 * 3 + 2) * 5 + 4) * 2, ((1 * 3 + 2) * 5 + 4) * 2 + 2))).toEqual(
    Array.from(value.data.slice((1 * 5 + 4) * 6 + 4, (1 * 5 + 4) * 6 + 6)),
  );
});

/** S[i,j] = ((q_i + u) · k_j + (q_i + w) · r(distance)) / √d in loops, then softmax over what may be seen. */
function plain(
  { h, q, k, d }: Record<"h" | "q" | "k" | "d", number>,
  a: Record<"q" | "k" | "v" | "r" | "u" | "w", Float64Array>,
  visible: (i: number, j: number) => boolean,
) {
  const y = new Float64Array(h * q * d);
  const P = new Float64Array(h * q * k);
  for (let head = 0; head < h; head++) {
    for (let i = 0; i < q; i++) {
      const scores = Array.from({ length: k }, (_, j) => {
        const distance = k - q + i - j;
        if (distance < 0 || !visible(i, j)) return Number.NEGATIVE_INFINITY;
        let score = 0;
        for (let n = 0; n < d; n++) {
          const query = a.q[(head * q + i) * d + n]!;
          score += (query + a.u[head * d + n]!) * a.k[(head * k + j) * d + n]!;
          score += (query + a.w[head * d + n]!) * a.r[(head * k + (k - 1 - distance)) * d + n]!;
        }
        return score / Math.sqrt(d);
      });
      const largest = Math.max(...scores);
      const total = scores.reduce((sum, s) => sum + Math.exp(s - largest), 0);
      scores.forEach((s, j) => {
        const p = Math.exp(s - largest) / total;
        P[(head * q + i) * k + j] = p;
        for (let n = 0; n < d; n++) y[(head * q + i) * d + n]! += p * a.v[(head * k + j) * d + n]!;
      });
    }
  }
  return { y, P };
}

test.each([
  { h: 1, q: 1, k: 1, d: 1 },
  { h: 2, q: 3, k: 3, d: 2 },
  { h: 3, q: 4, k: 7, d: 5 },
  { h: 1, q: 1, k: 6, d: 3 },
])("attention and its gradients in plain loops: %o", async (sizes) => {
  const { h, q, k, d } = sizes;
  const shapes = { q: [h, q, d], k: [h, k, d], v: [h, k, d], r: [h, k, d], u: [h, 1, d], w: [h, 1, d] };
  const names = Object.keys(shapes) as (keyof typeof shapes)[];
  const tensors = Object.fromEntries(names.map((name) => [name, input(name, shapes[name])])) as Record<
    keyof typeof shapes,
    Tensor
  >;
  const values = new Map<Tensor, Value>(
    names.map((name, i) => [tensors[name], normals(shapes[name], i + 1)]),
  );
  const { y, P } = relativeAttention({ ...tensors, mask: causalMask(q, k) });
  const arrays = Object.fromEntries(names.map((name) => [name, values.get(tensors[name])!.data])) as Record<
    keyof typeof shapes,
    Float64Array
  >;
  const want = plain(sizes, arrays, () => true);
  const [gotY, gotP] = interpret([y, P], values);
  expectClose(gotY!.data, want.y, { rtol: 1e-11, atol: 1e-13, label: "y" });
  expectClose(gotP!.data, want.P, { rtol: 1e-11, atol: 1e-13, label: "P" });
  expectClose((await runOrt([y], values))[0]!, want.y, { rtol: 1e-4, atol: 1e-5, label: "y in float32" });

  const coef = normals(y.shape, 9);
  const coefficients = input("coef", y.shape);
  values.set(coefficients, coef);
  const grads = interpret(
    grad(
      sum(mul(y, coefficients)),
      names.map((name) => tensors[name]),
    ),
    values,
  );
  names.forEach((name, i) => {
    const numeric = centralDifferences(
      (data) =>
        plain(sizes, { ...arrays, [name]: data }, () => true).y.reduce((t, x, n) => t + x * coef.data[n]!, 0),
      arrays[name],
    );
    expectClose(grads[i]!.data, numeric, { rtol: 1e-6, atol: 1e-8, label: `gradient of ${name}` });
  });
});

test.each([
  { q: 5, k: 5, blocks: 2, lengths: [3, 2] },
  { q: 7, k: 12, blocks: 3, lengths: [3, 3, 1] },
  { q: 4, k: 6, blocks: 4, lengths: [1, 1, 1, 1] },
  { q: 3, k: 3, blocks: 1, lengths: [3] },
])("queries in blocks attend as they do together, %o", ({ q, k, blocks, lengths }) => {
  const [B, h, d] = [2, 3, 2];
  const shapes = {
    q: [B, h, q, d],
    k: [B, h, k, d],
    v: [B, h, k, d],
    r: [1, h, k, d],
    u: [h, 1, d],
    w: [h, 1, d],
  };
  const names = Object.keys(shapes) as (keyof typeof shapes)[];
  const tensors = Object.fromEntries(names.map((name) => [name, input(name, shapes[name])])) as Record<
    keyof typeof shapes,
    Tensor
  >;
  // Two keys of the second row are hidden from all its queries.
  const mask = input("mask", [B, 1, q, k]);
  const future = interpret([causalMask(q, k)], new Map())[0]!.data;
  const seen = Float64Array.from({ length: B * q * k }, (_, at) =>
    at >= q * k && at % k < Math.min(2, k - q) ? hidden : future[at % (q * k)]!,
  );
  const values = new Map<Tensor, Value>([
    [mask, { shape: [B, 1, q, k], data: seen }],
    ...names.map((name, i) => [tensors[name], normals(shapes[name], i + 1)] as const),
  ]);
  const asked: [number, number[]][] = [];
  const inBlocks = blockedAttention(
    {
      ...tensors,
      mask,
      dropout(P, block) {
        asked.push([block, [...P.shape]]);
        return P;
      },
    },
    blocks,
  );
  const { y } = relativeAttention({ ...tensors, mask });
  let end = k - q;
  expect(asked).toEqual(
    lengths.map((length, block) => {
      end += length;
      return [block, [B, h, length, end]];
    }),
  );
  const coefficients = input("coef", y.shape);
  values.set(coefficients, normals(y.shape, 9));
  const all = (out: Tensor): Tensor[] => [
    out,
    ...grad(
      sum(mul(out, coefficients)),
      names.map((name) => tensors[name]),
    ),
  ];
  const want = interpret(all(y), values);
  interpret(all(inBlocks), values).forEach(({ data }, i) => {
    expectClose(data, want[i]!.data, { rtol: 1e-11, atol: 1e-13, label: ["y", ...names][i]! });
  });
});

test("a query that may see nothing gives numbers, not NaN", async () => {
  const [h, q, k, d] = [2, 2, 3, 2];
  const x = input("x", [h, k, d]);
  const queries = input("q", [h, q, d]);
  const bias = input("bias", [h, 1, d]);
  const mask = input("mask", [q, k]);
  const { y, P } = relativeAttention({ q: queries, k: x, v: x, r: x, u: bias, w: bias, mask });
  const values = new Map<Tensor, Value>([
    [x, normals([h, k, d], 1)],
    [queries, normals([h, q, d], 2)],
    [bias, normals([h, 1, d], 3)],
    [mask, { shape: [q, k], data: Float64Array.of(hidden, hidden, hidden, 0, hidden, 0) }],
  ]);
  for (const data of [interpret([y], values)[0]!.data, (await runOrt([y], values))[0]!]) {
    expect(Array.from(data as Float32Array).every(Number.isFinite)).toBe(true);
  }
  // The second query of each head: nothing goes to the key it must not see.
  const [attention] = interpret([P], values);
  expect([attention!.data[4], attention!.data[10]]).toEqual([0, 0]);
});
