/**
 * Checkpoints: everything a run needs to go on as if it had never stopped, in a folder `checkpoint-<step>/`.
 *
 *   config.json            what the model is; given by the caller
 *   model.safetensors      weights
 *   optimizer.safetensors  moments, carried recurrent state: tensors that training needs and answering does not
 *   trainer_state.json     step, data stream, random keys, best metric; given by the caller
 *   manifest.json          size and SHA-256 of every file
 *   vocab.json, README.md  and other plain files the caller adds
 *
 * Beside them, `last` and `best` are one-line files that name a folder. Order of a save: the folder appears
 * whole, the pointers follow, and only when the new folder has been read back are old ones removed. The run
 * folder therefore holds a whole checkpoint at every moment after the first save.
 */
import { readdir } from "node:fs/promises";
import { basename, isAbsolute, join, resolve } from "node:path";
import { DataError } from "../errors.ts";
import {
  type FileSystem,
  nodeFileSystem,
  removeAtomically,
  writeFileAtomically,
  writeFolderAtomically,
} from "./atomic.ts";
import {
  checkpointFiles,
  type ExtraFiles,
  encodeExtras,
  encodeFinite,
  encodeState,
  type JsonObject,
  readExtras,
  readJson,
  readTensors,
} from "./contents.ts";
import { decodeUtf8, formatJson } from "./json.ts";
import {
  checkpointName,
  describeFiles,
  encodeManifest,
  manifestFile,
  openVerified,
  unreadableFolder,
  type VerifiedFolder,
} from "./manifest.ts";
import { readIfPresent } from "./read.ts";
import type { Tensors } from "./safetensors.ts";

/** What a checkpoint holds. */
export interface CheckpointContent {
  /** Updates made so far; names the folder. */
  readonly step: number;
  /** What the model is: enough to build it again. */
  readonly config: JsonObject;
  /** Weights by name. */
  readonly model: Tensors;
  /** Training state that is tensors. */
  readonly optimizer: Tensors;
  /** Training state that is not. */
  readonly state: JsonObject;
  /** Further files by plain name, such as `vocab.json`. */
  readonly files?: ExtraFiles;
}

/** A checkpoint to save, and what becomes of older ones. */
export interface SaveOptions extends CheckpointContent {
  /** This is the best one so far: `best` will name it, and pruning will spare it. */
  readonly best?: boolean;
  /** How many of the newest to keep besides the best; 2 by default. */
  readonly keepLast?: number;
  /** The disk; tests give a failing one. */
  readonly fs?: FileSystem;
}

/** What a save did. */
export interface SavedCheckpoint {
  readonly path: string;
  readonly name: string;
  /** Folders removed, oldest first. */
  readonly pruned: readonly string[];
}

/** Writes a checkpoint into a run folder, moves the pointers, and removes old ones. Fails whole. */
export async function saveCheckpoint(runFolder: string, options: SaveOptions): Promise<SavedCheckpoint> {
  const { best = false, keepLast = 2, fs = nodeFileSystem } = options;
  if (!Number.isSafeInteger(keepLast) || keepLast < 1) {
    throw new RangeError(`internal: keepLast must be at least 1, not ${keepLast}`);
  }
  const run = resolve(runFolder);
  const files = checkpointContentFiles(options);
  const older = await listCheckpoints(run);
  const { name, write } = await chooseName(run, options, files, older);
  if (write) await writeFolderAtomically(join(run, name), write, fs);
  if (best) await writePointer(run, "best", name, fs);
  await writePointer(run, "last", name, fs);

  const pruned = await prunable(run, keepLast, name);
  // Nothing old goes before the new one was seen to be whole.
  if (pruned.length > 0) await verifyAll(await openVerified(join(run, name)));
  for (const old of pruned) await removeAtomically(join(run, old), fs);
  return { path: join(run, name), name, pruned };
}

/** A checkpoint as it was saved. */
export interface LoadedCheckpoint extends Required<CheckpointContent> {
  /** Absolute path of its folder. */
  readonly path: string;
  readonly name: string;
  /** Name of the run's best checkpoint when this one was saved. */
  readonly best: string | undefined;
  readonly files: Readonly<Record<string, Uint8Array>>;
}

/**
 * Reads and verifies a checkpoint. `path` is a checkpoint folder, or a run folder; of a run, `which` takes
 * the `"last"`, the `"best"`, or one by its name or path.
 * Whatever is wrong is a `DataError` that names the file and the fault.
 */
export async function loadCheckpoint(
  path: string,
  { which = "last" }: { readonly which?: string } = {},
): Promise<LoadedCheckpoint> {
  if (which === "last" || which === "best") {
    if (await readIfPresent(join(path, manifestFile))) return readCheckpoint(path);
    return readChosen(async () => join(path, await pointedAt(path, which)), readCheckpoint);
  }
  return readCheckpoint(
    checkpointName.test(which) ? join(path, which) : isAbsolute(which) ? which : resolve(which),
  );
}

/**
 * Reads the checkpoint that a run's pointers choose. A run that trains moves them and removes old checkpoints while we
 * read: then what is gone was the former choice, and the new one is read.
 */
export async function readChosen<T>(
  choose: () => Promise<string>,
  read: (path: string) => Promise<T>,
): Promise<T> {
  for (let path = await choose(), attempt = 1; ; attempt++) {
    try {
      return await read(path);
    } catch (error) {
      const now = await choose();
      if (!(error instanceof DataError) || now === path || attempt === mostChoices) throw error;
      path = now;
    }
  }
}

/** A run that saves faster than its checkpoints can be read is given up at last. */
const mostChoices = 50;

/** A folder that could not be used, and why. */
export interface Damage {
  readonly path: string;
  readonly problem: string;
}

/**
 * The newest checkpoint of a run that is whole, and the damaged newer ones that were passed over. Undefined
 * if the run has none at all; a `DataError` if it has some and none is whole.
 */
export async function newestValid(
  runFolder: string,
): Promise<{ checkpoint: LoadedCheckpoint; skipped: readonly Damage[] } | undefined> {
  const skipped: Damage[] = [];
  const entries = await listCheckpoints(runFolder);
  for (const { path } of entries.toReversed()) {
    try {
      return { checkpoint: await readCheckpoint(path), skipped };
    } catch (error) {
      if (!(error instanceof DataError)) throw error;
      skipped.push({ path, problem: error.message });
    }
  }
  if (entries.length === 0) return undefined;
  throw new DataError(`${resolve(runFolder)}: no checkpoint is whole`, {
    tried: skipped.map(({ problem }) => `\n${problem}`).join(""),
    hint: "restore one from a copy, or train again into another folder",
  });
}

/** A checkpoint's folder, by its name alone. */
export interface CheckpointEntry {
  readonly name: string;
  readonly path: string;
  readonly step: number;
  readonly revision: number;
}

/** The checkpoint folders of a run, oldest first; nothing is opened. Links are no checkpoints. */
export async function listCheckpoints(runFolder: string): Promise<CheckpointEntry[]> {
  const run = resolve(runFolder);
  try {
    const entries = await readdir(run, { withFileTypes: true });
    return entries
      .flatMap((entry) => {
        const match = entry.isDirectory() ? checkpointName.exec(entry.name) : null;
        if (!match) return [];
        const [name, step, revision = "1"] = match;
        return [{ name, path: join(run, name), step: Number(step), revision: Number(revision) }];
      })
      .sort((a, b) => a.step - b.step || a.revision - b.revision);
  } catch (error) {
    throw unreadableFolder(run, error);
  }
}

/** The name in a run's `last` or `best` file; undefined if there is no such file. */
export async function readPointer(runFolder: string, pointer: "last" | "best"): Promise<string | undefined> {
  const file = join(resolve(runFolder), pointer);
  const bytes = await readIfPresent(file, 1000);
  if (!bytes) return undefined;
  const name = decodeUtf8(bytes, file).trimEnd();
  if (!checkpointName.test(name)) {
    throw new DataError(`${file}: does not name a checkpoint`, {
      found: JSON.stringify(name.slice(0, 100)),
      hint: "write the name of a folder beside it into it, such as checkpoint-500",
    });
  }
  return name;
}

/**
 * Makes a checkpoint the run's last one, as it was when it was saved: later ones are removed, and `best`
 * names what was best then (or nothing, if that has been pruned since). Without a checkpoint, all are removed.
 */
export async function rewindCheckpoints(
  runFolder: string,
  to: Pick<LoadedCheckpoint, "name" | "best"> | undefined,
  fs: FileSystem = nodeFileSystem,
): Promise<void> {
  const run = resolve(runFolder);
  const entries = await listCheckpoints(run);
  const at = to ? entries.findIndex(({ name }) => name === to.name) : -1;
  const kept = new Set(entries.slice(0, at + 1).map(({ name }) => name));
  await setPointer(run, "last", to?.name, fs);
  await setPointer(run, "best", to?.best !== undefined && kept.has(to.best) ? to.best : undefined, fs);
  // Newest first: a crash in between leaves a run that could have been saved that way.
  for (const { path } of entries.slice(at + 1).toReversed()) await removeAtomically(path, fs);
}

async function readCheckpoint(path: string): Promise<LoadedCheckpoint> {
  const folder = await openVerified(path);
  const { manifest } = folder;
  if (!manifest)
    throw new DataError(`${folder.path}: ${manifestFile} is missing`, { looked: "for a checkpoint folder" });
  const { step } = manifest;
  if (manifest.kind !== "checkpoint" || step === null) {
    throw new DataError(`${folder.path}: not a checkpoint`, {
      found: `a ${manifest.kind} folder`,
      hint: "a model folder answers questions but cannot be trained on",
    });
  }
  const { config, model, optimizer, state } = checkpointFiles;
  return {
    path: folder.path,
    name: basename(folder.path),
    step,
    best: manifest.best ?? undefined,
    config: await readJson(folder, config),
    model: await readTensors(folder, model),
    optimizer: await readTensors(folder, optimizer),
    state: await readJson(folder, state),
    files: await readExtras(folder),
  };
}

function checkpointContentFiles(content: CheckpointContent): Map<string, Uint8Array> {
  if (!checkpointName.test(`checkpoint-${content.step}`)) {
    throw new RangeError(`internal: a checkpoint's step must be a whole number, not ${content.step}`);
  }
  const { config, model, optimizer, state } = checkpointFiles;
  const text = new TextEncoder();
  return new Map([
    [config, text.encode(formatJson(content.config, config))],
    [model, encodeFinite(content.model, model)],
    [optimizer, encodeFinite(content.optimizer, optimizer)],
    [state, encodeState(content.state, state)],
    ...encodeExtras(content.files),
  ]);
}

/**
 * The folder's name, and its files unless a folder with exactly these exists. A folder is never replaced,
 * because between removing and renaming there would be a moment without it: a step that is saved again with
 * other content becomes a new revision.
 */
async function chooseName(
  run: string,
  { step, best = false }: SaveOptions,
  files: ReadonlyMap<string, Uint8Array>,
  existing: readonly CheckpointEntry[],
): Promise<{ name: string; write?: ReadonlyMap<string, Uint8Array> }> {
  const formerBest = await readPointer(run, "best");
  const manifestAs = (name: string): Uint8Array =>
    encodeManifest(
      describeFiles(files, { kind: "checkpoint", step, best: (best ? name : formerBest) ?? null }),
    );
  const newest = existing.filter((entry) => entry.step === step).at(-1);
  if (newest) {
    const present = await readIfPresent(join(newest.path, manifestFile)).catch(() => undefined);
    if (present && Buffer.compare(present, manifestAs(newest.name)) === 0 && (await isWhole(newest.path))) {
      return { name: newest.name };
    }
  }
  const name = newest ? `checkpoint-${step}-r${newest.revision + 1}` : `checkpoint-${step}`;
  return { name, write: new Map([...files, [manifestFile, manifestAs(name)]]) };
}

async function isWhole(path: string): Promise<boolean> {
  return openVerified(path)
    .then(verifyAll)
    .then(() => true)
    .catch(() => false);
}

async function verifyAll(folder: VerifiedFolder): Promise<void> {
  for (const name of folder.names) await folder.read(name);
}

/** What pruning would remove: all but the best, the newest `keepLast`, and the one just written. */
async function prunable(run: string, keepLast: number, written: string): Promise<string[]> {
  const best = await readPointer(run, "best");
  const names = (await listCheckpoints(run)).map(({ name }) => name);
  const kept = new Set([...names.slice(-keepLast), best, written]);
  return names.filter((name) => !kept.has(name));
}

async function writePointer(run: string, pointer: string, name: string, fs: FileSystem): Promise<void> {
  await writeFileAtomically(join(run, pointer), `${name}\n`, fs);
}

async function setPointer(
  run: string,
  pointer: "last" | "best",
  name: string | undefined,
  fs: FileSystem,
): Promise<void> {
  if (name !== undefined) await writePointer(run, pointer, name, fs);
  else if (await readIfPresent(join(run, pointer))) await removeAtomically(join(run, pointer), fs);
}

async function pointedAt(path: string, pointer: "last" | "best"): Promise<string> {
  const name =
    (await readPointer(path, pointer)) ??
    (pointer === "last" ? (await listCheckpoints(path)).at(-1)?.name : undefined);
  if (name !== undefined) return name;
  throw new DataError(`${resolve(path)}: no ${pointer === "best" ? "best " : ""}checkpoint here`, {
    looked: `for the file ${pointer} and for folders checkpoint-<step>`,
    hint:
      pointer === "best"
        ? "nothing was marked best yet; ask for the last one"
        : "train a while longer, or check the path",
  });
}
