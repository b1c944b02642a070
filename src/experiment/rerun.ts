/** Results trained again: what a result file says of a run, as a plan for another that has to come to the same. */
import { readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { z } from "zod";
import { DataError, UsageError } from "../errors.ts";
import { changedSettings } from "../report/changed.ts";
import { errorCode, StorageError } from "../store/atomic.ts";
import { flatten } from "../store/flatten.ts";
import { parseJsonObject } from "../store/json.ts";
import { readIfPresent } from "../store/read.ts";
import { readRun, runFile } from "../store/runRecord.ts";
import type { BaseSettings, Kind } from "./kind.ts";
import { kindNamed } from "./registry.ts";
import type { EvaluateOptions } from "./savedModel.ts";
import { checkSettings, withSetting } from "./settings.ts";

const recordedSchema = z.looseObject({
  experiment: z.string(),
  seed: z.number(),
  settings: z.looseObject({ task: z.looseObject({ name: z.string() }) }),
  reportedBy: z.string(),
  // Version 0.1 did not record it.
  initFrom: z.string().nullish(),
  state: z.string(),
  steps: z.number(),
  hours: z.number(),
  commit: z.string().nullable(),
  machine: z.looseObject({ cpu: z.string(), threads: z.number().nullable() }),
  score: z
    .looseObject({
      model: z.string(),
      experiment: z.string(),
      step: z.number().nullable(),
      split: z.string(),
    })
    .nullable(),
});

/** What a result file says of a run. */
export type Recorded = z.infer<typeof recordedSchema>;

/** A result to come to again. */
export interface Rerun {
  /** The file's name without its ending. */
  readonly name: string;
  readonly recorded: Recorded;
  readonly kind: Kind;
  readonly settings: BaseSettings;
  /** How its checkpoint was evaluated: the options of the command that wrote the file. */
  readonly evaluation: EvaluateOptions;
  readonly checkpoint?: "best" | "last";
}

/** What a file holds that is no result of one run; undefined where it is one. */
function otherResult(content: Readonly<Record<string, unknown>>): string | undefined {
  if ("members" in content) return "a sweep; give its command again";
  if ("passages" in content) return "a comparison of two models";
  if ("score" in content && !("settings" in content)) return "an evaluation; rerun the run that it is of";
  return undefined;
}

/**
 * Reads a result file. One that is not of a run is `undefined`, with the reason given to `onOther`; `data` is the folder of
 * a run's prepared data, where that was not in the usual place.
 */
export async function readRerun(
  path: string,
  { data, onOther }: { readonly data?: string | undefined; readonly onOther: (reason: string) => void },
): Promise<Rerun | undefined> {
  const content = parseJsonObject(
    await readFile(path).catch((error: unknown) => {
      if (errorCode(error) === "ENOENT") throw new UsageError(`${path}: there is no such result file`);
      throw new StorageError("cannot read the result file", path, error);
    }),
    { file: path },
  );
  const other = otherResult(content);
  if (other !== undefined) {
    onOther(other);
    return undefined;
  }
  const parsed = recordedSchema.safeParse(content);
  if (!parsed.success) {
    throw new DataError(`${path}: not a result that can be trained again`, {
      reason: z.prettifyError(parsed.error),
      hint: "result files of runs are written by fwm report",
    });
  }
  const recorded = parsed.data;
  const known = ofThisVersion(recorded);
  if (!("kind" in known)) {
    onOther(known.reason);
    return undefined;
  }
  const { kind } = known;
  return {
    ...{ name: basename(path, ".json"), recorded, kind },
    settings: withData(kind, known.settings, path, data),
    ...evaluationOf(kind, recorded),
  };
}

/** A run's kind and settings, or why this version cannot train by them. */
function ofThisVersion({ settings }: Recorded): { kind: Kind; settings: BaseSettings } | { reason: string } {
  try {
    const kind = kindNamed(settings.task.name, "");
    return { kind, settings: checkSettings(kind, settings, "") };
  } catch (error) {
    if (!(error instanceof DataError)) throw error;
    return { reason: "another version, whose settings this one does not have" };
  }
}

/** A result file does not say where the data was on its machine, only how the folder was called. */
function withData(kind: Kind, settings: BaseSettings, file: string, data: string | undefined): BaseSettings {
  const at = kind.flags.data;
  const recorded = at === undefined ? "" : flatten(settings)[at];
  if (data === undefined && recorded !== "") {
    throw new UsageError(`${file}: the run was trained on data of its own, ${String(recorded)}`, {
      hint: "give its folder with --data",
    });
  }
  if (data === undefined) return settings;
  if (at === undefined) throw new UsageError(`--data: experiments of the kind ${kind.name} have no data`);
  return withSetting(settings, at, data);
}

/** How a result was evaluated: by the options of the `fwm report …` that wrote it, and what its score says of the others. */
export function evaluationOf(
  { evaluationOptions }: Pick<Kind, "evaluationOptions">,
  { reportedBy, score }: Pick<Recorded, "reportedBy" | "score">,
): Pick<Rerun, "evaluation" | "checkpoint"> {
  const words = reportedBy.split(" ");
  const given = new Map(words.flatMap((word, i) => (word.startsWith("--") ? [[word, words[i + 1]]] : [])));
  const evaluation: Record<string, string | number> = { split: "test" };
  for (const [name, option] of Object.entries(evaluationOptions)) {
    // A folder lies elsewhere on this machine.
    if (option.type === "folder") continue;
    const text = given.get(`--${name}`);
    const isNumber =
      option.type === "integer" || (option.type === "number" && !option.words.includes(text ?? ""));
    const scored = score?.[name];
    if (text !== undefined) evaluation[name] = isNumber ? Number(text) : text;
    else if (typeof scored === (isNumber ? "number" : "string")) evaluation[name] = scored as string | number;
  }
  const checkpoint = given.get("--checkpoint");
  return checkpoint === "best" || checkpoint === "last" ? { evaluation, checkpoint } : { evaluation };
}

/** How far a rerun is: nothing there, begun, or trained to its end. A folder with another run is a `UsageError`. */
export async function rerunState(
  folder: string,
  { recorded, settings, kind }: Rerun,
): Promise<"new" | "begun" | "trained"> {
  if ((await readIfPresent(join(folder, runFile))) === undefined) return "new";
  const { experiment, settings: saved, seed, state } = await readRun(folder);
  const portable = (all: BaseSettings): BaseSettings =>
    kind.flags.data ? withSetting(all, kind.flags.data, "") : all;
  const others = changedSettings(portable(settings), portable(checkSettings(kind, saved, folder)));
  if (experiment !== recorded.experiment || seed !== recorded.seed || Object.keys(others).length > 0) {
    throw new UsageError(`${folder}: the run there is not one of this result`, {
      ...(experiment === recorded.experiment ? {} : { experiment }),
      ...(seed === recorded.seed ? {} : { seed }),
      settings: Object.keys(others).join(", "),
      hint: "give another folder with --runs",
    });
  }
  return state === "finished" ? "trained" : "begun";
}

/** Whether every number of an evaluation is as it was recorded. */
export function isSameScore(recorded: object, again: object): boolean {
  const now = flatten(again);
  return Object.entries(flatten(recorded)).every(
    ([name, value]) => typeof value !== "number" || now[name] === value,
  );
}
