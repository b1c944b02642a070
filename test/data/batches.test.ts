/**
 * The stream batcher against a slow, literal version of the authors' rule, and against what any batcher must
 * hold: each story once per epoch, whole and in order, in one row; and a resumed stream equal to an unbroken one.
 */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Batch, type BatcherState, epochBatches, StreamBatcher } from "../../src/data/batches.ts";
import {
  type EncodedStory,
  endlessSource,
  generatedSource,
  mixedSource,
  preparedSource,
  type StorySet,
  type StorySource,
} from "../../src/data/streams.ts";
import { catbabiVocabulary, eosId, padId } from "../../src/data/vocabulary.ts";

const questionMark = catbabiVocabulary.id("?")!;

/** A story of `length` tokens whose tokens say which story it is; every fifth pair is a question and answer. */
function madeStory(index: number, length: number): EncodedStory {
  const tokens = new Uint16Array(length);
  const answers = new Uint8Array(length);
  for (let i = 0; i < length; i++) {
    tokens[i] = 1000 + index;
    if (i % 5 === 4) {
      tokens[i - 1] = questionMark;
      answers[i] = 1;
    }
  }
  return { tokens, answers, task: (index % 20) + 1 };
}

function storySet(name: string, lengths: readonly number[]): StorySet {
  const stories = lengths.map((length, index) => madeStory(index, length));
  return { name, stories: stories.length, story: (index) => stories[index]! };
}

const lengths = fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 40 });
const settings = fc.record({ batch: fc.integer({ min: 1, max: 7 }), window: fc.integer({ min: 1, max: 9 }) });

/** Column `b` of a time-major array. */
function column(values: Int32Array | Uint8Array, b: number, batch: number): number[] {
  return Array.from(values).filter((_, i) => i % batch === b);
}

/** The rule as the released code has it: lists of tokens, rebuilt at every step. */
function* literalEpoch(stories: readonly EncodedStory[], batch: number, window: number) {
  const x: number[][] = Array.from({ length: batch }, () => []);
  const y: number[][] = Array.from({ length: batch }, () => []);
  const waiting = [...stories];
  for (;;) {
    while (waiting.length > 0 && x.some((buffer) => buffer.length < 4 * window)) {
      const sizes = x.map((buffer) => buffer.length);
      const shortest = sizes.indexOf(Math.min(...sizes));
      const story = waiting.shift()!;
      x[shortest]!.push(eosId, ...story.tokens);
      y[shortest]!.push(...story.tokens, eosId);
    }
    if (x.every((buffer) => buffer.length === 0)) return;
    const cut = (buffer: number[]) => {
      const front = buffer.splice(0, window);
      return [...front, ...Array<number>(window - front.length).fill(padId)];
    };
    yield { tokens: x.map(cut), targets: y.map(cut) };
  }
}

describe("one epoch", () => {
  test("is what the literal rule gives", () => {
    fc.assert(
      fc.property(lengths, settings, fc.integer(), (sizes, { batch, window }, seed) => {
        const source = preparedSource(storySet("train", sizes), seed);
        const stories = sizes.map((_, position) => source.story(0, position));
        const got = [...epochBatches(source, { batch, window })];
        const want = [...literalEpoch(stories, batch, window)];
        expect(got.length).toBe(want.length);
        got.forEach((cut, i) => {
          for (let b = 0; b < batch; b++) {
            expect(column(cut.tokens, b, batch)).toEqual(want[i]!.tokens[b]);
            expect(column(cut.targets, b, batch)).toEqual(want[i]!.targets[b]);
          }
        });
      }),
    );
  });

  test("has every story once, whole, in one row, with its flags and tasks", () => {
    fc.assert(
      fc.property(lengths, settings, (sizes, { batch, window }) => {
        const set = storySet("train", sizes);
        const cuts = [...epochBatches(preparedSource(set, 7), { batch, window })];
        const seen: string[] = [];
        for (let b = 0; b < batch; b++) {
          const row = (pick: (cut: Batch) => Int32Array | Uint8Array) =>
            cuts.flatMap((cut) => column(pick(cut), b, batch));
          const tokens = row((cut) => cut.tokens);
          const targets = row((cut) => cut.targets);
          const questions = row((cut) => cut.questions);
          const tasks = row((cut) => cut.tasks);
          const dry = tokens.includes(padId) ? tokens.indexOf(padId) : tokens.length;
          // Once a row is dry it stays so, and a padded position has no target, question or task.
          for (let i = dry; i < tokens.length; i++)
            expect([tokens[i], targets[i], questions[i], tasks[i]]).toEqual([padId, padId, 0, 0]);
          for (let i = 0; i < dry; i++) {
            expect(questions[i]).toBe(tokens[i] === questionMark && targets[i] !== eosId ? 1 : 0);
            // The stream has no seam: a target is the next input.
            if (i + 1 < dry) expect(targets[i]).toBe(tokens[i + 1]);
            if (tokens[i] !== eosId) continue;
            const end = targets.indexOf(eosId, i);
            seen.push(JSON.stringify([targets.slice(i, end), tasks[i]]));
            expect(new Set(tasks.slice(i, end + 1)).size).toBe(1);
          }
        }
        const want = sizes.map((_, i) => JSON.stringify([[...set.story(i).tokens], set.story(i).task]));
        expect(seen.sort()).toEqual(want.sort());
        const padding = cuts.reduce((sum, cut) => sum + cut.padded, 0);
        expect(padding).toBe(
          cuts.reduce((sum, cut) => sum + cut.tokens.filter((id) => id === padId).length, 0),
        );
      }),
    );
  });
});

describe("epochs", () => {
  const set = storySet("train", [9, 3, 14, 7, 22, 5, 8, 30]);
  const orderOf = (source: StorySource, epoch: number) =>
    Array.from({ length: source.storiesPerEpoch }, (_, position) => source.story(epoch, position).tokens[0]);

  test("follow each other, train in a new order each time", () => {
    const batcher = new StreamBatcher(preparedSource(set, 3), { batch: 2, window: 4 });
    const epochs = Array.from({ length: 60 }, () => batcher.next().epoch);
    expect(epochs).toEqual([...epochs].sort((a, b) => a - b));
    expect(new Set(epochs).size).toBeGreaterThan(2);
    const source = preparedSource(set, 3);
    expect(orderOf(source, 1)).not.toEqual(orderOf(source, 0));
    expect(orderOf(source, 0)).toEqual(orderOf(preparedSource(set, 3), 0));
    expect(orderOf(source, 0)).not.toEqual(orderOf(preparedSource(set, 4), 0));
  });

  test("keep one mixed order for valid and test, whatever the seed", () => {
    for (const name of ["valid", "test"]) {
      const fixed = orderOf(preparedSource({ ...set, name }, 1), 0);
      expect(orderOf(preparedSource({ ...set, name }, 2), 5)).toEqual(fixed);
      expect(fixed).not.toEqual(Array.from({ length: set.stories }, (_, i) => set.story(i).tokens[0]));
    }
  });

  test("an empty split is named", () => {
    expect(() => preparedSource(storySet("train", []), 1)).toThrow("the train split has no stories");
  });
});

describe("resuming", () => {
  const same = (a: Batch, b: Batch) => expect(a).toEqual(b);

  test("at any step gives the batches of an unbroken stream", () => {
    fc.assert(
      fc.property(
        lengths,
        settings,
        fc.nat({ max: 40 }),
        fc.nat({ max: 1000 }),
        (sizes, size, stop, seed) => {
          const make = () => preparedSource(storySet("train", sizes), seed);
          const unbroken = new StreamBatcher(make(), size);
          for (let i = 0; i < stop; i++) unbroken.next();
          const saved = JSON.parse(JSON.stringify(unbroken.state())) as BatcherState;
          const resumed = StreamBatcher.resume(make(), size, saved);
          expect(resumed.state()).toEqual(saved);
          for (let i = 0; i < 25; i++) same(resumed.next(), unbroken.next());
        },
      ),
    );
  });

  const source = () => preparedSource(storySet("train", [20, 30, 40]), 1);
  const size = { batch: 2, window: 5 };
  const saved = () => {
    const batcher = new StreamBatcher(source(), size);
    batcher.next();
    return batcher.state();
  };

  test.each<[string, (state: BatcherState) => object]>([
    ["batch was 3", (state) => ({ ...state, batch: 3 })],
    ["window was 6", (state) => ({ ...state, window: 6 })],
    ["storiesPerEpoch was endless, now it is 3", (state) => ({ ...state, storiesPerEpoch: null })],
    ["position 4", (state) => ({ ...state, position: 4 })],
    ["epoch -1", (state) => ({ ...state, epoch: -1 })],
    ["it has 1 rows", (state) => ({ ...state, rows: state.rows.slice(1) })],
    ["row 1 holds a story that was not taken", (state) => ({ ...state, rows: [state.rows[0], [0, 3]] })],
    ["row 0 begins at token 99", (state) => ({ ...state, rows: [[99, 0], [0]] })],
  ])("refuses a state that does not fit: %s", (message, damage) => {
    const state = damage(saved()) as BatcherState;
    expect(() => StreamBatcher.resume(source(), size, state)).toThrow(message);
  });
});

describe("endless and mixed sources", () => {
  const generate = (position: number) => ({
    task: 1,
    lines: [
      { kind: "statement", id: 1, words: ["mary", "moved", "to", "the", "garden"] },
      { kind: "question", id: 2, words: ["where", "is", "mary"], answer: "garden", supports: [1] },
    ] as const,
    position,
  });

  test("an endless source never ends an epoch or pads", () => {
    const batcher = new StreamBatcher(endlessSource(generate), { batch: 3, window: 7 });
    for (let i = 0; i < 200; i++) {
      const { epoch, padded, tokens } = batcher.next();
      expect([epoch, padded, tokens.includes(padId)]).toEqual([0, 0, false]);
    }
    expect(() => [...epochBatches(endlessSource(generate), { batch: 1, window: 2 })]).toThrow("endless");
  });

  test("a mixed epoch has every real story once and never repeats an endless one", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 300 }),
        fc.double({ min: 0, max: 0.99, noNaN: true }),
        (n, fraction) => {
          const record = (name: string, count: number, log: string[]): StorySource => ({
            storiesPerEpoch: count,
            story: (epoch, position) => {
              log.push(`${name} ${epoch} ${position}`);
              return madeStory(0, 3);
            },
          });
          const log: string[] = [];
          const mixed = mixedSource(record("real", n, log), record("new", Infinity, log), fraction);
          for (let epoch = 0; epoch < 2; epoch++)
            for (let position = 0; position < mixed.storiesPerEpoch; position++) mixed.story(epoch, position);
          const real = log.filter((entry) => entry.startsWith("real"));
          const fresh = log.filter((entry) => entry.startsWith("new"));
          const expected = [0, 1].flatMap((epoch) =>
            Array.from({ length: n }, (_, i) => `real ${epoch} ${i}`),
          );
          expect(real).toEqual(expected);
          expect(fresh).toEqual(fresh.map((_, i) => `new 0 ${i}`));
          expect(Math.abs(fresh.length / log.length - fraction)).toBeLessThanOrEqual(2 / log.length);
        },
      ),
      { numRuns: 50 },
    );
  });

  test("a fraction of 1 is refused", () => {
    const source = endlessSource(generate);
    expect(() => mixedSource(source, source, 1)).toThrow("below 1");
  });
});

test("facts are the statements that the generator names, where the window has them whole", () => {
  const seed = 3;
  const tasks = [2, 3, 16, 19];
  const source = generatedSource(seed, tasks);
  const settings = { batch: 3, window: 40 };
  const batcher = new StreamBatcher(source, settings);
  let [told, known] = [0, 0];
  for (let step = 0; step < 60; step++) {
    const { tokens, questions, facts = new Int32Array(0), batch, window } = batcher.next();
    known += questions.reduce((sum, is) => sum + is, 0);
    for (let i = 0; i < facts.length; i += 3) {
      const [at, from, to] = facts.subarray(i, i + 3) as unknown as [number, number, number];
      expect(questions[at]).toBe(1);
      expect(from).toBeGreaterThanOrEqual(0);
      expect(to).toBeLessThanOrEqual(Math.floor(at / batch));
      expect(at).toBeLessThan(window * batch);
      const words = column(tokens, at % batch, batch).map((id) => catbabiVocabulary.word(id));
      const statement = words.slice(from, to);
      expect(statement.indexOf(".")).toBe(statement.length - 1);
      // It begins where the sentence, answer or story before it ends.
      const isAnswer = words[from - 2] === "?" || from === 1;
      expect(from === 0 || isAnswer || [".", "<eos>"].includes(words[from - 1]!)).toBe(true);
      told++;
    }
  }
  expect(told).toBeGreaterThan(known / 2);
});

test("facts of induction name what the answer follows from: kind, another of that kind, its colour", () => {
  const { tokens, questions, facts, batch } = new StreamBatcher(generatedSource(1, [16]), {
    batch: 2,
    window: 200,
  }).next();
  const sentences = new Map<number, string[]>();
  for (let i = 0; i < facts!.length; i += 3) {
    const [at, from, to] = facts!.subarray(i, i + 3) as unknown as [number, number, number];
    const words = column(tokens, at % batch, batch).map((id) => catbabiVocabulary.word(id));
    sentences.set(at, [...(sentences.get(at) ?? []), words.slice(from, to).join(" ")]);
  }
  expect(sentences.size).toBe(questions.reduce((sum, is) => sum + is, 0));
  for (const [at, said] of sentences) {
    const words = column(tokens, at % batch, batch).map((id) => catbabiVocabulary.word(id));
    const asked = words[Math.floor(at / batch) - 1]!;
    const answer = words[Math.floor(at / batch) + 1];
    expect(said.some((sentence) => sentence.startsWith(`${asked} is a `))).toBe(true);
    if (answer) expect(said.some((sentence) => sentence.endsWith(` ${answer} .`))).toBe(true);
    expect(said).toHaveLength(3);
  }
});
