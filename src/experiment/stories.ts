/** Stories for a catbAbI experiment: the prepared files, the generator, or both. */
import { join } from "node:path";
import type { Story } from "../data/babi/format.ts";
import { generateStory, streamStory, taskOfStory } from "../data/babi/generator/generate.ts";
import { allTasks, parseTasks, type SplitName } from "../data/catbabi.ts";
import { dataRoot, preparedName } from "../data/sources/prepare.ts";
import { type Catbabi, loadPrepared } from "../data/sources/prepared.ts";
import { endlessSource, mixedSource, preparedSource, type StorySource } from "../data/streams.ts";
import type { Settings } from "./settings.ts";

/** Where the stories of a run come from, and what has to be said about them. */
export interface Stories {
  source(split: SplitName, seed: number): StorySource;
  /** Missing, partial or filled task files; empty when there is nothing to say. */
  readonly remarks: readonly string[];
}

/** Held-out generated stories per split: as many questions as a task's real validation file has, about. */
const heldOutStories = 1000;

/** Opens the stories that settings ask for. Generated stories alone need no files. */
export async function openStories(
  task: Settings["task"],
  env: Readonly<Record<string, string | undefined>>,
): Promise<Stories> {
  const tasks = parseTasks(task.tasks, "task.tasks");
  const needsFiles = task.source !== "generated" || task.data !== "";
  const files = needsFiles ? await loadPrepared(task.data || defaultFolder(env)) : undefined;
  return {
    remarks: files ? remarksOn(files) : [`stories are generated (tasks ${task.tasks}); none are bAbI's own`],
    source(split, seed) {
      if (split !== "train") {
        return files ? preparedSource(files.splits[split], seed) : heldOut(split, tasks, seed);
      }
      const endless = endlessSource((position) => told(tasks, seed, position));
      if (!files || task.source === "generated") return endless;
      const real = preparedSource(files.splits.train, seed);
      return task.source === "mixed" ? mixedSource(real, endless, task.share) : real;
    },
  };
}

/** The usual place of prepared data. */
export function defaultFolder(env: Readonly<Record<string, string | undefined>>): string {
  return join(dataRoot(env), preparedName({ variant: "10k", tasks: allTasks, keepLastStory: false }));
}

/** Story number `position` of an endless stream over some tasks. */
function told(tasks: readonly number[], seed: number, position: number): Story {
  if (tasks.length === allTasks.length) return streamStory(seed, position);
  const task = tasks[taskOfStory(seed, position) % tasks.length]!;
  return generateStory({ task, seed, index: position });
}

/** A fixed set of generated stories that training never sees: another seed. */
function heldOut(split: SplitName, tasks: readonly number[], seed: number): StorySource {
  const endless = endlessSource((position) => told(tasks, seed + (split === "valid" ? 1e6 : 2e6), position));
  return { ...endless, storiesPerEpoch: heldOutStories };
}

function remarksOn({ header }: Catbabi): string[] {
  const filled = header.filled.map(
    ({ task, split, stories }) =>
      `task ${task} ${split}: ${stories} generated stories fill in for missing ones`,
  );
  const missing = header.missing.filter(
    (name) => !header.filled.some(({ task, split }) => name.startsWith(`qa${task}_${split}`)),
  );
  return [...filled, ...missing.map((name) => `${name} is missing`)];
}
