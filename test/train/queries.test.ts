/** Question positions of a batch, against a literal search. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { collectQueries } from "../../src/train/queries.ts";

test("every question is asked once, in its own row, with its target", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 5 }),
      fc.integer({ min: 1, max: 40 }),
      fc.nat(),
      (batch, window, seed) => {
        const questions = Uint8Array.from({ length: batch * window }, (_, i) =>
          (i * 7919 + seed) % 5 === 0 ? 1 : 0,
        );
        const targets = Int32Array.from({ length: batch * window }, (_, i) => 100 + i);
        const {
          slots,
          ids,
          targets: answers,
          mask,
          count,
        } = collectQueries({ batch, window, targets, questions });
        expect(slots % 16).toBe(0);
        const asked: number[] = [];
        ids.forEach((at, i) => {
          expect(at % batch).toBe(Math.floor(i / slots)); // the row of the slot
          if (!mask[i]) return;
          expect(answers[i]).toBe(targets[at]);
          asked.push(at);
        });
        const all = [...questions.keys()].filter((at) => questions[at]);
        expect(asked.sort((a, b) => a - b)).toEqual(all);
        expect(count).toBe(all.length);
      },
    ),
    { numRuns: 60, seed: 5 },
  );
});
