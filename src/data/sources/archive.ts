/**
 * Members of a .tar.gz as bytes in memory. Nothing is ever written to a path from the archive: a caller says
 * which names it expects, and only regular files with those names are kept, within limits on size and number.
 */
import { createReadStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { Parser, type ReadEntry } from "tar";
import { DataError } from "../../errors.ts";

/** Limits on what an archive may hold; the defaults fit the bAbI archives with room to spare. */
export interface ArchiveLimits {
  /** Bytes after decompression, all members together. */
  readonly unpackedBytes: number;
  /** Bytes of one expected member. */
  readonly memberBytes: number;
  /** Members of any kind. */
  readonly members: number;
}

const defaultLimits: ArchiveLimits = { unpackedBytes: 1 << 29, memberBytes: 1 << 25, members: 10_000 };

/** Reads the members for which `keyOf(name)` gives a key; other names are skipped. */
export async function readArchive(
  path: string,
  keyOf: (name: string) => string | undefined,
  limits: ArchiveLimits = defaultLimits,
): Promise<Map<string, Uint8Array>> {
  const kept = new Map<string, Uint8Array>();
  let fault: unknown;
  let members = 0;
  let ended = false;
  const accept = (entry: ReadEntry) => {
    if (++members > limits.members) throw refused(path, `more than ${limits.members} members`);
    const key = keyOf(entry.path);
    if (key === undefined || entry.type === "Directory") return entry.resume();
    if (entry.type !== "File" && entry.type !== "OldFile") {
      throw refused(path, `${entry.path} is a ${entry.type}, not a file`);
    }
    if (entry.size > limits.memberBytes) {
      throw refused(path, `${entry.path} is larger than ${limits.memberBytes} bytes`);
    }
    if (kept.has(key)) throw refused(path, `${entry.path} is there twice`);
    kept.set(key, new Uint8Array(0));
    const parts: Uint8Array[] = [];
    entry.on("data", (part: Uint8Array) => parts.push(part));
    entry.on("end", () => kept.set(key, Buffer.concat(parts)));
  };
  const parser = new Parser({ strict: true, brotli: false, zstd: false });
  parser.on("error", (error: unknown) => (fault ??= error));
  parser.on("end", () => (ended = true));
  parser.on("entry", (entry: ReadEntry) => {
    try {
      accept(entry);
    } catch (error) {
      fault ??= error;
      entry.resume();
    }
  });
  try {
    let unpacked = 0;
    await pipeline(createReadStream(path), createGunzip(), async (chunks: AsyncIterable<Buffer>) => {
      for await (const chunk of chunks) {
        // The parser would unpack a second layer of gzip by itself, past the limit here.
        if (unpacked === 0 && !isTar(chunk)) fault = new Error("what is compressed is not a tar archive");
        unpacked += chunk.length;
        if (unpacked > limits.unpackedBytes) {
          fault = refused(path, `unpacks to more than ${limits.unpackedBytes} bytes`);
        }
        if (fault === undefined) parser.write(chunk);
        if (fault !== undefined) throw fault;
      }
    });
    parser.end();
    if (fault !== undefined) throw fault;
    if (!ended) throw new Error("it has no end");
  } catch (thrown) {
    // A pipeline that is left early throws its own AbortError.
    const error = fault ?? thrown;
    if (error instanceof DataError || (error as NodeJS.ErrnoException).syscall !== undefined) throw error;
    throw refused(path, `not a whole .tar.gz archive: ${(error as Error).message}`);
  }
  return kept;
}

/** Whether a first block has tar's mark and begins with a printable letter, as a name does. */
function isTar(block: Buffer): boolean {
  return block.toString("latin1", 257, 262) === "ustar" && block[0]! > 0x20 && block[0]! < 0x7f;
}

function refused(path: string, what: string): DataError {
  return new DataError(`${path}: ${what}`, {
    hint: "it may be cut short or not the archive meant; get it again",
  });
}
