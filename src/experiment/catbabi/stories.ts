/** Stories for a catbAbI experiment: the prepared files, the generator, or both. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { allTasks, parseTasks } from "../../data/catbabi.ts";
import type { StreamSpec } from "../../data/sources/open.ts";
import { dataRoot, preparedName } from "../../data/sources/prepare.ts";
import { type Catbabi, headerName, loadPrepared, readHeader } from "../../data/sources/prepared.ts";
import { generatedSource, preparedSource, type ShareChange, type StorySource } from "../../data/streams.ts";
import { catbabiVocabulary, type Vocabulary } from "../../data/vocabulary.ts";
import { UsageError } from "../../errors.ts";
import type { CatbabiSettings } from "./settings.ts";

/** Where the stories of a run come from, and what has to be said about them. */
export interface Stories {
  /** The tasks of generated stories. */
  readonly tasks: readonly number[];
  /** The training stream, as a worker thread can open it. */
  train(seed: number, shares?: readonly ShareChange[]): StreamSpec;
  /** The stream of a stage of the curriculum. */
  stage(seed: number, stage: number): StreamSpec;
  /** Validation or test stories: the prepared files, or generated ones where there are none. */
  heldOut(split: "valid" | "test", seed: number): StorySource;
  /** Which stories these are: two runs with the same text here learn from and are judged on the same files. */
  readonly identity: string;
  /** The prepared data, where it is used. */
  readonly files: Catbabi | undefined;
  /** The words: catbAbI's, or those of own stories. */
  readonly vocabulary: Vocabulary;
  /** Names of the tasks of own stories, by number; undefined for bAbI's. */
  readonly ownTasks: Readonly<Record<number, string>> | undefined;
  /** Missing, partial or filled task files; empty when there is nothing to say. */
  readonly notes: readonly string[];
}

/** What to do about stories whose words are not the model's. */
export const storiesHint =
  "prepare the stories with the words of those it was trained on: fwm data prepare stories --vocabulary";

/** Held-out generated stories per split: as many questions as a task's real validation file has, about. */
const heldOutStories = 1000;

/** Opens the stories that settings ask for. Generated stories alone need no files. */
export async function openStories(
  task: CatbabiSettings["task"],
  env: Readonly<Record<string, string | undefined>>,
): Promise<Stories> {
  const tasks = parseTasks(task.tasks, "task.tasks");
  refuseForReal(task);
  for (const [i, stage] of task.curriculum.entries()) refuseForReal(stage, `task.curriculum[${i}]`);
  const folder = task.data || defaultFolder(env);
  // Generated stories need no files; with all tasks they are judged on the real ones where these are there.
  const judged = tasks.length === allTasks.length && existsSync(join(folder, headerName));
  const sources = [task.source, ...task.curriculum.map(({ source }) => source)];
  const needsFiles = sources.some((source) => source !== "generated") || task.data !== "" || judged;
  const files = needsFiles ? await loadPrepared(folder) : undefined;
  const isOwn = files?.header.variant === "own";
  if (isOwn && task.source !== "real") {
    throw new UsageError(`task.source: stories of your own are used alone, not ${task.source}`, {
      data: folder,
      hint: "set task.source to real: generated stories have other words",
    });
  }
  if (isOwn && task.rename) {
    throw new UsageError(
      "task.rename: which words of your own stories can stand for each other is not known",
      {
        data: folder,
        hint: "set task.rename to false",
      },
    );
  }
  return {
    vocabulary: files?.vocabulary ?? catbabiVocabulary,
    ownTasks: isOwn ? taskNames(files.header) : undefined,
    notes: notesOn(task, files),
    identity: files ? `prepared, ${fingerprint(files)}` : "generated",
    tasks,
    train(seed, shares = []) {
      const generated = { tasks, shares, difficulty: task.difficulty };
      if (task.source === "generated") return { kind: "generated", seed, ...generated };
      const real = { folder, split: "train", seed, rename: task.rename } as const;
      return task.source === "mixed"
        ? { kind: "mixed", ...real, generatedFraction: task.generatedFraction, ...generated }
        : { kind: "prepared", ...real };
    },
    stage(seed, stage) {
      const { source, tasks: named, difficulty } = task.curriculum[stage]!;
      const common = { seed, tasks: parseTasks(named) };
      return source === "real"
        ? { kind: "prepared", folder, split: "train", rename: task.rename, ...common }
        : { kind: "generated", difficulty, ...common };
    },
    heldOut(split, seed) {
      return files ? preparedSource(files.splits[split], seed) : generatedSplit(split, tasks, seed);
    },
    files,
  };
}

/** Settings as the stories want them: a system for catbAbI's words gets as many rows as own stories have words. */
export async function fitToStories(settings: CatbabiSettings): Promise<CatbabiSettings> {
  const { task, system } = settings;
  if (task.data === "" || system.vocabulary !== catbabiVocabulary.size) return settings;
  const { variant, vocabulary } = await readHeader(task.data);
  return variant === "own" ? { ...settings, system: { ...system, vocabulary: vocabulary.size } } : settings;
}

function taskNames({ tasks, names = [] }: Catbabi["header"]): Record<number, string> {
  return Object.fromEntries(tasks.map((task, i) => [task, names[i] ?? `task ${task}`]));
}

/** Refuses what can be chosen of generated stories only. */
function refuseForReal(
  {
    source,
    sampling,
    difficulty,
    curriculum = [],
  }: Pick<CatbabiSettings["task"], "source" | "difficulty"> & Partial<CatbabiSettings["task"]>,
  setting = "task",
): void {
  if (source !== "real") return;
  const generated = `set ${setting}.source to ${setting === "task" ? "mixed or " : ""}generated`;
  if (sampling && sampling.name !== "fixed") {
    throw new UsageError(`${setting}.sampling: of real stories, every one is used once in an epoch`, {
      hint: `${generated}, or ${setting}.sampling.name to fixed`,
    });
  }
  if (difficulty.ordinary < 1) {
    throw new UsageError(`${setting}.difficulty: real stories are as hard as they are`, {
      hint: `${generated}, or ${setting}.difficulty.ordinary to 1`,
    });
  }
  if (curriculum.some((stage) => stage.source !== "real")) {
    throw new UsageError("task.curriculum: a stage is generated, and the source is real stories alone", {
      hint: `${generated}, or the source of every stage to real`,
    });
  }
}

/** The beginnings of the checksums of what is trained and judged on. */
function fingerprint({ header: { splits } }: Catbabi): string {
  return (["train", "valid"] as const)
    .map((name) => `${name} ${splits[name].sha256.slice(0, 12)}`)
    .join(", ");
}

/** The usual place of prepared data. */
function defaultFolder(env: Readonly<Record<string, string | undefined>>): string {
  return join(dataRoot(env), preparedName({ variant: "10k", tasks: allTasks, keepLastStory: false }));
}

/** A fixed set of generated stories that training never sees: another seed. */
function generatedSplit(split: "valid" | "test", tasks: readonly number[], seed: number): StorySource {
  const endless = generatedSource(seed + (split === "valid" ? 1e6 : 2e6), tasks);
  return { ...endless, storiesPerEpoch: heldOutStories };
}

function notesOn(
  { source, rename, generatedFraction, tasks, sampling, difficulty, curriculum }: CatbabiSettings["task"],
  files: Catbabi | undefined,
): string[] {
  const generated = `stories are generated (tasks ${tasks}); none are bAbI's own`;
  if (!files) return [generated];
  const { filled, missing, variant, names = [] } = files.header;
  const notes: string[] = [];
  if (variant === "own") {
    const shown = names.length > 6 ? [...names.slice(0, 6), `${names.length - 6} more`] : names;
    notes.push(`the stories are not bAbI's (${shown.join(", ")})`);
  }
  if (source !== "generated" && rename) {
    notes.push("real training stories come under other names each time: words of one kind are exchanged");
  }
  if (source === "generated") notes.push(`training ${generated}`);
  if (source === "mixed") {
    notes.push(
      `${Math.round(100 * generatedFraction)} % of the training stories are generated (tasks ${tasks})`,
    );
  }
  if (sampling.name === "byError") notes.push("how often a task is generated follows its validation error");
  if (difficulty.ordinary < 1) {
    notes.push(
      `${Math.round(100 * (1 - difficulty.ordinary))} % of the generated stories are harder or easier than bAbI's`,
    );
  }
  if (curriculum.length > 0) {
    const stages = curriculum.map(
      (stage) => `${stage.source} stories of tasks ${stage.tasks} until ${100 * stage.until} % are right`,
    );
    notes.push(`a curriculum comes first: ${stages.join(", then ")}`);
  }
  for (const { task, split, stories } of source === "generated" ? [] : filled) {
    notes.push(`task ${task} ${split}: ${stories} generated stories fill in for missing ones`);
  }
  const isFilled = (name: string): boolean =>
    filled.some(({ task, split }) => name.startsWith(`qa${task}_${split}`));
  return [...notes, ...missing.filter((name) => !isFilled(name)).map((name) => `${name} is missing`)];
}
