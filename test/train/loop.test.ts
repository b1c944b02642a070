/** The loop with a task that is only numbers: what it records, saves and when it ends. */
import { expect, test } from "vitest";
import {
  DivergedError,
  freshProgress,
  type LoopProgress,
  type LoopRun,
  type LoopSettings,
  type LoopTask,
  train,
} from "../../src/train/loop.ts";

const settings: LoopSettings = {
  steps: 10,
  logEvery: 4,
  validEvery: 5,
  saveEvery: 3,
  patience: 0,
  rate: (step) => 1 / (step + 1),
};

function fakes(losses: (step: number) => number, valid: (n: number) => number) {
  const events: string[] = [];
  const saved = new Map<number, LoopProgress>();
  let validations = 0;
  const task: LoopTask = {
    step: async (step) => ({ loss: losses(step), gradNorm: 1, correct: 1, questions: 2, tokens: 10 }),
    validate: async (signal) => {
      if (signal.aborted) return undefined;
      const loss = valid(validations++);
      return { loss, values: { loss } };
    },
  };
  const run: LoopRun = {
    log: ({ step, split, values }) => void events.push(`${split} ${step} ${values.loss}`),
    save: async (step, { best, progress }) => {
      events.push(`save ${step}${best ? " best" : ""}`);
      saved.set(step, structuredClone(progress));
    },
    heartbeat: async () => {},
  };
  return { events, saved, task, run };
}

const never = new AbortController().signal;
const fresh = { firstStep: 0, progress: freshProgress };

test("logs means, validates, saves, and marks the best", async () => {
  const { events, task, run } = fakes(
    (step) => step,
    (n) => [3, 4][n]!,
  );
  const end = await train(task, run, settings, fresh, never);
  expect(events).toEqual([
    "save 3",
    "train 4 1.5",
    "valid 5 3",
    "save 5 best",
    "save 6",
    "train 8 5.5",
    "save 9",
    "train 10 8.5",
    "valid 10 4",
    "save 10",
  ]);
  expect(end).toMatchObject({
    step: 10,
    reason: "finished",
    progress: { bestLoss: 3, bestStep: 5, bestAccuracy: null, waited: 1 },
  });
});

test("patience ends it", async () => {
  const { task, run } = fakes(
    () => 1,
    (n) => n,
  );
  const end = await train(task, run, { ...settings, steps: 100, patience: 2 }, fresh, never);
  expect(end).toMatchObject({ step: 15, reason: "patience" });
});

test("a number that is not finite ends it, and nothing is saved after it", async () => {
  const { events, task, run } = fakes(
    () => 1,
    () => 1,
  );
  const failing: LoopTask = {
    ...task,
    step: async (step) => ({
      ...(await task.step(step, 1)),
      ...(step === 7 ? { loss: Number.NaN, refused: "lstm.Wh" } : {}),
    }),
  };
  const failure = await train(failing, run, settings, fresh, never).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(DivergedError);
  expect(String(failure)).toMatch(/step 7: lstm\.Wh is not finite[\s\S]*after step 6/);
  expect(events.at(-1)).toBe("save 6");
});

test("interrupted anywhere and resumed, it records what it would have recorded", async () => {
  const whole = fakes(
    (step) => step * 0.5,
    (n) => 9 - n,
  );
  await train(whole.task, whole.run, settings, fresh, never);
  const records = (events: readonly string[]): string[] =>
    events.filter((event) => !event.startsWith("save"));
  for (let stop = 0; stop < 10; stop++) {
    for (const during of ["step", "validation"] as const) {
      const part = fakes(
        (step) => step * 0.5,
        (n) => 9 - n,
      );
      const controller = new AbortController();
      const task: LoopTask = {
        step: async (step, rate) => {
          if (during === "step" && step === stop) controller.abort();
          return part.task.step(step, rate);
        },
        validate: async (signal) => {
          if (during === "validation" && stop < 2) controller.abort();
          return part.task.validate(signal);
        },
      };
      const end = await train(task, part.run, settings, fresh, controller.signal);
      if (end.reason === "interrupted") {
        const progress = part.saved.get(end.step) ?? freshProgress;
        await train(part.task, part.run, settings, { firstStep: end.step, progress }, never);
      }
      expect(records(part.events)).toEqual(records(whole.events));
    }
  }
});
