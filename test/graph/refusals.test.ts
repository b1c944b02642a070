/** What an op refuses when the graph is built or run, and that ONNX Runtime and the oracle agree on it. */
import { describe, expect, test } from "vitest";
import { exportOnnx } from "../../src/compile/export.ts";
import { ShapeError } from "../../src/errors.ts";
import {
  add,
  constant,
  crossEntropy,
  einsum,
  gatherRows,
  input,
  less,
  mul,
  reshape,
  scan,
  softmax,
  state,
  type Tensor,
  zeros,
} from "../../src/graph/index.ts";
import type { Value } from "../../src/graph/op.ts";
import { interpret } from "../../src/runtime/oracle.ts";
import { runOrt } from "../support/check.ts";

describe("when the graph is built", () => {
  const x = input("x", [6]);
  const n = input("n", [4], "i32");
  test.each<[string, () => unknown, string]>([
    ["a fraction beside whole numbers", () => mul(n, 0.5), "i32 takes whole numbers"],
    ["a fraction to compare whole numbers with", () => less(n, 0.5), "i32 takes whole numbers"],
    ["a letter twice in a term", () => einsum("ii->i", input("m", [2, 2])), "names an axis twice"],
    ["a shape that does not divide", () => reshape(x, [4, -1]), "do not fill"],
    ["negative sizes", () => reshape(x, [-2, -3]), "do not fill"],
    [
      "too few initial values",
      () => state("v", [3], { kind: "values", data: [1, 2] }),
      "2 values do not fill",
    ],
    ["a loop of no steps", () => scan({ carry: [x], length: 0 }, ([h]) => ({ carry: [h!] })), "at least 1"],
    [
      "a loop of half a step",
      () => scan({ carry: [x], length: 1.5 }, ([h]) => ({ carry: [h!] })),
      "at least 1",
    ],
    ["an input of a negative size", () => input("z", [-1, 3]), "input z: -1 is not a size"],
    ["an input of half a size", () => input("z", [1.5]), "input z: 1.5 is not a size"],
    ["a state of a negative size", () => state("z", [2, -1]), "state z: -1 is not a size"],
    ["a constant of negative sizes", () => constant([1], [-1, -1]), "constant: -1 is not a size"],
    ["zeros of a size that is none", () => zeros([Number.NaN]), "zeros: NaN is not a size"],
    ["softmax of a scalar", () => softmax(input("s", [])), "needs an axis"],
  ])("%s", (_, build, message) => {
    expect(build).toThrow(ShapeError);
    expect(build).toThrow(message);
  });
});

test("whole numbers times -1", async () => {
  const n = input("n", [3], "i32");
  const given = new Map<Tensor, Value>([[n, { shape: [3], data: Float64Array.of(1, 2, 3) }]]);
  expect([...(await runOrt([mul(n, -1)], given))[0]!]).toEqual([-1, -2, -3]);
});

test("a reshape to sizes of 0", async () => {
  const x = input("x", [0, 3]);
  const given = new Map<Tensor, Value>([[x, { shape: [0, 3], data: new Float64Array() }]]);
  expect((await runOrt([reshape(x, [3, 0])], given))[0]).toHaveLength(0);
});

describe("an id that names nothing fails on ONNX Runtime and in the oracle", () => {
  const ids = input("ids", [2], "i32");
  const given = (id: number) => new Map<Tensor, Value>([[ids, { shape: [2], data: Float64Array.of(0, id) }]]);
  test.each([-1, 3])("row %i of 3", async (id) => {
    const rows = gatherRows(constant([1, 2, 3, 4, 5, 6], [3, 2]), ids);
    expect(() => interpret([rows], given(id))).toThrow(`there is no row ${id}`);
    await expect(runOrt([rows], given(id))).rejects.toThrow();
  });
  test.each([-1, 3])("class %i of 3", async (id) => {
    const loss = crossEntropy(constant([1, 2, 3, 4, 5, 6], [2, 3]), ids);
    expect(() => interpret([loss], given(id))).toThrow(`there is no row ${id}`);
    await expect(runOrt([loss], given(id))).rejects.toThrow();
  });
});

test("export: the next value of a state has its type, and the state is an input also where nobody reads it", () => {
  const [x, s] = [input("x", [2]), state("s", [2])];
  const names = new TextDecoder("latin1").decode(
    exportOnnx({ outputs: { y: add(x, 1) }, updates: [[s, mul(x, 2)]] }, new Map()),
  );
  expect(names).toMatch(/next_s/);
  const wrong = () => exportOnnx({ outputs: {}, updates: [[s, input("z", [3])]] }, new Map());
  expect(wrong).toThrow("the next value of state s has another type");
});
