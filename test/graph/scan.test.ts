/**
 * Loops: values and gradients of `scan` against the same steps written out, against finite differences, and on
 * ONNX Runtime against the oracle.
 */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { grad, gradients } from "../../src/compile/grad.ts";
import { printGraph } from "../../src/compile/print.ts";
import { simplify } from "../../src/compile/simplify.ts";
import { ShapeError } from "../../src/errors.ts";
import {
  add,
  cast,
  clip,
  concat,
  constant,
  div,
  gatherRows,
  greater,
  input,
  layerNorm,
  matmul,
  max,
  mul,
  relu,
  reshape,
  scan,
  sigmoid,
  slice,
  softmax,
  split,
  squeeze,
  sub,
  sum,
  type Tensor,
  tanh,
  transpose,
  unsqueeze,
  where,
  zeros,
} from "../../src/graph/index.ts";
import type { Value } from "../../src/graph/op.ts";
import { scanAttrs } from "../../src/graph/ops/scan.ts";
import { topological } from "../../src/graph/tensor.ts";
import { keyOf, uniform } from "../../src/random.ts";
import { interpret } from "../../src/runtime/oracle.ts";
import { centralDifferences, expectClose, normals, runOrt, weightedSum } from "../support/check.ts";

/** A loop over given tensors, as a loop or written out. */
interface LoopCase {
  readonly inputs: readonly Tensor[];
  /** Tensors a gradient is asked of; default: all float inputs. */
  readonly wrt?: readonly Tensor[];
  readonly outputs: (unroll: boolean) => readonly Tensor[];
}

/** Values small enough for products of a dozen steps to stay tame; integers below 3. */
function drawn(inputs: readonly Tensor[], seed: number): Map<Tensor, Value> {
  return new Map(
    inputs.map(({ shape, dtype }, i) => {
      const floats = normals(shape, seed * 17 + i, 0.6);
      const key = keyOf(seed, "integers", i);
      const data =
        dtype === "f32"
          ? floats.data.map(Math.fround)
          : floats.data.map((_, at) => Math.floor(uniform(key, at) * 3));
      return [inputs[i]!, { shape, data }];
    }),
  );
}

/** A graph's float outputs and the gradients of their weighted sum. */
function withGradients({ inputs, wrt, outputs }: LoopCase, unroll: boolean) {
  const made = outputs(unroll);
  const floats = made.filter(({ dtype }) => dtype === "f32");
  const coefficients = floats.map(({ shape }, i) => normals(shape, 50 + i).data.map(Math.fround));
  const seeds = floats.map(({ shape }, i) => constant(coefficients[i]!, shape));
  const wanted = wrt ?? inputs.filter(({ dtype }) => dtype === "f32");
  const grads = gradients(floats, seeds, wanted).map((dx, i) => dx ?? zeros(wanted[i]!.shape));
  return { made, floats, coefficients, wanted, grads };
}

/** In the oracle both forms do the same arithmetic in another order: only rounding differs. */
const rounding = { rtol: 1e-10, atol: 1e-12 };

function checkOracle(loop: LoopCase, seed = 1, differences = true): void {
  const values = drawn(loop.inputs, seed);
  const looped = withGradients(loop, false);
  const written = withGradients(loop, true);
  const got = interpret([...looped.made, ...looped.grads], values);
  const want = interpret([...written.made, ...written.grads], values);
  got.forEach(({ data }, i) => {
    expectClose(data, want[i]!.data, { ...rounding, label: `loop against written out, ${i}` });
  });
  if (!differences) return;
  looped.wanted.forEach((tensor, i) => {
    const numeric = centralDifferences(
      (data) =>
        weightedSum(
          looped.floats,
          looped.coefficients,
          new Map(values).set(tensor, { shape: tensor.shape, data }),
        ),
      values.get(tensor)!.data,
    );
    // float64: rounding 1e-16 / step 1e-5 and truncation step² both lie near 1e-10 of the loss.
    const label = `gradient ${i} against differences`;
    expectClose(got[looped.made.length + i]!.data, numeric, { rtol: 1e-6, atol: 1e-7, label });
  });
}

async function checkOrt(loop: LoopCase, seed = 1): Promise<void> {
  const values = drawn(loop.inputs, seed);
  const { made, grads } = withGradients(loop, false);
  const want = interpret([...made, ...grads], values);
  const got = await runOrt([...made, ...grads], values);
  want.forEach(({ data }, i) => {
    // A dozen steps of float32 (6e-8 each) on sums of a few dozen terms; an entry that is small by cancellation
    // carries the rounding of the largest.
    const largest = data.reduce((most, x) => Math.max(most, Math.abs(x)), 1e-3);
    expectClose(got[i]!, data, { rtol: 0, atol: 2e-5 * largest, label: `ONNX Runtime, output ${i}` });
  });
}

const f = (name: string, ...shape: number[]): Tensor => input(name, shape);

/** h ← tanh of h with four captured matrices per row, [B, n, n]: left and right factor, as stored and transposed. */
function perRow(): LoopCase {
  const [B, n, T] = [2, 4, 5];
  const [h0, x] = [f("h0", B, n), f("x", T, B, n)];
  const [P, Q, R, S] = ["P", "Q", "R", "S"].map((name) => f(name, B, n, n)) as [
    Tensor,
    Tensor,
    Tensor,
    Tensor,
  ];
  return {
    inputs: [h0, x, P, Q, R, S],
    outputs: (unroll) => {
      const { carry, ys } = scan({ carry: [h0], xs: [x], unroll }, ([h], [xt]) => {
        const [row, column] = [unsqueeze(h!, 1), unsqueeze(h!, 2)];
        const right = add(matmul(row, P), matmul(row, Q, { transB: true }));
        const left = add(matmul(R, column), matmul(S, column, { transA: true }));
        const next = tanh(add(add(squeeze(right, 1), squeeze(left, 2)), xt!));
        return { carry: [next], ys: [next] };
      });
      return [...carry, ...ys];
    },
  };
}

const cases: Record<string, () => LoopCase> = {
  "a plain carry": () => {
    const [h0, x] = [f("h0", 2, 3), f("x", 5, 2, 3)];
    return {
      inputs: [h0, x],
      outputs: (unroll) =>
        scan({ carry: [h0], xs: [x], unroll }, ([h], [xt]) => ({ carry: [tanh(add(mul(h!, 0.9), xt!))] }))
          .carry,
    };
  },
  "stacked outputs, one of them the carry before the step, one the slice itself": () => {
    const [h0, x] = [f("h0", 3), f("x", 7, 3)];
    return {
      inputs: [h0, x],
      outputs: (unroll) => {
        const { carry, ys } = scan({ carry: [h0], xs: [x], unroll }, ([h], [xt]) => {
          const next = tanh(add(h!, xt!));
          return { carry: [next], ys: [h!, mul(next, xt!), xt!] };
        });
        return [...carry, ...ys];
      },
    };
  },
  "several carries, one that the loss does not see": () => {
    const [a0, b0, c0, x] = [f("a0", 3), f("b0", 3), f("c0", 3), f("x", 5, 3)];
    return {
      inputs: [a0, b0, c0, x],
      outputs: (unroll) => {
        const { carry, ys } = scan({ carry: [a0, b0, c0], xs: [x], unroll }, ([a, b, c], [xt]) => ({
          carry: [tanh(add(a!, b!)), mul(b!, sigmoid(xt!)), add(c!, mul(a!, b!))],
          ys: [add(a!, xt!)],
        }));
        return [carry[0]!, ys[0]!];
      },
    };
  },
  "captured matrices of each row, as either factor, as stored and transposed": () => perRow(),
  "captured weights whose gradient is a product and a sum after the loop": () => {
    const [h0, x, W, b] = [f("h0", 2, 3), f("x", 5, 2, 3), f("W", 3, 3), f("b", 3)];
    return {
      inputs: [h0, x, W, b],
      outputs: (unroll) =>
        scan({ carry: [h0], xs: [x], unroll }, ([h], [xt]) => {
          const next = tanh(add(add(matmul(h!, W), xt!), b));
          return { carry: [next], ys: [next] };
        }).ys,
    };
  },
  "a captured matrix used transposed and straight": () => {
    const [h0, W] = [f("h0", 2, 3), f("W", 3, 3)];
    return {
      inputs: [h0, W],
      outputs: (unroll) =>
        scan({ carry: [h0], length: 4, unroll }, ([h]) => ({
          carry: [tanh(matmul(tanh(matmul(h!, W, { transB: true })), W))],
        })).carry,
    };
  },
  "a captured tensor used element by element": () => {
    const [h0, x, gain] = [f("h0", 2, 3), f("x", 5, 2, 3), f("gain", 2, 3)];
    return {
      inputs: [h0, x, gain],
      outputs: (unroll) =>
        scan({ carry: [h0], xs: [x], unroll }, ([h], [xt]) => ({
          carry: [tanh(mul(add(h!, xt!), gain))],
          ys: [sigmoid(mul(gain, h!))],
        })).ys,
    };
  },
  "a captured matrix used in a product and element by element": () => {
    const [h0, W] = [f("h0", 3, 3), f("W", 3, 3)];
    return {
      inputs: [h0, W],
      outputs: (unroll) =>
        scan({ carry: [h0], length: 4, unroll }, ([h]) => ({ carry: [tanh(add(matmul(h!, W), mul(h!, W)))] }))
          .carry,
    };
  },
  "a captured stack of matrices": () => {
    const [h0, W] = [f("h0", 2, 1, 3), f("W", 2, 3, 3)];
    return {
      inputs: [h0, W],
      outputs: (unroll) =>
        scan({ carry: [h0], length: 4, unroll }, ([h]) => ({ carry: [tanh(matmul(h!, W))] })).carry,
    };
  },
  "a captured tensor behind a product with another": () => {
    const [h0, C, V] = [f("h0", 3, 2), f("C", 3, 3), f("V", 3, 2)];
    return {
      inputs: [h0, C, V],
      outputs: (unroll) =>
        scan({ carry: [h0], length: 4, unroll }, ([h]) => ({ carry: [tanh(matmul(C, add(V, h!)))] })).carry,
    };
  },
  "captured tensors that a step hands on as they are": () => {
    const [h0, x, v] = [f("h0", 3), f("x", 4, 3), f("v", 3)];
    return {
      inputs: [h0, x, v],
      outputs: (unroll) => {
        const { carry, ys } = scan({ carry: [h0, h0], xs: [x], unroll }, ([h], [xt]) => ({
          carry: [add(mul(h!, xt!), v), v],
          ys: [v, constant([1, 2], [2])],
        }));
        return [...carry, ...ys];
      },
    };
  },
  "xs without a gradient: rows of a captured table picked by index": () => {
    const [h0, table] = [f("h0", 2, 3), f("table", 3, 3)];
    const ids = input("ids", [6, 2], "i32");
    return {
      inputs: [h0, table, ids],
      outputs: (unroll) =>
        scan({ carry: [h0], xs: [ids], unroll }, ([h], [id]) => ({
          carry: [tanh(add(h!, gatherRows(table, id!)))],
        })).carry,
    };
  },
  "only the weights are asked for, not what the loop runs over": () => {
    const [h0, x, W] = [f("h0", 2, 3), f("x", 5, 2, 3), f("W", 3, 3)];
    return {
      inputs: [h0, x, W],
      wrt: [W],
      outputs: (unroll) =>
        scan({ carry: [h0], xs: [x], unroll }, ([h], [xt]) => ({ carry: [tanh(add(matmul(h!, W), xt!))] }))
          .carry,
    };
  },
  "an integer and a truth value carried along": () => {
    const h0 = f("h0", 3);
    const x = f("x", 5, 3);
    return {
      inputs: [h0, x],
      outputs: (unroll) => {
        const one = constant([1], [], "i32");
        const start = constant([0], [], "i32");
        const never = constant([0, 0, 0], [3], "bool");
        const { carry } = scan({ carry: [h0, start, never], xs: [x], unroll }, ([h, n, seen], [xt]) => {
          const big = greater(xt!, 0.5);
          const factor = div(1, add(cast(n!, "f32"), 1));
          return { carry: [where(seen!, h!, add(h!, mul(xt!, factor))), add(n!, one), big] };
        });
        return carry;
      },
    };
  },
  "a loop from the end": () => {
    const [h0, x, W] = [f("h0", 2, 3), f("x", 5, 2, 3), f("W", 3, 3)];
    return {
      inputs: [h0, x, W],
      outputs: (unroll) => {
        const { carry, ys } = scan({ carry: [h0], xs: [x], reverse: true, unroll }, ([h], [xt]) => {
          const next = tanh(add(matmul(h!, W), xt!));
          return { carry: [next], ys: [mul(next, h!)] };
        });
        return [...carry, ...ys];
      },
    };
  },
  "a loop inside a loop": () => {
    const [h0, x, W, gain] = [f("h0", 2, 3), f("x", 3, 2, 3), f("W", 3, 3), f("gain", 2, 3)];
    return {
      inputs: [h0, x, W, gain],
      outputs: (unroll) => {
        const { carry, ys } = scan({ carry: [h0], xs: [x], unroll }, ([h], [xt]) => {
          const inner = scan(
            { carry: [h!], xs: [transpose(xt!)], reverse: true, unroll },
            ([g], [column]) => {
              const next = tanh(add(matmul(g!, W), mul(unsqueeze(column!, -1), gain)));
              return { carry: [next], ys: [sum(next)] };
            },
          );
          return { carry: [inner.carry[0]!], ys: inner.ys };
        });
        return [...carry, ...ys];
      },
    };
  },
  "a loop whose stacked outputs nobody uses": () => {
    const [h0, x] = [f("h0", 3), f("x", 5, 3)];
    return {
      inputs: [h0, x],
      outputs: (unroll) =>
        scan({ carry: [h0], xs: [x], unroll }, ([h], [xt]) => ({
          carry: [tanh(add(h!, xt!))],
          ys: [softmax(h!), mul(xt!, 2)],
        })).carry,
    };
  },
  "one step": () => {
    const [h0, x, W] = [f("h0", 1, 3), f("x", 1, 1, 3), f("W", 3, 3)];
    return {
      inputs: [h0, x, W],
      outputs: (unroll) => {
        const { carry, ys } = scan({ carry: [h0], xs: [x], unroll }, ([h], [xt]) => {
          const next = tanh(add(matmul(h!, W), xt!));
          return { carry: [next], ys: [next] };
        });
        return [...carry, ...ys];
      },
    };
  },
  "no state, only outputs": () => {
    const [x, W] = [f("x", 4, 2, 3), f("W", 3, 3)];
    return {
      inputs: [x, W],
      outputs: (unroll) =>
        scan({ carry: [], xs: [x], unroll }, (_, [xt]) => ({ carry: [], ys: [tanh(matmul(xt!, W))] })).ys,
    };
  },
  "a linear loop, whose gradient needs nothing of the steps": () => {
    const h0 = f("h0", 3);
    return {
      inputs: [h0],
      outputs: (unroll) =>
        scan({ carry: [h0], length: 4, unroll }, ([h]) => ({ carry: [mul(add(h!, 1), 0.5)] })).carry,
    };
  },
  "a loop used twice, and two loops with one weight": () => {
    const [h0, x, W] = [f("h0", 2, 3), f("x", 4, 2, 3), f("W", 3, 3)];
    return {
      inputs: [h0, x, W],
      outputs: (unroll) => {
        const run = (start: Tensor) =>
          scan({ carry: [start], xs: [x], unroll }, ([h], [xt]) => {
            const next = tanh(add(matmul(h!, W), xt!));
            return { carry: [next], ys: [next] };
          });
        const first = run(h0);
        const second = run(mul(h0, 2));
        return [mul(first.ys[0]!, first.ys[0]!), add(first.carry[0]!, second.carry[0]!), first.ys[0]!];
      },
    };
  },
  "a loop over what another loop made, in the other direction": () => {
    const [h0, x, W, U] = [f("h0", 2, 3), f("x", 4, 2, 3), f("W", 3, 3), f("U", 3, 3)];
    return {
      inputs: [h0, x, W, U],
      outputs: (unroll) => {
        const step =
          (V: Tensor) =>
          ([h]: readonly Tensor[], [xt]: readonly Tensor[]) => {
            const next = tanh(add(matmul(h!, V), xt!));
            return { carry: [next], ys: [next] };
          };
        const first = scan({ carry: [h0], xs: [x], unroll }, step(W));
        const second = scan({ carry: [first.carry[0]!], xs: [first.ys[0]!], reverse: true, unroll }, step(U));
        return [second.ys[0]!];
      },
    };
  },
  "gradient steps as the body of a loop": () => {
    const [W0, x, y] = [f("W0", 3, 2), f("x", 4, 5, 3), f("y", 4, 5, 2)];
    return {
      inputs: [W0, x, y],
      outputs: (unroll) =>
        scan({ carry: [W0], xs: [x, y], unroll }, ([W], [xt, yt]) => {
          const error = sub(tanh(matmul(xt!, W!)), yt!);
          const loss = sum(mul(error, error));
          return { carry: [sub(W!, mul(grad(loss, [W!])[0]!, 0.1))], ys: [loss] };
        }).ys,
    };
  },
  "fast weights that attend to the recent past (Ba et al. 2016)": () => {
    const [B, n, T, S] = [2, 3, 5, 2];
    const [h0, A0, e] = [f("h0", B, n), f("A0", B, n, n), f("e", T, B, n)];
    const [W, C, b, gain, bias] = [f("W", n, n), f("C", n, n), f("b", n), f("gain", n), f("bias", n)];
    return {
      inputs: [h0, A0, e, W, C, b, gain, bias],
      outputs: (unroll) => {
        const { carry, ys } = scan({ carry: [h0, A0], xs: [e], unroll }, ([h, A], [et]) => {
          // A ← λ A + η h ⊗ h;  g ← φ(LN(s + A g)), S times
          const outer = mul(unsqueeze(h!, -1), unsqueeze(h!, -2));
          const next = add(mul(A!, 0.95), mul(outer, 0.5));
          const s = add(add(matmul(h!, W), matmul(et!, C)), b);
          let g = tanh(s);
          for (let j = 0; j < S; j++) {
            const read = squeeze(matmul(unsqueeze(g, 1), next, { transB: true }), 1);
            g = tanh(add(mul(layerNorm(add(s, read)), gain), bias));
          }
          return { carry: [g, next], ys: [g] };
        });
        return [...carry, ...ys];
      },
    };
  },
};

for (const [name, make] of Object.entries(cases)) {
  describe(name, () => {
    test("written out and by differences, in the oracle", () => checkOracle(make()));
    test("on ONNX Runtime", () => checkOrt(make()));
  });
}

test("the gradient may be taken twice of one graph, also of parts of it", () => {
  const [h0, x, W] = [f("h0", 2, 3), f("x", 4, 2, 3), f("W", 3, 3)];
  const { carry, ys } = scan({ carry: [h0], xs: [x] }, ([h], [xt]) => {
    const next = tanh(add(matmul(h!, W), xt!));
    return { carry: [next], ys: [next] };
  });
  const values = drawn([h0, x, W], 3);
  const loss = add(sum(carry[0]!), sum(mul(ys[0]!, ys[0]!)));
  const first = interpret(grad(loss, [W, h0]), values);
  const part = interpret(grad(sum(carry[0]!), [W, x]), values);
  const again = interpret(grad(loss, [W, h0]), values);
  first.forEach(({ data }, i) => {
    expect(again[i]!.data).toEqual(data);
  });
  // The loss has two terms, so the gradient of one plus the gradient of the other is the gradient of both.
  const rest = interpret(grad(sum(mul(ys[0]!, ys[0]!)), [W]), values)[0]!.data;
  expectClose(
    part[0]!.data.map((value, i) => value + rest[i]!),
    first[0]!.data,
    rounding,
  );
});

test("the gradient of a gradient through a loop, against differences of the first", () => {
  const [h0, x, W] = [f("h0", 2, 3), f("x", 3, 2, 3), f("W", 3, 3)];
  const make = (unroll: boolean): Tensor => {
    const { ys } = scan({ carry: [h0], xs: [x], unroll }, ([h], [xt]) => {
      const next = tanh(add(matmul(h!, W), mul(xt!, sigmoid(h!))));
      return { carry: [next], ys: [next] };
    });
    const first = grad(sum(mul(ys[0]!, ys[0]!)), [W, x]);
    return add(sum(mul(first[0]!, first[0]!)), sum(tanh(first[1]!)));
  };
  const values = drawn([h0, x, W], 5);
  const second = interpret(grad(make(false), [W, x]), values);
  const written = interpret(grad(make(true), [W, x]), values);
  const norm = make(false);
  [W, x].forEach((tensor, i) => {
    expectClose(second[i]!.data, written[i]!.data, rounding);
    const numeric = centralDifferences(
      (data) => interpret([norm], new Map(values).set(tensor, { shape: tensor.shape, data }))[0]!.data[0]!,
      values.get(tensor)!.data,
    );
    expectClose(second[i]!.data, numeric, { rtol: 1e-6, atol: 1e-7 });
  });
});

test("a weight used five thousand times in one step", () => {
  const uses = 5000;
  const [h0, x, W] = [f("h0", 1, 1), f("x", 2, 1, 1), f("W", 1, 1)];
  const { carry } = scan({ carry: [h0], xs: [x] }, ([h], [xt]) => {
    let next = add(h!, xt!);
    for (let use = 0; use < uses; use++) next = matmul(next, W);
    return { carry: [next] };
  });
  // h₂ = ((h₀ + x₁) Wⁿ + x₂) Wⁿ, at W = 1.
  const one = (...shape: number[]): Value => ({
    shape,
    data: new Float64Array(shape.reduce((a, b) => a * b, 1)).fill(1),
  });
  const values = new Map([h0, x, W].map((tensor) => [tensor, one(...tensor.shape)]));
  const [dW, dx, dh] = interpret(grad(sum(carry[0]!), [W, x, h0]), values);
  expect([...dW!.data]).toEqual([2 * 2 * uses + uses]);
  expect([...dx!.data, ...dh!.data]).toEqual([1, 1, 1]);
});

describe("random bodies", () => {
  const n = 3;
  type Pool = Tensor[];
  const unary: ((x: Tensor) => Tensor)[] = [
    tanh,
    sigmoid,
    relu,
    softmax,
    (x) => layerNorm(x, 0.1),
    (x) => mul(x, 0.7),
    (x) => concat([slice(x, -1, 1), slice(x, -1, 0, 1)]),
    (x) => reshape(transpose(x), x.shape),
    (x) => mul(x, sum(x, { axes: -1, keep: true })),
    (x) => {
      const [a, b] = split(x, [1, n - 1]) as [Tensor, Tensor];
      return mul(a, concat([b, a]));
    },
    (x) => clip(x, -0.9, 0.9),
  ];
  const binary: ((a: Tensor, b: Tensor) => Tensor)[] = [
    add,
    sub,
    mul,
    max,
    (a, b) => where(greater(a, b), mul(a, b), b),
  ];
  const op = fc.record({
    kind: fc.constantFrom("unary", "binary", "product", "gain", "bias"),
    which: fc.nat(100),
    left: fc.nat(100),
    right: fc.nat(100),
  });
  const body = fc.record({
    ops: fc.array(op, { minLength: 1, maxLength: 8 }),
    carries: fc.integer({ min: 1, max: 3 }),
    length: fc.integer({ min: 1, max: 4 }),
    reverse: fc.boolean(),
    seed: fc.nat(1000),
  });

  type Body = typeof body extends fc.Arbitrary<infer T> ? T : never;

  function loopOf({ ops, carries, length, reverse }: Body): LoopCase {
    const starts = Array.from({ length: carries }, (_, i) => f(`h${i}`, 2, n));
    const [x, W, gain, bias] = [f("x", length, 2, n), f("W", n, n), f("gain", 2, n), f("bias", n)];
    return {
      inputs: [...starts, x, W, gain, bias],
      outputs: (unroll) => {
        const { carry, ys } = scan({ carry: starts, xs: [x], reverse, unroll }, (before, [xt]) => {
          const pool: Pool = [...before, xt!];
          for (const { kind, which, left, right } of ops) {
            const a = pool[left % pool.length]!;
            const b = pool[right % pool.length]!;
            if (kind === "unary") pool.push(unary[which % unary.length]!(a));
            else if (kind === "binary") pool.push(binary[which % binary.length]!(a, b));
            else if (kind === "product") pool.push(matmul(a, W));
            else if (kind === "gain") pool.push(mul(a, gain));
            else pool.push(tanh(add(a, bias)));
          }
          return { carry: pool.slice(-carries), ys: [pool.at(-1)!, pool[pool.length >> 1]!] };
        });
        return [...carry, ...ys];
      },
    };
  }

  test("written out, in the oracle", () => {
    fc.assert(
      fc.property(body, (drawnBody) => checkOracle(loopOf(drawnBody), drawnBody.seed, false)),
      { numRuns: 150, seed: 11 },
    );
  });

  test("on ONNX Runtime", async () => {
    await fc.assert(
      fc.asyncProperty(body, (drawnBody) => checkOrt(loopOf(drawnBody), drawnBody.seed)),
      { numRuns: 25, seed: 12 },
    );
  });
});

describe("errors", () => {
  const x = f("x", 4, 3);

  test("xs of different lengths, or neither xs nor a length", () => {
    const step = () => ({ carry: [] });
    expect(() => scan({ carry: [], xs: [x, f("y", 5, 3)] }, step)).toThrow(ShapeError);
    expect(() => scan({ carry: [], xs: [x, f("y", 5, 3)] }, step)).toThrow(/f32\[4, 3\], f32\[5, 3\]/);
    expect(() => scan({ carry: [] }, step)).toThrow("one common first axis, or a length");
  });

  test("a step that gives back another state", () => {
    for (const unroll of [false, true]) {
      expect(() => scan({ carry: [f("h", 3)], xs: [x], unroll }, ([h]) => ({ carry: [sum(h!)] }))).toThrow(
        "scan: a step must give back state of the types it was given\n  given      [f32[3]]\n  gave back  [f32[]]",
      );
    }
  });
});

test("invariants are computed once, outside the loop", () => {
  const [x, W] = [f("x", 4, 3), f("W", 3)];
  const { carry } = scan({ carry: [zeros([3])], xs: [x] }, ([h], [xt]) => ({
    carry: [add(mul(h!, tanh(W)), xt!)],
  }));
  const text = printGraph(simplify(carry)).split("\n");
  expect(text.find((line) => line.includes("tanh"))).toMatch(/^%\d/);
});

test("the gradient of a captured matrix per row is one product after the loop, with nothing added up in it", () => {
  const loop = perRow();
  const { grads } = withGradients(loop, false);
  const back = topological(simplify(grads)).filter((node) => scanAttrs(node)?.reverse);
  expect(back).toHaveLength(1);
  // Only the gradient of h goes from step to step.
  expect(scanAttrs(back[0]!)!.carries).toBe(1);
});

test.each([
  ["a few rows at a step: the product waits until after the loop", 3, 1],
  ["very many rows at a step: what they add up to is smaller than they are", 200_000, 2],
])("%s", (_, rows, carries) => {
  const [h0, x, W] = [f("h0", rows, 2), f("x", 3, rows, 2), f("W", 2, 2)];
  const { carry } = scan({ carry: [h0], xs: [x] }, ([h], [xt]) => ({
    carry: [tanh(add(matmul(h!, W), xt!))],
  }));
  const back = topological(simplify(grad(sum(carry[0]!), [W]))).filter((node) => scanAttrs(node)?.reverse);
  expect(scanAttrs(back[0]!)!.carries).toBe(carries);
});
