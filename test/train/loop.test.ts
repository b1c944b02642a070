/** The loop with a task that is only numbers: what it records, saves and when it ends. */
import { expect, test } from "vitest";
import {
  DivergedError,
  freshProgress,
  isBudgetSpent,
  type LoopProgress,
  type LoopRun,
  type LoopSettings,
  type LoopTask,
  nothingSpent,
  type SpentTime,
  train,
} from "../../src/train/loop.ts";

const settings: LoopSettings = {
  steps: 10,
  logEvery: 4,
  evalEvery: 5,
  saveEvery: 3,
  patience: 0,
  minutes: 0,
  processorMinutes: 0,
  best: { measure: "loss", better: "lower" },
  speed: "tokensPerSecond",
  unit: "step",
};

function fakes(losses: (step: number) => number, valid: (n: number) => number) {
  const events: string[] = [];
  const saved = new Map<number, LoopProgress>();
  let evaluations = 0;
  const task: LoopTask = {
    step: async (step) => ({
      // Right answers out of 2 questions at even steps, of 1 at odd ones.
      means: { loss: losses(step), accuracy: [1, step % 2 === 0 ? 2 : 1] },
      latest: { learningRate: 1 / (step + 1) },
      work: 10,
    }),
    evaluate: async (signal) => (signal.aborted ? undefined : { loss: valid(evaluations++) }),
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
const fresh = { firstStep: 0, progress: freshProgress, spent: nothingSpent };

test("logs means, evaluates, saves, and marks the best", async () => {
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
    progress: { best: 3, bestStep: 5, bestValues: { loss: 3 }, lastValues: { loss: 4 }, evalsSinceBest: 1 },
  });
});

test("pauses after an evaluation; resumed, it writes what one that never paused writes", async () => {
  const whole = fakes(
    (step) => step,
    (n) => [3, 4][n]!,
  );
  await train(whole.task, whole.run, settings, fresh, never);
  const { events, saved, task, run } = fakes(
    (step) => step,
    (n) => [3, 4][n]!,
  );
  const paused = await train(task, run, { ...settings, pauseAt: 5 }, fresh, never);
  expect([paused.reason, paused.step]).toEqual(["paused", 5]);
  const from = { ...fresh, firstStep: 5, progress: saved.get(5)! };
  expect((await train(task, run, { ...settings, pauseAt: 5 }, from, never)).reason).toBe("paused");
  expect((await train(task, run, { ...settings, pauseAt: 10 }, from, never)).reason).toBe("finished");
  expect(events).toEqual(whole.events);
});

test("evaluates at the end of every epoch where no interval is given, and at the end", async () => {
  const { events, task, run } = fakes(
    () => 1,
    (n) => 9 - n,
  );
  // Epochs are not equally long.
  const ends = new Set([2, 6]);
  const byEpoch: LoopTask = {
    ...task,
    step: async (step) => ({ ...(await task.step(step)), endOfEpoch: ends.has(step) }),
  };
  await train(byEpoch, run, { ...settings, evalEvery: 0 }, fresh, never);
  const evaluations = events.filter((event) => event.startsWith("valid"));
  expect(evaluations).toEqual(["valid 3 9", "valid 7 8", "valid 10 7"]);
  // With an interval the epochs do not matter.
  events.length = 0;
  await train(byEpoch, run, settings, fresh, never);
  expect(events.filter((event) => event.startsWith("valid")).map((event) => event.split(" ")[1])).toEqual([
    "5",
    "10",
  ]);
});

test("means of a line are sums over counts; the latest value is as it was", async () => {
  const { task, run } = fakes(
    () => 1,
    () => 1,
  );
  const lines: object[] = [];
  await train(task, { ...run, log: (record) => void lines.push(record) }, settings, fresh, never);
  // Four steps: 4 right of 2 + 1 + 2 + 1 questions.
  expect(lines[0]).toMatchObject({ step: 4, values: { loss: 1, accuracy: 4 / 6, learningRate: 1 / 4 } });
});

test("the best is the highest where higher is better", async () => {
  const { task, run, saved } = fakes(
    () => 1,
    (n) => [3, 4][n]!,
  );
  const best = { measure: "loss", better: "higher" } as const;
  const end = await train(task, run, { ...settings, best }, fresh, never);
  expect(end.progress).toMatchObject({ best: 4, bestStep: 10 });
  expect(saved.get(10)).toEqual(end.progress);
});

test("patience ends it, and is not forgotten on resuming", async () => {
  const make = () =>
    fakes(
      () => 1,
      (n) => n,
    );
  const patient = { ...settings, steps: 100, patience: 2 };
  const { task, run, saved, events } = make();
  const end = await train(task, run, patient, fresh, never);
  expect(end).toMatchObject({ step: 15, reason: "patience" });
  // Killed right after its last checkpoint it trained on for another two evaluations.
  const again = await train(task, run, patient, { ...fresh, firstStep: 15, progress: saved.get(15)! }, never);
  expect(again).toMatchObject({ step: 15, reason: "patience" });
  expect(events.filter((event) => event.startsWith("valid"))).toHaveLength(3);
});

test.each(["minutes", "processorMinutes"] as const)(
  "a budget in %s ends it with a line of the log and an evaluation, whatever it was resumed",
  async (limit) => {
    const { events, saved, task, run } = fakes(
      () => 1,
      () => 1,
    );
    // Seven seconds a step by the clock, fourteen of processor time: two minutes are 18 steps, or 9.
    let steps = 0;
    const times: SpentTime[] = [];
    const clock = () => ({ seconds: 7 * steps, processorSeconds: 14 * steps });
    const slow: LoopTask = { ...task, step: (step) => task.step(step).finally(() => steps++) };
    const noted: LoopRun = {
      ...run,
      save: (step, about) => {
        times[step] = about.spent;
        return run.save(step, about);
      },
    };
    const limited = { ...settings, steps: 100, [limit]: 2 };
    const stop = new AbortController();
    const stopping: LoopTask = {
      ...slow,
      step: (step) => slow.step(step).finally(() => step === 3 && stop.abort()),
    };
    const first = await train(stopping, noted, limited, fresh, stop.signal, {}, clock);
    expect(first).toMatchObject({ step: 4, reason: "interrupted" });
    const from = { firstStep: 4, progress: saved.get(4)!, spent: times[4]! };
    steps = 1000; // another process: its clock starts elsewhere
    const end = await train(slow, noted, limited, from, never, {}, clock);
    const last = limit === "minutes" ? 18 : 9;
    expect(end).toMatchObject({ step: last, reason: "budget" });
    expect(events.slice(-3)).toEqual([`train ${last} 1`, `valid ${last} 1`, `save ${last}`]);
    expect(times[last]).toEqual({ seconds: 7 * last, processorSeconds: 14 * last });
    expect(isBudgetSpent(times[last]!, limited)).toBe(true);
    // Resumed with the same budget it makes no step.
    const over = { firstStep: last, progress: saved.get(last)!, spent: times[last]! };
    expect(await train(slow, noted, limited, over, never, {}, clock)).toMatchObject({
      step: last,
      reason: "budget",
    });
  },
);

test("a number that is not finite ends it, and nothing is saved after it", async () => {
  const { events, task, run } = fakes(
    () => 1,
    () => 1,
  );
  const failing: LoopTask = {
    ...task,
    step: async (step) => ({ ...(await task.step(step)), ...(step === 7 ? { nonFinite: "lstm.Wh" } : {}) }),
  };
  const failure = await train(failing, run, settings, fresh, never).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(DivergedError);
  expect(String(failure)).toMatch(/step 7: lstm\.Wh is not finite[\s\S]*after step 6/);
  expect(events.at(-1)).toBe("save 6");
});

/** Where a run can be interrupted: before a step, during one, or during an evaluation. */
const stops = [
  ...Array.from({ length: 10 }, (_, at) => ({ during: "step", at }) as const),
  ...[0, 1].map((at) => ({ during: "evaluation", at }) as const),
];

test.each(stops)(
  "interrupted during $during $at and resumed, it records what it would have recorded",
  async (stop) => {
    const make = () =>
      fakes(
        (step) => step * 0.5,
        (n) => 9 - n,
      );
    const whole = make();
    const wholeEnd = await train(whole.task, whole.run, settings, fresh, never);
    const records = (events: readonly string[]): string[] =>
      events.filter((event) => !event.startsWith("save"));
    const part = make();
    const controller = new AbortController();
    let evaluations = 0;
    const task: LoopTask = {
      step: async (step) => {
        if (stop.during === "step" && step === stop.at) controller.abort();
        return part.task.step(step);
      },
      evaluate: async (signal) => {
        if (stop.during === "evaluation" && evaluations++ === stop.at) controller.abort();
        return part.task.evaluate(signal);
      },
    };
    const end = await train(task, part.run, settings, fresh, controller.signal);
    expect(end.reason).toBe("interrupted");
    const progress = JSON.parse(JSON.stringify(part.saved.get(end.step))) as LoopProgress;
    const last = await train(
      part.task,
      part.run,
      settings,
      { ...fresh, firstStep: end.step, progress },
      never,
    );
    expect(records(part.events)).toEqual(records(whole.events));
    expect(last).toEqual(wholeEnd);
  },
);
