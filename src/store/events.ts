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
import { mkdirSync, readdirSync, statSync } from "node:fs";
import { hostname } from "node:os";
import { dirname, join } from "node:path";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { AppendFile } from "./append.ts";
import { errorCode, StorageError } from "./atomic.ts";
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
    this.#write(0, (event) => event.tag(3, WireType.LengthDelimited).string("brain.Event:2"));
    this.#write(firstStep, (event) =>
      message(event, 7, (session) => session.tag(1, WireType.Varint).int32(1)),
    );
  }

  /** The file's path. */
  get path(): string {
    return this.#file.path;
  }

  /** Records values by tag, all at one step. */
  scalars(step: number, values: Readonly<Record<string, number>>): void {
    this.#write(step, (event) =>
      message(event, 5, (summary) => {
        for (const [tag, scalar] of Object.entries(values)) {
          // The writer refuses what only float64 can hold; rounded, it is an infinity, which TensorBoard shows.
          const rounded = Math.fround(scalar);
          message(summary, 1, (value) =>
            value.tag(1, WireType.LengthDelimited).string(tag).tag(2, WireType.Bit32).float(rounded),
          );
        }
      }),
    );
  }

  /** Records the run's settings for the HParams table. */
  hyperParameters(values: Readonly<Record<string, HyperParameter>>): void {
    const start = (info: BinaryWriter): void => {
      for (const [name, given] of Object.entries(values)) {
        message(info, 1, (entry) => {
          entry.tag(1, WireType.LengthDelimited).string(name);
          message(entry, 2, (value) => structValue(value, given));
        });
      }
      info.tag(5, WireType.Bit64).double(this.#now());
    };
    const plugin = (data: BinaryWriter): void => {
      data.tag(1, WireType.LengthDelimited).string("hparams");
      message(data, 2, (content) => message(content, 3, start));
    };
    this.#write(0, (event) =>
      message(event, 5, (summary) =>
        message(summary, 1, (value) => {
          value.tag(1, WireType.LengthDelimited).string("_hparams_/session_start_info");
          message(value, 9, (metadata) => message(metadata, 1, plugin));
        }),
      ),
    );
  }

  /** Forces the records so far to the disk. */
  sync(): void {
    this.#file.sync();
  }

  /** Flushes and closes the file. */
  close(): void {
    this.#file.close();
  }

  /** Appends an event at a step; `write` gives it its one content. */
  #write(step: number, write: (event: BinaryWriter) => void): void {
    const event = new BinaryWriter();
    event.tag(1, WireType.Bit64).double(this.#now());
    // Protocol buffers leave zeros out.
    if (step !== 0) event.tag(2, WireType.Varint).int64(step);
    write(event);
    this.#file.append(encodeRecord(event.finish()));
  }
}

/** Writes a message as a field of another. */
function message(writer: BinaryWriter, field: number, write: (message: BinaryWriter) => void): void {
  writer.tag(field, WireType.LengthDelimited).fork();
  write(writer);
  writer.join();
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

/**
 * Opens `events.out.tfevents.<unix>.<host>.<pid>.<n>`. TensorBoard reads a folder's files in the order of
 * their names, so the time in a new name is later than in every older one, whatever the clock says.
 */
function openNext(folder: string, seconds: number): AppendFile {
  let names: string[];
  try {
    makeFoldersSync(folder);
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

/** Makes a folder and those above it one by one: Node's own recursion reports a read-only disk as a missing folder. */
function makeFoldersSync(path: string): void {
  try {
    mkdirSync(path);
  } catch (error) {
    if (errorCode(error) === "ENOENT" && dirname(path) !== path) {
      makeFoldersSync(dirname(path));
      mkdirSync(path);
    } else if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw error;
  }
}

/** google.protobuf.Value: 2 number, 3 string, 4 bool. */
function structValue(value: BinaryWriter, given: HyperParameter): void {
  if (typeof given === "number") value.tag(2, WireType.Bit64).double(given);
  else if (typeof given === "string") value.tag(3, WireType.LengthDelimited).string(given);
  else value.tag(4, WireType.Varint).bool(given);
}
