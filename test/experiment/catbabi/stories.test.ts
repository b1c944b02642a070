/** The stories that settings ask for: of which tasks they are, and what is said of them. */
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { openStream } from "../../../src/data/sources/open.ts";
import { prepareCatbabi } from "../../../src/data/sources/prepare.ts";
import { writePrepared } from "../../../src/data/sources/prepared.ts";
import { catbabiTask } from "../../../src/experiment/catbabi/settings.ts";
import { openStories } from "../../../src/experiment/catbabi/stories.ts";
import { emptyFolder, tinyFolder } from "../../data/support/tiny.ts";

const data = join(emptyFolder(), "prepared");

beforeAll(async () => {
  const choice = { variant: "10k", tasks: [1, 15], keepLastStory: true, allowMissing: true } as const;
  const { provenance, splits } = await prepareCatbabi({ ...choice, from: tinyFolder(), downloads: "unused" });
  await writePrepared(data, provenance, splits);
});

async function tasksOf(task: Partial<typeof catbabiTask>): Promise<Set<number>> {
  const stories = await openStories({ ...catbabiTask, data, ...task }, {});
  const source = await openStream(stories.train(1));
  const count = Math.min(source.storiesPerEpoch, 200);
  return new Set(Array.from({ length: count }, (_, position) => source.story(0, position).task));
}

test("new stories are of the tasks asked for, also between real ones", async () => {
  // The prepared files have tasks 1 and 15. Mixed streams once had new stories of all tasks, whatever was asked for.
  expect(await tasksOf({ source: "real" })).toEqual(new Set([1, 15]));
  expect(await tasksOf({ source: "generated", tasks: "16,19" })).toEqual(new Set([16, 19]));
  expect(await tasksOf({ source: "mixed", generatedFraction: 0.9, tasks: "16,19" })).toEqual(
    new Set([1, 15, 16, 19]),
  );
});

test("runs on new stories say so, alone or between real ones", async () => {
  const notes = async (task: Partial<typeof catbabiTask>) =>
    (await openStories({ ...catbabiTask, data, ...task }, {})).notes[0];
  expect(await notes({ source: "generated" })).toMatch(/^training stories are generated/);
  expect(await notes({ source: "mixed", generatedFraction: 0.6, tasks: "16,19" })).toBe(
    "60 % of the training stories are generated (tasks 16,19)",
  );
  const harder = { ...catbabiTask.difficulty, ordinary: 0.75 };
  const { notes: all } = await openStories({ ...catbabiTask, data, source: "mixed", difficulty: harder }, {});
  expect(all).toContain("25 % of the generated stories are harder or easier than bAbI's");
  expect(await notes({ source: "real" })).not.toMatch(/% of the training/);
});

test("harder stories come in the fraction asked for, and are not asked of real ones", async () => {
  const difficulty: typeof catbabiTask.difficulty = {
    ...catbabiTask.difficulty,
    ordinary: 0.5,
    distractors: [500, 500],
  };
  const stories = await openStories({ ...catbabiTask, data, source: "generated", difficulty }, {});
  const source = await openStream(stories.train(1));
  const long = Array.from({ length: 200 }, (_, i) => source.story(0, i).tokens.length > 2500).filter(Boolean);
  // 200 draws at 0.5 have a standard deviation of 7; no ordinary story has 2,500 tokens.
  expect(Math.abs(long.length - 100)).toBeLessThan(30);
  await expect(openStories({ ...catbabiTask, data, difficulty }, {})).rejects.toThrow(/^task.difficulty: /);
});
