/**
 * `metrics.jsonl`: what a run measured, one record per line, in the order it was measured.
 *
 *   {"step":12,"split":"train","values":{"loss":1.25},"times":{"at":1731700000.5,"tokensPerSecond":9000}}
 *
 * What the seed decides stands in `values`; what the clock decides stands in `times`. So two runs can be
 * compared bit for bit by leaving `times` out, and that is what the promise of exact resumption means.
 */
import { join, resolve } from "node:path";
import { z } from "zod";
import { DataError } from "../errors.ts";
import { AppendFile } from "./append.ts";
import { type FileSystem, nodeFileSystem, writeFileAtomically } from "./atomic.ts";
import { decodeUtf8, parseJson } from "./json.ts";
import { readIfPresent } from "./read.ts";

/** Name of the file in a run folder. */
export const metricsFile = "metrics.jsonl";

/** One line: values measured at a step on a split of the data. */
export interface MetricRecord {
  readonly step: number;
  /** "train", "valid" or "test", or another name a run uses. */
  readonly split: string;
  /** What the seed decides. NaN and infinities are kept. */
  readonly values: Readonly<Record<string, number>>;
  /** What the clock decides: `at`, seconds since 1970, and speeds. */
  readonly times?: Readonly<Record<string, number>>;
}

/** JSON has no NaN and no infinities; they are written as these words. */
const words: ReadonlyMap<string, number> = new Map([
  ["NaN", Number.NaN],
  ["Infinity", Number.POSITIVE_INFINITY],
  ["-Infinity", Number.NEGATIVE_INFINITY],
]);

const number = z.union([
  z.number(),
  z.enum(["NaN", "Infinity", "-Infinity"]).transform((word) => words.get(word)!),
]);

const recordSchema = z.strictObject({
  step: z.int().min(0),
  split: z.string().min(1),
  values: z.record(z.string(), number),
  times: z.record(z.string(), number).optional(),
});

/** Appends records to a run's `metrics.jsonl`. */
export class MetricsWriter {
  readonly #file: AppendFile;
  readonly #now: () => number;

  /** Opens the file; `now` gives the time in seconds since 1970. */
  constructor(path: string, { now = () => Date.now() / 1000 } = {}) {
    this.#file = new AppendFile(path);
    this.#now = now;
  }

  /** Adds one record, whole, with the present time. */
  write({ step, split, values, times }: MetricRecord): void {
    const record = { step, split, values, times: { at: this.#now(), ...times } };
    const line = JSON.stringify(record, (_key, value: unknown) =>
      typeof value === "number" && !Number.isFinite(value) ? String(value) : value,
    );
    this.#file.append(new TextEncoder().encode(`${line}\n`));
  }

  /** Forces the records so far to the disk. */
  sync(): void {
    this.#file.sync();
  }

  /** Flushes and closes the file. */
  close(): void {
    this.#file.close();
  }
}

/** How to read a metrics file. */
export interface ReadMetricsOptions {
  /** Leave out everything the clock decided, for a comparison bit for bit. */
  readonly withoutTimes?: boolean;
}

/**
 * The records of a run folder or of one `.jsonl` file. A last line that a crash cut is left out; damage
 * anywhere else is a `DataError` with the line's number. A run that measured nothing yet gives none.
 */
export async function readMetrics(path: string, options: ReadMetricsOptions = {}): Promise<MetricRecord[]> {
  const file = path.endsWith(".jsonl") ? path : join(path, metricsFile);
  const lines = splitLines((await readIfPresent(file)) ?? new Uint8Array());
  return lines.map((line, i) => {
    const { step, split, values, times } = parseRecord(line, `${resolve(file)}:${i + 1}`);
    return options.withoutTimes || !times ? { step, split, values } : { step, split, values, times };
  });
}

/** What is left of a metrics file when records are taken away. */
export interface TruncatedMetrics {
  /** How many lines go. */
  readonly removed: number;
  /** Replaces the file, in one atomic step. */
  write(fs?: FileSystem): Promise<void>;
}

/**
 * Takes away every record at or after its split's first step: what a run that goes on from there has yet to measure.
 * Lines that a power cut damaged go too, as long as no record to be kept follows them; otherwise they are a
 * `DataError`. Nothing is changed before `write`.
 */
export async function truncateMetrics(
  file: string,
  firstStep: (split: string) => number,
): Promise<TruncatedMetrics> {
  const bytes = await readIfPresent(file);
  if (!bytes) return { removed: 0, write: () => Promise.resolve() };
  const lines = splitLines(bytes);
  const kept: Uint8Array[] = [];
  let damage: unknown;
  for (const [i, line] of lines.entries()) {
    try {
      const { step, split } = parseRecord(line, `${resolve(file)}:${i + 1}`);
      if (step >= firstStep(split)) continue;
    } catch (error) {
      damage ??= error;
      continue;
    }
    if (damage) throw damage;
    kept.push(line);
  }
  return {
    removed: lines.length - kept.length,
    write: (fs = nodeFileSystem) => writeFileAtomically(file, Buffer.concat(kept), fs),
  };
}

/** The lines, each with its end; what follows the last end was cut in the middle and is left out. */
function splitLines(bytes: Uint8Array): Uint8Array[] {
  const lines: Uint8Array[] = [];
  for (let start = 0, end: number; (end = bytes.indexOf(0x0a, start) + 1) > 0; start = end) {
    lines.push(bytes.subarray(start, end));
  }
  return lines;
}

function parseRecord(line: Uint8Array, where: string): MetricRecord {
  const parsed = recordSchema.safeParse(parseJson(decodeUtf8(line, where), { file: where }));
  if (!parsed.success) {
    throw new DataError(`${where}: not a metrics record`, {
      reason: z.prettifyError(parsed.error),
      hint: `${metricsFile} is written by the program alone; remove the line if it was edited`,
    });
  }
  const { step, split, values, times } = parsed.data;
  return times ? { step, split, values, times } : { step, split, values };
}
