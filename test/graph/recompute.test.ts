/** Values computed again for the gradient: the same numbers, and nothing kept. */
import { expect, test } from "vitest";
import { grad } from "../../src/compile/grad.ts";
import { simplify } from "../../src/compile/simplify.ts";
import { add, input, matmul, mul, recompute, scan, sum, type Tensor, tanh } from "../../src/graph/index.ts";
import type { Value } from "../../src/graph/op.ts";
import { scanAttrs } from "../../src/graph/ops/scan.ts";
import { topological } from "../../src/graph/tensor.ts";
import { interpret } from "../../src/runtime/oracle.ts";
import { expectClose, normals, runOrt } from "../support/check.ts";

const [T, B, N] = [6, 2, 3];

/** h_t = tanh(tanh(h W) V + x_t) twice in a row per step, or as a loop of two steps inside; `frame` around the step. */
function graph(frame: typeof recompute, nested: boolean) {
  const x = input("x", [T, B, N]);
  const h0 = input("h0", [B, N]);
  const [W, V] = [input("W", [N, N]), input("V", [N, N])];
  const once = (h: Tensor, xt: Tensor): Tensor => tanh(add(matmul(tanh(matmul(h, W)), V), xt));
  const { carry, ys } = scan({ carry: [h0], xs: [x] }, ([h], [xt]) => {
    const made = frame([h!, xt!], ([hIn, xIn]) => {
      if (!nested) {
        const first = once(hIn!, xIn!);
        return [once(first, xIn!), first];
      }
      const inner = scan({ carry: [hIn!], length: 2 }, ([hh]) => {
        const next = once(hh!, xIn!);
        return { carry: [next], ys: [next] };
      });
      return [inner.carry[0]!, sum(inner.ys[0]!, { axes: 0 })];
    });
    return { carry: [made[0]!], ys: [made[1]!] };
  });
  const loss = add(sum(mul(ys[0]!, ys[0]!)), sum(tanh(carry[0]!)));
  const wrt = [x, h0, W, V];
  return { wrt, outputs: [loss, ...grad(loss, wrt)] };
}

const plain: typeof recompute = (inputs, make) => [...make(inputs)];

/** Stacked outputs of the first loop: what it keeps for the gradient. */
function kept(outputs: readonly Tensor[]): number {
  const loops = topological(simplify(outputs)).filter((node) => scanAttrs(node));
  const first = loops[0]!;
  return first.outputs.length - scanAttrs(first)!.carries;
}

test.each([false, true])("the gradients of a step that is not kept, a loop in it: %s", async (nested) => {
  const usual = graph(plain, nested);
  const again = graph(recompute, nested);
  const valuesOf = ({ wrt }: typeof usual): Map<Tensor, Value> =>
    new Map(wrt.map((tensor, i) => [tensor, normals(tensor.shape, i + 1)]));
  const want = interpret(usual.outputs, valuesOf(usual));
  const simplified = interpret(simplify(again.outputs), valuesOf(again));
  interpret(again.outputs, valuesOf(again)).forEach(({ data }, i) => {
    expectClose(data, want[i]!.data, { rtol: 1e-12, atol: 1e-14, label: `output ${i}` });
    expectClose(simplified[i]!.data, want[i]!.data, { rtol: 1e-12, atol: 1e-14, label: `simplified ${i}` });
  });
  (await runOrt(again.outputs, valuesOf(again))).forEach((data, i) => {
    expectClose(data, want[i]!.data, { rtol: 1e-4, atol: 1e-5, label: `output ${i} on ONNX Runtime` });
  });
});

test("the loop keeps its state and nothing of what is computed again", () => {
  // The ys, and h before each step.
  expect(kept(graph(recompute, false).outputs)).toBe(2);
  expect(kept(graph(plain, false).outputs)).toBeGreaterThan(4);
});

test("outside of a loop it is what it stands around", () => {
  const x = input("x", [3]);
  const [y] = recompute([x], ([inner]) => [tanh(mul(inner!, inner!))]) as [Tensor];
  const [dx] = grad(sum(y), [x]) as [Tensor];
  const at = normals([3], 1);
  const [got] = interpret([dx], new Map([[x, at]]));
  expectClose(
    got!.data,
    at.data.map((v) => 2 * v * (1 - Math.tanh(v * v) ** 2)),
    { rtol: 1e-12, atol: 1e-14 },
  );
  expect(topological(simplify([y, dx])).some(({ op }) => op.name === "recompute")).toBe(false);
});
