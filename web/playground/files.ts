/** Files to and from the visitor's disk: a folder where the browser can write one, else downloads one by one. */
import type { FolderFiles } from "./messages.ts";

/** What we use of the File System Access API, which not every browser has. */
interface FolderPicker {
  showDirectoryPicker?(options: { mode: "readwrite"; id: string }): Promise<FileSystemDirectoryHandle>;
}

/** Saves the files of a model folder; false if the visitor changed their mind. */
export async function saveFolder(files: FolderFiles, name: string): Promise<boolean> {
  const { showDirectoryPicker } = window as FolderPicker;
  if (!showDirectoryPicker) {
    for (const [file, bytes] of Object.entries(files)) download(bytes, file);
    return true;
  }
  const picked = await showDirectoryPicker
    .call(window, { mode: "readwrite", id: "fwm" })
    .catch((error: unknown) => {
      if (error instanceof DOMException && error.name === "AbortError") return undefined;
      throw error;
    });
  if (!picked) return false;
  const folder = await picked.getDirectoryHandle(name, { create: true });
  for (const [file, bytes] of Object.entries(files)) {
    const stream = await (await folder.getFileHandle(file, { create: true })).createWritable();
    await stream.write(bytes);
    await stream.close();
  }
  return true;
}

/** Hands a file to the browser's downloads. */
export function download(bytes: Uint8Array<ArrayBuffer>, name: string): void {
  const address = URL.createObjectURL(new Blob([bytes]));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  // The download has begun by then.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/** Largest file that is read. */
const largestFile = 2 ** 26;

/** Chosen or dropped files by name. */
export async function readFiles(list: Iterable<File>): Promise<FolderFiles> {
  const entries: [string, Uint8Array<ArrayBuffer>][] = [];
  for (const file of list) {
    if (file.size > largestFile) throw new Error(`${file.name}: larger than ${largestFile >> 20} MB`);
    entries.push([file.name, new Uint8Array(await file.arrayBuffer())]);
  }
  return Object.fromEntries(entries);
}
