/** What is learned of a window, against a literal search. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Batch } from "../../../src/data/batches.ts";
import { answerLoss, correctAnswers, objectiveOf } from "../../../src/experiment/catbabi/objective.ts";
import type { CatbabiSettings } from "../../../src/experiment/catbabi/settings.ts";
import { openTiny, tinySettings } from "./tinySession.ts";

/** A window with questions at about a fifth of the places, and padding at the end of some rows. */
function batchOf(batch: number, window: number, seed: number): Batch {
  const size = batch * window;
  const padding = (at: number): boolean => at % batch === 0 && at / batch >= window - (seed % 3);
  const tokens = Int32Array.from({ length: size }, (_, at) => (padding(at) ? 0 : 1 + (at % 50)));
  return {
    batch,
    window,
    tokens,
    targets: Int32Array.from({ length: size }, (_, at) => 100 + at),
    questions: Uint8Array.from({ length: size }, (_, at) =>
      !padding(at) && (at * 7919 + seed) % 5 === 0 ? 1 : 0,
    ),
    tasks: new Uint8Array(size).fill(1),
    epoch: 0,
    padded: tokens.filter((token) => token === 0).length,
  };
}

const sizes = [fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 40 }), fc.nat()] as const;
const asked = ({ questions }: Batch): number[] => [...questions.keys()].filter((at) => questions[at]);

test("QA: every question has one position in its own row, its target and weight 1; all others weigh nothing", () => {
  fc.assert(
    fc.property(...sizes, (B, T, seed) => {
      const cut = batchOf(B, T, seed);
      const { positions, targets, lossMask, questions, slots, mask } = objectiveOf(cut, "qa");
      const Q = positions!.length / B;
      expect(Q % 16).toBe(0);
      expect([...questions].sort((a, b) => a - b)).toEqual(asked(cut));
      positions!.forEach((at, i) => {
        expect(at % B).toBe(Math.floor(i / Q)); // the row of the slot
        expect(lossMask[i]).toBe(slots.includes(i) ? 1 : 0);
        if (lossMask[i]) expect(targets[i]).toBe(cut.targets[at]);
      });
      expect(mask === undefined).toBe(cut.padded === 0);
    }),
    { numRuns: 60, seed: 5 },
  );
});

test("QA: a window without a question has no positions, so nothing is learned from it", () => {
  const cut = { ...batchOf(2, 4, 0), questions: new Uint8Array(8) };
  expect(objectiveOf(cut, "qa").positions).toHaveLength(0);
});

test("QA: facts stand in the slot of their question; of a question with more than three none are told", () => {
  const cut = batchOf(2, 12, 0);
  const [one, many] = asked(cut).filter((at) => at >= 2) as [number, number];
  const fact = (at: number, from: number, to: number): number[] => [at, from, to];
  const facts = Int32Array.from([
    ...[...fact(one, 0, 2), ...fact(one, 1, 1 + Math.floor(one / 2))],
    ...[0, 1, 2, 3].flatMap((t) => fact(many, t, t + 1)),
  ]);
  expect(objectiveOf({ ...cut, facts }, "qa").facts).toBeUndefined();
  const { facts: told, positions, slots } = objectiveOf({ ...cut, facts }, "qa", { facts: true });
  const slot = slots.find((at) => positions![at] === one)!;
  const want = new Float32Array(positions!.length * 3 * 12);
  want.fill(1, slot * 36, slot * 36 + 2);
  want.fill(1, slot * 36 + 13, slot * 36 + 13 + Math.floor(one / 2));
  expect(told).toEqual(want);
  // A stream that knows of none is told none.
  expect(objectiveOf(cut, "qa", { facts: true }).facts).toEqual(new Float32Array(want.length));
});

test("LM: facts are told at the positions that QA has; without a question there are none", () => {
  const cut = batchOf(2, 12, 0);
  const facts = Int32Array.from([asked(cut).at(-1)!, 0, 3]);
  const qa = objectiveOf({ ...cut, facts }, "qa", { facts: true });
  const lm = objectiveOf({ ...cut, facts }, "lm", { facts: true });
  expect(lm.positions).toBeUndefined();
  expect(lm.factPositions).toEqual(qa.positions);
  expect(lm.facts).toEqual(qa.facts);
  const silent = objectiveOf({ ...cut, questions: new Uint8Array(24) }, "lm", { facts: true });
  expect([silent.facts, silent.factPositions]).toEqual([undefined, undefined]);
});

test("LM: every token but padding weighs 1; the questions are where they are", () => {
  fc.assert(
    fc.property(...sizes, (B, T, seed) => {
      const cut = batchOf(B, T, seed);
      const { positions, targets, lossMask, questions } = objectiveOf(cut, "lm");
      expect(positions).toBeUndefined();
      expect(targets).toBe(cut.targets);
      expect([...lossMask]).toEqual([...cut.tokens].map((token) => (token === 0 ? 0 : 1)));
      expect([...questions]).toEqual(asked(cut));
    }),
    { numRuns: 40, seed: 6 },
  );
});

test("LM: answers may weigh more than other tokens, padding still nothing", () => {
  fc.assert(
    fc.property(...sizes, (B, T, seed) => {
      const cut = batchOf(B, T, seed);
      const { lossMask, mask } = objectiveOf(cut, "lm", { answerWeight: 20 });
      const weightOf = (token: number, at: number): number =>
        token === 0 ? 0 : asked(cut).includes(at) ? 20 : 1;
      expect([...lossMask]).toEqual([...cut.tokens].map(weightOf));
      if (mask) expect([...mask]).toEqual([...cut.tokens].map((token) => (token === 0 ? 0 : 1)));
    }),
    { numRuns: 40, seed: 8 },
  );
});

test("a run learns by these weights and says so; in question answering there is nothing to weigh", async () => {
  const weighed = (mode: "qa" | "lm", answerWeight: number): CatbabiSettings => {
    const { task, training, ...rest } = tinySettings({ mode, source: "generated" });
    return { ...rest, task, training: { ...training, window: 60, answerWeight } };
  };
  const first = async (answerWeight: number) => {
    const session = await openTiny(weighed("lm", answerWeight));
    const { means } = await session.step(0);
    await session.release();
    return { loss: means.loss as number, notes: session.data.notes };
  };
  const [plain, heavy] = [await first(1), await first(20)];
  expect(heavy.loss).not.toBeCloseTo(plain.loss, 4);
  const note = "an answer weighs 20 times as much in the loss as another token";
  expect(heavy.notes).toContain(note);
  expect(plain.notes).not.toContain(note);
  await expect(openTiny(weighed("qa", 20))).rejects.toThrow(/^training\.answerWeight: in question answering/);
});

test.each(["qa", "lm"] as const)(
  "%s: right answers and their loss are read at the questions alone",
  (mode) => {
    const cut = batchOf(3, 20, 1);
    const window = objectiveOf(cut, mode);
    const predicted = window.targets.map((target, i) => (i % 2 === 0 ? target : -1));
    const losses = Float32Array.from(window.targets, (_, i) => i);
    expect([...correctAnswers(window, predicted)]).toEqual(
      [...window.slots].map((i) => (i % 2 === 0 ? 1 : 0)),
    );
    const mean = [...window.slots].reduce((sum, i) => sum + i, 0) / window.slots.length;
    expect(answerLoss(window, losses)).toBeCloseTo(mean, 9);
  },
);
