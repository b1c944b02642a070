/** The plain form that systems are timed against computes what their windows compute, penalty included. */
import { expect, test } from "vitest";
import { tokenByToken } from "../../bench/peers.ts";
import { benchTokenLoop } from "../../bench/tokenLoop.ts";
import "../../experiments/index.ts";
import { input, type Tensor } from "../../src/graph/index.ts";
import type { Value } from "../../src/graph/op.ts";
import { interpret } from "../../src/runtime/oracle.ts";
import { expectClose } from "../support/check.ts";
import { drawnModel, drawTokens, freshState, smallSystems } from "../support/systems.ts";

test.each(["fwm", "mnm", "jbfw", "delta-net"] as const)("%s", (name) => {
  const { model, weights } = drawnModel(smallSystems[name]);
  const [T, B] = [6, 2];
  const tokens = input("tokens", [T, B], "i32");
  const before = freshState(model, B);
  const values = new Map<Tensor, Value>([...weights, ...before.values, [tokens, drawTokens([T, B], 11, 4)]]);
  const [ours, plain] = [model, tokenByToken(model)].map((each) => {
    const made = each.window({ tokens, state: before.tensors, training: false });
    return interpret([made.logits, ...made.state, ...(made.penalty ? [made.penalty] : [])], values);
  });
  expect(plain).toHaveLength(ours!.length);
  ours!.forEach(({ data }, i) => {
    expectClose(plain![i]!.data, data, { rtol: 1e-9, atol: 1e-11, label: `${i}` });
  });
});

test("the benchmark's ratio is that of its pairs", async () => {
  const report = await benchTokenLoop({ experiment: "catbabi-qa-fwm", batch: 1, window: 3, repeats: 1 });
  expect(report.ratio).toBeCloseTo(report.loopMs / report.windowMs, 6);
  await expect(benchTokenLoop({ experiment: "metarl-fwm" })).rejects.toThrow(/only experiments on catbAbI/);
});
