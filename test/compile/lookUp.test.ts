/** Products behind a look-up become part of the table, where nothing in it changes and it does not grow much. */
import { expect, test } from "vitest";
import { lookUpLate } from "../../src/compile/lookUp.ts";
import { printGraph } from "../../src/compile/print.ts";
import {
  add,
  gatherRows,
  input,
  matmul,
  mul,
  state,
  type Tensor,
  tanh,
  topological,
} from "../../src/graph/index.ts";
import type { Value } from "../../src/graph/op.ts";
import { interpret } from "../../src/runtime/oracle.ts";
import { expectClose, normals, runOrtWithState } from "../support/check.ts";

const ids = input("ids", [2, 3], "i32");
const table = state("table", [5, 4]);
const W = state("W", [4, 6]);
const b = state("b", [6]);
const x = state("x", [6]);
const isWeight = (source: Tensor): boolean => [table, W, b].includes(source);
const lines = (outputs: readonly Tensor[]): string[] =>
  printGraph(outputs)
    .split("\n")
    .filter((line) => line.startsWith("%"));

test("a product and a bias are looked up, and the numbers stay", async () => {
  const y = tanh(add(add(matmul(gatherRows(table, ids), W), b), x));
  const [made] = lookUpLate([y], isWeight) as [Tensor];
  expect(lines([made])).toEqual([
    "%0 = matmul(table, W) : f32[5, 6]",
    "%1 = add(%0, b) : f32[5, 6]",
    "%2 = reshape(ids) [6] : i32[6]",
    "%3 = reshape(%2) [2, 3] : i32[2, 3]",
    "%4 = gatherRows(%1, %3) : f32[2, 3, 6]",
    // x changes from run to run.
    "%5 = add(%4, x) : f32[2, 3, 6]",
    "%6 = tanh(%5) : f32[2, 3, 6]",
  ]);
  const values = new Map<Tensor, Value>([
    [ids, { shape: [2, 3], data: Float64Array.of(0, 4, 2, 2, 1, 3) }],
    ...[table, W, b, x].map((tensor, i) => [tensor, normals(tensor.shape, i)] as const),
  ]);
  const [want] = interpret([y], values);
  expectClose(interpret([made], values)[0]!.data, want!.data, { rtol: 1e-12, atol: 1e-12 });
  const [got] = await runOrtWithState([made], values);
  expectClose(got!, want!.data, { rtol: 1e-5, atol: 1e-6 });
});

test("what changes, mixes rows or would make a large table stays as it is", () => {
  const rows = gatherRows(table, ids);
  const large = state("large", [50, 2]);
  const wide = state("wide", [2, 60]);
  const fixed = (source: Tensor): boolean => isWeight(source) || [large, wide].includes(source);
  for (const y of [
    matmul(rows, input("other", [4, 6])),
    matmul(gatherRows(input("given", [5, 4]), ids), W),
    matmul(rows, state("left", [2, 4, 6])),
    matmul(rows, rows, { transA: true }),
    add(rows, state("perRow", [3, 4])),
    mul(rows, state("scale", [4])),
    add(rows, rows),
    matmul(gatherRows(large, ids), wide),
  ]) {
    const picks = topological(lookUpLate([y], fixed)).filter(({ op }) => op.name === "gatherRows");
    expect(picks.map(({ inputs: [from] }) => from!.node.inputs.length)).toEqual([0]);
  }
});
