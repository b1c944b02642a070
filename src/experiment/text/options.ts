/** An evaluation on text: what may be chosen, and what it says. */
import type { SplitName } from "../../data/catbabi.ts";
import type { BaseEvaluation, EvaluationOption } from "../kind.ts";
import type { Score } from "./score.ts";

/** Columns by default: one, as published. */
export const usualBatch = 1;

/** What a person may choose. */
export const evaluationOptions = {
  split: {
    type: "choice",
    values: ["train", "valid", "test", "all"],
    help: "part of the text; default: valid",
  },
  batch: { type: "integer", min: 1, max: 4096, help: `columns; default: ${usualBatch}` },
  window: { type: "integer", min: 1, max: 4096, help: "tokens per window; default: as in training" },
  temperature: {
    type: "number",
    words: ["tune"],
    help: "divides the logits (AWD-LSTM, AWD-FWM: the hidden vector); tune: found on valid; default: 1",
  },
  data: { type: "folder", help: "prepared text, if not in the usual place" },
} as const satisfies Record<string, EvaluationOption>;

/** What was chosen of them. */
export interface TextOptions {
  readonly split?: SplitName | "all";
  readonly batch?: number;
  readonly window?: number;
  readonly temperature?: number | "tune";
  /** Folder of prepared text; by default where the run's settings or `FWM_DATA` say. */
  readonly data?: string;
}

/** The score of a split, and how it was read. */
export interface TextEvaluation extends Score, BaseEvaluation {
  readonly split: SplitName | "all";
  /** Every split that was read; the numbers above are the chosen one's, of all: test's. */
  readonly splits: Readonly<Partial<Record<SplitName, Score>>>;
  readonly dataset: string;
  readonly batch: number;
  readonly window: number;
  readonly temperature: number;
  /** Validation losses by temperature, where it was tuned. */
  readonly tuning: readonly { readonly temperature: number; readonly loss: number }[] | null;
  /** Whether the text is the published corpus. */
  readonly isOfficial: boolean;
  readonly notes: readonly string[];
}
