/** Result files as `fwm paper` reads them: of this version and of 0.1, whose names become today's. */
import { readdir, readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { z } from "zod";
import { DataError } from "../../errors.ts";
import { errorCode, StorageError } from "../../store/atomic.ts";
import { parseJsonObject } from "../../store/json.ts";

const text = z.string().nullable().default(null);
const values = z.record(z.string(), z.number());
const curve = z.array(
  z.looseObject({
    step: z.number(),
    values,
    hours: z.number().optional(),
    processorHours: z.number().optional(),
  }),
);
const mean = z.looseObject({ mean: z.number(), standardError: z.number().nullable().default(null) });

const machine = z.looseObject({
  cpu: z.string(),
  cores: z.number(),
  threads: z.number().nullable(),
});

const trained = {
  experiment: z.string(),
  command: z.string(),
  commit: text,
  date: z.string(),
  machine: machine.nullable(),
  steps: z.number(),
  hours: z.number(),
  settings: z.looseObject({ task: z.looseObject({ name: z.string() }) }),
};

const link = z.looseObject({ name: z.string(), steps: z.number(), hours: z.number().nullable() });

const textScore = z.looseObject({ loss: z.number(), perplexity: z.number(), bits: z.number() });
const splitScore = textScore.extend({
  plain: textScore.optional(),
  cache: textScore.optional(),
  dynamic: textScore.optional(),
});

const runSchema = z.looseObject({
  ...trained,
  seed: z.number(),
  weights: z.number().nullable().default(null),
  stateVariables: z.number().nullable().default(null),
  initFrom: text,
  chain: z.array(link).default([]),
  /** Absent in version 0.1, where the commit alone says it. */
  exactSource: z.boolean().optional(),
  data: text,
  curves: z.record(z.string(), curve),
  returns: z.array(z.looseObject({ episode: z.number(), heldOut: z.number() })).default([]),
  score: z
    .looseObject({
      split: z.string(),
      step: z.number().nullable().default(null),
      accuracy: z.number().optional(),
      perplexity: z.number().optional(),
      loss: z.number().optional(),
      bits: z.number().optional(),
      generated: z.boolean().optional(),
      perTask: z.record(z.string(), z.looseObject({ accuracy: z.number() })).optional(),
      splits: z.record(z.string(), splitScore).optional(),
      tuning: z.array(z.looseObject({ temperature: z.number(), loss: z.number() })).nullish(),
      return: mean.optional(),
      explorer: mean.optional(),
      rules: z.looseObject({ timerOnSuccess: z.string() }).optional(),
    })
    .nullable()
    .default(null),
});

const sweepSchema = z.looseObject({
  ...trained,
  members: z.array(
    z.looseObject({
      name: z.string(),
      seed: z.number(),
      parameters: z.number(),
      steps: z.number(),
      best: z.record(z.string(), z.looseObject({ value: z.number(), step: z.number() })),
      curves: z.record(z.string(), curve),
    }),
  ),
});

const point = {
  questions: z.number(),
  accuracy: z.number(),
  confidence: z.number(),
  calibrationError: z.number(),
};

const reported = {
  reportedBy: z.string(),
  commit: text,
  date: z.string(),
  machine: machine.nullable(),
};

const evaluated = { experiment: z.string(), ...reported };

const agentSchema = z.looseObject({
  ...evaluated,
  score: z.looseObject({
    split: z.string(),
    graphs: z.number(),
    episodes: z.number(),
    length: z.number(),
    states: z.number(),
    return: mean,
    random: mean,
    explorer: mean,
    shortestPath: mean,
  }),
});

const evaluationSchema = z.looseObject({
  ...evaluated,
  score: z.looseObject({
    suite: z.literal("stretch"),
    version: z.number(),
    model: z.string(),
    ...point,
    axes: z.array(z.looseObject({ name: z.string(), label: z.string() })),
    points: z.array(z.looseObject({ axis: z.string(), at: z.number(), ...point })),
  }),
});

const languageSchema = z.looseObject({
  ...evaluated,
  score: z.looseObject({
    model: z.string(),
    split: z.string(),
    perplexity: z.number(),
    temperature: z.number(),
    splits: z.record(z.string(), splitScore),
    tuning: z.array(z.looseObject({ temperature: z.number(), loss: z.number() })).nullable(),
    cache: z.looseObject({ lambda: z.number(), theta: z.number(), window: z.number() }).nullable(),
    dynamic: z.looseObject({ rate: z.number(), decay: z.number(), segment: z.number() }).nullable(),
  }),
});

const comparisonSchema = z.looseObject({
  ...reported,
  split: z.string(),
  tokens: z.number(),
  models: z.array(z.looseObject({ experiment: z.string(), bits: z.number() })).length(2),
  passages: z.array(
    z.looseObject({
      at: z.number(),
      words: z.array(z.string()),
      bits: z.tuple([z.array(z.number()), z.array(z.number())]),
      difference: z.array(z.number()),
    }),
  ),
});

/** A file's name without its ending goes with what it holds. */
type Filed<T extends z.ZodType> = z.infer<T> & { readonly file: string };
/** The result of a run. */
export type FiledRun = Filed<typeof runSchema>;
/** The result of a sweep. */
export type FiledSweep = Filed<typeof sweepSchema>;
/** A model on the stretch suite. */
export type FiledStretch = Filed<typeof evaluationSchema>;
/** An agent on graphs or in episodes of one's choice. */
export type FiledAgent = Filed<typeof agentSchema>;
/** A language model, evaluated on its own. */
export type FiledLanguage = Filed<typeof languageSchema>;
/** Two language models word by word. */
export type FiledComparison = Filed<typeof comparisonSchema>;

/** All results of a folder, each kind in the order of the files' names. */
export interface Results {
  readonly runs: readonly FiledRun[];
  readonly sweeps: readonly FiledSweep[];
  readonly stretches: readonly FiledStretch[];
  readonly agents: readonly FiledAgent[];
  readonly languages: readonly FiledLanguage[];
  readonly comparisons: readonly FiledComparison[];
}

/** Reads every result file of a folder. A file that is none is a `DataError`. */
export async function readResults(folder: string): Promise<Results> {
  const names = await readdir(folder).catch((error: unknown) => {
    if (errorCode(error) === "ENOENT") throw new DataError(`${folder}: there is no such folder of results`);
    throw new StorageError("cannot list the folder", folder, error);
  });
  const found = { runs: [], sweeps: [], stretches: [], agents: [], languages: [], comparisons: [] } as {
    -readonly [K in keyof Results]: Results[K][number][];
  };
  for (const name of names.filter((one) => one.endsWith(".json")).sort()) {
    const path = join(folder, name);
    const content = withNewNames(parseJsonObject(await readFile(path), { file: path }));
    const parse = <T extends z.ZodType>(schema: T): Filed<T> => {
      const parsed = schema.safeParse(content);
      if (parsed.success) return { ...(parsed.data as object), file: basename(name, ".json") } as Filed<T>;
      throw new DataError(`${path}: not a result that this version understands`, {
        reason: z.prettifyError(parsed.error),
        hint: "result files are written by fwm report, fwm sweep, fwm eval --out and fwm compare --out",
      });
    };
    if ("members" in content) found.sweeps.push(parse(sweepSchema));
    else if ("passages" in content) found.comparisons.push(parse(comparisonSchema));
    else if ("curves" in content) found.runs.push(parse(runSchema));
    else if ("return" in Object(content.score)) found.agents.push(parse(agentSchema));
    else if ("splits" in Object(content.score)) found.languages.push(parse(languageSchema));
    else found.stretches.push(parse(evaluationSchema));
  }
  return found;
}

/** Names of version 0.1, old to new: results/README.md. */
const renamed: Readonly<Record<string, string>> = {
  begun: "initFrom",
  rewards: "returns",
  reward: "return",
  remarks: "notes",
};

/** The content with today's names; a point of `rewards` has its held-out return under `test`. */
function withNewNames(content: Record<string, unknown>): Record<string, unknown> {
  const rename = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(rename);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [renamed[key] ?? key, rename(one)]));
  };
  const today = rename(content) as Record<string, unknown>;
  if (!("rewards" in content)) return today;
  const points = today.returns as readonly { readonly test: number }[];
  return { ...today, returns: points.map(({ test, ...point }) => ({ ...point, heldOut: test })) };
}
