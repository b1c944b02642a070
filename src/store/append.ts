/**
 * A file that only grows, one whole record at a time: what metrics and event files share.
 *
 * Each record is handed to the operating system in one call, so a killed process loses none; `sync` forces
 * them to the disk, so that a power cut loses only those since. A record that did not fit is taken back.
 */
import { closeSync, fstatSync, fsyncSync, ftruncateSync, openSync, writeSync } from "node:fs";
import { basename } from "node:path";
import { StorageError } from "./atomic.ts";

/** Appends records to one file. */
export class AppendFile {
  readonly path: string;
  readonly #descriptor: number;
  #size: number;
  #open = true;

  /** Opens the file, making it if it is absent; with `create`, it must be absent. */
  constructor(path: string, { create = false }: { readonly create?: boolean } = {}) {
    this.path = path;
    try {
      this.#descriptor = openSync(path, create ? "ax" : "a");
      this.#size = fstatSync(this.#descriptor).size;
    } catch (error) {
      throw new StorageError(`cannot open ${basename(path)}`, path, error);
    }
  }

  /** Adds one record, whole; if the disk refuses, the file ends where it ended before. */
  append(record: Uint8Array): void {
    let written = 0;
    try {
      while (written < record.length) written += writeSync(this.#descriptor, record, written);
    } catch (error) {
      this.#cutBack();
      throw new StorageError(`cannot append to ${basename(this.path)}`, this.path, error);
    }
    this.#size += record.length;
  }

  /** Forces every record so far to the disk. */
  sync(): void {
    try {
      fsyncSync(this.#descriptor);
    } catch (error) {
      throw new StorageError(`cannot flush ${basename(this.path)}`, this.path, error);
    }
  }

  /** Flushes and closes; closing twice is harmless. */
  close(): void {
    if (!this.#open) return;
    this.#open = false;
    try {
      this.sync();
    } catch (error) {
      this.#shut();
      throw error;
    }
    const failure = this.#shut();
    if (failure) throw new StorageError(`cannot close ${basename(this.path)}`, this.path, failure.error);
  }

  #shut(): { error: unknown } | undefined {
    try {
      closeSync(this.#descriptor);
      return undefined;
    } catch (error) {
      return { error };
    }
  }

  #cutBack(): void {
    try {
      ftruncateSync(this.#descriptor, this.#size);
    } catch {
      // The reader tolerates a last record that was cut; the error of the write itself is the one reported.
    }
  }
}
