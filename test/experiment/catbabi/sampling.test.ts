/** Generated stories whose tasks follow the validation error: the rule, the stream, and a run that is resumed. */
import { describe, expect, test } from "vitest";
import { trainingStories } from "../../../src/babi/generator/generate.ts";
import {
  type EncodedStory,
  type GeneratedOptions,
  generatedSource,
  generatedStories,
  mixedSource,
} from "../../../src/data/streams.ts";
import { sharesByError } from "../../../src/experiment/catbabi/sampling.ts";
import { openCatbabi } from "../../../src/experiment/catbabi/session.ts";
import {
  type CatbabiSettings,
  catbabiSchema,
  catbabiSystem,
  catbabiTask,
  releasedTraining,
} from "../../../src/experiment/catbabi/settings.ts";
import type { Session } from "../../../src/experiment/kind.ts";
import { advance, expectResumable, openTiny, prepareTiny, tinySettings } from "./tinySession.ts";

const perTask = (accuracies: Record<number, number>) =>
  Object.fromEntries(
    Object.entries(accuracies).map(([task, accuracy]) => [
      task,
      { accuracy, questions: 1000, correct: accuracy * 1000 },
    ]),
  );
const sum = (values: Iterable<number>): number => [...values].reduce((total, value) => total + value, 0);

describe("shares by error", () => {
  test("are the floor in equal parts and the rest by error, counted in questions", () => {
    // Tasks 16 and 19 have one question a story and as many stories, task 1 five questions a story.
    const shares = sharesByError({ floor: 0.3 }, [1, 16, 19], perTask({ 1: 1, 16: 0.7, 19: 0.9 }));
    const parts = { 1: 0.1, 16: 0.1 + 0.7 * 0.75, 19: 0.1 + 0.7 * 0.25 };
    const weights = Object.entries(parts).map(([task, part]) => part * trainingStories[Number(task)]!);
    Object.values(shares).forEach((share, i) => {
      expect(share).toBeCloseTo(weights[i]! / sum(weights), 12);
    });
    expect(sum(Object.values(shares))).toBeCloseTo(1, 12);
  });

  test("are the training set's with equal errors, and without any", () => {
    const all = sum(Object.values(trainingStories));
    for (const accuracy of [0.2, 1]) {
      const accuracies = Object.fromEntries(Object.keys(trainingStories).map((task) => [task, accuracy]));
      const tasks = Object.keys(trainingStories).map(Number);
      const shares = sharesByError({ floor: 0.25 }, tasks, perTask(accuracies));
      for (const task of tasks) expect(shares[task]).toBeCloseTo(trainingStories[task]! / all, 12);
    }
  });

  test("take the mean error for a task that validation does not ask about", () => {
    const shares = sharesByError({ floor: 0 }, [4, 16, 19], perTask({ 16: 0.8, 19: 0.6 }));
    expect(shares[4]).toBeCloseTo(1 / 3, 12);
  });
});

describe("a stream in changing shares", () => {
  const changes = [
    { from: 100, shares: { 1: 0.25, 19: 0.75 } },
    { from: 2100, shares: { 16: 1 } },
  ];
  const source = generatedSource(5, undefined, { changes });
  const tasksFrom = (first: number, count: number): number[] =>
    Array.from({ length: count }, (_, i) => source.story(0, first + i).task);

  test("has the former stories before a change, and the shares after it", () => {
    const unchanged = generatedSource(5);
    for (const at of [0, 50, 99]) expect(source.story(0, at)).toEqual(unchanged.story(0, at));
    const between = tasksFrom(100, 2000);
    expect(new Set(between)).toEqual(new Set([1, 19]));
    // 2,000 draws at 0.75 have a standard deviation of 0.0097.
    expect(Math.abs(between.filter((task) => task === 19).length / 2000 - 0.75)).toBeLessThan(0.04);
    expect(new Set(tasksFrom(2100, 50))).toEqual(new Set([16]));
  });

  test("numbers the generated stories of a mixed stream through its epochs", () => {
    const numbers: number[] = [];
    const real = { storiesPerEpoch: 7, story: () => source.story(0, 0) };
    const generated = {
      storiesPerEpoch: Number.POSITIVE_INFINITY,
      story(_: number, position: number) {
        numbers.push(position);
        return source.story(0, 0);
      },
    };
    const { storiesPerEpoch, story } = mixedSource(real, generated, 0.6);
    for (const epoch of [0, 1, 2]) {
      for (let position = 0; position < storiesPerEpoch; position++) {
        expect(generatedStories({ storiesPerEpoch, epoch, position }, 0.6)).toBe(numbers.length);
        story(epoch, position);
      }
    }
    expect(numbers).toEqual(numbers.map((_, i) => i));
  });
});

const data = await prepareTiny();

describe.each(["generated", "mixed"] as const)("a run on %s stories", (source) => {
  test("logs its shares, and resumed between two validations equals one that never stopped", async () => {
    const open = (): Promise<Session> => openTiny(tinySettings({ source, data }));
    const log = await expectResumable(open, { stops: [4], steps: 8 });
    const shares = Object.entries(log[3] as Record<string, number>).filter(([name]) =>
      name.startsWith("share"),
    );
    expect(shares).toHaveLength(20);
    expect(sum(shares.map(([, share]) => share))).toBeCloseTo(1, 9);
  });
});

test("shares by training answers go by the answers since the last validation, and a run with them is resumable", async () => {
  const sampling = { name: "byError", of: "training", floor: 0.1 } as const;
  const open = (): Promise<Session> => openTiny(tinySettings({ source: "generated", sampling, data }));
  const log = (await expectResumable(open, { stops: [2, 4], steps: 8 })) as Record<string, unknown>[];
  for (const at of [3, 7]) {
    const valid = log[at] as Record<string, number>;
    const trained = Object.entries(valid).filter(([name]) => name.startsWith("train"));
    const perTask = Object.fromEntries(
      trained.map(([name, accuracy]) => [name.slice(5), { correct: 0, questions: 1, accuracy }]),
    );
    const shares = sharesByError(sampling, Object.keys(trainingStories).map(Number), perTask);
    for (const [task, share] of Object.entries(shares)) expect(valid[`share${task}`]).toBeCloseTo(share, 12);
  }
  const session = await open();
  const trained = (): Record<string, { questions: number }> =>
    (session.snapshot().state as { trained: Record<string, { questions: number }> }).trained;
  await advance(session, 0, 4, 4);
  const counted = sum(Object.values(trained()).map(({ questions }) => questions));
  expect(counted).toBe((log[4] as { means: { accuracy: [number, number] } }).means.accuracy[1]);
  await session.evaluate(new AbortController().signal);
  expect(trained()).toEqual({});
  await session.release();
});

test("a run generates other stories once a validation has decided the shares", async () => {
  const losses = async (sampling: CatbabiSettings["task"]["sampling"]): Promise<unknown[]> => {
    const session = await openTiny(tinySettings({ source: "generated", sampling, data }));
    // Beyond the buffers, which hold stories drawn before the validation.
    const log = await advance(session, 0, 30, 3);
    await session.release();
    return log;
  };
  const [byError, fixed] = [
    await losses({ name: "byError", of: "validation", floor: 0.1 }),
    await losses({ name: "fixed" }),
  ];
  expect(byError.slice(0, 3)).toEqual(fixed.slice(0, 3));
  expect(byError.slice(4)).not.toEqual(fixed.slice(4));
});

describe("harder stories once validation has come to an accuracy", () => {
  const { ordinary: _, ...ranges } = catbabiSchema.shape.task.shape.difficulty.parse({});
  const hard = { ...ranges, ordinary: 0, distractors: [20, 20] as [number, number] };

  test("a stream has the former stories before the change and harder ones after it", () => {
    const stories = (options: GeneratedOptions, from: number): EncodedStory[] => {
      const source = generatedSource(5, undefined, options);
      return Array.from({ length: 40 }, (_, i) => source.story(0, from + i));
    };
    const changes = [{ from: 40, difficulty: hard }];
    expect(stories({ changes }, 0)).toEqual(stories({}, 0));
    expect(stories({ changes }, 40)).toEqual(stories({ difficulty: hard }, 40));
    expect(stories({ changes }, 40)).not.toEqual(stories({}, 40));
  });

  test.each([{ name: "fixed" }, { name: "byError", of: "validation", floor: 0.1 }] as const)(
    "with shares $name a run goes to the last one it has come to, and is resumed to the bit",
    async (sampling) => {
      const levels = (accuracies: number[]) => accuracies.map((accuracy) => ({ accuracy, difficulty: hard }));
      const open = (harder: CatbabiSettings["task"]["harder"]): Promise<Session> =>
        openTiny(tinySettings({ source: "generated", sampling, harder, data }));
      const log = await expectResumable(() => open(levels([0, 0, 1])), { stops: [2, 4], steps: 8 });
      const reached = (entries: unknown[]): unknown[] =>
        entries.flatMap((entry) =>
          "harder" in (entry as object) ? [(entry as { harder: number }).harder] : [],
        );
      // Every accuracy is at least 0, and that of an untrained memory is not 1.
      expect(reached(log)).toEqual([2, 2]);
      const stay = await open(levels([1]));
      expect(reached(await advance(stay, 0, 8))).toEqual([0, 0]);
      await stay.release();
    },
  );

  test("not of real stories", async () => {
    const settings = tinySettings({
      source: "real",
      sampling: { name: "fixed" },
      harder: [{ accuracy: 0.5, difficulty: hard }],
      data,
    });
    await expect(openTiny(settings)).rejects.toThrow("task.harder: real stories are as hard as they are");
  });
});

test("settings of earlier runs have fixed shares, and real stories no others", async () => {
  const { sampling: _, ...task } = catbabiTask;
  const settings = { task, system: catbabiSystem, training: releasedTraining };
  expect(catbabiSchema.parse(settings).task.sampling).toEqual({ name: "fixed" });
  const byError = {
    ...catbabiTask,
    sampling: { name: "byError" as const, of: "validation" as const, floor: 0.25 },
    data,
  };
  await expect(openCatbabi({ ...catbabiSchema.parse(settings), task: byError }, { env: {} })).rejects.toThrow(
    /^task.sampling: /,
  );
});
