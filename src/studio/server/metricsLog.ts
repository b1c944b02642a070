/**
 * `metrics.jsonl` of a run, kept as columns and read on as it grows: a page that has seen some of it is sent only the
 * rest. The file is replaced, not changed, when a run is rewound; then everything is read and sent again.
 */
import { type FileHandle, open, stat } from "node:fs/promises";
import { join } from "node:path";
import { median } from "../../statistics.ts";
import { errorCode } from "../../store/atomic.ts";
import { metricsFile } from "../../store/metrics.ts";
import type { RunMetrics, SeriesPoints } from "../api.ts";
import { keptIndices, smoothed } from "../series.ts";

/** One series of a run, column by column. */
interface Column {
  /** Number of the record in the file. */
  readonly records: number[];
  readonly steps: number[];
  readonly values: number[];
  /** Seconds since 1970; NaN where the record has none. */
  readonly at: number[];
}

/** What of a log is wanted. */
export interface LogRequest {
  readonly cursor?: string | undefined;
  /** Series to give; undefined: all whose names do not end in a task's number. */
  readonly series?: readonly string[] | undefined;
  readonly points: number;
  readonly smoothing?: number | undefined;
}

/** Bytes read at once. */
const chunkSize = 2 ** 20;
/** Longest line that is read; a longer one is no record. */
const longestLine = 2 ** 16;

const words: Readonly<Record<string, number>> = {
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
  "-Infinity": Number.NEGATIVE_INFINITY,
};

/** Records farther apart than so many seconds, and so many times the usual gap, are two sittings. */
const pause = { seconds: 15 * 60, times: 10 };

/** The metrics of one run. */
export class MetricsLog {
  private readonly file: string;
  /** By `<split>/<measure>`, and by split and measure. */
  private columns = new Map<string, Column>();
  private splits = new Map<string, Map<string, Column>>();
  /** Which file was read: its number and birth. Another one means that the run was rewound. */
  private identity = "";
  private offset = 0;
  private records = 0;
  /** The beginning of a line whose end was not written yet. */
  private rest: Buffer = Buffer.alloc(0);
  private lastAt = Number.NaN;
  private firstAt = Number.NaN;
  private gaps: number[] = [];
  /** Long gaps: the time after each, and its length. */
  private longGaps: { readonly at: number; readonly seconds: number }[] = [];
  private reading: Promise<void> | undefined;

  constructor(folder: string) {
    this.file = join(folder, metricsFile);
  }

  /** Reads what was added since; calls at the same time share one reading. */
  async refresh(): Promise<void> {
    this.reading ??= this.readOn().finally(() => (this.reading = undefined));
    await this.reading;
  }

  /** Names of all series, as `<split>/<measure>`. */
  get available(): string[] {
    return [...this.columns.keys()];
  }

  /** Numbers held, as a measure of memory. */
  get size(): number {
    let size = 0;
    for (const { steps } of this.columns.values()) size += 4 * steps.length;
    return size;
  }

  /** Where a page that was sent everything stands. */
  get cursor(): string {
    return `${this.identity}-${this.records}`;
  }

  /** The points after a cursor, downsampled; everything where the cursor is of another file. */
  points({ cursor, series, points, smoothing }: LogRequest): Pick<RunMetrics, "cursor" | "reset" | "series"> {
    const first = this.firstRecord(cursor);
    const names = series ?? this.available.filter((name) => !/\/task\d+$/.test(name));
    const found: Record<string, SeriesPoints> = {};
    const hoursAt = this.hours();
    for (const name of names) {
      const column = this.columns.get(name);
      if (!column) continue;
      const from = lowerBound(column.records, first);
      if (from === column.records.length) continue;
      const values = column.values.slice(from);
      const kept = keptIndices(values, points);
      const whole = smoothing ? smoothed(column.values, smoothing) : undefined;
      found[name] = {
        steps: kept.map((i) => column.steps[from + i]!),
        values: kept.map((i) => finite(values[i]!)),
        hours: kept.map((i) => Number(hoursAt(column.at[from + i]!).toFixed(5))),
        ...(whole ? { smoothed: kept.map((i) => finite(whole[from + i]!)) } : {}),
      };
    }
    return { cursor: this.cursor, reset: first === 0, series: found };
  }

  /** The values of a split at a step, or at its last one. */
  at(split: string, step?: number): { step: number; values: Record<string, number> } | undefined {
    let record = -1;
    let chosen = -1;
    for (const [name, { steps, records }] of this.columns) {
      if (!name.startsWith(`${split}/`)) continue;
      const i = step === undefined ? steps.length - 1 : steps.lastIndexOf(step);
      if (i >= 0 && records[i]! > record) [record, chosen] = [records[i]!, steps[i]!];
    }
    if (record < 0) return undefined;
    const values: Record<string, number> = {};
    for (const [name, column] of this.columns) {
      const i = column.records.indexOf(record);
      if (i >= 0) values[name.slice(split.length + 1)] = column.values[i]!;
    }
    return { step: chosen, values };
  }

  /** Hours of training in all. */
  get totalHours(): number {
    return Number(this.hours()(this.lastAt).toFixed(3));
  }

  private firstRecord(cursor: string | undefined): number {
    const [, identity, records] = /^(.*)-(\d+)$/.exec(cursor ?? "") ?? [];
    const count = Number(records);
    return identity === this.identity && count <= this.records ? count : 0;
  }

  /** Hours up to a time, the gaps between sittings left out. */
  private hours(): (at: number) => number {
    // Two records of one step are moments apart and say nothing of what is usual.
    const usual = this.longGaps.length === 0 ? 0 : median(this.gaps.filter((gap) => gap > 1));
    const pauses = this.longGaps.filter(({ seconds }) => !(seconds < pause.times * usual));
    return (at) => {
      if (!Number.isFinite(at)) return 0;
      const idle = pauses.reduce((sum, gap) => (gap.at <= at ? sum + gap.seconds : sum), 0);
      return Math.max(0, at - this.firstAt - idle) / 3600;
    };
  }

  private async readOn(): Promise<void> {
    const handle = await open(this.file, "r").catch((error: unknown) => {
      if (errorCode(error) === "ENOENT") return undefined;
      throw error;
    });
    if (!handle) {
      this.forget("");
      return;
    }
    try {
      const { ino, birthtimeMs, size } = await handle.stat();
      const identity = `${ino.toString(36)}.${Math.round(birthtimeMs).toString(36)}`;
      if (identity !== this.identity || size < this.offset) this.forget(identity);
      await this.readTo(handle, size);
    } finally {
      await handle.close();
    }
  }

  private async readTo(handle: FileHandle, size: number): Promise<void> {
    const buffer = Buffer.alloc(Math.min(chunkSize, Math.max(0, size - this.offset)));
    while (this.offset < size) {
      const { bytesRead } = await handle.read(buffer, 0, buffer.length, this.offset);
      if (bytesRead === 0) return;
      this.offset += bytesRead;
      this.take(Buffer.concat([this.rest, buffer.subarray(0, bytesRead)]));
    }
  }

  private take(bytes: Buffer): void {
    let start = 0;
    for (let end: number; (end = bytes.indexOf(0x0a, start)) >= 0; start = end + 1) {
      if (end - start <= longestLine) this.add(bytes.toString("utf8", start, end));
      this.records++;
    }
    const rest = bytes.subarray(start);
    this.rest = rest.length > longestLine ? Buffer.alloc(0) : Buffer.from(rest);
  }

  /** Adds a record; a line that is none is passed over, as a power cut may have left it. */
  private add(line: string): void {
    const record = recordOf(line);
    if (!record) return;
    const at = record.at ?? Number.NaN;
    this.noteTime(at);
    // Looked up by name within the split: a log has millions of values, and joining two names each time costs as much as reading them.
    let split = this.splits.get(record.split);
    if (!split) this.splits.set(record.split, (split = new Map<string, Column>()));
    for (const name of Object.keys(record.values)) {
      const given = record.values[name];
      const value = typeof given === "number" ? given : words[String(given)];
      if (value === undefined) continue;
      let column = split.get(name);
      if (!column) {
        column = { records: [], steps: [], values: [], at: [] };
        split.set(name, column);
        this.columns.set(`${record.split}/${name}`, column);
      }
      column.records.push(this.records);
      column.steps.push(record.step);
      column.values.push(value);
      column.at.push(at);
    }
  }

  private noteTime(at: number): void {
    if (!Number.isFinite(at)) return;
    if (Number.isNaN(this.firstAt)) this.firstAt = at;
    else {
      const seconds = at - this.lastAt;
      this.gaps.push(seconds);
      if (seconds >= pause.seconds) this.longGaps.push({ at, seconds });
    }
    this.lastAt = at;
  }

  private forget(identity: string): void {
    this.identity = identity;
    this.offset = 0;
    this.records = 0;
    this.rest = Buffer.alloc(0);
    this.columns = new Map();
    this.splits = new Map();
    [this.firstAt, this.lastAt] = [Number.NaN, Number.NaN];
    this.gaps = [];
    this.longGaps = [];
  }
}

/** The logs of runs that pages look at; those not used for longest are let go. */
export class MetricsLogs {
  private readonly logs = new Map<string, MetricsLog>();

  /** `most` is how many numbers are held in all. */
  constructor(private readonly most = 2 ** 25) {}

  /** The log of a run folder, read up to now. */
  async of(folder: string): Promise<MetricsLog> {
    const log = this.logs.get(folder) ?? new MetricsLog(folder);
    this.logs.delete(folder);
    this.logs.set(folder, log);
    await log.refresh();
    this.evict(folder);
    return log;
  }

  private evict(except: string): void {
    let held = 0;
    for (const log of this.logs.values()) held += log.size;
    for (const [folder, log] of this.logs) {
      if (held <= this.most) return;
      if (folder === except) continue;
      held -= log.size;
      this.logs.delete(folder);
    }
  }
}

/** The last value that a log has of a speed: from the end of the file alone, for a list of runs. */
export async function lastSpeed(folder: string, name: string): Promise<number | null> {
  const file = join(folder, metricsFile);
  const handle = await open(file, "r").catch(() => undefined);
  if (!handle) return null;
  try {
    const { size } = await handle.stat();
    const length = Math.min(size, 2 ** 14);
    const { buffer } = await handle.read(Buffer.alloc(length), 0, length, size - length);
    const lines = buffer.toString("utf8").split("\n").slice(0, -1).reverse();
    for (const line of lines) {
      const speed = /"times":\{[^}]*\}/.test(line) ? speedOf(line, name) : undefined;
      if (speed !== undefined) return speed;
    }
    return null;
  } finally {
    await handle.close();
  }
}

/** Bytes of a run's metrics; 0 before the first record. */
export async function metricsSize(folder: string): Promise<number> {
  return stat(join(folder, metricsFile)).then(
    ({ size }) => size,
    () => 0,
  );
}

function speedOf(line: string, name: string): number | undefined {
  const times = asObject(parsed(line))?.times;
  const speed = asObject(times)?.[name];
  return typeof speed === "number" && speed > 0 ? speed : undefined;
}

function recordOf(line: string) {
  const value = asObject(parsed(line));
  const values = asObject(value?.values);
  if (!value || !values || typeof value.step !== "number" || typeof value.split !== "string")
    return undefined;
  const at = asObject(value.times)?.at;
  return {
    step: value.step,
    split: value.split,
    values,
    at: typeof at === "number" ? at : undefined,
  };
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

function asObject(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
}

/** JSON has no NaN and no infinities. Six digits are more than a screen shows. */
function finite(value: number): number | null {
  return Number.isFinite(value) ? Number(value.toPrecision(6)) : null;
}

function lowerBound(sorted: readonly number[], value: number): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
