/**
 * What prepared catbAbI holds, beside what the paper counted.
 */
import { type Counts, paperCounts, type SplitName, splitNames } from "../catbabi.ts";
import type { Catbabi, CatbabiHeader } from "./prepared.ts";

/** Counts of one split, per task, and the paper's where the data is meant to have them. */
export interface SplitStatistics extends Counts {
  readonly perTask: Readonly<Record<string, Counts>>;
  readonly paper: { readonly stories: number; readonly questions: number; readonly tokens: string } | null;
}

/** The document that `fwm data stats catbabi --json` gives. */
export interface CatbabiStatistics
  extends Pick<
    CatbabiHeader,
    "variant" | "tasks" | "keepLastStory" | "origin" | "missing" | "partial" | "filled"
  > {
  /** Entries of the vocabulary. */
  readonly vocabulary: number;
  /** Used files whose checksum is not the official one. */
  readonly unverified: readonly string[];
  readonly splits: Readonly<Record<SplitName, SplitStatistics>>;
}

/** Counts everything. The paper's table is for the 10k variant with all tasks. */
export function catbabiStatistics({ header, splits }: Catbabi): CatbabiStatistics {
  const { variant, tasks, keepLastStory, origin, missing, partial, filled } = header;
  const isPapers = variant === "10k" && tasks.length === 20;
  const describe = (name: SplitName): SplitStatistics => {
    const { perTask, ...total } = splits[name].counts();
    return { ...total, paper: isPapers ? paperCounts[name] : null, perTask: Object.fromEntries(perTask) };
  };
  return {
    variant,
    tasks,
    keepLastStory,
    origin,
    vocabulary: header.vocabulary.size,
    splits: Object.fromEntries(splitNames.map((name) => [name, describe(name)])) as Record<
      SplitName,
      SplitStatistics
    >,
    missing,
    partial,
    filled,
    unverified: header.files.filter(({ state }) => state === "unverified").map(({ name }) => name),
  };
}
