/** Where the time of a compiled step goes: the runtime's own profile, by scope. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

interface ProfileEvent {
  readonly cat?: string;
  readonly name: string;
  readonly dur: number;
}

/** Runs `work` with a place for profiles and gives the microseconds of each part; `partOf` sorts the nodes by name. */
export async function profileParts(
  work: (profile: string) => Promise<void>,
  partOf: (node: string) => string,
): Promise<Map<string, number>> {
  const folder = mkdtempSync(join(tmpdir(), "fwm-profile-"));
  try {
    await work(join(folder, "run"));
    const totals = new Map<string, number>();
    for (const file of readdirSync(folder)) {
      const events = JSON.parse(readFileSync(join(folder, file), "utf8")) as ProfileEvent[];
      for (const { cat, name, dur } of events) {
        // A loop counts as a whole; the nodes inside it are named loop/….
        if (cat !== "Node" || !name.endsWith("_kernel_time") || name.startsWith("loop/")) continue;
        const part = partOf(name);
        totals.set(part, (totals.get(part) ?? 0) + dur);
      }
    }
    return totals;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
