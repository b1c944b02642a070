/** Steps whose window was found by iteration: those that did not converge are computed again without it. */
import { describe, expect, test } from "vitest";
import type { Batch } from "../../src/data/batches.ts";
import { type Mode, objectiveOf } from "../../src/experiment/catbabi/objective.ts";
import { add, gatherRows, mul, scalar, state } from "../../src/graph/index.ts";
import { fwmModel } from "../../src/model/fwmModel.ts";
import type { SequenceModel } from "../../src/model/sequence.ts";
import { nodeRuntime } from "../../src/runtime/node.ts";
import { sgd } from "../../src/train/optimizers.ts";
import { SequenceTrainer, type TrainStep } from "../../src/train/sequenceTrainer.ts";

const sizes = { batch: 2, window: 30 };
const count = sizes.batch * sizes.window;

/** A window in which every seventh token is a question. */
function batchOf(token: (i: number) => number): Batch {
  const tokens = Int32Array.from({ length: count }, (_, i) => token(i));
  return {
    ...sizes,
    tokens,
    targets: Int32Array.from({ length: count }, (_, i) => (i * 5) % 4),
    questions: Uint8Array.from({ length: count }, (_, i) => (i % 7 === 0 ? 1 : 0)),
    tasks: new Uint8Array(count).fill(1),
    epoch: 0,
    padded: tokens.filter((id) => id === 0).length,
  };
}

function trainerOf(model: SequenceModel): SequenceTrainer {
  const settings = { optimizers: { first: sgd() }, clip: 0, emaDecay: 0, seed: 3 };
  return new SequenceTrainer(model, settings, { runtime: nodeRuntime, threads: 1 });
}

/** The model, held to the form without iteration. */
function exactly(model: SequenceModel): SequenceModel {
  return { ...model, window: (input) => model.window({ ...input, exact: true }) };
}

async function steps(trainer: SequenceTrainer, batch: Batch, n: number, mode: Mode): Promise<TrainStep[]> {
  const results: TrainStep[] = [];
  const window = objectiveOf(batch, mode);
  for (let step = 0; step < n; step++) {
    results.push(await trainer.step(window, { learningRate: 0.1, key: { seed: 1, step } }));
  }
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
    const [trainer, plain] = [trainerOf(toy(residual)), trainerOf(exactly(toy(0)))];
    const got = await steps(trainer, batch, 2, "lm");
    const want = await steps(plain, batch, 2, "lm");
    expect(got.map(({ fallback }) => fallback)).toEqual([again, again]);
    expect(want.map(({ fallback }) => fallback)).toEqual([false, false]);
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
    const [trainer, plain] = [trainerOf(model()), trainerOf(exactly(model()))];
    const got = await steps(trainer, batch, 3, mode);
    const want = await steps(plain, batch, 3, mode);
    got.forEach((result, i) => {
      expect(result.fallback).toBe(false);
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
    const got = await steps(trainer, batch, 2, "qa");
    const want = await steps(plain, batch, 2, "qa");
    expect(got.map(({ fallback }) => fallback)).toEqual([true, true]);
    expect(got.map(({ loss }) => loss)).toEqual(want.map(({ loss }) => loss));
    expect(values(trainer)).toEqual(values(plain));
    await Promise.all([trainer.release(), plain.release()]);
  });
});
