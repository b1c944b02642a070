/** A curriculum: when its stages end, what is read in each, and a run that is resumed in the middle of one. */
import { describe, expect, test } from "vitest";
import { openStream } from "../../../src/data/sources/open.ts";
import {
  type CatbabiSettings,
  catbabiSchema,
  catbabiTask,
} from "../../../src/experiment/catbabi/settings.ts";
import { openStories } from "../../../src/experiment/catbabi/stories.ts";
import { Curriculum } from "../../../src/experiment/curriculum.ts";
import { expectResumable, openTiny, prepareTiny, tinySettings } from "./tinySession.ts";

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

  test("does not end where nothing was asked", () => {
    const curriculum = new Curriculum(stages);
    for (let step = 0; step < 100; step++) expect(curriculum.count(0, 0)).toBe(false);
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

const data = await prepareTiny();

const settings = (): CatbabiSettings =>
  tinySettings({
    source: "mixed",
    curriculum: [
      { source: "generated", tasks: "16", difficulty: easy, until: 1, steps: 4 },
      {
        source: "real",
        tasks: "15",
        difficulty: ordinary,
        bystanders: [0, 1],
        fewNames: true,
        until: 1,
        steps: 3,
      },
    ],
    data,
  });

test("a run goes through the stages, says which, then to its own stories and shares; it is resumed to the bit", async () => {
  // Within both stages and after them.
  const resumed = await expectResumable(() => openTiny(settings()), { stops: [3, 6, 9], steps: 11 });
  const log = resumed as { latest?: { stage?: number }; share16?: number }[];
  const stages = log.filter(({ latest }) => latest).map(({ latest }) => latest!.stage);
  expect(stages).toEqual([1, 1, 1, 1, 2, 2, 2, ...[8, 9, 10, 11].map(() => undefined)]);
  const shares = log.filter(({ latest }) => !latest).map(({ share16 }) => share16 !== undefined);
  expect(shares).toEqual([false, false, true]);
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

test("real stories of a stage have as many bystanders as it says", async () => {
  const crowd = "1 Sandra went to the office.\n2 Daniel moved to the garden.\n3 Mary moved to the kitchen.\n";
  const crowded = await prepareTiny((files) => {
    files.set("qa1_train.txt", `${crowd}4 Where is Mary? \tkitchen\t3\n`.repeat(20));
  });
  const { bystanders: _, fewNames: __, ...stage } = { ...settings().task.curriculum[1]!, tasks: "1" };
  const storiesWith = async (changes: Partial<Stage>, task = settings().task): Promise<string[]> => {
    const staged = { ...task, data: crowded, curriculum: [{ ...stage, ...changes }] };
    const source = await openStream((await openStories(staged, {})).stage(1, 0));
    return Array.from({ length: source.storiesPerEpoch }, (_, at) => source.story(0, at).tokens.join());
  };
  const whole = await storiesWith({});
  expect(new Set(whole).size).toBe(1);
  expect(await storiesWith({ bystanders: [2, 2] })).toEqual(whole);
  expect(new Set(await storiesWith({ bystanders: [1, 1] })).size).toBe(2);
  expect(new Set(await storiesWith({ bystanders: [0, 0] })).size).toBe(1);
  // Mary moves to the kitchen under any name, or under the first ones.
  const named = { ...settings().task, rename: true };
  expect(new Set(await storiesWith({ bystanders: [0, 0] }, named)).size).toBeGreaterThan(3);
  expect(new Set(await storiesWith({ bystanders: [0, 0], fewNames: true }, named)).size).toBe(1);
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

  test("are changes of generated stories", async () => {
    const changes = { bystanders: [0, 1], fewNames: true } as const;
    for (const [name, value] of Object.entries(changes)) {
      const curriculum = [{ ...generatedStage, [name]: value }];
      await expect(openStories({ ...settings().task, curriculum }, {})).rejects.toThrow(
        `task.curriculum[0].${name}: only real stories are changed`,
      );
    }
  });

  test("is a stage of tasks that do not exist", () => {
    const odd = structuredClone(settings());
    odd.task.curriculum[0]!.tasks = "21";
    expect(catbabiSchema.safeParse(odd).success).toBe(false);
  });
});

test("the notes of a run say what came before", async () => {
  const { notes } = await openStories(settings().task, {});
  expect(notes).toContain(
    "a curriculum comes first: generated stories of tasks 16 until 100 % are right, then real stories of tasks 15 with 0 to 1 bystanders under few names until 100 % are right",
  );
});
