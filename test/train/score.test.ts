/** Accuracy and perplexity by hand. */
import { expect, test } from "vitest";
import { Scorer } from "../../src/train/score.ts";

test("accuracy over all questions and per task; perplexity over windows, those without questions counting 0", () => {
  const scorer = new Scorer();
  const tasks = [1, 1, 15, 15];
  scorer.add({ loss: 2, answerLoss: 1, positions: [0, 2], correct: [1, 0] }, tasks);
  scorer.add({ loss: 4, answerLoss: 0.5, positions: [3], correct: [1] }, tasks);
  scorer.add({ loss: 0, answerLoss: 0, positions: [], correct: [] }, tasks);
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
