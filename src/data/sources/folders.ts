/**
 * A local copy of bAbI: the task files in a folder, in the folder of an unpacked archive, or in a .tar.gz.
 */
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { DataError } from "../../errors.ts";
import { type Variant, variantFolders } from "../catbabi.ts";
import { readArchive } from "./archive.ts";

/** One file as it was found; `path` is for messages. */
export interface FoundFile {
  readonly path: string;
  readonly bytes: Uint8Array;
}

/** Task files by name (`qa3_train.txt`, `qa3_train.partial.txt`), and where they were found. */
export interface BabiCopy {
  readonly origin: string;
  readonly files: ReadonlyMap<string, FoundFile>;
}

const taskFile = /^qa([1-9]|1[0-9]|20)_(train|valid|test)(\.partial)?\.txt$/;
// No file of either variant comes near this; a longer one is something else.
const largestFile = 1 << 25;

/** Whether `name` is a task file's name, whole or partial. */
function isTaskFile(name: string): boolean {
  return taskFile.test(name);
}

/** Names of archives to look for in a folder: one variant alone, then all of them. */
function archiveNames(variant: Variant): string[] {
  return [`babi-${variantFolders[variant]}.tar.gz`, "tasks_1-20_v1-2.tar.gz", "babi_tasks_1-20_v1-2.tar.gz"];
}

/** Reads the copy at `from`: a .tar.gz, a folder of task files, or a folder with one of them in it. */
export async function readCopy(from: string, variant: Variant): Promise<BabiCopy> {
  const found = await stat(from).catch(() => undefined);
  if (found === undefined) {
    throw new DataError(`${from}: no such file or folder`, {
      hint: "give the folder with qa1_train.txt …, or the .tar.gz archive",
    });
  }
  if (!found.isDirectory()) return readArchivedCopy(from, variant);
  const inner = variantFolders[variant];
  const folders = [
    from,
    ...[inner, `babi-v1.2/${inner}`, `tasks_1-20_v1-2/${inner}`].map((name) => join(from, name)),
  ];
  for (const folder of folders) {
    const names = (await readdir(folder).catch(() => [])).filter(isTaskFile);
    if (names.length > 0) return readFolder(folder, names);
  }
  const present = new Set(await readdir(from));
  const archive = archiveNames(variant).find((name) => present.has(name));
  if (archive !== undefined) return readArchivedCopy(join(from, archive), variant);
  throw new DataError(`${from}: no task files (qa1_train.txt …) and no bAbI archive`, {
    "looked in": folders.join(", "),
    "looked for": archiveNames(variant).join(", "),
  });
}

async function readFolder(folder: string, names: readonly string[]): Promise<BabiCopy> {
  const files = new Map<string, FoundFile>();
  for (const name of names.toSorted()) {
    const path = join(folder, name);
    const { size } = await stat(path);
    if (size > largestFile) throw new DataError(`${path}: ${size} bytes is too large for a task file`);
    files.set(name, { path, bytes: await readFile(path) });
  }
  return { origin: folder, files };
}

/** Reads the task files of one variant out of an archive. */
export async function readArchivedCopy(path: string, variant: Variant): Promise<BabiCopy> {
  // `tasks_1-20_v1-2/en-valid-10k/qa1_train.txt`: at most one folder above the variant's.
  const member = new RegExp(String.raw`^(?:\./)?(?:[\w.-]+/)?${variantFolders[variant]}/([^/]+)$`);
  const members = await readArchive(path, (name) => {
    const file = member.exec(name)?.[1];
    return file !== undefined && isTaskFile(file) ? file : undefined;
  });
  if (members.size === 0) {
    throw new DataError(`${path}: no task files of ${variantFolders[variant]}/ in this archive`, {
      hint: "the other variant may be meant: --variant 10k or --variant 1k",
    });
  }
  const files = [...members].map(([name, bytes]) => [name, { path: `${path}/${name}`, bytes }] as const);
  return { origin: path, files: new Map(files) };
}
