/** An evaluation on text: what may be chosen, and what it says. */
import type { SplitName } from "../../data/catbabi.ts";
import type { BaseEvaluation, EvaluationOption } from "../kind.ts";
import type { CacheSettings } from "./cache.ts";
import type { DynamicSettings } from "./dynamic.ts";
import type { Score } from "./score.ts";

/** Columns by default: one, as published. */
export const usualBatch = 1;

/** Tokens between updates of dynamic evaluation by default, as published. */
export const usualSegment = 5;

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
  cache: {
    type: "numbers",
    names: ["lambda", "theta", "window"],
    words: ["tune"],
    help: "a second score, with a neural cache: 0.1,1,500 is published for AWD-LSTM on PTB; tune: found on valid",
  },
  dynamic: {
    type: "numbers",
    names: ["rate", "decay"],
    words: ["tune"],
    help: "a further score, with dynamic evaluation: 5e-5,2e-3 is published for AWD-LSTM on PTB; tune: found on valid",
  },
  segment: {
    type: "integer",
    min: 1,
    max: 4096,
    help: `tokens between updates of dynamic evaluation; default: ${usualSegment}`,
  },
  data: { type: "folder", help: "prepared text, if not in the usual place" },
} as const satisfies Record<string, EvaluationOption>;

/** What was chosen of them. */
export interface TextOptions {
  readonly split?: SplitName | "all";
  readonly batch?: number;
  readonly window?: number;
  readonly temperature?: number | "tune";
  /** `"lambda,theta,window"` or `"tune"`. */
  readonly cache?: string;
  /** `"rate,decay"` or `"tune"`. */
  readonly dynamic?: string;
  readonly segment?: number;
  /** Folder of prepared text; by default where the run's settings or `FWM_DATA` say. */
  readonly data?: string;
}

/** Settings that were given or found, and what was tried to find them: the loss of each on the validation split. */
export type Tuned<S> = S & { readonly tuning: readonly (S & { readonly loss: number })[] | null };

/** The scores of a split: by the model as it is, and by what was chosen besides. */
export interface SplitScores extends Score {
  /** At temperature 1, where another one was chosen. */
  readonly plain?: Score;
  readonly cache?: Score;
  readonly dynamic?: Score;
}

/** The score of a split, and how it was read. */
export interface TextEvaluation extends Score, BaseEvaluation {
  readonly split: SplitName | "all";
  /** Every split that was read; the numbers above are the chosen one's, of all: test's. */
  readonly splits: Readonly<Partial<Record<SplitName, SplitScores>>>;
  readonly dataset: string;
  readonly batch: number;
  readonly window: number;
  readonly temperature: number;
  /** Validation losses by temperature, where it was tuned. */
  readonly tuning: readonly { readonly temperature: number; readonly loss: number }[] | null;
  readonly cache: Tuned<CacheSettings> | null;
  readonly dynamic: (Tuned<DynamicSettings> & { readonly segment: number }) | null;
  /** Whether the text is the published corpus. */
  readonly isOfficial: boolean;
  readonly notes: readonly string[];
}
