/**
 * JSON files read strictly: what `JSON.parse` lets through silently is refused here.
 *
 * `JSON.parse` keeps the last of two equal keys, so two readers of one file can disagree on what it says.
 * Keys that reach an object's prototype, and nesting deep enough to overflow a recursive reader, are refused
 * as well. No `node:` imports: the browser reads model folders with the same code.
 */
import { DataError } from "../errors.ts";

/** Keys through which a careless merge would change every object of the program. */
const prototypeKeys: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);

const deepestNesting = 200;

/** How strictly to read, and the name of the file for messages. */
export interface JsonOptions {
  /** File named in errors. */
  readonly file: string;
  /** Refuse `__proto__`, `constructor` and `prototype` as keys; on unless the keys are data. */
  readonly refusePrototypeKeys?: boolean;
}

/** The value a JSON text holds; duplicate keys, prototype keys and deep nesting are a `DataError`. */
export function parseJson(text: string, { file, refusePrototypeKeys = true }: JsonOptions): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new DataError(`${file}: not valid JSON`, {
      reason: error instanceof Error ? error.message : String(error),
      hint: "the file is cut short or was edited; restore it from a copy or use another checkpoint",
    });
  }
  checkKeys(text, file, refusePrototypeKeys);
  return value;
}

/** As `parseJson`, from UTF-8 bytes, and the value must be an object. */
export function parseJsonObject(bytes: Uint8Array, options: JsonOptions): Record<string, unknown> {
  const value = parseJson(decodeUtf8(bytes, options.file), options);
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new DataError(`${options.file}: expected a JSON object`, { found: describe(value) });
  }
  return value as Record<string, unknown>;
}

/** The text of UTF-8 bytes; anything that is not UTF-8 is a `DataError`. */
export function decodeUtf8(bytes: Uint8Array, file: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new DataError(`${file}: not UTF-8 text`, { size: `${bytes.length} bytes` });
  }
}

/**
 * A value as indented JSON, refusing what JSON would change silently: NaN and infinities become null,
 * undefined members vanish, and a resumed run would then differ from one that never stopped.
 */
export function formatJson(value: unknown, file: string): string {
  const text = JSON.stringify(
    value,
    (key, member: unknown) => {
      if (typeof member === "bigint" || (typeof member === "number" && !Number.isFinite(member))) {
        throw new TypeError(`internal: ${file}: JSON cannot hold ${key || "value"} = ${String(member)}`);
      }
      return member;
    },
    2,
  );
  parseJson(text, { file });
  return `${text}\n`;
}

/** Walks a text that is known to be valid JSON; a string is a key exactly if a colon follows it. */
function checkKeys(text: string, file: string, refusePrototypeKeys: boolean): void {
  const open: (Set<string> | undefined)[] = [];
  for (let i = 0; i < text.length; i++) {
    const char = text[i];
    if (char === "{" || char === "[") {
      open.push(char === "{" ? new Set() : undefined);
      if (open.length > deepestNesting) {
        throw new DataError(`${file}: nested more than ${deepestNesting} levels deep`);
      }
    } else if (char === "}" || char === "]") {
      open.pop();
    } else if (char === '"') {
      const end = endOfString(text, i);
      if (isKey(text, end)) {
        const key = JSON.parse(text.slice(i, end)) as string;
        const seen = open.at(-1)!;
        if (seen.has(key)) throw new DataError(`${file}: the key ${JSON.stringify(key)} appears twice`);
        if (refusePrototypeKeys && prototypeKeys.has(key)) {
          throw new DataError(`${file}: the key ${JSON.stringify(key)} is not allowed`);
        }
        seen.add(key);
      }
      i = end - 1;
    }
  }
}

/** Index after the closing quote of the string that opens at `start`. */
function endOfString(text: string, start: number): number {
  let i = start + 1;
  while (text[i] !== '"') i += text[i] === "\\" ? 2 : 1;
  return i + 1;
}

function isKey(text: string, after: number): boolean {
  let i = after;
  while (text[i] === " " || text[i] === "\n" || text[i] === "\r" || text[i] === "\t") i++;
  return text[i] === ":";
}

function describe(value: unknown): string {
  return value === null ? "null" : Array.isArray(value) ? "an array" : `a ${typeof value}`;
}
