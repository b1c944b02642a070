/** An evaluation on catbAbI: what may be chosen, and what it says. */
import type { BaseEvaluation, EvaluationOption } from "../kind.ts";
import type { Calibration, Judged } from "./calibration.ts";
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
  suite: {
    type: "choice",
    values: ["stretch"],
    help: "a fixed suite of harder stories in the place of a split",
    replacesSplit: true,
  },
} as const satisfies Record<string, EvaluationOption>;

/** What was chosen of them. */
export interface CatbabiOptions {
  readonly split?: "valid" | "test";
  readonly batch?: number;
  /** `train` where the folder has the training state (the paper's protocol), else `zero` (the released code's). */
  readonly state?: "zero" | "train";
  /** Folder of prepared data; by default where the run's settings or `FWM_DATA` say. */
  readonly data?: string;
  /** A suite in the place of a split. */
  readonly suite?: "stretch";
}

/** A score, and what it is a score of. */
export interface CatbabiEvaluation extends Score, BaseEvaluation {
  readonly mode: CatbabiSettings["task"]["mode"];
  readonly split: "valid" | "test";
  readonly batch: number;
  readonly window: number;
  /** How sure the model was of its answers; null for a system that does not say. */
  readonly calibration: Calibration | null;
  /** Where the stream started: zeros, or the state that row 0 of the training batch was in. */
  readonly state: "zero" | "train";
  /** Whether the stories were generated, not bAbI's own. */
  readonly generated: boolean;
  /** Names of the tasks of own stories, by number; null for bAbI's tasks. */
  readonly ownTasks: Readonly<Record<number, string>> | null;
  /** What has to be said of the data: missing, filled or generated tasks. */
  readonly notes: readonly string[];
}

/** The answers at one point of an axis. */
export interface StretchPoint extends Judged {
  readonly axis: string;
  readonly at: number;
}

/** A score on the stretch suite: over all its questions, and per point. */
export interface StretchEvaluation extends BaseEvaluation, Judged {
  readonly suite: "stretch";
  /** Of the suite: another one has other stories. */
  readonly version: 1;
  readonly mode: CatbabiSettings["task"]["mode"];
  readonly system: string;
  readonly split: "stretch";
  readonly batch: number;
  readonly window: number;
  readonly axes: readonly { readonly name: string; readonly label: string }[];
  readonly points: readonly StretchPoint[];
}

/** Whether it is of the suite. */
export function isStretch(
  evaluation: CatbabiEvaluation | StretchEvaluation,
): evaluation is StretchEvaluation {
  return "suite" in evaluation;
}
