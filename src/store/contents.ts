/**
 * The files inside checkpoint and model folders, as values: what both kinds of folder share.
 */
import { join } from "node:path";
import { formatJson, parseJsonObject } from "./json.ts";
import { isPlainName, type VerifiedFolder } from "./manifest.ts";
import { largestJson } from "./read.ts";
import {
  decodeSafetensors,
  encodeSafetensors,
  firstNonFinite,
  NonFiniteError,
  type Tensors,
} from "./safetensors.ts";

/** The files every checkpoint has. */
export const checkpointFiles = {
  config: "config.json",
  model: "model.safetensors",
  optimizer: "optimizer.safetensors",
  state: "trainer_state.json",
} as const;

/** JSON objects that are kept for the caller without looking inside. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Further files of a folder, by plain name. */
export type ExtraFiles = Readonly<Record<string, Uint8Array | string>>;

/** A JSON object from a verified folder. */
export async function readJson(folder: VerifiedFolder, name: string): Promise<JsonObject> {
  return parseJsonObject(await folder.read(name, largestJson), { file: join(folder.path, name) });
}

/** Finite tensors from a verified folder. */
export async function readTensors(folder: VerifiedFolder, name: string): Promise<Tensors> {
  return decodeSafetensors(await folder.read(name), { file: join(folder.path, name), finite: true }).tensors;
}

/** Further files that are read from a folder without a manifest: what a model comes with, and nothing else. */
const knownExtras: ReadonlySet<string> = new Set(["vocab.json", "README.md"]);

/** The files of a folder that are none of a checkpoint's own; none is larger than a JSON file may be. */
export async function readExtras(folder: VerifiedFolder): Promise<Readonly<Record<string, Uint8Array>>> {
  const files: Record<string, Uint8Array> = Object.create(null) as Record<string, Uint8Array>;
  const own: readonly string[] = Object.values(checkpointFiles);
  for (const name of folder.names) {
    if (own.includes(name) || !(folder.manifest || knownExtras.has(name))) continue;
    files[name] = await folder.read(name, largestJson);
  }
  return files;
}

/** Tensors as a file's bytes; NaN or an infinity among them is a `NonFiniteError`. */
export function encodeFinite(tensors: Tensors, name: string): Uint8Array {
  const bad = firstNonFinite(tensors);
  if (bad) throw new NonFiniteError(name, bad.name, `[${bad.index}]`, bad.value);
  return encodeSafetensors(tensors);
}

/** Training state as a file's bytes; NaN or an infinity in it is a `NonFiniteError`. */
export function encodeState(state: JsonObject, name: string): Uint8Array {
  requireFinite(state, "", name);
  return new TextEncoder().encode(formatJson(state, name));
}

function requireFinite(value: unknown, path: string, file: string): void {
  if (typeof value === "number" && !Number.isFinite(value)) throw new NonFiniteError(file, path, "", value);
  if (typeof value !== "object" || value === null) return;
  for (const [key, member] of Object.entries(value)) {
    requireFinite(member, path === "" ? key : `${path}.${key}`, file);
  }
}

/** Extra files as bytes, their names checked. */
export function encodeExtras(files: ExtraFiles = {}): [string, Uint8Array][] {
  const taken: readonly string[] = Object.values(checkpointFiles);
  return Object.entries(files).map(([name, content]) => {
    if (!isPlainName(name) || taken.includes(name)) {
      throw new RangeError(`internal: ${JSON.stringify(name)} cannot be the name of a further file`);
    }
    return [name, typeof content === "string" ? new TextEncoder().encode(content) : content];
  });
}
