/**
 * Harder stories: at every difficulty the reader gives every answer and no word is new; ordinary ones are those that were
 * always generated; and each number does what it says.
 */
import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { formatStories, type Line, type Story, storyTokens } from "../../src/babi/format.ts";
import {
  type Difficulty,
  difficultyLimits,
  drawDifficulty,
  ordinary,
} from "../../src/babi/generator/difficulty.ts";
import { generateStories, generateStory, tasks } from "../../src/babi/generator/generate.ts";
import { solveStories } from "../../src/babi/reader/solve.ts";
import { vocabulary } from "./vocabulary.ts";

const upTo = (name: keyof Difficulty, most = difficultyLimits[name][1]) =>
  fc.integer({ min: difficultyLimits[name][0], max: most });
const difficulties: fc.Arbitrary<Difficulty> = fc
  .record({
    distractors: upTo("distractors", 60),
    lookback: upTo("lookback", 60),
    objects: upTo("objects"),
    carried: upTo("carried"),
    rooms: upTo("rooms"),
    path: upTo("path"),
    chain: upTo("chain"),
    stories: upTo("stories"),
    animals: upTo("animals"),
    orders: upTo("orders"),
    distance: upTo("distance", 60),
  })
  .map((drawn) => ({
    ...drawn,
    carried: Math.min(drawn.carried, drawn.objects),
    path: Math.min(drawn.path, drawn.rooms),
  }));

const questions = (story: Story) => story.lines.filter((line) => line.kind === "question");
const statements = (story: Story) => story.lines.filter((line) => line.kind === "statement");
const generated = (task: number, difficulty: Partial<Difficulty>, count = 40): Story[] =>
  generateStories({ task, seed: 9, count, difficulty: { ...ordinary, ...difficulty } });

test("ordinary stories are, byte for byte, those of the version before there was difficulty", () => {
  const hash = createHash("sha256");
  for (const task of tasks) hash.update(formatStories(generateStories({ task, seed: 5, count: 200 })));
  expect(hash.digest("hex")).toBe("e2993b6ae59e5884fceea61ba56d0508c6620ad39d8b214bfaf447f195373a34");
});

describe.each(tasks)("task %i", (task) => {
  test("at any difficulty the reader gives every answer, from the facts named, and no word is new", () => {
    fc.assert(
      fc.property(fc.nat(), fc.nat(), difficulties, (seed, index, difficulty) => {
        const story = generateStory({ task, seed, index, difficulty });
        const { exceptions, questions: asked } = solveStories([story], { strict: true });
        expect(exceptions).toEqual([]);
        expect(asked).toBeGreaterThan(0);
        expect(storyTokens(story).tokens.filter((token) => !vocabulary.has(token))).toEqual([]);
        story.lines.forEach((line, i) => {
          expect(line.id).toBe(i + 1);
          for (const id of line.kind === "question" ? line.supports : []) {
            expect(id).toBeLessThan(line.id);
            expect(story.lines[id - 1]!.kind).toBe("statement");
          }
        });
      }),
      { numRuns: 60 },
    );
  });
});

describe("each number does what it says", () => {
  test.each([1, 2, 4, 9, 13, 16, 20])("distractors: as many sentences more, task %i", (task) => {
    const plain = generated(task, {});
    generated(task, { distractors: 25 }).forEach((story, i) => {
      expect(story.lines).toHaveLength(plain[i]!.lines.length + 25);
      const words = ({ words }: Line): string => words.join(" ");
      const added = new Set(plain[i]!.lines.map(words));
      // The story's own lines are all there, in their order.
      expect(story.lines.filter((line) => added.has(words(line))).map(words)).toEqual(
        plain[i]!.lines.map(words),
      );
    });
  });

  test("distance: that many sentences between a fact and its question, and no distractors", () => {
    for (const story of generated(1, { distance: 80, distractors: 40 })) {
      expect(statements(story).length).toBeLessThanOrEqual(83);
      const asked = questions(story);
      expect(asked.length).toBeLessThanOrEqual(4);
      for (const { supports } of asked)
        expect(statements(story).length - supports[0]!).toBeGreaterThanOrEqual(80);
    }
  });

  test("lookback: questions reach further back, or not at all", () => {
    const reach = (lookback: number): number =>
      Math.max(
        ...generated(6, { lookback }).flatMap((story) =>
          questions(story).map(({ id, supports }) => id - supports[0]!),
        ),
      );
    // A question after two statements; with 1, only about the last of them.
    expect(reach(1)).toBeLessThan(reach(5));
    expect(reach(5)).toBeLessThan(reach(30));
  });

  test("objects and carried: five things, all in the hands of one", () => {
    for (const story of generated(2, { objects: 5, carried: 5 })) {
      const text = statements(story)
        .slice(0, 10)
        .map(({ words }) => words.join(" "));
      const takers = new Set(
        text.filter((words) => / the \w+ there$/.test(words)).map((words) => words.split(" ")[0]),
      );
      expect(takers.size).toBe(1);
      for (const thing of ["apple", "football", "milk", "pajamas", "chocolate"]) {
        expect(text.join(" ")).toContain(thing);
      }
    }
    const counts = generated(7, { carried: 3 }).flatMap((story) =>
      questions(story).map(({ answer }) => answer),
    );
    expect(counts.filter((answer) => answer === "three").length).toBeGreaterThan(10);
  });

  test("rooms and path: a map of as many rooms, and each leg of the way asked for", () => {
    for (const [rooms, path] of [
      [3, 3],
      [9, 3],
      [8, 8],
      [9, 6],
    ] as const) {
      for (const story of generated(19, { rooms, path })) {
        const named = statements(story).flatMap(({ words }) => [words[1], words.at(-1)]);
        expect(new Set(named).size).toBe(rooms);
        expect(statements(story)).toHaveLength(rooms - 1);
        expect(questions(story)).toHaveLength(path - 2);
      }
    }
  });

  test.each([17, 18])("chain: an answer takes as many statements, and both answers come, task %i", (task) => {
    for (const chain of [1, 2, 3, 4, 5]) {
      const asked = generated(task, { chain }).flatMap(questions);
      for (const { supports } of asked) expect(supports).toHaveLength(chain);
      const yes = asked.filter(({ answer }) => answer === "yes").length / asked.length;
      expect(Math.abs(yes - 0.5)).toBeLessThan(0.15);
    }
  });

  test("orders: with 1 all statements name two shapes or rooms as the question does, with 2 in both orders", () => {
    // "the A is above the B": B, then A; "the A is north of the B": from B to A.
    const pairs = (story: Story): string[][] =>
      statements(story).map(({ words }) =>
        words
          .join(" ")
          .match(/^the (.*) is .* the (.*)$/)!
          .slice(1),
      );
    const leadsTo = (story: Story, from: string, to: string): boolean => {
      let place = from;
      for (const _ of pairs(story)) {
        if (place === to) return true;
        place = pairs(story).find(([, reference]) => reference === place)?.[0] ?? place;
      }
      return place === to;
    };
    const inOrder = (story: Story): boolean[] =>
      questions(story).map(({ words }) => {
        const [, first, second] = words
          .join(" ")
          .match(/the (.*?) (?:to |above |below |left |right ).*the (.*)$/)!;
        return words[0] === "how" ? leadsTo(story, first!, second!) : leadsTo(story, second!, first!);
      });
    for (const [task, difficulty] of [
      [17, { chain: 1 }],
      [17, { chain: 2 }],
      [17, { chain: 4 }],
      [19, { rooms: 3 }],
    ] as const) {
      const asked = (orders: number) => new Set(generated(task, { ...difficulty, orders }).flatMap(inOrder));
      expect(asked(1)).toEqual(new Set([true]));
      expect(asked(2)).toEqual(new Set([true, false]));
    }
  });

  test("animals: as many kinds are stated, one colour less", () => {
    for (const animals of [3, 4, 5]) {
      for (const story of generated(16, { animals })) {
        const names = statements(story).map(({ words }) => words[0]!);
        expect(new Set(names).size).toBe(animals);
        expect(names).toHaveLength(2 * animals - 1);
      }
    }
  });

  test("stories: several worlds in one story, each once", () => {
    const asked = generated(15, { stories: 4 }).map(
      (story) => new Set(questions(story).map(({ words }) => words[0])),
    );
    expect(Math.max(...asked.map(({ size }) => size))).toBeGreaterThan(1);
    const lengths = generated(15, { stories: 4 }).map(({ lines }) => lines.length);
    expect(Math.min(...lengths)).toBeGreaterThan(12 + 3 * 3);
  });
});

describe("drawing a difficulty", () => {
  const ranges = {
    ordinary: 0.5,
    distractors: [0, 160],
    lookback: [5, 40],
    objects: [3, 5],
    carried: [0, 5],
    rooms: [4, 9],
    path: [3, 9],
    chain: [1, 5],
    stories: [1, 3],
    animals: [3, 5],
    orders: [1, 2],
    distance: [0, 160],
  } as const;
  const drawn = Array.from({ length: 4000 }, (_, index) => drawDifficulty(ranges, 3, index));
  const hard = drawn.filter((difficulty) => difficulty !== ordinary);

  test("leaves the given fraction ordinary, and reaches both ends of every range", () => {
    // 4,000 draws at 0.5 have a standard deviation of 0.008.
    expect(Math.abs(hard.length / drawn.length - 0.5)).toBeLessThan(0.04);
    for (const name of Object.keys(ordinary) as (keyof Difficulty)[]) {
      const values = hard.map((difficulty) => difficulty[name]);
      expect([Math.min(...values), Math.max(...values)], name).toEqual(ranges[name]);
    }
    for (const { carried, objects, path, rooms } of hard) {
      expect(carried).toBeLessThanOrEqual(objects);
      expect(path).toBeLessThanOrEqual(rooms);
    }
  });

  test("has as many distractors from 1 to 12 as from 13 to 160, about", () => {
    const count = (from: number, to: number): number =>
      hard.filter(({ distractors }) => distractors >= from && distractors <= to).length / hard.length;
    expect(count(0, 11)).toBeGreaterThan(0.4);
    expect(count(12, 160)).toBeGreaterThan(0.4);
  });

  test("depends on seed and number alone", () => {
    expect(drawDifficulty(ranges, 3, 77)).toEqual(drawn[77]);
    expect(drawDifficulty({ ...ranges, ordinary: 1 }, 3, 77)).toBe(ordinary);
  });
});
