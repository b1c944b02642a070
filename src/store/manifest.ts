/**
 * `manifest.json`: what a checkpoint or model folder holds, with the size and SHA-256 of every file.
 *
 * It makes damage visible: a folder is read through its manifest, and a file that is missing, cut short,
 * changed or swapped for a link is named. It holds no time and no path, so that equal states give equal bytes.
 */
import { createHash } from "node:crypto";
import { readdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { z } from "zod";
import { DataError } from "../errors.ts";
import { errorCode, StorageError } from "./atomic.ts";
import { formatJson, parseJsonObject } from "./json.ts";
import { largestFile, readIfPresent } from "./read.ts";

/** Name of the file in its folder. */
export const manifestFile = "manifest.json";

/** Version of the folder format that is written and read. */
const formatVersion = 1;

const largestManifest = 2 ** 20;

/** A plain file name: no separators, no leading dot, nothing that could lead out of the folder. */
const plainName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

/** Name of a checkpoint's folder: its step, and a revision when one step was saved more than once. */
export const checkpointName = /^checkpoint-(0|[1-9]\d{0,14})(?:-r([2-9]|[1-9]\d{1,5}))?$/;

const manifestSchema = z.strictObject({
  format: z.literal("fwm-folder"),
  version: z.literal(formatVersion),
  kind: z.enum(["checkpoint", "model"]),
  /** Updates made when the folder was written; a model folder may not know. */
  step: z.int().min(0).nullable(),
  /** The run's best checkpoint at that moment, perhaps this one. */
  best: z.string().regex(checkpointName).nullable(),
  files: z.record(
    z.string().regex(plainName, "not a plain file name"),
    z.strictObject({ size: z.int().min(0), sha256: z.string().regex(/^[0-9a-f]{64}$/) }),
  ),
});

/** A folder's list of contents. */
export type Manifest = z.infer<typeof manifestSchema>;

/** Whether a name may be given to a file in a checkpoint or model folder. */
export function isPlainName(name: string): boolean {
  return plainName.test(name) && name !== manifestFile;
}

/** The manifest of files about to be written. */
export function describeFiles(
  files: ReadonlyMap<string, Uint8Array>,
  about: Pick<Manifest, "kind" | "step" | "best">,
): Manifest {
  const entries = [...files].map(([name, bytes]) => [name, { size: bytes.length, sha256: sha256(bytes) }]);
  return {
    format: "fwm-folder",
    version: formatVersion,
    ...about,
    files: Object.fromEntries(entries) as Manifest["files"],
  };
}

/** A manifest as the bytes of its file. */
export function encodeManifest(manifest: Manifest): Uint8Array {
  return new TextEncoder().encode(formatJson(manifest, manifestFile));
}

/** A manifest read from its bytes; `file` is named in errors. */
function decodeManifest(bytes: Uint8Array, file: string): Manifest {
  const value = parseJsonObject(bytes, { file });
  if (value.format === "fwm-folder" && value.version !== formatVersion) {
    throw new DataError(`${file}: format version ${JSON.stringify(value.version)}`, {
      expected: formatVersion,
      hint: "the folder was written by another version of fwm; read it with that version",
    });
  }
  const parsed = manifestSchema.safeParse(value);
  if (!parsed.success) {
    throw new DataError(`${file}: not a manifest this version understands`, {
      reason: z.prettifyError(parsed.error),
    });
  }
  return parsed.data;
}

/** A folder whose files are verified as they are read. */
export interface VerifiedFolder {
  /** Absolute. */
  readonly path: string;
  /** Absent in a model folder that was put together by hand. */
  readonly manifest: Manifest | undefined;
  /** Names that can be read, manifest aside. */
  readonly names: readonly string[];
  /** The bytes of a file, as they were written; anything else is a `DataError`. */
  read(name: string, limit?: number): Promise<Uint8Array>;
}

/** Opens a checkpoint or model folder. A symbolic link inside it is refused. */
export async function openVerified(folder: string): Promise<VerifiedFolder> {
  const path = resolve(folder);
  const present = await plainFiles(path);
  const bytes = await readIfPresent(join(path, manifestFile), largestManifest);
  const manifest = bytes && decodeManifest(bytes, join(path, manifestFile));
  return {
    path,
    manifest,
    names: manifest ? Object.keys(manifest.files) : present,
    async read(name, limit = largestFile) {
      if (manifest && !Object.hasOwn(manifest.files, name)) {
        throw new DataError(`${path}: ${name} is not in its manifest`, {
          listed: Object.keys(manifest.files),
        });
      }
      const content = await readIfPresent(join(path, name), limit);
      if (!content) {
        throw new DataError(`${path}: ${name} is missing`, {
          hint: "use another checkpoint or restore the file",
        });
      }
      if (manifest) checkContent(path, name, content, manifest.files[name]!);
      return content;
    },
  };
}

function checkContent(
  path: string,
  name: string,
  content: Uint8Array,
  wanted: Manifest["files"][string],
): void {
  const hint = "use another checkpoint or restore the file from a copy";
  if (content.length !== wanted.size) {
    throw new DataError(`${path}: ${name} is ${content.length < wanted.size ? "cut short" : "too long"}`, {
      expected: `${wanted.size} bytes`,
      found: `${content.length} bytes`,
      hint,
    });
  }
  const found = sha256(content);
  if (found !== wanted.sha256) {
    throw new DataError(`${path}: ${name} was changed since it was written (checksum mismatch)`, {
      expected: wanted.sha256,
      found,
      hint,
    });
  }
}

async function plainFiles(path: string): Promise<string[]> {
  try {
    const entries = await readdir(path, { withFileTypes: true });
    const link = entries.find((entry) => entry.isSymbolicLink());
    if (link) {
      throw new DataError(`${path}: ${link.name} is a symbolic link`, {
        hint: "links inside checkpoint and model folders are refused; copy the file itself",
      });
    }
    return entries.filter((entry) => entry.isFile() && isPlainName(entry.name)).map((entry) => entry.name);
  } catch (error) {
    if (error instanceof DataError) throw error;
    throw unreadableFolder(path, error);
  }
}

/** The error of a folder that cannot be listed: a `DataError` if it is none, otherwise the system's refusal. */
export function unreadableFolder(path: string, error: unknown): DataError | StorageError {
  switch (errorCode(error)) {
    case "ENOENT":
      return new DataError(`${path}: no such folder`);
    case "ENOTDIR":
      return new DataError(`${path}: not a folder`);
    default:
      return new StorageError("cannot list the folder", path, error);
  }
}

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
