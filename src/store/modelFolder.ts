/**
 * Model folders: what answering needs and nothing else.
 *
 *   config.json + model.safetensors, and if given vocab.json, README.md, manifest.json
 *
 * One path is one folder: a model folder, a checkpoint, or a run (its best checkpoint, else its last).
 */
import { access, readdir, rmdir } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { DataError, UsageError } from "../errors.ts";
import {
  errorCode,
  type FileSystem,
  makeFolders,
  nodeFileSystem,
  StorageError,
  writeFolderAtomically,
} from "./atomic.ts";
import { listCheckpoints, readChosen, readPointer } from "./checkpoint.ts";
import {
  checkpointFiles,
  type ExtraFiles,
  encodeExtras,
  encodeFinite,
  type JsonObject,
  readExtras,
  readJson,
  readTensors,
} from "./contents.ts";
import { widenWeights } from "./float16.ts";
import { formatJson } from "./json.ts";
import { describeFiles, encodeManifest, manifestFile, openVerified } from "./manifest.ts";
import type { Tensors } from "./safetensors.ts";
import { findModel } from "./shippedModels.ts";

/** A model as it was saved: what it is, its weights, and the files that came with it. */
export interface LoadedModel {
  /** Absolute path of the folder that was read; within a run, the checkpoint's. */
  readonly path: string;
  /** What the given path was. */
  readonly kind: "run" | "checkpoint" | "model";
  /** Updates made when it was saved, where that is known. */
  readonly step: number | undefined;
  /** Whether there was a manifest, and every file is what it says; without one, damage may go unseen. */
  readonly verified: boolean;
  readonly config: JsonObject;
  /** The weights; those that are stored as float16 are float32 here. */
  readonly model: Tensors;
  /** `vocab.json`, `README.md` and others, by name. */
  readonly files: Readonly<Record<string, Uint8Array>>;
}

/**
 * Reads a model from a run, checkpoint or model folder; of a run, the best checkpoint by default. The name of a shipped
 * model (`catbabi-qa`) stands for its folder.
 */
export async function loadModelFolder(
  path: string,
  { which }: { readonly which?: "best" | "last" } = {},
): Promise<LoadedModel> {
  const given = resolve(findModel(path));
  if (await isModel(given)) return readModel(given);
  const found = await readChosen(() => chooseCheckpoint(given, which), readModel);
  return { ...found, kind: "run" };
}

async function readModel(path: string): Promise<LoadedModel> {
  const folder = await openVerified(path);
  return {
    path: folder.path,
    kind: folder.manifest?.kind ?? "model",
    step: folder.manifest?.step ?? undefined,
    verified: folder.manifest !== undefined,
    config: await readJson(folder, checkpointFiles.config),
    model: widenWeights(await readTensors(folder, checkpointFiles.model)),
    files: await readExtras(folder),
  };
}

/** What goes into a model folder. */
export interface ModelContent {
  readonly config: JsonObject;
  readonly model: Tensors;
  readonly step?: number;
  readonly files?: ExtraFiles;
  /** The disk; tests give a failing one. */
  readonly fs?: FileSystem;
}

/** Writes a model folder, whole or not at all; the path must be free or an empty folder. */
export async function saveModelFolder(path: string, content: ModelContent): Promise<string> {
  const target = resolve(path);
  const { config, model } = checkpointFiles;
  const files = new Map([
    [config, new TextEncoder().encode(formatJson(content.config, config))],
    [model, encodeFinite(content.model, model)],
    ...encodeExtras(content.files),
  ]);
  const manifest = describeFiles(files, { kind: "model", step: content.step ?? null, best: null });
  files.set(manifestFile, encodeManifest(manifest));
  await makeWay(target, content.fs ?? nodeFileSystem);
  await writeFolderAtomically(target, files, content.fs);
  return target;
}

/** Refuses a path at which a model folder cannot be written: there is a file, or a folder that is not empty. */
export async function checkFree(path: string): Promise<"absent" | "empty"> {
  const target = resolve(path);
  const present = await readdir(target).catch((error: unknown) => {
    if (errorCode(error) === "ENOENT") return undefined;
    if (errorCode(error) === "ENOTDIR") throw new UsageError(`${target}: exists and is not a folder`);
    throw new StorageError(`cannot write to ${basename(target)}`, target, error);
  });
  if (present === undefined) return "absent";
  if (present.length === 0) return "empty";
  throw new UsageError(`${target}: the folder exists and is not empty`, {
    hint: "choose another folder, or remove this one first",
  });
}

async function makeWay(target: string, fs: FileSystem): Promise<void> {
  if ((await checkFree(target)) === "empty") {
    await rmdir(target).catch((error: unknown) => {
      throw new StorageError(`cannot write to ${basename(target)}`, target, error);
    });
  }
  await makeFolders(dirname(target), fs).catch((error: unknown) => {
    throw new StorageError(`cannot make ${basename(dirname(target))}`, dirname(target), error);
  });
}

async function isModel(path: string): Promise<boolean> {
  const names = [checkpointFiles.config, checkpointFiles.model, manifestFile];
  const found = await Promise.all(names.map((name) => exists(join(path, name))));
  return found.includes(true);
}

async function chooseCheckpoint(run: string, which: "best" | "last" | undefined): Promise<string> {
  if (!(await exists(run))) {
    throw new DataError(`${run}: no such folder`, {
      hint: "give a model folder, a checkpoint folder or a run folder",
    });
  }
  const best = which === "last" ? undefined : await readPointer(run, "best");
  const last =
    which === "best"
      ? undefined
      : ((await readPointer(run, "last")) ?? (await listCheckpoints(run)).at(-1)?.name);
  const name = best ?? last;
  if (name !== undefined) return join(run, name);
  throw new DataError(`${run}: no model here`, {
    looked: `for ${checkpointFiles.config} and ${checkpointFiles.model}; for the files best and last; for folders checkpoint-<step>`,
    hint: "give a model folder, a checkpoint folder, or a run that has saved a checkpoint",
  });
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
