/** Stories with fewer bystanders: the reader still gives every answer. */
import { describe, expect, test } from "vitest";
import { fewerBystanders } from "../../src/babi/bystanders.ts";
import type { Story } from "../../src/babi/format.ts";
import { generateStories, tasks } from "../../src/babi/generator/generate.ts";
import { solveStories } from "../../src/babi/reader/solve.ts";
import { decodeStory, encodeStory, endlessSource, shortenedSource } from "../../src/data/streams.ts";

const sentences = (story: Story, kind: string): string[] =>
  story.lines.filter((line) => line.kind === kind).map(({ words }) => words.join(" "));

describe.each(tasks)("task %i", (task) => {
  const stories = generateStories({ task, seed: 4, count: 200 });
  const shorter = stories.map((story, i) => fewerBystanders(story, [0, 2], 1, 0, i));

  test("the reader answers every question of the shorter story as it answers those of the whole", () => {
    const { exceptions, questions } = solveStories(shorter, { strict: true });
    expect(exceptions).toEqual([]);
    expect(questions).toBe(solveStories(stories).questions);
  });

  test("questions and answers stay, statements keep their order, IDs count from 1", () => {
    for (const [i, story] of stories.entries()) {
      const short = shorter[i]!;
      expect(sentences(short, "question")).toEqual(sentences(story, "question"));
      const left = sentences(story, "statement");
      for (const sentence of sentences(short, "statement")) {
        const at = left.indexOf(sentence);
        expect(at).toBeGreaterThanOrEqual(0);
        left.splice(0, at + 1);
      }
      expect(short.lines.map(({ id }) => id)).toEqual(short.lines.map((_, at) => at + 1));
    }
  });

  test("a story is the same in numbers and in words", () => {
    for (const story of shorter.slice(0, 20)) {
      const decoded = decodeStory(encodeStory(story));
      expect(decoded.lines).toEqual(
        story.lines.map((line) => (line.kind === "question" ? { ...line, supports: [] } : line)),
      );
    }
  });
});

test("of the five animals of induction, the one asked for, the one it is like and as many others as wanted stay", () => {
  const stories = generateStories({ task: 16, seed: 4, count: 300 });
  const animals = (story: Story): number =>
    new Set(sentences(story, "statement").map((sentence) => sentence.split(" ")[0])).size;
  for (const [i, story] of stories.entries()) {
    expect(animals(fewerBystanders(story, [1, 1], 1, 0, i))).toBe(3);
    expect(animals(fewerBystanders(story, [3, 3], 1, 0, i))).toBe(5);
  }
  const between = stories.map((story, i) => animals(fewerBystanders(story, [0, 2], 1, 0, i)));
  for (const count of [2, 3, 4]) {
    // 100 are expected; the spread is 8.2.
    const times = between.filter((other) => other === count).length;
    expect(Math.abs(times - 100)).toBeLessThan(35);
  }
});

test("a story whose answer is not the reader's stays whole", () => {
  const [story] = generateStories({ task: 16, seed: 4, count: 1 });
  const wrong: Story = {
    ...story!,
    lines: story!.lines.map((line) => (line.kind === "question" ? { ...line, answer: "football" } : line)),
  };
  for (let i = 0; i < 10; i++) expect(fewerBystanders(wrong, [0, 0], 1, 0, i)).toBe(wrong);
  const strange: Story = {
    ...story!,
    lines: story!.lines.map((line) => ({ ...line, words: ["colourless", "green", "ideas"] })),
  };
  expect(fewerBystanders(strange, [0, 0], 1, 0, 0)).toBe(strange);
});

test("a source of shorter stories depends on seed, epoch and place alone", () => {
  const stories = generateStories({ task: 19, seed: 4, count: 50 });
  const source = { ...endlessSource((position) => stories[position]!), storiesPerEpoch: 50 };
  const one = shortenedSource(source, 5, [0, 1]);
  expect(one.storiesPerEpoch).toBe(50);
  const places = Array.from({ length: 50 }, (_, at) => at);
  const read = (from: typeof one, epoch: number) => places.map((at) => from.story(epoch, at));
  expect(read(shortenedSource(source, 5, [0, 1]), 2)).toEqual(read(one, 2));
  expect(read(one, 3)).not.toEqual(read(one, 2));
  expect(read(shortenedSource(source, 6, [0, 1]), 2)).not.toEqual(read(one, 2));
});
