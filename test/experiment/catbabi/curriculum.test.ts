/** A curriculum: when its stages end, what is read in each, and a run that is resumed in the middle of one. */
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { openStream } from "../../../src/data/sources/open.ts";
import { prepareCatbabi } from "../../../src/data/sources/prepare.ts";
import { writePrepared } from "../../../src/data/sources/prepared.ts";
import { Curriculum } from "../../../src/experiment/catbabi/curriculum.ts";
import { openCatbabi } from "../../../src/experiment/catbabi/session.ts";
import {
  type CatbabiSettings,
  catbabiSchema,
  catbabiSystem,
  catbabiTask,
  releasedTraining,
} from "../../../src/experiment/catbabi/settings.ts";
import { openStories } from "../../../src/experiment/catbabi/stories.ts";
import type { Session } from "../../../src/experiment/kind.ts";
import { emptyFolder, tinyFolder } from "../../data/support/tiny.ts";

type Stage = CatbabiSettings["task"]["curriculum"][number];

const ordinary = catbabiTask.difficulty;
const easy = { ...ordinary, ordinary: 0, animals: [3, 3] as [number, number] };

describe("a stage", () => {
  const stages = [
    { source: "generated", tasks: "16", difficulty: easy, until: 0.9, steps: 1000 },
    { source: "generated", tasks: "16", difficulty: ordinary, until: 0.5, steps: 60 },
  ] as const;
  /** Counts steps of ten answers until the stage ends. */
  const stepsUntilEnd = (curriculum: Curriculum, correctAt: (step: number) => number): number => {
    for (let step = 1; step <= 2000; step++) if (curriculum.count(correctAt(step), 10)) return step;
    return Number.POSITIVE_INFINITY;
  };

  test("ends when enough answers of 25 steps are right, and not between", () => {
    const curriculum = new Curriculum(stages);
    expect(curriculum.stage).toBe(0);
    // From step 30 on all are right: of steps 26 to 50, 21 of 25; of 51 to 75 all.
    expect(stepsUntilEnd(curriculum, (step) => (step < 30 ? 0 : 10))).toBe(75);
    expect(curriculum.stage).toBe(1);
    expect(stepsUntilEnd(curriculum, () => 5)).toBe(25);
    expect(curriculum.stage).toBeUndefined();
    expect(curriculum.count(10, 10)).toBe(false);
  });

  test("ends after its steps in any case", () => {
    const curriculum = new Curriculum(stages.slice(1));
    expect(stepsUntilEnd(curriculum, () => 4)).toBe(60);
    expect(curriculum.stage).toBeUndefined();
  });

  test("goes on from a saved place as if never stopped", () => {
    const whole = new Curriculum(stages);
    const first = new Curriculum(stages);
    for (let step = 0; step < 33; step++) for (const one of [whole, first]) one.count(9, 10);
    const second = new Curriculum(stages, first.saved());
    for (let step = 33; step < 80; step++) {
      expect(second.count(9, 10)).toBe(whole.count(9, 10));
      expect(second.saved()).toEqual(whole.saved());
    }
  });
});

const data = join(emptyFolder(), "prepared");

beforeAll(async () => {
  const choice = { variant: "10k", tasks: [1, 15], keepLastStory: true, allowMissing: true } as const;
  const { provenance, splits } = await prepareCatbabi({ ...choice, from: tinyFolder(), downloads: "unused" });
  await writePrepared(data, provenance, splits);
});

const settings = (): CatbabiSettings => ({
  task: {
    ...catbabiTask,
    source: "mixed",
    sampling: { name: "byError", floor: 0.1 },
    curriculum: [
      { source: "generated", tasks: "16", difficulty: easy, until: 1, steps: 4 },
      { source: "real", tasks: "15", difficulty: ordinary, until: 1, steps: 3 },
    ],
    data,
  },
  system: { ...catbabiSystem, embedding: 8, hidden: 8, memory: 4 },
  training: { ...releasedTraining, batch: 3, window: 12, evalBatch: 2 },
});

/** Steps `from` to `to`, with a validation after every third; what was measured. */
async function advance(session: Session, from: number, to: number): Promise<unknown[]> {
  const log: unknown[] = [];
  for (let step = from; step < to; step++) {
    const { means, latest } = await session.step(step);
    log.push({ means, latest });
    if ((step + 1) % 3 === 0) log.push(await session.evaluate(new AbortController().signal));
  }
  return log;
}

test("a run goes through the stages, says which, and then to its own stories and shares", async () => {
  const session = await openCatbabi(settings(), { env: {}, threads: 1 });
  try {
    const log = (await advance(session, 0, 9)) as { latest?: { stage?: number }; share16?: number }[];
    const stages = log.filter(({ latest }) => latest).map(({ latest }) => latest!.stage);
    expect(stages).toEqual([1, 1, 1, 1, 2, 2, 2, undefined, undefined]);
    const shares = log.filter(({ latest }) => !latest).map(({ share16 }) => share16 !== undefined);
    expect(shares).toEqual([false, false, true]);
  } finally {
    await session.release();
  }
});

test("stopped in any stage, or between two, it is resumed to the bit", async () => {
  const whole = await openCatbabi(settings(), { env: {}, threads: 1 });
  const log = await advance(whole, 0, 12);
  const end = whole.snapshot();
  await whole.release();
  for (const stop of [3, 6, 9]) {
    const first = await openCatbabi(settings(), { env: {}, threads: 1 });
    const before = await advance(first, 0, stop);
    const { model, optimizer, state } = first.snapshot();
    const saved: unknown = JSON.parse(JSON.stringify(state));
    const second = await openCatbabi(settings(), { env: {}, threads: 1 });
    await second.restore({ path: "test", model, optimizer, state: saved });
    await first.release();
    const after = await advance(second, stop, 12);
    expect([...before, ...after]).toEqual(log);
    expect(second.snapshot()).toEqual(end);
    await second.release();
  }
});

test("the stories of a stage are those of its tasks", async () => {
  const stories = await openStories(settings().task, {});
  for (const [stage, task] of [
    [0, 16],
    [1, 15],
  ] as const) {
    const source = await openStream(stories.stage(1, stage));
    const count = Math.min(20, source.storiesPerEpoch);
    expect(count).toBeGreaterThan(1);
    for (let at = 0; at < count; at++) expect(source.story(0, at).task).toBe(task);
  }
});

describe("refused", () => {
  const real = { ...settings().task, source: "real", sampling: { name: "fixed" } } as const;
  const [generatedStage, realStage] = settings().task.curriculum as [Stage, Stage];

  test("are generated stages before real stories alone, and real ones that are easier", async () => {
    await expect(openStories(real, {})).rejects.toThrow(/^task\.curriculum: a stage is generated/);
    await expect(openStories({ ...real, curriculum: [realStage] }, {})).resolves.toBeDefined();
    const easier = [{ ...realStage, difficulty: generatedStage.difficulty }];
    await expect(openStories({ ...real, curriculum: easier }, {})).rejects.toThrow(
      /^task\.curriculum\[0\]\.difficulty: real stories are as hard as they are/,
    );
  });

  test("is a stage of tasks that do not exist", () => {
    const odd = structuredClone(settings());
    odd.task.curriculum[0]!.tasks = "21";
    expect(catbabiSchema.safeParse(odd).success).toBe(false);
  });
});

test("the notes of a run say what came before", async () => {
  const { notes } = await openStories(settings().task, {});
  expect(notes.join("\n")).toContain("before that, generated stories of tasks 16 until 100 % are right");
});
