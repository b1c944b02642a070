/** Counting and comparing stories, on examples small enough to check by hand. */
import { expect, test } from "vitest";
import { parseStories } from "../../src/babi/format.ts";
import { generateStories } from "../../src/babi/generator/generate.ts";
import {
  compareStatistics,
  countStories,
  statisticsReport,
  statisticsTable,
  totalVariation,
} from "./compareStories.ts";

const counts = (entries: Record<string, number>) => new Map(Object.entries(entries));

test("total variation is the fraction that would have to move", () => {
  expect(totalVariation(counts({ a: 1, b: 1 }), counts({ a: 2, b: 2 }))).toBe(0);
  expect(totalVariation(counts({ a: 3 }), counts({ b: 5 }))).toBe(1);
  expect(totalVariation(counts({ a: 1, b: 3 }), counts({ a: 2, b: 2 }))).toBe(0.25);
});

const text = [
  "1 Mary went to the office.",
  "2 John went to the park.",
  "3 Where is Mary? \toffice\t1",
  "4 Where is John? \tpark\t2",
  "1 Mary went back to the park.",
  "2 Where is Mary? \tpark\t1",
  "",
].join("\n");
const stories = parseStories(text, { file: "qa1.txt", task: 1 });

test("stories are counted by hand", () => {
  const statistics = countStories(stories);
  // Stories of 22 and 12 tokens, and of 2 questions and 1.
  expect(statistics).toMatchObject({ stories: 2, questions: 3, length: { mean: 17, std: Math.sqrt(50) } });
  expect(statistics.questionsPerStory).toEqual({ mean: 1.5, std: Math.sqrt(0.5) });
  expect(Object.fromEntries(statistics.answers)).toEqual({ office: 1, park: 2 });
  expect(Object.fromEntries(statistics.distances)).toEqual({ 0: 2, 1: 1 });
  expect(statistics.words.get("mary")).toBe(4);
  expect(statistics.pairs.get("went to")).toBe(2);
});

test("a set compared with itself is at distance 0, task by task", () => {
  const both = [...stories, ...generateStories({ task: 15, seed: 1, count: 5 })];
  for (const row of compareStatistics(both, both)) {
    expect([row.answers, row.words, row.pairs, row.distances]).toEqual([0, 0, 0, 0]);
  }
  expect(compareStatistics(both, stories).map(({ task }) => task)).toEqual([1]);
});

test("the table shows generated beside the yardstick", () => {
  const rows = statisticsReport(stories, stories.slice(0, 1), stories.slice(1));
  const table = statisticsTable(rows).split("\n");
  expect(table).toHaveLength(4);
  expect(table[2]).toContain("| 17.0 ± 7.1 | 12.0 | 22.0 |");
  expect(table[2]).toContain("0.333 / 0.167");
});
