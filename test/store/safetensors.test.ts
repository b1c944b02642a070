/** Safetensors against the reference implementation's bytes, by round trips, and with every kind of bad file. */
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DataError } from "../../src/errors.ts";
import {
  decodeSafetensors,
  encodeSafetensors,
  expectTensors,
  firstNonFinite,
  longestHeader,
  mostTensors,
  type TensorData,
  type Tensors,
} from "../../src/store/safetensors.ts";

const file = "model.safetensors";

/** A file from its header's text and its data, however wrong they are. */
function fileOf(header: string, data: Uint8Array = new Uint8Array(), length?: bigint): Uint8Array {
  const text = new TextEncoder().encode(header);
  const bytes = new Uint8Array(8 + text.length + data.length);
  new DataView(bytes.buffer).setBigUint64(0, length ?? BigInt(text.length), true);
  bytes.set(text, 8);
  bytes.set(data, 8 + text.length);
  return bytes;
}

function entry(dtype: unknown, shape: unknown, offsets: unknown): string {
  return JSON.stringify({ dtype, shape, data_offsets: offsets });
}

const tensor: fc.Arbitrary<TensorData> = fc
  .tuple(
    fc.constantFrom("f16", "f32", "f64", "i32", "i64", "u8", "u16", "u32", "bool"),
    fc.array(fc.nat(4), { maxLength: 4 }),
  )
  .chain(([dtype, shape]) => {
    const size = shape.reduce((a, b) => a * b, 1);
    const bytes = (width: number) => fc.uint8Array({ minLength: size * width, maxLength: size * width });
    const made: Record<typeof dtype, fc.Arbitrary<TensorData["data"]>> = {
      f16: bytes(2).map((b) => new Uint16Array(b.buffer)),
      f32: bytes(4).map((b) => new Float32Array(b.buffer)),
      f64: bytes(8).map((b) => new Float64Array(b.buffer)),
      i32: bytes(4).map((b) => new Int32Array(b.buffer)),
      i64: bytes(8).map((b) => new BigInt64Array(b.buffer)),
      u8: bytes(1),
      u16: bytes(2).map((b) => new Uint16Array(b.buffer)),
      u32: bytes(4).map((b) => new Uint32Array(b.buffer)),
      bool: bytes(1).map((b) => b.map((x) => x & 1)),
    };
    return made[dtype].map((data) => ({ dtype, shape, data }) as TensorData);
  });

const names = fc.oneof(
  fc.constantFrom("__proto__", "constructor", "toString", "0", "1", "", 'a"b\\', "é\n"),
  fc.string({ unit: "binary", maxLength: 12 }).filter((name) => name !== "__metadata__"),
);

const tensorSets = fc
  .uniqueArray(fc.tuple(names, tensor), { selector: ([name]) => name, maxLength: 6 })
  .map(fromEntries);

/** As Object.fromEntries, onto an object without a prototype. */
function fromEntries<T>(entries: readonly (readonly [string, T])[]): Record<string, T> {
  const object = Object.create(null) as Record<string, T>;
  for (const [name, value] of entries) object[name] = value;
  return object;
}

function bytesOf(data: TensorData["data"]): Uint8Array {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}

function expectSame(found: Tensors, wanted: Tensors): void {
  expect(Object.keys(found).sort()).toEqual(Object.keys(wanted).sort());
  for (const name of Object.keys(wanted)) {
    expect(found[name]!.dtype).toBe(wanted[name]!.dtype);
    expect(found[name]!.shape).toEqual(wanted[name]!.shape);
    expect(found[name]!.data.constructor).toBe(wanted[name]!.data.constructor);
    expect(bytesOf(found[name]!.data)).toEqual(bytesOf(wanted[name]!.data));
  }
}

it("needs nothing of Node, so that the browser can read model folders", async () => {
  const seen = new Set<string>();
  const visit = async (path: string): Promise<void> => {
    if (seen.has(path)) return;
    seen.add(path);
    const source = await readFile(path, "utf8");
    expect(source).not.toMatch(/\bBuffer\b|\bprocess\./);
    for (const [, from] of source.matchAll(/^(?:import|export)\b[^;]*? from "([^"]+)"/gm)) {
      expect(from, path).toMatch(/^\./);
      await visit(join(dirname(path), from!));
    }
  };
  await visit(join(import.meta.dirname, "../../src/store/safetensors.ts"));
  expect(seen.size).toBe(4);
});

describe("bytes", () => {
  it("equal the reference implementation's own test", () => {
    const data = Float32Array.of(0, 1, 2, 3, 4, 5);
    const bytes = encodeSafetensors({ "attn.0": { dtype: "f32", shape: [1, 2, 3], data } });
    const header = '{"attn.0":{"dtype":"F32","shape":[1,2,3],"data_offsets":[0,24]}}';
    expect([...bytes]).toEqual([
      ...[64, 0, 0, 0, 0, 0, 0, 0],
      ...new TextEncoder().encode(header),
      ...[0, 0, 0, 0, 0, 0, 128, 63, 0, 0, 0, 64, 0, 0, 64, 64, 0, 0, 128, 64, 0, 0, 160, 64],
    ]);
  });

  it("pad the header with spaces to a multiple of 8", () => {
    const bytes = encodeSafetensors({
      attn0: { dtype: "f32", shape: [1, 1, 2, 3], data: new Float32Array(6) },
    });
    const header = '{"attn0":{"dtype":"F32","shape":[1,1,2,3],"data_offsets":[0,24]}}';
    expect(bytes[0]).toBe(72);
    expect(new TextDecoder().decode(bytes.subarray(8, 80))).toBe(header.padEnd(72));
  });

  it("do not depend on the order in which tensors are given, and align every tensor", () => {
    const a: TensorData = { dtype: "u8", shape: [3], data: Uint8Array.of(1, 2, 3) };
    const b: TensorData = { dtype: "f64", shape: [], data: Float64Array.of(0.5) };
    expect(encodeSafetensors({ a, b })).toEqual(encodeSafetensors({ b, a }));
    const bytes = encodeSafetensors({ a, b });
    expect(decodeSafetensors(bytes, { file }).tensors.b!.data.buffer).toBe(bytes.buffer);
  });
});

describe("round trip", () => {
  it("keeps names, shapes and every bit, NaN payloads included", () => {
    fc.assert(
      fc.property(tensorSets, fc.dictionary(names, fc.string()), (tensors, metadata) => {
        const decoded = decodeSafetensors(encodeSafetensors(tensors, metadata), { file });
        expectSame(decoded.tensors, tensors);
        expect(Object.entries(decoded.metadata).sort()).toEqual(Object.entries(metadata).sort());
      }),
      { numRuns: 300 },
    );
  });

  it("reads from an unaligned view of a larger buffer, by copying", () => {
    const tensors: Tensors = { w: { dtype: "f64", shape: [3], data: Float64Array.of(1, -2, 3) } };
    const bytes = encodeSafetensors(tensors);
    for (let shift = 0; shift < 8; shift++) {
      const larger = new Uint8Array(bytes.length + 16);
      larger.set(bytes, shift);
      expectSame(decodeSafetensors(larger.subarray(shift, shift + bytes.length), { file }).tensors, tensors);
    }
    expectSame(decodeSafetensors(bytes.buffer, { file }).tensors, tensors);
  });

  it("treats __proto__ and constructor as names and nothing else", () => {
    const header = `{"__proto__":${entry("U8", [1], [0, 1])},"constructor":${entry("U8", [1], [1, 2])}}`;
    const { tensors } = decodeSafetensors(fileOf(header, Uint8Array.of(5, 6)), { file });
    expect(Object.getPrototypeOf(tensors)).toBeNull();
    expect(Object.keys(tensors).sort()).toEqual(["__proto__", "constructor"]);
    expect(Object.values(tensors).map(({ data }) => data[0])).toEqual([5, 6]);
    expect(({} as Record<string, unknown>).dtype).toBeUndefined();
  });
});

describe("refusals", () => {
  const four = new Uint8Array(4);
  const cases: [string, Uint8Array, RegExp][] = [
    ["an empty file", new Uint8Array(), /cut short: 0 bytes/],
    ["seven bytes", new Uint8Array(7), /cut short: 7 bytes/],
    ["a header beyond the file", fileOf("{}", four, 100n), /reaches beyond the file/],
    ["a header longer than the cap", fileOf("{}", four, BigInt(longestHeader) + 1n), /header is too long/],
    ["a header length of 2^64-1", fileOf("{}", four, 2n ** 64n - 1n), /header is too long/],
    ["an empty header", fileOf("", new Uint8Array(8)), /does not begin with "\{"/],
    ["an array as header", fileOf("[]"), /does not begin with "\{"/],
    ["a space before the header", fileOf(" {}"), /does not begin with "\{"/],
    ["a byte order mark", fileOf("\ufeff{}"), /does not begin with "\{"/],
    ["a header that is not JSON", fileOf("{x"), /not valid JSON/],
    ["a header that is not UTF-8", fileOf('{"a":"', Uint8Array.of(0xff), 7n), /not UTF-8/],
    ["an entry that is no object", fileOf('{"a":1}'), /"a": its header entry is not an object/],
    ["an unknown dtype", fileOf(`{"a":${entry("F31", [1], [0, 4])}}`, four), /unknown dtype[\s\S]*"F31"/],
    ["a dtype from the prototype", fileOf(`{"a":${entry("toString", [1], [0, 4])}}`, four), /unknown dtype/],
    ["no dtype", fileOf(`{"a":${entry(undefined, [1], [0, 4])}}`, four), /unknown dtype/],
    [
      "an unknown field",
      fileOf('{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":1}}'),
      /unknown field "x"/,
    ],
    ["a negative size", fileOf(`{"a":${entry("F32", [-1], [0, 4])}}`, four), /shape is not a list/],
    ["a fraction as size", fileOf(`{"a":${entry("F32", [0.5], [0, 4])}}`, four), /shape is not a list/],
    [
      "a size beyond 2^53",
      fileOf('{"a":{"dtype":"F32","shape":[1e300],"data_offsets":[0,4]}}', four),
      /shape is not/,
    ],
    [
      "a product that overflows",
      fileOf(`{"a":${entry("F32", [2 ** 40, 2 ** 40], [0, 4])}}`, four),
      /overflows/,
    ],
    ["one offset", fileOf(`{"a":${entry("F32", [1], [4])}}`, four), /not a pair/],
    ["offsets in reverse", fileOf(`{"a":${entry("F32", [1], [4, 0])}}`, four), /shape and span differ/],
    [
      "a shape larger than the span",
      fileOf(`{"a":${entry("F32", [2], [0, 4])}}`, four),
      /shape and span differ/,
    ],
    [
      "data beyond the file",
      fileOf(`{"a":${entry("F32", [2], [0, 8])}}`, four),
      /"a" reaches beyond the file/,
    ],
    ["a gap at the start", fileOf(`{"a":${entry("U8", [1], [1, 2])}}`, four), /"a" leaves a gap/],
    [
      "an overlap",
      fileOf(`{"a":${entry("U8", [2], [0, 2])},"b":${entry("U8", [3], [1, 4])}}`, four),
      /"b" overlaps/,
    ],
    [
      "two tensors in one place",
      fileOf(`{"a":${entry("U8", [4], [0, 4])},"b":${entry("U8", [4], [0, 4])}}`, four),
      /overlaps/,
    ],
    [
      "bytes that belong to none",
      fileOf(`{"a":${entry("U8", [3], [0, 3])}}`, four),
      /1 bytes after the last tensor/,
    ],
    ["bytes without tensors", fileOf("{}", four), /4 bytes after the last tensor/],
    [
      "a name twice",
      fileOf(`{"a":${entry("U8", [4], [0, 4])},"a":${entry("U8", [4], [0, 4])}}`, four),
      /"a" appears twice/,
    ],
    [
      "a name twice, once escaped",
      fileOf(`{"a":${entry("U8", [4], [0, 4])},"\\u0061":${entry("U8", [4], [0, 4])}}`, four),
      /appears twice/,
    ],
    [
      "a field twice",
      fileOf('{"a":{"dtype":"U8","dtype":"U8","shape":[4],"data_offsets":[0,4]}}', four),
      /"dtype" appears twice/,
    ],
    ["metadata that is no object", fileOf('{"__metadata__":[]}'), /__metadata__ is not an object/],
    ["metadata that is not text", fileOf('{"__metadata__":{"a":1}}'), /__metadata__.a is not a string/],
    [
      "a boolean of 2",
      fileOf(`{"a":${entry("BOOL", [4], [0, 4])}}`, Uint8Array.of(0, 1, 2, 0)),
      /neither 0 nor 1[\s\S]*index +2/,
    ],
    [
      "nesting without end",
      fileOf(`{"a":${"[".repeat(100_000)}${"]".repeat(100_000)}}`),
      /nested|not valid JSON/,
    ],
  ];
  it.each(cases)("%s", (_what, bytes, message) => {
    const decode = () => decodeSafetensors(bytes, { file });
    expect(decode).toThrow(DataError);
    expect(decode).toThrow(message);
    expect(decode).toThrow(file);
  });

  it("NaN and infinities when asked, naming the tensor and the first index", () => {
    const bytes = encodeSafetensors({
      fine: { dtype: "f32", shape: [1], data: Float32Array.of(1) },
      bad: { dtype: "f64", shape: [2, 2], data: Float64Array.of(1, 2, Number.NaN, Number.POSITIVE_INFINITY) },
    });
    expect(() => decodeSafetensors(bytes, { file, finite: true })).toThrow(/bad\[2\] is NaN/);
    expect(firstNonFinite(decodeSafetensors(bytes, { file }).tensors)).toEqual({
      name: "bad",
      index: 2,
      value: Number.NaN,
    });
  });

  it("tensors that are not the wanted ones", () => {
    const data = new Float32Array(2);
    const found: Tensors = { a: { dtype: "f32", shape: [2], data } };
    const check = (wanted: Parameters<typeof expectTensors>[1]) => () =>
      expectTensors(found, wanted, { file });
    expect(check({ a: { dtype: "f32", shape: [2] } })).not.toThrow();
    expect(check({ a: { dtype: "f32", shape: [2] }, b: { dtype: "f32", shape: [1] } })).toThrow(
      /"b" is missing/,
    );
    expect(check({ a: { dtype: "f32", shape: [2, 1] } })).toThrow(
      /"a" does not fit[\s\S]*\[2, 1\][\s\S]*\[2\]/,
    );
    expect(check({ a: { dtype: "f64", shape: [2] } })).toThrow(/"a" does not fit/);
    expect(check({})).toThrow(/unknown tensor "a"/);
    expect(check(JSON.parse('{"toString":{"dtype":"f32","shape":[2]}}') as never)).toThrow(
      /"toString" is missing/,
    );
  });

  it("data that does not fit its shape, before anything is written", () => {
    const data = new Float32Array(3);
    expect(() => encodeSafetensors({ a: { dtype: "f32", shape: [2], data } })).toThrow(
      /data and shape differ/,
    );
    expect(() => encodeSafetensors({ a: { dtype: "f64", shape: [3], data } as never })).toThrow(
      /data and shape differ/,
    );
    expect(() => encodeSafetensors({ __metadata__: { dtype: "f32", shape: [3], data } })).toThrow(
      /cannot be named/,
    );
  });
});

describe("files of other writers", () => {
  const data = Float32Array.of(1.5, -2.25, 3, 4e-3);

  /** Data that begins at any offset, as a writer makes it that does not pad its header. */
  const padded = (spaces: number): Uint8Array =>
    fileOf(`{"a":${entry("F32", [4], [0, 16])}${" ".repeat(spaces)}}`, bytesOf(data));

  it.each([0, 1, 2, 3, 4, 5, 6, 7])("with a header %i bytes longer give the same numbers", (spaces) => {
    const bytes = padded(spaces);
    // As Node's readFile gives them: a Buffer, at its own beginning or inside a larger one.
    const inside = Buffer.concat([Buffer.alloc(3, 0x7f), bytes, Buffer.alloc(5, 0x7f)]).subarray(3, -5);
    for (const given of [bytes, bytes.buffer as ArrayBuffer, Buffer.from(bytes), inside]) {
      expect(decodeSafetensors(given, { file }).tensors.a!.data).toEqual(data);
    }
  });

  it("of very many tensors are refused before they are read", () => {
    const names = Array.from({ length: mostTensors + 1 }, (_, i) => `"${i}":${entry("U8", [0], [0, 0])}`);
    expect(() => decodeSafetensors(fileOf(`{${names.join()}}`), { file })).toThrow(/too many tensors/);
    expect(
      Object.keys(decodeSafetensors(fileOf(`{${names.slice(1).join()}}`), { file }).tensors),
    ).toHaveLength(mostTensors);
  });
});

describe("damage", () => {
  const valid = encodeSafetensors(
    {
      "lstm.weight": { dtype: "f32", shape: [2, 3], data: Float32Array.of(1, 2, 3, 4, 5, 6) },
      step: { dtype: "i64", shape: [], data: BigInt64Array.of(7n) },
      mask: { dtype: "bool", shape: [3], data: Uint8Array.of(1, 0, 1) },
    },
    { format: "fwm" },
  );

  const decodes = (bytes: Uint8Array): boolean => {
    try {
      decodeSafetensors(bytes, { file });
      return true;
    } catch (error) {
      if (!(error instanceof DataError)) throw error;
      return false;
    }
  };

  it("every cut of a file is refused", () => {
    for (let length = 0; length < valid.length; length++) expect(decodes(valid.slice(0, length))).toBe(false);
    expect(decodes(valid)).toBe(true);
  });

  it("changed bytes give a DataError or tensors, never another error", () => {
    const change = fc.tuple(fc.nat(valid.length - 1), fc.nat(255));
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 5 }), (changes) => {
        const bytes = valid.slice();
        for (const [at, value] of changes) bytes[at] = value;
        decodes(bytes);
      }),
      { numRuns: 3000 },
    );
  });

  it("random bytes behind a valid length give a DataError", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.nat(300), (noise, length) => {
        decodes(fileOf(`{${new TextDecoder().decode(noise)}`, noise, BigInt(length)));
      }),
      { numRuns: 1000 },
    );
  });
});
