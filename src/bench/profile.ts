/** Where the time of a compiled step goes: the runtime's own profile, by scope. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

interface ProfileEvent {
  readonly cat?: string;
  readonly name: string;
  /** Microseconds: when it began, and how long it took. */
  readonly ts: number;
  readonly dur: number;
}

/** Runs `work` with a place for profiles and gives the microseconds of each part, the first run of a session left out. */
export async function profileParts(work: (profile: string) => Promise<void>): Promise<Map<string, number>> {
  const folder = mkdtempSync(join(tmpdir(), "fwm-profile-"));
  try {
    await work(join(folder, "run"));
    const totals = new Map<string, number>();
    for (const file of readdirSync(folder)) {
      const events = JSON.parse(readFileSync(join(folder, file), "utf8")) as ProfileEvent[];
      for (const [part, time] of partsOfProfile(events)) {
        totals.set(part, (totals.get(part) ?? 0) + time);
      }
    }
    return totals;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Microseconds of each part in one session's profile, but for its first run, where memory is touched for the first time. */
export function partsOfProfile(events: readonly ProfileEvent[]): Map<string, number> {
  const runs = events.filter(({ name }) => name === "model_run").map(({ ts }) => ts);
  const warm = runs.sort((a, b) => a - b)[1] ?? Number.POSITIVE_INFINITY;
  const totals = new Map<string, number>();
  for (const { cat, name, ts, dur } of events) {
    // A loop counts as a whole; the nodes inside it are named loop/….
    if (ts < warm || cat !== "Node" || !name.endsWith("_kernel_time") || name.startsWith("loop/")) continue;
    const part = scopeOf(name);
    totals.set(part, (totals.get(part) ?? 0) + dur);
  }
  return totals;
}

/** Milliseconds of each part, when all of them together take `ms`. */
export function sharesOf(totals: ReadonlyMap<string, number>, ms: number): Record<string, number> {
  const all = [...totals.values()].reduce((a, b) => a + b, 0);
  return Object.fromEntries([...totals].map(([part, time]) => [part, (time / all) * ms]));
}

/** The scope a node of the program was built in: `write` of `fwm/write`, `lstm`, `optimizer`; `layer` of every layer. */
function scopeOf(node: string): string {
  const scopes = node.split("/").slice(0, -1);
  if (scopes.length === 0) return "other";
  return scopes[0] === "fwm" && scopes[1] ? scopes[1] : scopes[0]!.replace(/\d+$/, "");
}
