/** An evaluation on catbAbI: what may be chosen, and what it says. */
import type { BaseEvaluation, EvaluationOption } from "../kind.ts";
import type { Score } from "./score.ts";
import type { CatbabiSettings } from "./settings.ts";

/** Rows per split by default: the paper tests with one and validates with 128. */
export const usualBatch = { valid: 128, test: 1 } as const;

/** What a person may choose. */
export const evaluationOptions = {
  split: { type: "choice", values: ["valid", "test"], help: "stories to answer; default: valid" },
  batch: { type: "integer", min: 1, max: 4096, help: "rows; default: 1 for test, 128 for valid" },
  state: {
    type: "choice",
    values: ["zero", "train"],
    help: "where the stream starts; default: train where it was saved",
  },
  data: { type: "folder", help: "prepared data, if not in the usual place" },
} as const satisfies Record<string, EvaluationOption>;

/** What was chosen of them. */
export interface CatbabiOptions {
  readonly split?: "valid" | "test";
  readonly batch?: number;
  /** `train` where the folder has the training state (the paper's protocol), else `zero` (the released code's). */
  readonly state?: "zero" | "train";
  /** Folder of prepared data; by default where the run's settings or `FWM_DATA` say. */
  readonly data?: string;
}

/** A score, and what it is a score of. */
export interface CatbabiEvaluation extends Score, BaseEvaluation {
  readonly mode: CatbabiSettings["task"]["mode"];
  readonly split: "valid" | "test";
  readonly batch: number;
  readonly window: number;
  /** Where the stream started: zeros, or the state that row 0 of the training batch was in. */
  readonly state: "zero" | "train";
  /** Whether the stories were generated, not bAbI's own. */
  readonly generated: boolean;
  /** Names of the tasks of own stories, by number; null for bAbI's tasks. */
  readonly ownTasks: Readonly<Record<number, string>> | null;
  /** What has to be said of the data: missing, filled or generated tasks. */
  readonly notes: readonly string[];
}
