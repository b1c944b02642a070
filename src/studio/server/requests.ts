/** What requests may say: strict schemas of every body and query, and the errors that become answers. */
import { z } from "zod";
import { DataError, FwmError, UsageError } from "../../errors.ts";
import { type ApiFailure, limits } from "../api.ts";

/** A name as listings give it; whether there is such a thing is looked up, never joined to a path. */
const name = z.string().min(1).max(300);

const model = z.strictObject({ id: name, checkpoint: name.exactOptional() });
const seed = z.int().min(0).max(0xffffffff);

/** Bodies by the name of their route. */
export const bodies = {
  metrics: z.strictObject({
    runs: z
      .array(z.strictObject({ name, cursor: z.string().max(100).optional() }))
      .max(limits.runsPerRequest),
    series: z.array(z.string().max(100)).max(50).optional(),
    points: z.int().min(4).max(limits.points),
    smoothing: z.number().min(0).max(0.999).optional(),
  }),
  compare: z.strictObject({ runs: z.array(name).max(limits.runsPerRequest) }),
  vocabulary: z.strictObject({ model }),
  ask: z.strictObject({
    model,
    story: z.string().max(limits.storyCharacters),
    top: z.int().min(1).max(50).optional(),
    writes: z.boolean().optional(),
  }),
  rollout: z.strictObject({ model, seed }),
  passage: z.strictObject({ model, text: z.string().max(limits.storyCharacters) }),
  generate: z.strictObject({
    model,
    prompt: z.string().max(limits.storyCharacters),
    words: z.int().min(1).max(limits.generatedWords),
    temperature: z.number().min(0).max(100),
    topK: z.int().min(0).max(1e6),
    seed,
  }),
  train: z.strictObject({
    experiment: name,
    smoke: z.boolean().exactOptional(),
    steps: z.int().min(1).max(1e9).exactOptional(),
    seed: seed.exactOptional(),
    batch: z.int().min(1).max(1e6).exactOptional(),
    set: z.array(z.string().min(3).max(500)).max(50).exactOptional(),
    // A plain name: no folder, nothing hidden, nothing that looks like an option.
    name: z
      .string()
      .regex(/^\w[\w.=+,-]*$/, "letters, digits and .=+,_- only")
      .max(150)
      .exactOptional(),
  }),
  resume: z.strictObject({ run: name, steps: z.int().min(1).max(1e9).exactOptional() }),
  stop: z.strictObject({ run: name }),
} as const;

/** Queries by the name of their route. */
export const queries = {
  since: z.strictObject({ since: z.string().max(100).optional() }),
  run: z.strictObject({ run: name }),
  sweep: z.strictObject({ sweep: name }),
} as const;

/** Checks a value against a schema; what does not fit is a `UsageError`. */
export function checked<T>(schema: z.ZodType<T>, value: unknown): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw new UsageError(`request: ${z.prettifyError(result.error)}`);
}

/** A failure with the status it is answered with. */
export class Refusal extends Error {
  constructor(
    readonly status: 400 | 401 | 403 | 404 | 405 | 409 | 413 | 415 | 421 | 429 | 500 | 503,
    readonly kind: ApiFailure["error"]["kind"],
    message: string,
  ) {
    super(message);
  }
}

/** Words that a model does not know, as its process said it. */
export class UnknownWords extends UsageError {
  constructor(
    message: string,
    /** Each with the nearest known ones. */
    readonly suggestions: ReadonlyMap<string, readonly string[]>,
  ) {
    super(message);
  }
}

/** A name that is in no listing. */
export function missing(what: string): Refusal {
  return new Refusal(404, "missing", `there is no such ${what}`);
}

/** An error as an answer: its status, and what it may say. */
export function failureOf(error: unknown): { status: number; body: ApiFailure } {
  if (error instanceof Refusal) {
    return { status: error.status, body: { error: { kind: error.kind, message: error.message } } };
  }
  if (error instanceof UnknownWords) {
    const unknownWords = Object.fromEntries(error.suggestions);
    return { status: 400, body: { error: { kind: "usage", message: error.message, unknownWords } } };
  }
  if (error instanceof UsageError) {
    return { status: 400, body: { error: { kind: "usage", message: error.message } } };
  }
  if (error instanceof DataError) {
    return { status: 422, body: { error: { kind: "data", message: error.message } } };
  }
  if (error instanceof FwmError && !error.message.startsWith("internal:")) {
    return { status: 500, body: { error: { kind: "failed", message: error.message } } };
  }
  // What went wrong inside is for the log, not for whoever asked.
  return {
    status: 500,
    body: { error: { kind: "failed", message: "internal error; see the studio's log" } },
  };
}
