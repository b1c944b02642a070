/** Damage and malice: what becomes of a file's bytes. */
import type { Choices } from "./random.ts";

/** Bytes with something wrong in them: flipped, cut, doubled, overwritten or inserted. */
export function mutateBytes(choices: Choices, bytes: Uint8Array): Uint8Array {
  const at = choices.below(bytes.length + 1);
  const length = choices.below(Math.min(64, bytes.length - at) + 1);
  switch (choices.below(7)) {
    case 0:
      return bytes.slice(0, at);
    case 1:
      return Buffer.concat([bytes, bytes.slice(at)]);
    case 2:
      return bytes.slice().fill(choices.of([0, 0xff, 0x20, 0x7b]), at, at + length);
    case 3:
      return Buffer.concat([bytes.slice(0, at), Buffer.from(choices.of(fragments)), bytes.slice(at)]);
    case 4:
      return Buffer.concat([bytes.slice(0, at), bytes.slice(at + length)]);
    default: {
      const changed = bytes.slice();
      for (let i = choices.below(4); i >= 0 && changed.length > 0; i--) {
        changed[choices.below(changed.length)]! ^= 1 << choices.below(8);
      }
      return changed;
    }
  }
}

const fragments = ['"', "{", "]", "\u001b[2J", "\n", "1e999", "\u0000", "\\u0000", ",", "é"];

/** What a person of ill will puts where a value was. */
const hostile: readonly (() => unknown)[] = [
  () => null,
  () => -1,
  () => 0,
  () => 1.5,
  () => 65_536,
  () => 2 ** 31,
  () => 2 ** 53,
  () => 1e300,
  () => true,
  () => "",
  () => "constructor",
  () => "../../outside",
  () => "\u001b]0;x\u0007\u001b[2J\u202e",
  () => "x".repeat(100_000),
  () => [],
  () => ({}),
  () => Array.from({ length: 3000 }, (_, i) => i),
  () => JSON.parse(`${"[".repeat(150)}${"]".repeat(150)}`) as unknown,
  () => Object.fromEntries(Array.from({ length: 3000 }, (_, i) => [`k${i}`, i])),
  () => JSON.parse('{"__proto__":{"polluted":1}}') as unknown,
];

/** JSON with one value replaced, a member dropped, added, doubled or renamed. Text that is no JSON is given back. */
export function mutateJson(choices: Choices, text: string): string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return text;
  }
  const groups: object[] = [];
  collect(value, groups);
  if (groups.length === 0) return JSON.stringify(choices.of(hostile)());
  const group = choices.of(groups) as Record<string, unknown>;
  const keys = Object.keys(group);
  const key = keys.length > 0 ? choices.of(keys) : "added";
  switch (choices.below(6)) {
    case 0:
      if (Array.isArray(group)) group.splice(Number(key), 1);
      else delete group[key];
      break;
    case 1:
      Object.defineProperty(group, choices.of(["added", "__proto__", "constructor", key.toUpperCase()]), {
        value: choices.of(hostile)(),
        enumerable: true,
        configurable: true,
      });
      break;
    case 2: {
      const other = choices.of(groups) as Record<string, unknown>;
      group[key] = structuredClone(other);
      break;
    }
    default:
      group[key] = choices.of(hostile)();
  }
  const changed = JSON.stringify(value);
  // JSON.stringify cannot write a key twice.
  return choices.chance(0.05) ? changed.replace(/"(\w+)":/, '"$1":0,"$1":') : changed;
}

function collect(value: unknown, into: object[]): void {
  if (typeof value !== "object" || value === null) return;
  into.push(value);
  for (const member of Object.values(value)) collect(member, into);
}

/** A safetensors file with a changed header, its length made to fit or not, or with changed numbers. */
export function mutateSafetensors(choices: Choices, bytes: Uint8Array): Uint8Array {
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true));
  const header = new TextDecoder().decode(bytes.subarray(8, 8 + length));
  const data = bytes.slice(8 + length);
  if (choices.chance(0.3)) {
    const values = new Float32Array(data.buffer, 0, Math.floor(data.length / 4));
    const value = choices.of([Number.NaN, Number.POSITIVE_INFINITY, 1e20, -3e38, 1e-45, 0]);
    if (choices.chance(0.5)) values.fill(value);
    else values[choices.below(values.length)] = value;
    return Buffer.concat([bytes.subarray(0, 8 + length), data]);
  }
  // A header of any length: writers that do not pad put the data at odd places.
  const text = Buffer.from(mutateJson(choices, header) + " ".repeat(choices.below(8)));
  const prefix = Buffer.alloc(8);
  prefix.writeBigUInt64LE(choices.chance(0.1) ? BigInt(choices.below(2 ** 31)) : BigInt(text.length));
  return Buffer.concat([prefix, text, data]);
}
