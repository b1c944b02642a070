/** The guide's example stories are what the generator writes today. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { formatStories } from "../../src/babi/format.ts";
import { ordinary } from "../../src/babi/generator/difficulty.ts";
import { generateStory, tasks } from "../../src/babi/generator/generate.ts";

/** The guide's text. */
const guide = readFileSync(new URL("../../docs/infinite-catbabi.md", import.meta.url), "utf8");

test.each(tasks)("task %i is shown with a story of its own", (task) => {
  const section = guide.split(/^### /m).find((part) => part.startsWith(`Task ${task}: `))!;
  const [, seed, index, story] = /Seed (\d+), story (\d+):\n\n```text\n([^`]*)```/.exec(section)!;
  expect(story).toBe(formatStories([generateStory({ task, seed: Number(seed), index: Number(index) })]));
});

test("so is a harder one", () => {
  const section = guide.split(/^### /m).find((part) => part.startsWith("Harder stories"))!;
  const [, task, seed, index, path, story] =
    /Task (\d+), seed (\d+), story (\d+) with `path` (\d):\n\n```text\n([^`]*)```/.exec(section)!;
  const difficulty = { ...ordinary, path: Number(path) };
  const chosen = { task: Number(task), seed: Number(seed), index: Number(index), difficulty };
  expect(story).toBe(formatStories([generateStory(chosen)]));
});
