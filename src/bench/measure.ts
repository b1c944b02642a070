/** Timing: cases run in turn, several times, and the median of each is kept, so that a noisy machine is fair. */
import { median } from "../statistics.ts";

/** Milliseconds of one case. */
export interface Timing {
  readonly median: number;
  readonly least: number;
  readonly most: number;
}

/** Times every case `repeats` times, interleaved, after `warmup` runs of each. */
export async function interleaved<Name extends string>(
  cases: Readonly<Record<Name, () => Promise<unknown>>>,
  { repeats, warmup = 2 }: { repeats: number; warmup?: number },
): Promise<Record<Name, Timing>> {
  const names = Object.keys(cases) as Name[];
  const times = new Map<Name, number[]>(names.map((name) => [name, []]));
  for (let i = 0; i < warmup; i++) for (const name of names) await cases[name]();
  for (let i = 0; i < repeats; i++) {
    for (const name of names) times.get(name)!.push(await elapsed(cases[name]));
  }
  return Object.fromEntries(names.map((name) => [name, summary(times.get(name)!)])) as Record<Name, Timing>;
}

/** Milliseconds that one call takes. */
export async function elapsed(run: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await run();
  return performance.now() - start;
}

/** Median, least and most of some times. */
export function summary(times: readonly number[]): Timing {
  return { median: median(times), least: Math.min(...times), most: Math.max(...times) };
}

/** Values in ±scale/2 that do not depend on the time of day. */
export function filled(size: number, scale = 0.1, seed = 1): Float32Array {
  let x = seed * 2654435761;
  return Float32Array.from({ length: size }, () => {
    x = (Math.imul(x, 1664525) + 1013904223) | 0;
    return ((x >>> 8) / 0x1000000 - 0.5) * scale;
  });
}
