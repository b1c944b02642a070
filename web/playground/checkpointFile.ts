/**
 * The checkpoint of this browser: one file in the origin's private file system. It is replaced as a whole when it is
 * closed, so a page that dies while saving leaves the one before. One tab at a time writes it.
 */

const name = "fwm-playground.safetensors";
const lockName = "fwm-playground";

/** The file, for one worker. */
export class CheckpointFile {
  /** Whether this tab may write; another one may have come first. */
  private owns = false;

  constructor() {
    // Held until the worker ends. Whoever waits gets it then.
    if (typeof navigator.locks === "undefined") this.owns = true;
    else {
      void navigator.locks.request(lockName, () => {
        this.owns = true;
        return new Promise<never>(() => undefined);
      });
    }
  }

  /** The bytes of the last checkpoint; undefined without one, or without storage. */
  async read(): Promise<Uint8Array<ArrayBuffer> | undefined> {
    try {
      const folder = await navigator.storage.getDirectory();
      const file = await (await folder.getFileHandle(name)).getFile();
      return new Uint8Array(await file.arrayBuffer());
    } catch {
      return undefined;
    }
  }

  /** Replaces the checkpoint; returns why that was not possible, if it was not. */
  async write(bytes: Uint8Array<ArrayBuffer>): Promise<string | undefined> {
    if (!this.owns) return "another tab of the playground keeps its own";
    try {
      const folder = await navigator.storage.getDirectory();
      const stream = await (await folder.getFileHandle(name, { create: true })).createWritable();
      await stream.write(bytes);
      await stream.close();
      return undefined;
    } catch (error) {
      return `this browser does not store it (${error instanceof Error ? error.message : String(error)})`;
    }
  }

  /** Removes the checkpoint. */
  async remove(): Promise<void> {
    try {
      const folder = await navigator.storage.getDirectory();
      await folder.removeEntry(name);
    } catch {
      // There was none.
    }
  }
}
