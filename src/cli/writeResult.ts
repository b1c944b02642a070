/** Files that commands leave for people: results and figures, in folders that are made where they are missing. */
import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { writeFileAtomically } from "../store/atomic.ts";

/** Writes a file, whole or not at all, and the folder it is in. */
export async function writeResult(path: string, content: string | Uint8Array): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFileAtomically(path, content);
}

/** Writes a value as readable JSON. */
export async function writeJson(path: string, value: unknown): Promise<void> {
  await writeResult(path, `${JSON.stringify(value, null, 1)}\n`);
}
