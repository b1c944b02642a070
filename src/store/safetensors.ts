/**
 * Safetensors: named tensors in one file, as the Hugging Face tools read and write them.
 *
 *   8 bytes       N, the header's length, little-endian
 *   N bytes       JSON: { "<name>": { "dtype", "shape", "data_offsets": [begin, end] }, "__metadata__": {…} }
 *   the rest      the tensors' bytes, row-major, little-endian, without gaps
 *
 * A file is somebody else's bytes: every number in its header is checked before it is used, and whatever is
 * wrong is a `DataError` that names the file and the tensor. Works on bytes alone, in Node and the browser
 * (every platform either runs on is little-endian).
 */
import { DataError, exitCode, FwmError, ShapeError } from "../errors.ts";
import { fromFloat16, isFinite16 } from "./float16.ts";
import { decodeUtf8, parseJson } from "./json.ts";

interface Arrays {
  /** The bits of each number: `float16.ts`. */
  f16: Uint16Array;
  f32: Float32Array;
  f64: Float64Array;
  i32: Int32Array;
  i64: BigInt64Array;
  u8: Uint8Array;
  u16: Uint16Array;
  u32: Uint32Array;
  /** One byte each, 0 or 1. */
  bool: Uint8Array;
}

/** Element types that are read and written. */
export type TensorDType = keyof Arrays;

/** One tensor: its element type, its shape and its elements in row-major order. */
export type TensorData = {
  [D in TensorDType]: { readonly dtype: D; readonly shape: readonly number[]; readonly data: Arrays[D] };
}[TensorDType];

/** Tensors by name. Those that were read have no prototype, so that any name is only a name. */
export type Tensors = Readonly<Record<string, TensorData>>;

interface ElementType {
  readonly name: string;
  readonly size: number;
  readonly view: (buffer: ArrayBufferLike, offset: number, length: number) => TensorData["data"];
}

const elementTypes: Readonly<Record<TensorDType, ElementType>> = {
  f16: { name: "F16", size: 2, view: (b, o, n) => new Uint16Array(b, o, n) },
  f32: { name: "F32", size: 4, view: (b, o, n) => new Float32Array(b, o, n) },
  f64: { name: "F64", size: 8, view: (b, o, n) => new Float64Array(b, o, n) },
  i32: { name: "I32", size: 4, view: (b, o, n) => new Int32Array(b, o, n) },
  i64: { name: "I64", size: 8, view: (b, o, n) => new BigInt64Array(b, o, n) },
  u8: { name: "U8", size: 1, view: (b, o, n) => new Uint8Array(b, o, n) },
  u16: { name: "U16", size: 2, view: (b, o, n) => new Uint16Array(b, o, n) },
  u32: { name: "U32", size: 4, view: (b, o, n) => new Uint32Array(b, o, n) },
  bool: { name: "BOOL", size: 1, view: (b, o, n) => new Uint8Array(b, o, n) },
};

const dtypeOf: ReadonlyMap<unknown, TensorDType> = new Map(
  (Object.keys(elementTypes) as TensorDType[]).map((dtype) => [elementTypes[dtype].name, dtype]),
);

/** Longest header that is read, in bytes; a longer one is damage or an attack. */
export const longestHeader = 25_000_000;

/** Most tensors that are read from one file: each costs memory, however small it is. */
export const mostTensors = 2 ** 16;

const metadataKey = "__metadata__";

/** A save that was refused because a number is NaN or infinite; ends the program like a divergence. */
export class NonFiniteError extends FwmError {
  override readonly name = "NonFiniteError";
  override readonly exitCode = exitCode.diverged;
  /** Name of the first tensor that is not finite, or the path of the number: `adam.m.lstm.weight`, `best`. */
  readonly tensor: string;

  /** `file` is what was to be written; `at` the place in the tensor, such as `[12]`. */
  constructor(file: string, tensor: string, at: string, value: number) {
    super(`${file}: ${tensor}${at} is ${value}; nothing was saved`, {
      hint: "training has diverged; the last checkpoint is untouched",
    });
    this.tensor = tensor;
  }
}

/** The file's bytes: tensors ordered by element size, then name, so that equal tensors give equal bytes. */
export function encodeSafetensors(
  tensors: Tensors,
  metadata: Readonly<Record<string, string>> = {},
): Uint8Array<ArrayBuffer> {
  const entries = Object.entries(tensors).map(([name, tensor]) => ({
    name,
    tensor,
    size: checkTensor(name, tensor),
  }));
  // Largest elements first: then every tensor begins at a multiple of its element size.
  entries.sort((a, b) => elementSize(b.tensor) - elementSize(a.tensor) || (a.name < b.name ? -1 : 1));

  const head = encodeHead(
    entries.map(({ name, tensor: { dtype, shape } }) => ({ name, dtype, shape })),
    metadata,
  );
  const bytes = new Uint8Array(entries.reduce((end, { size }) => end + size, head.length));
  bytes.set(head);
  let offset = head.length;
  for (const { tensor, size } of entries) {
    bytes.set(new Uint8Array(tensor.data.buffer, tensor.data.byteOffset, size), offset);
    offset += size;
  }
  return bytes;
}

/** A tensor as a header lists it. */
export interface TensorEntry {
  readonly name: string;
  readonly dtype: TensorDType;
  readonly shape: readonly number[];
}

/** A file's bytes before its data, for tensors that are written after it in this order, piece by piece. */
export function encodeHead(
  tensors: readonly TensorEntry[],
  metadata: Readonly<Record<string, string>> = {},
): Uint8Array<ArrayBuffer> {
  const fields: string[] = [];
  if (Object.keys(metadata).length > 0)
    fields.push(`${JSON.stringify(metadataKey)}:${JSON.stringify(metadata)}`);
  let end = 0;
  for (const { name, dtype, shape } of tensors) {
    const { name: type, size } = elementTypes[dtype];
    const value = { dtype: type, shape, data_offsets: [end, (end += byteSize(shape, size)!)] };
    fields.push(`${JSON.stringify(name)}:${JSON.stringify(value)}`);
  }
  const json = new TextEncoder().encode(`{${fields.join(",")}}`);
  const headerLength = Math.ceil(json.length / 8) * 8;
  if (headerLength > longestHeader) {
    throw new ShapeError("safetensors: too many tensors for one file", {
      header: `${headerLength} bytes`,
      most: `${longestHeader} bytes`,
    });
  }
  const head = new Uint8Array(8 + headerLength).fill(0x20, 8);
  new DataView(head.buffer).setBigUint64(0, BigInt(headerLength), true);
  head.set(json, 8);
  return head;
}

/** What `decodeSafetensors` is told about the bytes. */
export interface DecodeOptions {
  /** File named in errors. */
  readonly file: string;
  /** Refuse NaN and infinities: weights that hold them cannot be used. */
  readonly finite?: boolean;
}

/** A file's tensors and its free-form text fields. */
export interface Decoded {
  readonly tensors: Tensors;
  readonly metadata: Readonly<Record<string, string>>;
}

/** The tensors in a file's bytes: views of those bytes where they are aligned, copies where they are not. */
export function decodeSafetensors(source: ArrayBuffer | Uint8Array, options: DecodeOptions): Decoded {
  // A plain Uint8Array, because `slice` of Node's subclass does not copy.
  const bytes = ArrayBuffer.isView(source)
    ? new Uint8Array(source.buffer, source.byteOffset, source.byteLength)
    : new Uint8Array(source);
  const { header, dataStart } = readHeader(bytes, options.file);
  const metadata: Record<string, string> = Object.create(null) as Record<string, string>;
  const entries: Entry[] = [];
  const fields = Object.entries(header);
  if (fields.length > mostTensors) {
    throw new DataError(`${options.file}: too many tensors`, { found: fields.length, most: mostTensors });
  }
  for (const [name, value] of fields) {
    if (name === metadataKey) readMetadata(value, metadata, options.file);
    else entries.push(readEntry(name, value, options.file));
  }
  checkCover(entries, bytes.length - dataStart, options.file);

  const tensors: Record<string, TensorData> = Object.create(null) as Record<string, TensorData>;
  for (const entry of entries) tensors[entry.name] = readTensor(bytes, dataStart, entry, options.file);
  if (options.finite) {
    const bad = firstNonFinite(tensors);
    if (bad) {
      throw new DataError(`${options.file}: ${bad.name}[${bad.index}] is ${bad.value}`, {
        hint: "the model had diverged when it was saved; use an earlier checkpoint",
      });
    }
  }
  return { tensors, metadata };
}

/** The first NaN or infinity among float tensors, by name and flat index; undefined if all are finite. */
export function firstNonFinite(tensors: Tensors): { name: string; index: number; value: number } | undefined {
  for (const [name, { dtype, data }] of Object.entries(tensors)) {
    if (dtype === "f16") {
      const index = data.findIndex((bits) => !isFinite16(bits));
      if (index >= 0) return { name, index, value: fromFloat16(data.subarray(index))[0]! };
    }
    if (dtype !== "f32" && dtype !== "f64") continue;
    for (let index = 0; index < data.length; index++) {
      if (!Number.isFinite(data[index])) return { name, index, value: data[index]! };
    }
  }
  return undefined;
}

/**
 * Refuses tensors that are not exactly those wanted: the first missing, unknown, differently typed or
 * differently shaped one is named. For a reader that knows which weights its model has.
 */
export function expectTensors(
  found: Tensors,
  wanted: Readonly<Record<string, Pick<TensorData, "dtype" | "shape">>>,
  { file }: { readonly file: string },
): void {
  for (const [name, { dtype, shape }] of Object.entries(wanted)) {
    const tensor = Object.hasOwn(found, name) ? found[name] : undefined;
    if (!tensor) {
      throw new DataError(`${file}: the tensor ${JSON.stringify(name)} is missing`, {
        expected: `${dtype} [${shape.join(", ")}]`,
        hint: "the file belongs to another model or another version",
      });
    }
    if (tensor.dtype !== dtype || tensor.shape.join() !== shape.join()) {
      throw new DataError(`${file}: the tensor ${JSON.stringify(name)} does not fit`, {
        expected: `${dtype} [${shape.join(", ")}]`,
        found: `${tensor.dtype} [${tensor.shape.join(", ")}]`,
        hint: "the settings differ from those the file was made with",
      });
    }
  }
  for (const name of Object.keys(found)) {
    if (!Object.hasOwn(wanted, name)) {
      throw new DataError(`${file}: unknown tensor ${JSON.stringify(name)}`, {
        expected: Object.keys(wanted),
        hint: "the file belongs to another model or another version",
      });
    }
  }
}

interface Entry {
  readonly name: string;
  readonly dtype: TensorDType;
  readonly shape: readonly number[];
  readonly begin: number;
  readonly end: number;
}

function readHeader(bytes: Uint8Array, file: string): { header: object; dataStart: number } {
  const refuse = (what: string, details = {}): DataError =>
    new DataError(`${file}: ${what}`, {
      ...details,
      hint: "the file is cut short, damaged or not safetensors; restore it or use another checkpoint",
    });
  if (bytes.length < 8)
    throw refuse(`cut short: ${bytes.length} bytes, and the header's length alone takes 8`);
  const length = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getBigUint64(0, true);
  if (length > BigInt(longestHeader)) {
    throw refuse("the header is too long", { header: `${length} bytes`, most: `${longestHeader} bytes` });
  }
  const dataStart = 8 + Number(length);
  if (dataStart > bytes.length) {
    throw refuse("the header reaches beyond the file", {
      header: `${length} bytes`,
      file: `${bytes.length} bytes`,
    });
  }
  if (bytes[8] !== 0x7b || length === 0n) throw refuse('the header does not begin with "{"');
  const text = decodeUtf8(bytes.subarray(8, dataStart), `${file} (header)`);
  // Tensor names are data, and land in objects without a prototype.
  const header = parseJson(text, { file: `${file} (header)`, refusePrototypeKeys: false });
  return { header: header as object, dataStart };
}

function readMetadata(value: unknown, into: Record<string, string>, file: string): void {
  if (!isObject(value)) throw new DataError(`${file}: ${metadataKey} is not an object`);
  for (const [key, text] of Object.entries(value)) {
    if (typeof text !== "string") {
      throw new DataError(`${file}: ${metadataKey}.${key} is not a string`, { found: typeof text });
    }
    into[key] = text;
  }
}

function readEntry(name: string, value: unknown, file: string): Entry {
  const where = `${file}: tensor ${JSON.stringify(name)}`;
  if (!isObject(value)) throw new DataError(`${where}: its header entry is not an object`);
  for (const key of Object.keys(value)) {
    if (key !== "dtype" && key !== "shape" && key !== "data_offsets") {
      throw new DataError(`${where}: unknown field ${JSON.stringify(key)}`);
    }
  }
  const dtype = dtypeOf.get(value.dtype);
  if (!dtype) {
    throw new DataError(`${where}: unknown dtype`, {
      found: JSON.stringify(value.dtype) ?? "nothing",
      known: [...dtypeOf.keys()],
    });
  }
  const shape = value.shape;
  const offsets = value.data_offsets;
  if (!isSizes(shape)) throw new DataError(`${where}: shape is not a list of whole numbers`);
  if (!isSizes(offsets) || offsets.length !== 2) {
    throw new DataError(`${where}: data_offsets is not a pair of whole numbers`);
  }
  const [begin, end] = offsets as [number, number];
  const size = byteSize(shape, elementTypes[dtype].size);
  if (size === undefined) throw new DataError(`${where}: its size overflows`, { shape });
  if (end - begin !== size) {
    throw new DataError(`${where}: shape and span differ`, {
      shape,
      needs: `${size} bytes`,
      span: `${begin} to ${end}`,
    });
  }
  return { name, dtype, shape, begin, end };
}

/** Every byte after the header belongs to exactly one tensor. */
function checkCover(entries: readonly Entry[], dataLength: number, file: string): void {
  let covered = 0;
  let previous = "";
  for (const { name, begin, end } of entries.toSorted((a, b) => a.begin - b.begin || a.end - b.end)) {
    if (begin !== covered) {
      throw new DataError(
        `${file}: tensor ${JSON.stringify(name)} ${begin < covered ? "overlaps" : "leaves a gap after"} its neighbour`,
        {
          begins: begin,
          expected: covered,
          neighbour: previous || "the header",
        },
      );
    }
    if (end > dataLength) {
      throw new DataError(`${file}: tensor ${JSON.stringify(name)} reaches beyond the file`, {
        ends: end,
        data: `${dataLength} bytes`,
        hint: "the file is cut short; restore it or use another checkpoint",
      });
    }
    covered = end;
    previous = name;
  }
  if (covered !== dataLength) {
    throw new DataError(`${file}: ${dataLength - covered} bytes after the last tensor belong to none`);
  }
}

function readTensor(bytes: Uint8Array, dataStart: number, entry: Entry, file: string): TensorData {
  const { dtype, shape, begin, end } = entry;
  const { size, view } = elementTypes[dtype];
  const from = dataStart + begin;
  const aligned = (bytes.byteOffset + from) % size === 0;
  const data = aligned
    ? view(bytes.buffer, bytes.byteOffset + from, (end - begin) / size)
    : view(bytes.slice(from, dataStart + end).buffer, 0, (end - begin) / size);
  if (dtype === "bool") {
    const bad = (data as Uint8Array).findIndex((byte) => byte > 1);
    if (bad >= 0) {
      throw new DataError(`${file}: tensor ${JSON.stringify(entry.name)}: a boolean is neither 0 nor 1`, {
        index: bad,
        found: data[bad],
      });
    }
  }
  return { dtype, shape, data } as TensorData;
}

/** The tensor's size in bytes, once its data is known to fit its shape. */
function checkTensor(name: string, { dtype, shape, data }: TensorData): number {
  const type = elementTypes[dtype];
  const size = isSizes(shape) ? byteSize(shape, type.size) : undefined;
  if (name === metadataKey) throw new ShapeError(`safetensors: a tensor cannot be named ${metadataKey}`);
  if (size !== data.byteLength || data.BYTES_PER_ELEMENT !== type.size) {
    throw new ShapeError(`safetensors: ${name}: data and shape differ`, {
      dtype,
      shape,
      data: `${data.length} × ${data.BYTES_PER_ELEMENT} bytes`,
    });
  }
  return size;
}

function byteSize(shape: readonly number[], elementBytes: number): number | undefined {
  let size = elementBytes;
  for (const length of shape) {
    size *= length;
    if (!Number.isSafeInteger(size)) return undefined;
  }
  return size;
}

function elementSize(tensor: TensorData): number {
  return elementTypes[tensor.dtype].size;
}

function isSizes(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((n) => Number.isSafeInteger(n) && (n as number) >= 0);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
