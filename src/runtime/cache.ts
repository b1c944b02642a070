/** Compiled programs by shape: a graph has static shapes, so each shape is compiled once and kept for a while. */
import type { Program } from "./program.ts";

/** Keeps the most recently used programs; older ones are released, because each holds the runtime's memory. */
export class ProgramCache {
  private readonly programs = new Map<string, Promise<Program>>();

  constructor(private readonly most = 3) {}

  /** The program of a key, compiled by `make` the first time and after it has been let go. */
  async get(key: string, make: () => Promise<Program>): Promise<Program> {
    const found = this.programs.get(key) ?? make();
    this.programs.delete(key);
    this.programs.set(key, found);
    try {
      await found;
    } catch (error) {
      // A program that cannot be compiled is not kept: the next call tries again.
      if (this.programs.get(key) === found) this.programs.delete(key);
      throw error;
    }
    const others = [...this.programs.keys()].filter((other) => other !== key);
    for (const oldest of others.slice(0, Math.max(0, this.programs.size - this.most))) {
      const gone = this.programs.get(oldest)!;
      this.programs.delete(oldest);
      await gone.then(
        (program) => program.release(),
        () => undefined,
      );
    }
    return found;
  }

  /** Releases all programs. The cache can be used again. */
  async release(): Promise<void> {
    const all = [...this.programs.values()];
    this.programs.clear();
    for (const program of await Promise.allSettled(all)) {
      if (program.status === "fulfilled") await program.value.release();
    }
  }
}
