/**
 * The generator, over seeds: every story parses, every question has the answer its story implies, nothing
 * impossible happens, no word is new, and a story depends on its seed and number alone.
 */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { formatStories, parseStories, type Story, storyTokens } from "../../src/babi/format.ts";
import { ordinary } from "../../src/babi/generator/difficulty.ts";
import {
  generateStories,
  generateStory,
  streamStory,
  taskOfStory,
  tasks,
  trainingStories,
} from "../../src/babi/generator/generate.ts";
import { solveStories } from "../../src/babi/reader/solve.ts";
import { UsageError } from "../../src/errors.ts";
import { answerStory } from "./answerStory.ts";
import { vocabulary } from "./vocabulary.ts";

const seeds = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER });
const harder = { ...ordinary, objects: 5, carried: 4, distractors: 10 };
const indices = fc.integer({ min: 0, max: 2 ** 40 });

describe.each(tasks)("task %i", (task) => {
  const stories = (check: (story: Story) => void, numRuns = 60) =>
    fc.assert(
      fc.property(seeds, indices, (seed, index) => check(generateStory({ task, seed, index }))),
      { numRuns },
    );

  test("the reader, which shares only the words with the generator, gives every answer", () => {
    stories((story) => {
      const solution = solveStories([story], { strict: true });
      expect(solution.exceptions).toEqual([]);
      expect(solution.correct).toBeGreaterThan(0);
      expect(story.lines.at(-1)!.kind).toBe("question");
    });
  });

  test("written and read again it is the same story, and no word is new", () => {
    stories((story) => {
      const [again] = parseStories(formatStories([story]), { file: "generated", task });
      expect(again!.lines).toEqual(story.lines);
      expect(storyTokens(story).tokens.filter((token) => !vocabulary.has(token))).toEqual([]);
    });
  });

  test("supporting facts are earlier statements", () => {
    stories((story) => {
      for (const line of story.lines) {
        if (line.kind === "statement") continue;
        expect(line.supports.length).toBeGreaterThan(0);
        for (const id of line.supports) {
          expect(id).toBeLessThan(line.id);
          expect(story.lines[id - 1]!.kind).toBe("statement");
        }
      }
    });
  });

  test("the same arguments give the same bytes, in any order of asking", () => {
    const options = { task, seed: 7, count: 12 };
    const forwards = formatStories(generateStories(options));
    const backwards = Array.from({ length: 12 }, (_, k) => generateStory({ task, seed: 7, index: 11 - k }));
    expect(formatStories(backwards.reverse())).toBe(forwards);
    expect(formatStories(generateStories({ ...options, first: 5, count: 3 }))).toBe(
      formatStories(generateStories(options).slice(5, 8)),
    );
    expect(formatStories(generateStories({ ...options, seed: 8 }))).not.toBe(forwards);
  });
});

// Where one fact does not follow from another: what the supports say is enough for the answer.
test.each([1, 4, 6, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20])(
  "task %i: the supporting facts alone give the answer",
  (task) => {
    for (const story of generateStories({ task, seed: 3, count: 40 })) {
      for (const line of story.lines) {
        if (line.kind === "statement") continue;
        const facts = [...line.supports].sort((a, b) => a - b).map((id) => story.lines[id - 1]!);
        expect(answerStory({ task, lines: [...facts, line] })[0]!.answer).toBe(line.answer);
      }
    }
  },
);

describe.each([2, 3, 5, 6, 7, 8])("task %i", (task) => {
  test("nobody drops or gives what they lack, takes what is held or elsewhere, or goes where they are", () => {
    for (const difficulty of [ordinary, harder]) {
      for (const story of generateStories({ task, seed: 11, count: 100, difficulty })) follow(story);
    }
  });
});

/** A plain retelling of a story's text, apart from the reader's grammar and worlds. */
function follow(story: Story): void {
  const place = new Map<string, string>();
  const holder = new Map<string, string | null>();
  const lies = new Map<string, string | undefined>();
  for (const line of story.lines) {
    const text = line.words.join(" ");
    const [who] = line.words;
    const thing = /apple|football|milk|pajamas|chocolate/.exec(text)?.[0];
    const here = place.get(who!);
    if (line.kind === "question") continue;
    if (/ to the /.test(text)) {
      const to = line.words.at(-1)!;
      expect(to, text).not.toBe(here);
      place.set(who!, to);
      for (const [carried, by] of holder) if (by === who) lies.set(carried, to);
    } else if (/ (got|took|grabbed|picked up) /.test(text)) {
      expect(holder.get(thing!) ?? null, text).toBe(null);
      const where = lies.get(thing!);
      if (where !== undefined && here !== undefined) expect(where, text).toBe(here);
      holder.set(thing!, who!);
      lies.set(thing!, here ?? where);
    } else {
      expect(holder.get(thing!), text).toBe(who);
      const to = / (gave|passed|handed) /.test(text) ? line.words.at(-1)! : null;
      if (to !== null) {
        expect(to, text).not.toBe(who);
        const there = place.get(to);
        if (here !== undefined && there !== undefined) expect(there, text).toBe(here);
      }
      holder.set(thing!, to);
    }
  }
}

describe("the endless mixture", () => {
  test("is a pure function of seed and index", () => {
    fc.assert(
      fc.property(seeds, indices, (seed, index) => {
        const story = streamStory(seed, index);
        expect(story.task).toBe(taskOfStory(seed, index));
        expect(story).toEqual(generateStory({ task: story.task, seed, index }));
      }),
      { numRuns: 200 },
    );
  });

  test("draws tasks in the proportions of the training set", () => {
    const draws = 60_000;
    const counts = new Map<number, number>();
    for (let index = 0; index < draws; index++) {
      const task = taskOfStory(1, index);
      counts.set(task, (counts.get(task) ?? 0) + 1);
    }
    const total = tasks.reduce((sum, task) => sum + trainingStories[task]!, 0);
    expect(total).toBe(56_376);
    for (const task of tasks) {
      const share = trainingStories[task]! / total;
      // Five standard deviations of a binomial share.
      expect(Math.abs(counts.get(task)! / draws - share)).toBeLessThan(5 * Math.sqrt(share / draws));
    }
  });

  test("comes at 500,000 tokens a second or more on one core, tokens included", () => {
    const rates = Array.from({ length: 5 }, (_, round) => {
      const start = performance.now();
      let tokens = 0;
      for (let index = 0; index < 5000; index++)
        tokens += storyTokens(streamStory(round, index)).tokens.length;
      return tokens / ((performance.now() - start) / 1000);
    });
    // The best of five, since other work may share the core; the usual rate is some ten times this.
    expect(Math.max(...rates)).toBeGreaterThan(500_000);
  });

  test("does not repeat itself", () => {
    const texts = new Set<string>();
    for (let index = 0; index < 2000; index++)
      texts.add(formatStories([generateStory({ task: 1, seed: 1, index })]));
    expect(texts.size).toBe(2000);
  });
});

test.each([
  [{ task: 21, seed: 1, index: 0 }],
  [{ task: 1.5, seed: 1, index: 0 }],
  [{ task: 1, seed: 0.5, index: 0 }],
  [{ task: 1, seed: 1, index: -1 }],
  [{ task: 1, seed: Number.NaN, index: 0 }],
])("%o is misuse", (options) => {
  expect(() => generateStory(options)).toThrow(UsageError);
});
