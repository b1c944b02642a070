/**
 * Words of text files of any size: bytes become pieces of whole words, one after the other, so that neither a file
 * nor a line is ever held whole.
 *
 * A token is what stands between white space, in any script; the end of a line is a token of its own. Text that is
 * not UTF-8 is refused with the file and line it stands at.
 */
import { open } from "node:fs/promises";
import { DataError } from "../../errors.ts";
import { lineEnd, tokensOf } from "./tokens.ts";

/** A range of bytes of a file, or of a file's content that is in memory already. */
export interface TextPart {
  /** The file, for reading and for messages. */
  readonly path: string;
  readonly start: number;
  readonly end: number;
  /** The whole file's content, when it was unpacked from an archive. */
  readonly bytes?: Uint8Array;
}

/** Tokens of consecutive text. */
export interface Piece {
  /** Words, and `lineEnd` at the end of each line. */
  readonly tokens: readonly string[];
  /** `file:line` of a token; looks into the file again, so it is for messages only. */
  where(token: number): Promise<string>;
}

/** How text is read. */
export interface ReadOptions {
  readonly signal?: AbortSignal | undefined;
  /** Called when the last line of a file has no line end; it counts as a line all the same. */
  readonly onNote?: ((text: string) => void) | undefined;
}

const pieceBytes = 1 << 20;

/** The tokens of some text, in pieces. */
export async function* readPieces(
  part: TextPart,
  { signal, onNote }: ReadOptions = {},
): AsyncGenerator<Piece> {
  const buffer = new Uint8Array(pieceBytes);
  const source = await openBytes(part);
  try {
    let at = part.start; // of the buffer's first byte
    let held = 0; // bytes of an unfinished word
    for (;;) {
      signal?.throwIfAborted();
      const wanted = Math.min(pieceBytes - held, part.end - at - held);
      const read = await source.read(buffer.subarray(held, held + wanted), at + held);
      if (read < wanted) throw new DataError(`${part.path}: the file became shorter while it was read`);
      const filled = held + read;
      const isLast = at + filled === part.end;
      const cut = isLast ? filled : lastSpace(buffer, filled) + 1;
      if (cut === 0 && !isLast) {
        throw new DataError(`${await placeOf(part, at)}: a word of more than ${pieceBytes} bytes`, {
          hint: "this is not text, or its words are not separated by white space",
        });
      }
      const begin = at;
      const text = await decode(part, buffer.subarray(0, cut), begin);
      const tokens = tokensOf(text);
      if (isLast && cut > 0 && buffer[cut - 1] !== 0x0a) {
        // Only a file's own end is worth a note: a part that is cut from a file ends at a line end.
        onNote?.(`${await placeOf(part, begin + cut)}: the last line has no line end; it is read as a line`);
        tokens.push(lineEnd);
      }
      if (tokens.length > 0) yield { tokens, where: (token) => whereIs(part, begin, tokens, token) };
      if (isLast) return;
      buffer.copyWithin(0, cut, filled);
      at += cut;
      held = filled - cut;
    }
  } finally {
    await source.close();
  }
}

/** The offset after the next line end at or after `from`; undefined when the file has none there. */
export async function nextLineStart(part: TextPart, from: number): Promise<number | undefined> {
  const buffer = new Uint8Array(1 << 16);
  const source = await openBytes(part);
  try {
    for (let at = from; at < part.end; ) {
      const read = await source.read(buffer.subarray(0, Math.min(buffer.length, part.end - at)), at);
      if (read === 0) return undefined;
      const found = buffer.subarray(0, read).indexOf(0x0a);
      if (found >= 0) return at + found + 1;
      at += read;
    }
    return undefined;
  } finally {
    await source.close();
  }
}

interface Bytes {
  read(into: Uint8Array, position: number): Promise<number>;
  close(): Promise<void>;
}

async function openBytes({ path, bytes }: TextPart): Promise<Bytes> {
  if (bytes) {
    return {
      async read(into, position) {
        const part = bytes.subarray(position, position + into.length);
        into.set(part);
        return part.length;
      },
      close: async () => undefined,
    };
  }
  const handle = await open(path, "r").catch((error: Error) => {
    throw new DataError(`${path}: cannot be read`, { reason: error.message });
  });
  return {
    async read(into, position) {
      let done = 0;
      while (done < into.length) {
        const { bytesRead } = await handle.read(into, done, into.length - done, position + done);
        if (bytesRead === 0) break;
        done += bytesRead;
      }
      return done;
    },
    close: () => handle.close(),
  };
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || (byte >= 0x09 && byte <= 0x0d);
}

/** The last white space among the first `length` bytes, or -1. In UTF-8 such a byte is never part of another letter. */
function lastSpace(bytes: Uint8Array, length: number): number {
  let i = length - 1;
  while (i >= 0 && !isSpace(bytes[i]!)) i--;
  return i;
}

async function decode(part: TextPart, bytes: Uint8Array, begin: number): Promise<string> {
  try {
    // A byte order mark is one only at the beginning of a file.
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: begin > 0 }).decode(bytes);
  } catch {
    let start = 0;
    for (let end = 0; end <= bytes.length; end++) {
      if (end < bytes.length && bytes[end] !== 0x0a) continue;
      try {
        new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(start, end));
      } catch {
        throw new DataError(`${await placeOf(part, begin + start)}: not UTF-8 text`, {
          hint: "convert the file first, for example with iconv -f latin1 -t utf-8",
        });
      }
      start = end + 1;
    }
    throw new Error(`internal: ${part.path}: each line is UTF-8, but all together are not`);
  }
}

async function whereIs(
  part: TextPart,
  begin: number,
  tokens: readonly string[],
  token: number,
): Promise<string> {
  const before = tokens.slice(0, token).filter((word) => word === lineEnd).length;
  return placeOf(part, begin, before);
}

/** `file:line` of an offset, `more` lines further; counts the lines before it. */
async function placeOf(part: TextPart, offset: number, more = 0): Promise<string> {
  const buffer = new Uint8Array(pieceBytes);
  const source = await openBytes(part);
  let line = 1 + more;
  try {
    for (let at = 0; at < offset; ) {
      const read = await source.read(buffer.subarray(0, Math.min(buffer.length, offset - at)), at);
      if (read === 0) break;
      for (let i = 0; i < read; i++) if (buffer[i] === 0x0a) line++;
      at += read;
    }
  } finally {
    await source.close();
  }
  return `${part.path}:${line}`;
}
