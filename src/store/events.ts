/**
 * TensorBoard event files: scalars and hyper-parameters that `tensorboard --logdir <runs>` shows.
 *
 * A file is a sequence of records, each
 *
 *   8 bytes  length, little-endian        4 bytes  masked CRC-32C of those 8 bytes
 *   n bytes  an Event (protocol buffer)   4 bytes  masked CRC-32C of the Event
 *
 * Fields used, as in TensorBoard's event.proto, summary.proto and plugins/hparams/plugin_data.proto:
 *
 *   Event            1 wall_time double   2 step int64   3 file_version   5 Summary   7 SessionLog
 *   SessionLog       1 status (1 = START)
 *   Summary          1 value, repeated    Value: 1 tag   2 simple_value float   9 SummaryMetadata
 *   SummaryMetadata  1 PluginData (1 plugin_name, 2 content)
 *   HParamsPluginData  3 SessionStartInfo (1 map name → google.protobuf.Value, 5 start_time_secs double)
 *
 * A resumed run begins a new file whose SessionLog START drops what earlier files hold at or after its step.
 * TensorBoard takes the first START of a folder for the beginning and only later ones for restarts, so every
 * file opens with one.
 */
import { mkdirSync, readdirSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { DataError } from "../errors.ts";
import { AppendFile } from "./append.ts";
import { StorageError } from "./atomic.ts";
import { maskedCrc32c } from "./crc32c.ts";

/** A hyper-parameter as TensorBoard's table shows it. */
export type HyperParameter = number | string | boolean;

const fileName = /^events\.out\.tfevents\.(\d+)\./;

/** Whether a name is that of an event file. */
export function isEventFile(name: string): boolean {
  return fileName.test(name);
}

/** Writes one event file into a folder, which it makes if needed. */
export class EventWriter {
  readonly #file: AppendFile;
  readonly #now: () => number;

  /**
   * Begins a new file. Points that earlier files of the folder hold at or after `firstStep` are void.
   * `now` gives the time in seconds since 1970.
   */
  constructor(folder: string, { firstStep = 0, now = () => Date.now() / 1000 } = {}) {
    this.#now = now;
    this.#file = openNext(folder, Math.floor(now()));
    this.#write(lengthField(3, utf8("brain.Event:2")), 0);
    this.#write(lengthField(7, varintField(1, 1)), firstStep);
  }

  /** The file's path. */
  get path(): string {
    return this.#file.path;
  }

  /** Records values by tag, all at one step. */
  scalars(step: number, values: Readonly<Record<string, number>>): void {
    const summary = Object.entries(values).map(([tag, value]) =>
      lengthField(1, join8(lengthField(1, utf8(tag)), floatField(2, value))),
    );
    this.#write(lengthField(5, join8(...summary)), step);
  }

  /** Records the run's settings for the HParams table. */
  hyperParameters(values: Readonly<Record<string, HyperParameter>>): void {
    const entries = Object.entries(values).map(([name, value]) =>
      lengthField(1, join8(lengthField(1, utf8(name)), lengthField(2, structValue(value)))),
    );
    const content = lengthField(3, join8(...entries, doubleField(5, this.#now())));
    const plugin = join8(lengthField(1, utf8("hparams")), lengthField(2, content));
    const value = join8(
      lengthField(1, utf8("_hparams_/session_start_info")),
      lengthField(9, lengthField(1, plugin)),
    );
    this.#write(lengthField(5, lengthField(1, value)), 0);
  }

  /** Forces the records so far to the disk. */
  sync(): void {
    this.#file.sync();
  }

  /** Flushes and closes the file. */
  close(): void {
    this.#file.close();
  }

  #write(what: Uint8Array, step: number): void {
    // Protocol buffers leave zeros out.
    const at = step === 0 ? new Uint8Array() : varintField(2, step);
    this.#file.append(encodeRecord(join8(doubleField(1, this.#now()), at, what)));
  }
}

/** One record around some bytes: length, checksum, bytes, checksum. */
export function encodeRecord(data: Uint8Array): Uint8Array {
  const record = new Uint8Array(16 + data.length);
  const view = new DataView(record.buffer);
  view.setBigUint64(0, BigInt(data.length), true);
  view.setUint32(8, maskedCrc32c(record.subarray(0, 8)), true);
  record.set(data, 12);
  view.setUint32(12 + data.length, maskedCrc32c(data), true);
  return record;
}

/** The data of each record; checksums are verified, and a last record cut by a crash is left out. */
export function decodeRecords(bytes: Uint8Array, { file }: { readonly file: string }): Uint8Array[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const records: Uint8Array[] = [];
  for (let at = 0; at + 12 <= bytes.length; ) {
    const length = Number(view.getBigUint64(at, true));
    if (view.getUint32(at + 8, true) !== maskedCrc32c(bytes.subarray(at, at + 8))) {
      throw new DataError(`${file}: record ${records.length + 1}: the checksum of its length is wrong`, {
        at,
      });
    }
    if (at + 16 + length > bytes.length) break;
    const data = bytes.subarray(at + 12, at + 12 + length);
    if (view.getUint32(at + 12 + length, true) !== maskedCrc32c(data)) {
      throw new DataError(`${file}: record ${records.length + 1}: the checksum of its data is wrong`, { at });
    }
    records.push(data);
    at += 16 + length;
  }
  return records;
}

/**
 * Opens `events.out.tfevents.<unix>.<host>.<pid>.<n>`. TensorBoard reads a folder's files in the order of
 * their names, so the time in a new name is later than in every older one, whatever the clock says.
 */
function openNext(folder: string, seconds: number): AppendFile {
  let names: string[];
  try {
    mkdirSync(folder, { recursive: true });
    names = readdirSync(folder);
  } catch (error) {
    throw new StorageError("cannot make the folder for event files", folder, error);
  }
  const newest = Math.max(0, ...names.map((name) => Number(fileName.exec(name)?.[1] ?? 0)));
  const host = hostname().replace(/[^A-Za-z0-9-]/g, "_") || "localhost";
  const unix = String(Math.max(seconds, newest + 1)).padStart(10, "0");
  return new AppendFile(join(folder, `events.out.tfevents.${unix}.${host}.${process.pid}.0`), {
    create: true,
  });
}

/** google.protobuf.Value: 2 number, 3 string, 4 bool. */
function structValue(value: HyperParameter): Uint8Array {
  if (typeof value === "number") return doubleField(2, value);
  return typeof value === "string" ? lengthField(3, utf8(value)) : varintField(4, Number(value));
}

function varint(value: number): Uint8Array {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80);
  bytes.push(rest);
  return Uint8Array.from(bytes);
}

function varintField(field: number, value: number): Uint8Array {
  return join8(varint(field << 3), varint(value));
}

function doubleField(field: number, value: number): Uint8Array {
  return join8(varint((field << 3) | 1), new Uint8Array(Float64Array.of(value).buffer));
}

function lengthField(field: number, bytes: Uint8Array): Uint8Array {
  return join8(varint((field << 3) | 2), varint(bytes.length), bytes);
}

function floatField(field: number, value: number): Uint8Array {
  return join8(varint((field << 3) | 5), new Uint8Array(Float32Array.of(value).buffer));
}

function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

function join8(...parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
