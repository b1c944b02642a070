/** The passes, by reading what they make of a graph. */
import { describe, expect, test } from "vitest";
import { grad } from "../../src/compile/grad.ts";
import { printGraph } from "../../src/compile/print.ts";
import { simplify } from "../../src/compile/simplify.ts";
import {
  add,
  concat,
  constant,
  div,
  expand,
  input,
  matmul,
  mul,
  neg,
  randomMask,
  reshape,
  scan,
  sigmoid,
  split,
  state,
  stopGradient,
  sub,
  sum,
  type Tensor,
  tanh,
  transpose,
  where,
  zeros,
} from "../../src/graph/index.ts";
import { lstm, lstmWeights } from "../../src/model/lstm.ts";
import { interpret } from "../../src/runtime/oracle.ts";
import { expectClose, normals } from "../support/check.ts";

/** The simplified graph as text, with the indentation of a test removed from what is wanted. */
function expectSimplified(outputs: readonly Tensor[], want: string): void {
  expect(printGraph(simplify(outputs))).toBe(unindented(want));
}

function unindented(text: string): string {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const indent = Math.min(...lines.map((line) => line.search(/\S/)));
  return lines.map((line) => line.slice(indent)).join("\n");
}

describe("printing", () => {
  test("sources first, then one line per node; outputs by name", () => {
    const x = input("x", [2, 3]);
    const ids = input("ids", [2], "i32");
    const W = state("W", [3, 4]);
    const keep = randomMask("drop", [2, 4], 0.75);
    const [a, b] = split(matmul(x, W), [1, 3]) as [Tensor, Tensor];
    const dropped = where(keep, mul(concat([b, a]), 2), 0);
    expect(printGraph([dropped, ids], ["y", "ids"])).toBe(
      unindented(`
        input x : f32[2, 3]
        input ids : i32[2]
        state W : f32[3, 4]
        mask drop keep=0.75 : bool[2, 4]
        %0 = matmul(x, W) : f32[2, 4]
        %1, %2 = split(%0) axis=1 sizes=[1, 3] : f32[2, 1], f32[2, 3]
        %3 = concat(%2, %1) 1 : f32[2, 4]
        %4 = mul(%3, 2) : f32[2, 4]
        %5 = where(drop, %4, 0) : f32[2, 4]
        return y: %5, ids: ids
      `),
    );
  });

  test("the body of a loop is indented and sees the names outside; loops nest", () => {
    const x = input("x", [4, 3]);
    const W = state("W", [3, 3]);
    const outer = scan({ carry: [zeros([1, 3])], xs: [x], reverse: true }, ([h], [xt]) => {
      const inner = scan({ carry: [h!], length: 2 }, ([g]) => ({ carry: [matmul(g!, W)] }));
      return { carry: [add(inner.carry[0]!, xt!)], ys: [tanh(h!)] };
    });
    expect(printGraph([outer.ys[0]!])).toBe(
      unindented(`
        input x : f32[4, 3]
        state W : f32[3, 3]
        %0 = constant all 0 : f32[1, 3]
        %1, %2 = scan 4 steps in reverse : f32[1, 3], f32[4, 1, 3]
          carry %3 from %0 : f32[1, 3]
          slice %4 of x : f32[3]
          %5 = scan 2 steps : f32[1, 3]
            carry %6 from %3 : f32[1, 3]
            %7 = matmul(%6, W) : f32[1, 3]
            next %7
          %8 = add(%5, %4) : f32[1, 3]
          %9 = tanh(%3) : f32[1, 3]
          next %8
          stack %9
        return %2
      `),
    );
  });

  test("two sources of one name are told apart, long constants cut short", () => {
    const text = printGraph([
      add(input("x", [9]), add(input("x", [9]), constant([...Array(9).keys()], [9]))),
    ]);
    expect(text).toMatch(/input x : f32\[9\]\ninput x#\d+ : f32\[9\]/);
    expect(text).toContain("constant [0, 1, 2, 3, 4, 5, 6, 7, …] : f32[9]");
  });
});

describe("local rules", () => {
  const x = input("x", [2, 3]);
  const y = input("y", [3, 2]);

  test("equal subexpressions are computed once", () => {
    expectSimplified(
      [add(tanh(mul(x, x)), sigmoid(mul(x, x)))],
      `
        input x : f32[2, 3]
        %0 = mul(x, x) : f32[2, 3]
        %1 = tanh(%0) : f32[2, 3]
        %2 = sigmoid(%0) : f32[2, 3]
        %3 = add(%1, %2) : f32[2, 3]
        return %3
      `,
    );
  });

  test("different settings are different expressions", () => {
    expectSimplified(
      [sum(x, { axes: 0 }), sum(x, { axes: 1 })],
      `
        input x : f32[2, 3]
        %0 = sum(x) [0] : f32[1, 3]
        %1 = reshape(%0) [3] : f32[3]
        %2 = sum(x) [1] : f32[2, 1]
        %3 = reshape(%2) [2] : f32[2]
        return %1, %3
      `,
    );
  });

  test("inputs and masks are never merged, however alike", () => {
    expectSimplified(
      [where(randomMask("a", [3], 0.5), 1, 2), where(randomMask("b", [3], 0.5), 1, 2)],
      `
        mask a keep=0.5 : bool[3]
        mask b keep=0.5 : bool[3]
        %0 = where(a, 1, 2) : f32[3]
        %1 = where(b, 1, 2) : f32[3]
        return %0, %1
      `,
    );
  });

  test("constants of one value are one constant, large ones too", () => {
    const row = (): Tensor => constant([1, 2, 3], [3]);
    expectSimplified(
      [add(x, row()), sub(x, row()), zeros([5000]), zeros([5000])],
      `
        input x : f32[2, 3]
        %0 = constant [1, 2, 3] : f32[3]
        %1 = add(x, %0) : f32[2, 3]
        %2 = sub(x, %0) : f32[2, 3]
        %3 = constant all 0 : f32[5000]
        return %1, %2, %3, %3
      `,
    );
  });

  test("0 and -0 are different constants", () => {
    const [plus, minus] = simplify([div(x, constant([0], [])), div(x, constant([-0], []))]);
    expect(plus).not.toBe(minus);
  });

  test("transposes are folded into products, also both and twice", () => {
    expectSimplified(
      [
        matmul(transpose(x), transpose(y)),
        matmul(transpose(transpose(x)), y),
        matmul(transpose(x), y, { transA: true }),
      ],
      `
        input x : f32[2, 3]
        input y : f32[3, 2]
        %0 = matmul(x, y) transA transB : f32[3, 3]
        %1 = matmul(x, y) : f32[2, 2]
        return %0, %1, %1
      `,
    );
  });

  test("only an exchange of the last two axes folds into a product", () => {
    const z = input("z", [3, 2, 4]);
    expectSimplified(
      [matmul(transpose(z, [1, 0, 2]), transpose(z, [1, 2, 0]))],
      `
        input z : f32[3, 2, 4]
        %0 = transpose(z) [1, 0, 2] : f32[2, 3, 4]
        %1 = transpose(z) [1, 2, 0] : f32[2, 4, 3]
        %2 = matmul(%0, %1) : f32[2, 3, 3]
        return %2
      `,
    );
  });

  test("neutral operations disappear, unless they broadcast", () => {
    const same = [
      add(x, 0),
      add(0, x),
      sub(x, 0),
      mul(x, 1),
      mul(1, x),
      div(x, 1),
      neg(neg(x)),
      stopGradient(x),
    ];
    expectSimplified(
      [...same, mul(x, -1), add(x, neg(mul(x, x))), add(input("row", [3]), zeros([2, 3]))],
      `
        input x : f32[2, 3]
        input row : f32[3]
        %0 = neg(x) : f32[2, 3]
        %1 = mul(x, x) : f32[2, 3]
        %2 = sub(x, %1) : f32[2, 3]
        %3 = constant all 0 : f32[2, 3]
        %4 = add(row, %3) : f32[2, 3]
        return x, x, x, x, x, x, x, x, %0, %2, %4
      `,
    );
  });

  test("element-wise ops drop an expand they do not need", () => {
    const row = input("row", [1, 3]);
    expectSimplified(
      [
        mul(x, expand(row, [2, 3])),
        mul(expand(row, [2, 3]), expand(row, [2, 3])),
        matmul(expand(row, [2, 3]), y),
      ],
      `
        input x : f32[2, 3]
        input row : f32[1, 3]
        input y : f32[3, 2]
        %0 = mul(x, row) : f32[2, 3]
        %1 = expand(row) [2, 3] : f32[2, 3]
        %2 = mul(row, %1) : f32[2, 3]
        %3 = matmul(%1, y) : f32[2, 2]
        return %0, %2, %3
      `,
    );
  });

  test("a split put together again is the whole; in another order, or in part, it is not", () => {
    const [a, b] = split(x, [1, 2]) as [Tensor, Tensor];
    expectSimplified(
      [concat([a, b]), concat([b, a]), concat([a, a])],
      `
        input x : f32[2, 3]
        %0, %1 = split(x) axis=1 sizes=[1, 2] : f32[2, 1], f32[2, 2]
        %2 = concat(%1, %0) 1 : f32[2, 3]
        %3 = concat(%0, %0) 1 : f32[2, 2]
        return x, %2, %3
      `,
    );
  });

  test("reshapes and transposes in a row are one", () => {
    const z = input("z", [2, 3, 4]);
    expectSimplified(
      [
        reshape(reshape(z, [6, 4]), [24]),
        transpose(transpose(z, [2, 0, 1]), [2, 0, 1]),
        reshape(reshape(z, [24]), [2, 3, 4]),
      ],
      `
        input z : f32[2, 3, 4]
        %0 = reshape(z) [24] : f32[24]
        %1 = transpose(z) [1, 2, 0] : f32[3, 4, 2]
        return %0, %1, z
      `,
    );
  });
});

describe("loops", () => {
  const x = input("x", [5, 2, 3]);
  const U = state("U", [3, 3]);
  const W = state("W", [3, 3]);

  /** Two carries that do not meet, and three outputs. */
  function twoTracks() {
    return scan({ carry: [zeros([2, 3]), zeros([2, 3])], xs: [x, mul(x, 2)] }, ([a, b], [xt, zt]) => {
      const nextA = tanh(add(matmul(a!, U), xt!));
      const nextB = add(matmul(b!, W), zt!);
      return { carry: [nextA, nextB], ys: [nextA, nextB, mul(nextA, nextB)] };
    });
  }

  test("outputs nobody uses go, with the carries, slices and weights only they need", () => {
    expectSimplified(
      [twoTracks().ys[0]!],
      `
        input x : f32[5, 2, 3]
        state U : f32[3, 3]
        %0 = constant all 0 : f32[2, 3]
        %1, %2 = scan 5 steps : f32[2, 3], f32[5, 2, 3]
          carry %3 from %0 : f32[2, 3]
          slice %4 of x : f32[2, 3]
          %5 = matmul(%3, U) : f32[2, 3]
          %6 = add(%5, %4) : f32[2, 3]
          %7 = tanh(%6) : f32[2, 3]
          next %7
          stack %7
        return %2
      `,
    );
  });

  test("a carry lives when a living result depends on it, however late", () => {
    const { carry } = scan(
      { carry: [zeros([3]), zeros([3]), zeros([3]), zeros([3])], length: 4 },
      ([a, b, c, d]) => ({
        carry: [add(a!, b!), add(b!, c!), add(c!, 1), add(d!, a!)],
      }),
    );
    expectSimplified(
      [carry[0]!],
      `
        %0 = constant all 0 : f32[3]
        %1, %2, %3 = scan 4 steps : f32[3], f32[3], f32[3]
          carry %4 from %0 : f32[3]
          carry %5 from %0 : f32[3]
          carry %6 from %0 : f32[3]
          %7 = add(%4, %5) : f32[3]
          %8 = add(%5, %6) : f32[3]
          %9 = add(%6, 1) : f32[3]
          next %7, %8, %9
        return %1
      `,
    );
  });

  test("a value stacked twice is stacked once", () => {
    const { ys } = scan({ carry: [zeros([2, 3])], xs: [x] }, ([h], [xt]) => {
      const next = add(h!, xt!);
      return { carry: [next], ys: [mul(next, next), add(mul(h!, 1), xt!), mul(next, next)] };
    });
    expectSimplified(
      ys,
      `
        input x : f32[5, 2, 3]
        %0 = constant all 0 : f32[2, 3]
        %1, %2, %3 = scan 5 steps : f32[2, 3], f32[5, 2, 3], f32[5, 2, 3]
          carry %4 from %0 : f32[2, 3]
          slice %5 of x : f32[2, 3]
          %6 = add(%4, %5) : f32[2, 3]
          %7 = mul(%6, %6) : f32[2, 3]
          next %6
          stack %7, %6
        return %2, %3, %2
      `,
    );
  });

  test("a pruned loop inside a loop gives up what it captured", () => {
    const outer = scan({ carry: [zeros([2, 3])], xs: [x] }, ([h], [xt]) => {
      const inner = scan({ carry: [h!, zeros([2, 3])], length: 2 }, ([p, q]) => ({
        carry: [matmul(p!, U), matmul(q!, W)],
      }));
      return { carry: [add(inner.carry[0]!, xt!)] };
    });
    expectSimplified(
      [outer.carry[0]!],
      `
        input x : f32[5, 2, 3]
        state U : f32[3, 3]
        %0 = constant all 0 : f32[2, 3]
        %1 = scan 5 steps : f32[2, 3]
          carry %2 from %0 : f32[2, 3]
          slice %3 of x : f32[2, 3]
          %4 = scan 2 steps : f32[2, 3]
            carry %5 from %2 : f32[2, 3]
            %6 = matmul(%5, U) : f32[2, 3]
            next %6
          %7 = add(%4, %3) : f32[2, 3]
          next %7
        return %1
      `,
    );
  });

  test("the gradient of a recurrent layer: one product for dW after the loop, one sum for db", () => {
    const b = state("b", [3]);
    const { carry } = scan({ carry: [zeros([2, 3])], xs: [x] }, ([h], [xt]) => ({
      carry: [tanh(add(add(matmul(h!, W), xt!), b))],
    }));
    expectSimplified(
      grad(sum(carry[0]!), [W, b]),
      `
        input x : f32[5, 2, 3]
        state W : f32[3, 3]
        state b : f32[3]
        %0 = constant all 0 : f32[2, 3]
        %1, %2, %3 = scan 5 steps : f32[2, 3], f32[5, 2, 3], f32[5, 2, 3]
          carry %4 from %0 : f32[2, 3]
          slice %5 of x : f32[2, 3]
          %6 = matmul(%4, W) : f32[2, 3]
          %7 = add(%6, %5) : f32[2, 3]
          %8 = add(%7, b) : f32[2, 3]
          %9 = tanh(%8) : f32[2, 3]
          next %9
          stack %9, %4
        %10 = reshape(%3) [10, 3] : f32[10, 3]
        %11 = reshape(1) [1, 1] : f32[1, 1]
        %12 = expand(%11) [2, 3] : f32[2, 3]
        %13, %14 = scan 5 steps in reverse : f32[2, 3], f32[5, 2, 3]
          carry %15 from %12 : f32[2, 3]
          slice %16 of %2 : f32[2, 3]
          %17 = mul(%16, %16) : f32[2, 3]
          %18 = sub(1, %17) : f32[2, 3]
          %19 = mul(%15, %18) : f32[2, 3]
          %20 = matmul(%19, W) transB : f32[2, 3]
          next %20
          stack %19
        %21 = reshape(%14) [10, 3] : f32[10, 3]
        %22 = matmul(%10, %21) transA : f32[3, 3]
        %23 = sum(%14) [0, 1] : f32[1, 1, 3]
        %24 = reshape(%23) [3] : f32[3]
        return %22, %24
      `,
    );
  });

  test("the gradient of an invariant is taken once, outside", () => {
    const gain = state("gain", [3]);
    const { carry } = scan({ carry: [zeros([2, 3])], xs: [x] }, ([h], [xt]) => ({
      carry: [add(mul(h!, xt!), tanh(gain))],
    }));
    expectSimplified(
      grad(sum(carry[0]!), [gain]),
      `
        input x : f32[5, 2, 3]
        state gain : f32[3]
        %0 = reshape(1) [1, 1] : f32[1, 1]
        %1 = expand(%0) [2, 3] : f32[2, 3]
        %2, %3 = scan 5 steps in reverse : f32[2, 3], f32[5, 2, 3]
          carry %4 from %1 : f32[2, 3]
          slice %5 of x : f32[2, 3]
          %6 = mul(%4, %5) : f32[2, 3]
          next %6
          stack %4
        %7 = sum(%3) [0, 1] : f32[1, 1, 3]
        %8 = reshape(%7) [3] : f32[3]
        %9 = tanh(gain) : f32[3]
        %10 = mul(%9, %9) : f32[3]
        %11 = sub(1, %10) : f32[3]
        %12 = mul(%8, %11) : f32[3]
        return %12
      `,
    );
  });

  test("what cannot leave the loop is added up inside it", () => {
    const gain = state("gain", [3]);
    const { carry } = scan({ carry: [zeros([3])], length: 4 }, ([h]) => ({ carry: [mul(add(h!, 1), gain)] }));
    expectSimplified(
      grad(sum(carry[0]!), [gain]),
      `
        state gain : f32[3]
        %0 = reshape(1) [1] : f32[1]
        %1 = expand(%0) [3] : f32[3]
        %2 = constant all 0 : f32[3]
        %3, %4 = scan 4 steps : f32[3], f32[4, 3]
          carry %5 from %2 : f32[3]
          %6 = add(%5, 1) : f32[3]
          %7 = mul(%6, gain) : f32[3]
          next %7
          stack %6
        %8, %9 = scan 4 steps in reverse : f32[3], f32[3]
          carry %10 from %1 : f32[3]
          carry %11 from %2 : f32[3]
          slice %12 of %4 : f32[3]
          %13 = mul(%10, gain) : f32[3]
          %14 = mul(%10, %12) : f32[3]
          %15 = add(%11, %14) : f32[3]
          next %13, %15
        return %9
      `,
    );
  });

  test("the gradient of an LSTM: dWh is one product after the loop and no sum is carried through it", () => {
    const w = lstmWeights("l", { in: 3, hidden: 2 }, "pytorch");
    const h = input("h", [7, 2]);
    const run = lstm(w, input("x", [5, 7, 3]), { h, c: h });
    const text = printGraph(simplify(grad(sum(run.h), [w.Wx, w.Wh, ...w.biases])));
    const lines = text.replace(/ {2}# .*$/gm, "").split("\n");
    const backward = lines.findIndex((line) => line.includes("in reverse"));
    const end = lines.findLastIndex((line) => line.startsWith("  ")) + 1;
    // Inside: the gradients of h and c, and of the gates; Wh enters only to carry the gradient back in time.
    const inside = lines.slice(backward, end).filter((line) => /scan|carry|matmul|next|stack|sum/.test(line));
    expect([...inside, ...lines.slice(end)].join("\n")).toBe(
      unindented(`
        %35, %36, %37 = scan 5 steps in reverse : f32[7, 2], f32[7, 2], f32[5, 7, 8]
          carry %38 from %1 : f32[7, 2]
          carry %39 from %1 : f32[7, 2]
          %70 = matmul(%69, l.Wh) transB : f32[7, 2]
          next %70, %71
          stack %69
        %72 = reshape(%37) [35, 8] : f32[35, 8]
        %73 = matmul(%0, %72) transA : f32[3, 8]
        %74 = reshape(%16) [35, 2] : f32[35, 2]
        %75 = matmul(%74, %72) transA : f32[2, 8]
        %76 = sum(%37) [0, 1] : f32[1, 1, 8]
        %77 = reshape(%76) [8] : f32[8]
        return %73, %75, %77, %77
      `),
    );
  });
});

describe("sums of products", () => {
  test("the gradient of a matrix that several rows were multiplied with is one product", () => {
    const P = input("P", [2, 5, 5]);
    const [a, b, c] = ["a", "b", "c"].map((name) => input(name, [2, 1, 5])) as [Tensor, Tensor, Tensor];
    const y = add(sum(tanh(matmul(a, P))), add(sum(matmul(b, P)), sum(mul(matmul(c, P), 3))));
    const [dP] = grad(add(y, sum(mul(P, P))), [P]);
    const products = printGraph(simplify([dP!])).match(/matmul/g);
    // One forward, for tanh; one for the sum.
    expect(products).toHaveLength(2);
    const values = new Map([P, a, b, c].map((tensor, i) => [tensor, normals(tensor.shape, i)] as const));
    const [plain] = interpret([dP!], values);
    const [joined] = interpret(simplify([dP!]), values);
    expectClose(joined!.data, plain!.data, { rtol: 1e-12, atol: 1e-12, label: "dP" });
  });

  test("products that are larger than their sum, or used elsewhere, stay as they are", () => {
    const [a, b] = [input("a", [9, 3]), input("b", [9, 3])];
    const tall = add(matmul(a, a, { transA: true }), matmul(b, b, { transA: true }));
    expect(printGraph(simplify([tall])).match(/matmul/g)).toHaveLength(2);
    const [c, d] = [input("c", [1, 3]), input("d", [1, 3])];
    const first = matmul(c, c, { transA: true });
    const used = [add(first, matmul(d, d, { transA: true })), tanh(first)];
    expect(printGraph(simplify(used)).match(/concat/g)).toBeNull();
  });
});
