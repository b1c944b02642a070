/** Differentiation, by reading the graph it makes: nothing is computed that no gradient needs. */
import { describe, expect, test } from "vitest";
import { grad, gradients } from "../../src/compile/grad.ts";
import { printGraph } from "../../src/compile/print.ts";
import { simplify } from "../../src/compile/simplify.ts";
import { ShapeError } from "../../src/errors.ts";
import {
  add,
  argmax,
  cast,
  constant,
  exp,
  input,
  matmul,
  mul,
  scan,
  scoped,
  sigmoid,
  state,
  stopGradient,
  sum,
  type Tensor,
  tanh,
  withValue,
  zeros,
} from "../../src/graph/index.ts";
import { interpret } from "../../src/runtime/oracle.ts";

/** The text of a simplified graph, scopes left out, against the lines wanted. */
function expectGraph(outputs: readonly Tensor[], want: string): void {
  const lines = want.split("\n").filter((line) => line.trim() !== "");
  const indent = Math.min(...lines.map((line) => line.search(/\S/)));
  expect(printGraph(simplify(outputs))).toBe(lines.map((line) => line.slice(indent)).join("\n"));
}

describe("nothing dead is computed", () => {
  const x = input("x", [2, 3]);
  const W = state("W", [3, 3]);
  const U = state("U", [3, 3]);

  test("only the branch that leads to a wanted tensor is differentiated", () => {
    // exp(x U) appears once, for the loss; nothing of its backward pass does.
    const loss = sum(add(tanh(matmul(x, W)), exp(matmul(x, U))));
    expectGraph(
      [loss, ...grad(loss, [W])],
      `
        input x : f32[2, 3]
        state W : f32[3, 3]
        state U : f32[3, 3]
        %0 = matmul(x, W) : f32[2, 3]
        %1 = tanh(%0) : f32[2, 3]
        %2 = matmul(x, U) : f32[2, 3]
        %3 = exp(%2) : f32[2, 3]
        %4 = add(%1, %3) : f32[2, 3]
        %5 = sum(%4) [0, 1] : f32[1, 1]
        %6 = reshape(%5) [] : f32[]
        %7 = reshape(1) [1, 1] : f32[1, 1]
        %8 = mul(%1, %1) : f32[2, 3]
        %9 = sub(1, %8) : f32[2, 3]
        %10 = mul(%7, %9) : f32[2, 3]
        %11 = matmul(x, %10) transA : f32[3, 3]
        return %6, %11
      `,
    );
  });

  test("of a product only the wanted side, and nothing behind a stopped gradient", () => {
    const loss = sum(mul(matmul(sigmoid(x), W), stopGradient(tanh(matmul(x, W)))));
    expectGraph(
      grad(loss, [W]),
      `
        input x : f32[2, 3]
        state W : f32[3, 3]
        %0 = sigmoid(x) : f32[2, 3]
        %1 = reshape(1) [1, 1] : f32[1, 1]
        %2 = matmul(x, W) : f32[2, 3]
        %3 = tanh(%2) : f32[2, 3]
        %4 = mul(%1, %3) : f32[2, 3]
        %5 = matmul(%0, %4) transA : f32[3, 3]
        return %5
      `,
    );
  });

  test("of what is known the gradient is made, the value is not", () => {
    const z = input("z", [2, 3]);
    expectGraph(
      grad(sum(tanh(withValue(matmul(x, W), z))), [W]),
      `
        input x : f32[2, 3]
        input z : f32[2, 3]
        %0 = reshape(1) [1, 1] : f32[1, 1]
        %1 = tanh(z) : f32[2, 3]
        %2 = mul(%1, %1) : f32[2, 3]
        %3 = sub(1, %2) : f32[2, 3]
        %4 = mul(%0, %3) : f32[2, 3]
        %5 = matmul(x, %4) transA : f32[3, 3]
        return %5
      `,
    );
    expect(() => withValue(x, input("row", [3]))).toThrow("withValue: a tensor and its value need one type");
  });

  test("inside a loop: a carry that leads to no wanted tensor has no gradient", () => {
    const xs = input("xs", [4, 2, 3]);
    const { carry } = scan({ carry: [zeros([2, 3]), zeros([2, 3])], xs: [xs] }, ([a, b], [xt]) => ({
      carry: [tanh(add(matmul(a!, U), xt!)), add(matmul(b!, W), a!)],
    }));
    // The gradient of W needs a and b of every step, but no gradient of a.
    expectGraph(
      grad(sum(carry[1]!), [W]),
      `
        input xs : f32[4, 2, 3]
        state U : f32[3, 3]
        state W : f32[3, 3]
        %0 = constant all 0 : f32[2, 3]
        %1, %2, %3 = scan 4 steps : f32[2, 3], f32[2, 3], f32[4, 2, 3]
          carry %4 from %0 : f32[2, 3]
          carry %5 from %0 : f32[2, 3]
          slice %6 of xs : f32[2, 3]
          %7 = matmul(%4, U) : f32[2, 3]
          %8 = add(%7, %6) : f32[2, 3]
          %9 = tanh(%8) : f32[2, 3]
          %10 = matmul(%5, W) : f32[2, 3]
          %11 = add(%10, %4) : f32[2, 3]
          next %9, %11
          stack %5
        %12 = reshape(%3) [8, 3] : f32[8, 3]
        %13 = reshape(1) [1, 1] : f32[1, 1]
        %14 = expand(%13) [2, 3] : f32[2, 3]
        %15, %16 = scan 4 steps in reverse : f32[2, 3], f32[4, 2, 3]
          carry %17 from %14 : f32[2, 3]
          %18 = matmul(%17, W) transB : f32[2, 3]
          next %18
          stack %17
        %19 = reshape(%16) [8, 3] : f32[8, 3]
        %20 = matmul(%12, %19) transA : f32[3, 3]
        return %20
      `,
    );
  });

  test("a tensor the loss does not depend on gets zeros, without a graph", () => {
    expectGraph(
      grad(sum(x), [U]),
      `
        %0 = constant all 0 : f32[3, 3]
        return %0
      `,
    );
    expect(gradients([sum(x)], [constant([1], [])], [U])).toEqual([undefined]);
  });
});

test("a tensor used several times gets the sum of its gradients", () => {
  const x = input("x", [3]);
  const [dx] = grad(sum(mul(x, mul(x, x))), [x]);
  const at = { shape: [3], data: Float64Array.of(1, -2, 3) };
  expect(Array.from(interpret([dx!], new Map([[x, at]]))[0]!.data)).toEqual([3, 12, 27]);
});

test("a gradient can be differentiated again", () => {
  const x = input("x", [3]);
  const first = grad(sum(mul(x, mul(x, x))), [x])[0]!;
  const second = grad(sum(first), [x])[0]!;
  const at = { shape: [3], data: Float64Array.of(1, -2, 3) };
  expect(Array.from(interpret([second], new Map([[x, at]]))[0]!.data)).toEqual([6, -12, 18]);
});

describe("errors", () => {
  const x = input("x", [2, 3]);

  test("the loss must be one float", () => {
    expect(() => grad(x, [x])).toThrow(ShapeError);
    expect(() => grad(x, [x])).toThrow(
      "grad: the loss must be a float scalar, not f32[2, 3]\n  hint  use sum(x) or mean(x)",
    );
    expect(() => grad(constant([1], [], "i32"), [x])).toThrow("not i32[]");
  });

  test("an index has no gradient: it stops there, as through a cast", () => {
    const index = scoped("head", () => argmax(x));
    const [dx] = grad(sum(cast(index, "f32")), [x]);
    expect(Array.from(interpret([dx!], new Map())[0]!.data)).toEqual([0, 0, 0, 0, 0, 0]);
  });
});
