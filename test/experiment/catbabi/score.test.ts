/** Accuracy and perplexity by hand. */
import { expect, test } from "vitest";
import type { Objective } from "../../../src/experiment/catbabi/objective.ts";
import { Scorer } from "../../../src/experiment/catbabi/score.ts";

/** A window of four tokens in one row, with questions at some positions; targets stand in slots of their own. */
function window(questions: readonly number[]): Objective {
  const slots = Int32Array.from(questions.keys());
  return {
    batch: 1,
    window: 4,
    tokens: Int32Array.of(5, 6, 7, 8),
    targets: Int32Array.from(questions, (at) => 10 + at),
    lossMask: new Float32Array(questions.length).fill(1),
    positions: Int32Array.from(questions),
    questions: Int32Array.from(questions),
    slots,
  };
}

test("accuracy over all questions and per task; perplexity over windows, those without questions counting 0", () => {
  const scorer = new Scorer();
  const tasks = [1, 1, 15, 15];
  const answered = (loss: number, losses: number[], predicted: number[]) => ({
    loss,
    losses: Float32Array.from(losses),
    predicted: Int32Array.from(predicted),
  });
  scorer.add(window([0, 2]), answered(2, [0.5, 1.5], [10, 99]), tasks);
  scorer.add(window([3]), answered(4, [0.5], [13]), tasks);
  scorer.add(window([]), answered(0, [], []), tasks);
  expect(scorer.score()).toEqual({
    correct: 2,
    questions: 3,
    accuracy: 2 / 3,
    perplexity: Math.exp(0.5),
    loss: 2,
    perTask: {
      1: { correct: 1, questions: 1, accuracy: 1 },
      15: { correct: 1, questions: 2, accuracy: 0.5 },
    },
  });
});

test("nothing was asked", () => {
  expect(new Scorer().score()).toMatchObject({ accuracy: 0, questions: 0, perplexity: 1 });
});
