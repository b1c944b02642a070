/** Steps whose window was found by iteration: those that did not converge are computed again without it. */
import { describe, expect, test } from "vitest";
import { add, gatherRows, mul, scalar, state } from "../../src/graph/index.ts";
import { fwmModel } from "../../src/model/fwmModel.ts";
import type { SequenceModel } from "../../src/model/sequence.ts";
import { nodeRuntime } from "../../src/runtime/node.ts";
import { sgd } from "../../src/train/optimizers.ts";
import { SequenceTrainer, type StepResult, type TokenBatch } from "../../src/train/sequenceTrainer.ts";

const sizes = { batch: 2, window: 30 };
const count = sizes.batch * sizes.window;

/** A window in which every seventh token is a question. */
function batchOf(token: (i: number) => number): TokenBatch {
  const tokens = Int32Array.from({ length: count }, (_, i) => token(i));
  return {
    ...sizes,
    tokens,
    targets: Int32Array.from({ length: count }, (_, i) => (i * 5) % 4),
    questions: Uint8Array.from({ length: count }, (_, i) => (i % 7 === 0 ? 1 : 0)),
    padded: tokens.filter((id) => id === 0).length,
  };
}

function trainerOf(model: SequenceModel, mode: "qa" | "lm" = "qa"): SequenceTrainer {
  const settings = { mode, optimizer: sgd(), clip: 0, averaging: 0, seed: 3 };
  return new SequenceTrainer(model, settings, { runtime: nodeRuntime, threads: 1 });
}

/** The model, held to the form without iteration. */
function exactly(model: SequenceModel): SequenceModel {
  return { ...model, window: (input) => model.window({ ...input, exact: true }) };
}

async function steps(trainer: SequenceTrainer, batch: TokenBatch, n: number): Promise<StepResult[]> {
  const results: StepResult[] = [];
  for (let step = 0; step < n; step++) results.push(await trainer.step(batch, 0.1, { seed: 1, step }));
  return results;
}

function values({ state }: SequenceTrainer): Record<string, number[]> {
  return Object.fromEntries(
    [...state.names()].map((name) => [name, Array.from(state.get(name).data as Float32Array)]),
  );
}

/** Logits are rows of a table. The iterated form gives twice as much, and the residual that it is told to give. */
function toy(residual: number): SequenceModel {
  const table = state("table", [5, 4], { kind: "normal", mean: 0, std: 1 });
  return {
    parameters: [table],
    recurrent: [{ name: "seen", shape: (B) => [B, 1] }],
    window({ tokens, state: [seen], exact }) {
      const logits = gatherRows(table, tokens);
      if (exact) return { logits, state: [add(seen!, 1)] };
      return { logits: mul(logits, 2), state: [add(seen!, 2)], residual: scalar(residual) };
    },
    step: () => {
      throw new Error("not used");
    },
  };
}

describe("a residual", () => {
  const batch = batchOf((i) => 1 + (i % 4));

  test.each([
    ["at the limit", 1, false],
    ["above it", 1.001, true],
    ["infinite", Number.POSITIVE_INFINITY, true],
    ["not a number", Number.NaN, true],
  ])("%s: the step is computed again: %o", async (_, residual, again) => {
    const [trainer, plain] = [trainerOf(toy(residual), "lm"), trainerOf(exactly(toy(0)), "lm")];
    const got = await steps(trainer, batch, 2);
    const want = await steps(plain, batch, 2);
    expect(got.map(({ fallback }) => fallback === true)).toEqual([again, again]);
    expect(want.map(({ fallback }) => fallback)).toEqual([undefined, undefined]);
    expect(values(trainer)["train.seen"]).toEqual(again ? [2, 2] : [4, 4]);
    // What the refused form made of the weights is gone, to the last bit.
    if (again) expect(values(trainer)).toEqual(values(plain));
    await Promise.all([trainer.release(), plain.release()]);
  });
});

describe("the memory", () => {
  const model = (): SequenceModel =>
    fwmModel({ vocabulary: 6, embedding: 5, hidden: 7, memory: 3, reads: 2, chunk: 10 });

  test.each(["qa", "lm"] as const)("%s mode: a window that converges counts as it is", async (mode) => {
    // Token 0 is padding: at the end of the first row.
    const batch = batchOf((i) => (i >= count - 6 && i % 2 === 0 ? 0 : 1 + ((i * i + 3 * i) % 5)));
    const [trainer, plain] = [trainerOf(model(), mode), trainerOf(exactly(model()), mode)];
    const got = await steps(trainer, batch, 3);
    const want = await steps(plain, batch, 3);
    got.forEach((result, i) => {
      expect(result.fallback).toBeUndefined();
      // Two orders of float32 sums through three layer norms.
      expect(result.loss).toBeCloseTo(want[i]!.loss, 4);
      expect(result.gradNorm / want[i]!.gradNorm).toBeCloseTo(1, 3);
    });
    await Promise.all([trainer.release(), plain.release()]);
  });

  test("one key written again and again, too strongly, does not converge and falls back", async () => {
    const batch = batchOf(() => 1);
    const [trainer, plain] = [trainerOf(model()), trainerOf(exactly(model()))];
    for (const { state: memory } of [trainer, plain]) {
      // Keys and values saturate, β is 1/3, and |κ|² is 9: each write of a value goes three times too far.
      const bias = memory.get("fwm.write.b").data as Float32Array;
      bias.fill(9);
    }
    const got = await steps(trainer, batch, 2);
    const want = await steps(plain, batch, 2);
    expect(got.map(({ fallback }) => fallback)).toEqual([true, true]);
    expect(got.map(({ loss }) => loss)).toEqual(want.map(({ loss }) => loss));
    expect(values(trainer)).toEqual(values(plain));
    await Promise.all([trainer.release(), plain.release()]);
  });
});
