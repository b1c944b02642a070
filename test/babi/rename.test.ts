/** Stories under other names: the reader still gives every answer, and no story leaves its task's words. */
import { describe, expect, test } from "vitest";
import type { Story } from "../../src/babi/format.ts";
import { generateStories, tasks } from "../../src/babi/generator/generate.ts";
import { family, rooms } from "../../src/babi/generator/writer.ts";
import { solveStories } from "../../src/babi/reader/solve.ts";
import { drawFewNames, drawRenaming } from "../../src/babi/rename.ts";
import { encodeStory, endlessSource, renamedSource } from "../../src/data/streams.ts";
import { catbabiVocabulary } from "../../src/data/vocabulary.ts";
import { renamed } from "./renamed.ts";
import { vocabulary } from "./vocabulary.ts";

const wordsOf = ({ lines }: Story): string[] =>
  lines.flatMap((line) => (line.kind === "question" ? [...line.words, line.answer] : line.words));

describe.each(tasks)("task %i", (task) => {
  const stories = generateStories({ task, seed: 3, count: 300 });
  const others = stories.map((story, i) => renamed(story, drawRenaming(task, 1, 0, i)));

  test("under other names the reader gives every answer, from the same facts", () => {
    const { exceptions, questions } = solveStories(others, { strict: true });
    expect(exceptions).toEqual([]);
    expect(questions).toBeGreaterThanOrEqual(300);
  });

  test("under few names too, and a story has as many words as before", () => {
    const single = (story: Story): Set<string> => new Set(wordsOf(story).flatMap((word) => word.split(",")));
    const few = stories.map((story, i) =>
      renamed(story, drawFewNames({ task, words: single(story) }, 1, 0, i)),
    );
    expect(solveStories(few, { strict: true }).exceptions).toEqual([]);
    for (const [i, story] of stories.entries()) expect(single(few[i]!).size).toBe(single(story).size);
    expect(new Set(few.flatMap((story) => [...single(story)])).size).toBeLessThanOrEqual(
      new Set(stories.flatMap((story) => [...single(story)])).size,
    );
  });

  test("has no new words, and all that it had", () => {
    for (const word of others.flatMap(wordsOf)) expect(vocabulary.has(word), word).toBe(true);
    // Three things in one order are rare: their words are compared.
    const single = (some: readonly Story[]): Set<string> =>
      new Set(some.flatMap(wordsOf).flatMap((word) => word.split(",")));
    const [own, now] = [single(stories), single(others)];
    expect([...now].sort()).toEqual([...own].sort());
  });

  test("changes names one to one, and most stories", () => {
    const changed = stories.filter((story, i) => wordsOf(story).join(" ") !== wordsOf(others[i]!).join(" "));
    expect(changed.length).toBeGreaterThan(150);
    for (let i = 0; i < 20; i++) {
      const names = drawRenaming(task, 1, 0, i);
      expect(new Set(names.values()).size).toBe(names.size);
      expect(new Set(names.values())).toEqual(new Set(names.keys()));
    }
  });
});

test("few names are the first of their kind: two people are always the same two", () => {
  const words = new Set(["john", "sandra", "garden", "moved"]);
  const draws = Array.from({ length: 20 }, (_, i) => drawFewNames({ task: 1, words }, 1, 0, i));
  const people = draws.map((names) => ["john", "sandra"].map((name) => names.get(name) ?? name));
  expect(new Set(people.map((pair) => pair.join()))).toEqual(
    new Set([family.slice(0, 2), family.slice(0, 2).reverse()].map((pair) => pair.join())),
  );
  for (const names of draws) expect(names.get("garden") ?? "garden").toBe(rooms[0]);
});

describe("a source under other names", () => {
  const stories = generateStories({ task: 8, seed: 3, count: 50 });
  const source = { ...endlessSource((position) => stories[position]!), storiesPerEpoch: 50 };

  test("depends on seed, epoch and place alone", () => {
    const one = renamedSource(source, 5);
    expect(one.storiesPerEpoch).toBe(50);
    expect(renamedSource(source, 5).story(2, 7)).toEqual(one.story(2, 7));
    for (const other of [one.story(3, 7), renamedSource(source, 6).story(2, 7)]) {
      expect(other.tokens).not.toEqual(one.story(2, 7).tokens);
    }
  });

  test("keeps the task, the places of answers and of what they follow from, and gives the tokens of the renamed story", () => {
    const want = encodeStory(renamed(stories[7]!, drawRenaming(8, 5, 2, 7)));
    expect(renamedSource(source, 5).story(2, 7)).toEqual(want);
    expect(want.facts).not.toHaveLength(0);
  });

  test("keeps a story whose new answer is no word", () => {
    const without = catbabiVocabulary.words.map((word) => (word === "milk" ? "water" : word));
    const small = Object.create(catbabiVocabulary, {
      id: { value: (word: string) => (without.includes(word) ? without.indexOf(word) : undefined) },
    }) as typeof catbabiVocabulary;
    const kept = renamedSource(source, 5, { vocabulary: small });
    const milk = stories.findIndex((story) => wordsOf(story).includes("milk"));
    expect(kept.story(0, milk)).toEqual(source.story(0, milk));
  });
});
