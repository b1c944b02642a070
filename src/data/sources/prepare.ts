/**
 * From bAbI's task files to prepared catbAbI: find the files, check each against the official one, say what is
 * missing, leave out the last story of each file, and turn the words into numbers.
 */
import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { parseStories, type Story } from "../../babi/format.ts";
import { DataError, FwmError, UsageError } from "../../errors.ts";
import {
  allTasks,
  type CatbabiSplit,
  decodeText,
  formatTasks,
  joinStories,
  type SplitName,
  splitNames,
  type Variant,
} from "../catbabi.ts";
import { type EncodedStory, encodeStory } from "../streams.ts";
import { DownloadError, download } from "./download.ts";
import { type BabiCopy, type FoundFile, readArchivedCopy, readCopy } from "./folders.ts";
import { archiveAddresses, isOfficial, officialFile, recognise, sha256 } from "./official.ts";
import type { Provenance } from "./prepared.ts";

/** What is to be prepared. */
export interface CatbabiChoice {
  readonly variant: Variant;
  readonly tasks: readonly number[];
  /** Keep the last story of every file, which the authors' parser loses. */
  readonly keepLastStory: boolean;
}

/** Generates stories of a task: story `index` of the stream `seed`. */
export type StoryGenerator = (place: { task: number; seed: number; index: number }) => Story;

/** How it is prepared. */
export interface PrepareOptions extends CatbabiChoice {
  /** A local copy; without it the official archive is downloaded to `downloads`. */
  readonly from?: string | undefined;
  readonly downloads: string;
  readonly addresses?: readonly string[];
  /** Go on when task files are missing or partial. */
  readonly allowMissing: boolean;
  /** Completes training sets that are missing or partial. */
  readonly fill?: { readonly generate: StoryGenerator; readonly seed: number };
  readonly signal?: AbortSignal;
  readonly onNote?: (text: string) => void;
  readonly onDownload?: (done: number, total: number | undefined) => void;
}

/** Prepared stories, not yet written. */
export interface PreparedStories {
  readonly provenance: Provenance;
  readonly splits: Readonly<Record<SplitName, CatbabiSplit>>;
}

// The archive holds every variant and language; ten times its size is certainly something else.
const largestArchive = 1 << 27;

/** The folder for prepared data and downloads: FWM_DATA, or `fwm/data` in the user's cache. */
export function dataRoot(env: Readonly<Record<string, string | undefined>>): string {
  return env.FWM_DATA || join(env.XDG_CACHE_HOME || join(homedir(), ".cache"), "fwm", "data");
}

/** Where a choice is kept under the data root: `catbabi-10k`, `catbabi-10k-tasks-1_2_15-17-keep-last`. */
export function preparedName({ variant, tasks, keepLastStory }: CatbabiChoice): string {
  const some = tasks.length < allTasks.length ? `-tasks-${formatTasks(tasks).replaceAll(",", "_")}` : "";
  return `catbabi-${variant}${some}${keepLastStory ? "-keep-last" : ""}`;
}

/** Reads, checks and encodes the chosen task files. */
export async function prepareCatbabi(options: PrepareOptions): Promise<PreparedStories> {
  const copy =
    options.from === undefined
      ? await downloadedCopy(options)
      : await readCopy(options.from, options.variant);
  const survey = surveyFiles(copy, options);
  const gaps = survey.filter(({ state }) => state === "missing" || state === "partial");
  const filled = fillGaps(gaps, options);
  const left = gaps.filter(
    (gap) => !filled.some(({ task, split }) => task === gap.task && split === gap.split),
  );
  if (left.length > 0 && !options.allowMissing) throw missingFiles(copy.origin, left);

  const stories: Record<SplitName, EncodedStory[]> = { train: [], valid: [], test: [] };
  for (const file of survey) {
    const extra = filled.find(({ task, split }) => task === file.task && split === file.split);
    stories[file.split].push(...file.stories, ...(extra?.generated ?? []));
  }
  const place = ({ task, split }: Surveyed) => ({ task, split });
  const provenance: Provenance = {
    variant: options.variant,
    tasks: [...options.tasks],
    keepLastStory: options.keepLastStory,
    origin: copy.origin,
    files: survey.flatMap((file) => (file.found ? [{ ...place(file), ...file.found }] : [])),
    missing: gaps.map(({ task, split }) => fileName(task, split)),
    partial: gaps.flatMap((gap) =>
      gap.found
        ? [{ ...place(gap), name: gap.found.name, stories: gap.stories.length, official: gap.official }]
        : [],
    ),
    filled: filled.map(({ generated, ...rest }) => ({ ...rest, stories: generated.length })),
  };
  return {
    provenance,
    splits: {
      train: joinStories("train", stories.train),
      valid: joinStories("valid", stories.valid),
      test: joinStories("test", stories.test),
    },
  };
}

/** One task file of the choice: what was found in its place, and its stories. */
interface Surveyed {
  readonly task: number;
  readonly split: SplitName;
  readonly state: "official" | "unverified" | "partial" | "missing";
  /** Stories of the official file that the choice uses. */
  readonly official: number;
  readonly stories: readonly EncodedStory[];
  readonly found?: Omit<Provenance["files"][number], "task" | "split">;
}

function fileName(task: number, split: SplitName): string {
  return `qa${task}_${split}.txt`;
}

function surveyFiles(copy: BabiCopy, options: PrepareOptions): Surveyed[] {
  return splitNames.flatMap((split) =>
    options.tasks.map((task): Surveyed => {
      const lost = options.keepLastStory ? 0 : 1;
      const official = officialFile(options.variant, split, task).stories - lost;
      const name = fileName(task, split);
      const whole = copy.files.get(name);
      if (whole !== undefined) return surveyed(whole, name, task, split, options, official, lost);
      const partName = name.replace(".txt", ".partial.txt");
      const part = copy.files.get(partName);
      // The beginning of a file does not hold the file's last story, so none is left out.
      if (part !== undefined) return surveyed(part, partName, task, split, options, official, 0);
      return { task, split, state: "missing", official, stories: [] };
    }),
  );
}

function surveyed(
  { path, bytes }: FoundFile,
  name: string,
  task: number,
  split: SplitName,
  { variant }: PrepareOptions,
  official: number,
  lost: number,
): Surveyed {
  if (bytes.length === 0)
    throw new DataError(`${path}: the file is empty`, { hint: "get the original file again" });
  const expected = officialFile(variant, split, task);
  const isGenuine = isOfficial(bytes, expected);
  const other = isGenuine ? undefined : recognise(bytes, split, task);
  if (other !== undefined) {
    throw new UsageError(`${path}: this is the file of the ${other} variant, not of ${variant}`, {
      hint: `use --variant ${other}`,
    });
  }
  const read = parseStories(decodeText(bytes, path), { file: path, task });
  const isShort = name.includes(".partial.") || read.length < expected.stories;
  const state = isGenuine ? "official" : isShort ? "partial" : "unverified";
  const stories = read.slice(0, read.length - lost).map((story) => encodeStory(story));
  const questions = stories.reduce((sum, { answers }) => sum + answers.reduce((a, b) => a + b, 0), 0);
  const found = { name, sha256: sha256(bytes), state, stories: stories.length, questions } as const;
  return { task, split, state, official, stories, found };
}

/** Stories that fill in have this index or a later one: a generated stream of the same seed never gets so far. */
const fillFrom = 2 ** 31;

/** Generated stories for every gap in the training set; valid and test stay real, or they would measure nothing. */
function fillGaps(gaps: readonly Surveyed[], { fill }: PrepareOptions) {
  if (fill === undefined) return [];
  return gaps
    .filter(({ split }) => split === "train")
    .map(({ task, split, official, stories }) => {
      const generated = Array.from({ length: Math.max(0, official - stories.length) }, (_, i) =>
        encodeStory(fill.generate({ task, seed: fill.seed, index: fillFrom + i })),
      );
      return { task, split, seed: fill.seed, generated };
    });
}

function missingFiles(origin: string, gaps: readonly Surveyed[]): DataError {
  const list = gaps.map(({ task, split, state, found, stories, official }) =>
    state === "missing"
      ? `${fileName(task, split)} (missing)`
      : `${fileName(task, split)} (partial: ${found!.name} has ${stories.length} of ${official} stories)`,
  );
  const shown = list.length > 8 ? [...list.slice(0, 8), `and ${list.length - 8} more`] : list;
  const isTrainOnly = gaps.every(({ split }) => split === "train");
  return new DataError(`${origin}: task files are missing or partial: ${shown.join(", ")}`, {
    hint:
      "put the official files there, or go on without them: --allow-missing" +
      (isTrainOnly ? "; or complete them with generated stories: --fill-missing generated" : ""),
  });
}

/** The official archive, downloaded unless it already was; a copy that is not genuine is thrown away. */
async function downloadedCopy(options: PrepareOptions): Promise<BabiCopy> {
  const { downloads, addresses = archiveAddresses, signal, onDownload, onNote, variant } = options;
  const path = join(downloads, "tasks_1-20_v1-2.tar.gz");
  const failures: FwmError[] = [];
  for (const address of existsSync(path) ? ["", ...addresses] : addresses) {
    try {
      if (address !== "") {
        onNote?.(`downloading ${address}`);
        await download(address, path, {
          maxBytes: largestArchive,
          ...(signal ? { signal } : {}),
          ...(onDownload ? { onProgress: onDownload } : {}),
        });
      }
      const copy = await readArchivedCopy(path, variant);
      checkGenuine(copy, options);
      return copy;
    } catch (error) {
      if (!(error instanceof FwmError)) throw error;
      failures.push(error);
      await rm(path, { force: true });
    }
  }
  const isNetwork = failures.every((error) => error instanceof DownloadError);
  throw new (isNetwork ? DownloadError : DataError)("the bAbI archive could not be had", {
    tried: failures.map((error) => error.message.split("\n")[0]).join("; "),
    hint: "download it by other means and give the file: fwm data prepare catbabi --from tasks_1-20_v1-2.tar.gz",
  });
}

function checkGenuine({ files }: BabiCopy, { tasks, variant }: PrepareOptions): void {
  for (const task of tasks) {
    for (const split of splitNames) {
      const file = files.get(fileName(task, split));
      const expected = officialFile(variant, split, task);
      if (file === undefined || isOfficial(file.bytes, expected)) continue;
      throw new DataError(`${file.path}: its checksum is not the official one`, {
        expected: `SHA-256 ${expected.sha256}`,
      });
    }
  }
}
