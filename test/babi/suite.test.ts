/** The stretch suite: fixed stories that the reader answers whole, and axes that are what they are called. */
import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { formatStories, type Story, storyTokens } from "../../src/babi/format.ts";
import { stretchAxes } from "../../src/babi/generator/suite.ts";
import { solveStories } from "../../src/babi/reader/solve.ts";
import { vocabulary } from "./vocabulary.ts";

const storiesOf = (name: string, point: number): Story[] => {
  const axis = stretchAxes.find((one) => one.name === name)!;
  return Array.from({ length: axis.stories }, (_, index) => axis.story(point, index));
};
const questions = (story: Story) => story.lines.filter((line) => line.kind === "question");

describe.each(stretchAxes)("$name", ({ name, points }) => {
  test("the reader answers all of it in bAbI's words, and few stories repeat", () => {
    for (const point of points) {
      const stories = storiesOf(name, point);
      expect(solveStories(stories, { strict: true }).exceptions).toEqual([]);
      const words = stories.flatMap((story) => storyTokens(story).tokens);
      expect(words.filter((word) => !vocabulary.has(word))).toEqual([]);
      // The shortest ones may come twice.
      expect(new Set(stories.map((story) => formatStories([story]))).size).toBeGreaterThan(
        0.9 * stories.length,
      );
    }
  });
});

test("version 1 has these stories and no others", () => {
  const hash = createHash("sha256");
  for (const { name, points } of stretchAxes) {
    for (const point of points) hash.update(formatStories(storiesOf(name, point)));
  }
  expect(hash.digest("hex")).toBe("1dfdd08a9f724db8c997c216d547937b618b3c5ac4f62f7f544de8ea09430571");
});

test("distance: exactly that many sentences stand between the fact and its question", () => {
  for (const point of [10, 160]) {
    for (const story of storiesOf("distance", point)) {
      const [question] = questions(story);
      expect(question!.supports).toHaveLength(1);
      expect(question!.id - question!.supports[0]! - 1).toBe(point);
    }
  }
});

test("objects: so many were taken, and counting says so", () => {
  const taken = (story: Story): number => story.lines.filter(({ words }) => words.at(-1) === "there").length;
  for (const point of [1, 5])
    for (const story of storiesOf("located", point)) expect(taken(story)).toBe(point);
  for (const story of storiesOf("counted", 3)) {
    expect(taken(story)).toBe(3);
    const { answer } = questions(story)[0]!;
    expect(answer === "three" || answer.split(",").length === 3).toBe(true);
  }
});

test("rooms, sizes, shapes: a way through so many rooms, and so many statements behind each answer", () => {
  for (const story of storiesOf("rooms", 6)) {
    expect(new Set(story.lines.flatMap(({ words }) => [words[1]!])).size).toBeLessThanOrEqual(7);
    expect(questions(story)).toHaveLength(4);
  }
  for (const name of ["sizes", "shapes"]) {
    for (const story of storiesOf(name, 4)) {
      for (const { supports } of questions(story)) expect(supports).toHaveLength(4);
    }
  }
});
