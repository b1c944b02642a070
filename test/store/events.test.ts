/** Event files byte by byte: published checksums, a record worked out by hand, and a reader of our own. */
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { crc32c, maskedCrc32c } from "../../src/store/crc32c.ts";
import { EventWriter, encodeRecord } from "../../src/store/events.ts";
import { scratch } from "./helpers.ts";
import { decodeRecords } from "./records.ts";
import { keyed } from "./samples.ts";

const ascii = (text: string): Uint8Array => new TextEncoder().encode(text);
const hex = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text.replaceAll(" ", ""), "hex"));

describe("CRC-32C", () => {
  // RFC 3720, appendix B.4; the last is the catalogue's check value.
  const iscsiRead =
    "01c00000 00000000 00000000 00000000 14000000 00000400 00000014 00000018 28000000 00000000 02000000 00000000";
  const published: [string, Uint8Array, number][] = [
    ["32 zeros", new Uint8Array(32), 0x8a9136aa],
    ["32 ones", new Uint8Array(32).fill(0xff), 0x62a8ab43],
    ["32 incrementing", Uint8Array.from({ length: 32 }, (_, i) => i), 0x46dd794e],
    ["32 decrementing", Uint8Array.from({ length: 32 }, (_, i) => 31 - i), 0x113fdb5c],
    ["an iSCSI read command", hex(iscsiRead), 0xd9963a56],
    ["123456789", ascii("123456789"), 0xe3069283],
    ["nothing", new Uint8Array(), 0],
  ];
  it.each(published)("of %s", (_what, bytes, wanted) => {
    expect(crc32c(bytes)).toBe(wanted);
  });

  it("equals one bit at a time, at every length up to 40", () => {
    for (let length = 0; length <= 40; length++) {
      const bytes = Uint8Array.from({ length }, (_, i) => Math.floor(keyed(length, i) * 256));
      let crc = 0xffffffff;
      for (const byte of bytes) {
        crc ^= byte;
        for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
      }
      expect(crc32c(bytes)).toBe(~crc >>> 0);
    }
  });

  it("is masked by a rotation of 15 bits and an offset", () => {
    // 0xe3069283 rotated right by 15 is 0x2507c60d; plus 0xa282ead8 is 0xc78ab0e5.
    expect(maskedCrc32c(ascii("123456789"))).toBe(0xc78ab0e5);
  });
});

/** Fields of a protocol buffer message: number → raw values, in order. Written apart from the encoder. */
function fieldsOf(message: Uint8Array): Map<number, (bigint | Uint8Array)[]> {
  const fields = new Map<number, (bigint | Uint8Array)[]>();
  const view = new DataView(message.buffer, message.byteOffset, message.byteLength);
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message[at++]!;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.length) {
    const key = Number(varint());
    let value: bigint | Uint8Array;
    if ((key & 7) === 0) value = varint();
    else if ((key & 7) === 1) {
      value = view.getBigUint64(at, true);
      at += 8;
    } else if ((key & 7) === 5) {
      value = BigInt(view.getUint32(at, true));
      at += 4;
    } else {
      const length = Number(varint());
      value = message.subarray(at, at + length);
      at += length;
    }
    fields.set(key >> 3, [...(fields.get(key >> 3) ?? []), value]);
  }
  return fields;
}

const text = (value: unknown): string => new TextDecoder().decode(value as Uint8Array);
const double = (bits: unknown): number => new Float64Array(BigUint64Array.of(bits as bigint).buffer)[0]!;
const float = (bits: unknown): number => new Float32Array(Uint32Array.of(Number(bits)).buffer)[0]!;

interface ReadEvent {
  time: number;
  step: number;
  version?: string;
  start?: boolean;
  scalars?: Record<string, number>;
}

/** What TensorBoard would take from a file. */
async function readEvents(path: string): Promise<ReadEvent[]> {
  return decodeRecords(await readFile(path)).map((record) => {
    const event = fieldsOf(record);
    const out: ReadEvent = { time: double(event.get(1)![0]), step: Number(event.get(2)?.[0] ?? 0n) };
    if (event.has(3)) out.version = text(event.get(3)![0]);
    if (event.has(7)) out.start = fieldsOf(event.get(7)![0] as Uint8Array).get(1)![0] === 1n;
    if (event.has(5)) {
      const values = fieldsOf(event.get(5)![0] as Uint8Array)
        .get(1)!
        .map((value) => fieldsOf(value as Uint8Array));
      out.scalars = Object.fromEntries(
        values.map((value) => [text(value.get(1)![0]), float(value.get(2)?.[0] ?? 0n)]),
      );
    }
    return out;
  });
}

describe("records", () => {
  it("equal the one in TensorFlow's own reader test", () => {
    const event = hex("09 0000c025dd75d541 1a0d 627261696e2e4576656e743a31");
    const record = Buffer.from(encodeRecord(event)).toString("hex");
    expect(record).toBe(`1800000000000000a37f4b22${Buffer.from(event).toString("hex")}ecf3328d`);
  });

  it("are read back, and a cut last one is left out", () => {
    const whole = Buffer.concat([
      encodeRecord(ascii("one")),
      encodeRecord(ascii("")),
      encodeRecord(ascii("three")),
    ]);
    expect(decodeRecords(whole).map(text)).toEqual(["one", "", "three"]);
    for (let cut = 1; cut <= 20; cut++) {
      expect(decodeRecords(whole.subarray(0, -cut)).map(text)).toEqual(["one", ""]);
    }
  });

  it("with a flipped bit are refused", () => {
    const whole = Buffer.concat([encodeRecord(ascii("one")), encodeRecord(ascii("two"))]);
    for (let at = 0; at < whole.length; at++) {
      const bytes = Uint8Array.from(whole);
      bytes[at]! ^= 4;
      expect(() => decodeRecords(bytes)).toThrow(
        /record \d, at byte \d+: the checksum of its (length|data) is wrong/,
      );
    }
  });
});

describe("event files", () => {
  it("are named as TensorBoard expects and begin with their version", async () => {
    const folder = join(await scratch(), "train");
    const writer = new EventWriter(folder, { now: () => 1_700_000_000.5 });
    writer.scalars(3, { "loss/train": 1.5, "accuracy/train": 0 });
    writer.scalars(300, { "loss/train": Number.NaN });
    // Beyond float32, and a step beyond 32 bits.
    writer.scalars(2 ** 40, { "loss/train": 1e300, größe: -1e39 });
    writer.close();
    const [name] = await readdir(folder);
    expect(name).toBe(
      `events.out.tfevents.1700000000.${hostname().replace(/[^A-Za-z0-9-]/g, "_")}.${process.pid}.0`,
    );
    expect(await readEvents(writer.path)).toEqual([
      { time: 1_700_000_000.5, step: 0, version: "brain.Event:2" },
      { time: 1_700_000_000.5, step: 0, start: true },
      { time: 1_700_000_000.5, step: 3, scalars: { "loss/train": 1.5, "accuracy/train": 0 } },
      { time: 1_700_000_000.5, step: 300, scalars: { "loss/train": Number.NaN } },
      { time: 1_700_000_000.5, step: 2 ** 40, scalars: { "loss/train": Infinity, größe: -Infinity } },
    ]);
  });

  it("equal, but for the START, what the tensorboard_logger package writes for the same values", async () => {
    const writer = new EventWriter(await scratch(), { now: () => 256.5 });
    writer.scalars(1, { "v/1": 1.5 });
    writer.scalars(2, { "v/22": 16 });
    writer.close();
    const bytes = await readFile(writer.path);
    const [first, start] = decodeRecords(bytes);
    const startEnds = 16 + first!.length + 16 + start!.length;
    const others = Buffer.concat([bytes.subarray(0, 16 + first!.length), bytes.subarray(startEnds)]);
    expect(others.toString("hex")).toBe(
      "1800000000000000a37f4b22" +
        "090000000000087040" +
        "1a0d627261696e2e4576656e743a32" +
        "bc98212b" +
        "19000000000000008bf10828" +
        "090000000000087040" +
        "10012a0c0a0a0a03762f31150000c03f" +
        "2cecc087" +
        "1a00000000000000129bd82d" +
        "090000000000087040" +
        "10022a0d0a0b0a04762f32321500008041" +
        "8fa3b688",
    );
    // SessionLog { status: START }
    expect(Buffer.from(start!).toString("hex")).toBe("090000000000087040" + "3a020801");
  });

  it("of a resumed run come later in the order of names, whatever the clock says, and void later points", async () => {
    const folder = await scratch();
    const paths = [1_700_000_000, 1_700_000_000, 1_600_000_000].map((now, i) => {
      const writer = new EventWriter(folder, { firstStep: i * 10, now: () => now });
      writer.close();
      return writer.path;
    });
    expect(paths).toEqual([...paths].sort());
    expect(new Set(paths).size).toBe(3);
    expect((await readEvents(paths[2]!))[1]).toEqual({ time: 1_600_000_000, step: 20, start: true });
  });

  it("carry hyper-parameters where TensorBoard's plugin looks for them", async () => {
    const writer = new EventWriter(await scratch(), { now: () => 2 });
    writer.hyperParameters({ "system.hidden": 32, "system.name": "fwm", carry: true });
    writer.close();
    const event = fieldsOf(decodeRecords(await readFile(writer.path))[2]!);
    const value = fieldsOf(fieldsOf(event.get(5)![0] as Uint8Array).get(1)![0] as Uint8Array);
    expect(text(value.get(1)![0])).toBe("_hparams_/session_start_info");
    const plugin = fieldsOf(fieldsOf(value.get(9)![0] as Uint8Array).get(1)![0] as Uint8Array);
    expect(text(plugin.get(1)![0])).toBe("hparams");
    const start = fieldsOf(fieldsOf(plugin.get(2)![0] as Uint8Array).get(3)![0] as Uint8Array);
    expect(double(start.get(5)![0])).toBe(2);
    const entries = start.get(1)!.map((entry) => {
      const pair = fieldsOf(entry as Uint8Array);
      const value = fieldsOf(pair.get(2)![0] as Uint8Array);
      const [kind, [raw]] = [...value][0]!;
      return [text(pair.get(1)![0]), kind === 2 ? double(raw) : kind === 3 ? text(raw) : raw === 1n];
    });
    expect(Object.fromEntries(entries)).toEqual({ "system.hidden": 32, "system.name": "fwm", carry: true });
  });

  it("cannot be made where a file stands in the way", async () => {
    const folder = await scratch();
    await mkdir(join(folder, "runs"));
    await writeFile(join(folder, "runs", "train"), "");
    expect(() => new EventWriter(join(folder, "runs", "train"))).toThrow(
      /cannot make the folder for event files/,
    );
  });
});
