/**
 * How fast a training step is: batch building, forward, backward, optimizer and carried state together, at an
 * experiment's own sizes. Each row runs in a process of its own, so that its peak memory is its own.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { StreamBatcher } from "../src/data/batches.ts";
import { generatedSource } from "../src/data/streams.ts";
import type { Settings } from "../src/experiment/settings.ts";
import { input, matmul } from "../src/graph/index.ts";
import { buildSystem, systemFlops } from "../src/model/registry.ts";
import { nodeRuntime } from "../src/runtime/node.ts";
import { compile } from "../src/runtime/program.ts";
import { adam } from "../src/train/optimizers.ts";
import { SequenceTrainer } from "../src/train/sequenceTrainer.ts";
import { elapsed, filled, summary } from "./measure.ts";

/** Parts of a step. */
export const partNames = [
  "embedding",
  "lstm",
  "write",
  "read",
  "output",
  "optimizer",
  "data",
  "other",
] as const;
/** A part of a step. */
export type PartName = (typeof partNames)[number];

/** One row of the report. */
export interface TrainRow {
  readonly mode: "qa" | "lm";
  readonly batch: number;
  readonly window: number;
  readonly tokensPerSecond: number;
  readonly stepMs: number;
  readonly peakMemoryMB: number;
  /** Counted from the equations, over the measured time. */
  readonly gflops: number;
  /** Of the matmul rate measured in the same process. */
  readonly shareOfPeak: number;
  /** Milliseconds of each part, from the runtime's own profile scaled to the step. */
  readonly parts: Readonly<Record<PartName, number>>;
}

/** What a row measures. */
export interface RowSpec {
  readonly system: Settings["system"];
  readonly mode: "qa" | "lm";
  readonly batch: number;
  readonly window: number;
  readonly steps: number;
  readonly threads?: number;
}

/** Measures one row in a child process. */
export function benchRow(spec: RowSpec): Promise<TrainRow> {
  // From a clone the sources run as they are; tsx is among the development dependencies.
  const fromSource = import.meta.url.endsWith(".ts");
  const script = fileURLToPath(new URL(fromSource ? "./trainRow.ts" : "./trainRow.js", import.meta.url));
  const loader = fromSource ? ["--import", "tsx"] : [];
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...loader, script, JSON.stringify(spec)], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let text = "";
    child.stdout.on("data", (chunk: Buffer) => (text += chunk.toString()));
    child.on("close", (code, signal) => {
      if (code === 0) resolve(JSON.parse(text) as TrainRow);
      else reject(new Error(`the measuring process ended with ${signal ?? code}`));
    });
  });
}

/** Measures one row in this process. */
export async function measureRow(spec: RowSpec): Promise<TrainRow> {
  const { system, mode, batch, window, steps } = spec;
  const threads = spec.threads ? { threads: spec.threads } : {};
  const trainer = openTrainer(spec, threads);
  const batcher = new StreamBatcher(generatedSource(1), { batch, window });
  let questions = 0;
  const one = async (step: number): Promise<number> => {
    const taken = batcher.next();
    const result = await trainer.step(taken, 1e-3, { seed: 1, step });
    questions += result.questions;
    return taken.tokens.length;
  };
  // The first steps compile the programs; questions per window vary, and so do their shapes.
  for (let i = 0; i < 4; i++) await one(i);
  questions = 0;
  const peak = await matmulPeak(threads);
  const stepTimes: number[] = [];
  const peakTimes: number[] = [];
  for (let i = 0; i < steps; i++) {
    stepTimes.push(await elapsed(() => one(4 + i)));
    peakTimes.push(await elapsed(peak.run));
  }
  await peak.release();
  await trainer.release();
  const stepMs = summary(stepTimes).median;
  const tokens = batch * window;
  const flops = stepFlops(system, mode, tokens, questions / steps, window);
  const peakGflops = (2 * 1024 ** 3) / summary(peakTimes).least / 1e6;
  const gflops = flops / stepMs / 1e6;
  return {
    mode,
    batch,
    window,
    tokensPerSecond: (tokens / stepMs) * 1000,
    stepMs,
    peakMemoryMB: process.resourceUsage().maxRSS / 1024,
    gflops,
    shareOfPeak: gflops / peakGflops,
    parts: await profileParts(spec, stepMs, threads),
  };
}

function openTrainer(
  { system, mode }: RowSpec,
  options: { threads?: number; profile?: string },
): SequenceTrainer {
  return new SequenceTrainer(
    buildSystem(system),
    { mode, optimizer: adam(), clip: 0, averaging: 0, seed: 1 },
    { runtime: nodeRuntime, ...options },
  );
}

async function matmulPeak(threads: { threads?: number }) {
  const n = 1024;
  const program = await compile(
    { outputs: { y: matmul(input("a", [n, n]), input("b", [n, n])) } },
    { runtime: nodeRuntime, ...threads },
  );
  const feeds = { a: filled(n * n), b: filled(n * n, 0.1, 2) };
  return { run: () => program.run(feeds), release: () => program.release() };
}

interface ProfileEvent {
  readonly cat?: string;
  readonly name: string;
  readonly dur: number;
}

/** Runs a few steps under the runtime's profiler and shares the step's time out by scope. */
async function profileParts(
  spec: RowSpec,
  stepMs: number,
  threads: { threads?: number },
): Promise<Record<PartName, number>> {
  const folder = mkdtempSync(join(tmpdir(), "fwm-profile-"));
  try {
    const trainer = openTrainer(spec, { ...threads, profile: join(folder, "run") });
    const batcher = new StreamBatcher(generatedSource(1), spec);
    let building = 0;
    const steps = 4;
    for (let step = 0; step < steps; step++) {
      const start = performance.now();
      const batch = batcher.next();
      building += performance.now() - start;
      await trainer.step(batch, 1e-3, { seed: 1, step });
    }
    await trainer.release();
    const totals = new Map<PartName, number>();
    for (const file of readdirSync(folder)) {
      for (const { cat, name, dur } of JSON.parse(
        readFileSync(join(folder, file), "utf8"),
      ) as ProfileEvent[]) {
        // A loop counts as a whole; the nodes inside it are named loop/….
        if (cat !== "Node" || !name.endsWith("_kernel_time") || name.startsWith("loop/")) continue;
        const part = partOf(name);
        totals.set(part, (totals.get(part) ?? 0) + dur);
      }
    }
    const data = building / steps;
    const all = [...totals.values()].reduce((a, b) => a + b, 0);
    const share = (part: PartName): number => ((totals.get(part) ?? 0) / all) * (stepMs - data);
    return Object.fromEntries(
      partNames.map((part) => [part, part === "data" ? data : share(part)]),
    ) as Record<PartName, number>;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function partOf(name: string): PartName {
  if (name.startsWith("fwm/write")) return "write";
  if (name.startsWith("fwm/read")) return "read";
  return partNames.find((part) => name.startsWith(`${part}/`)) ?? "other";
}

/** Operations of one training step: forward, and twice that backward. */
export function stepFlops(
  system: Settings["system"],
  mode: "qa" | "lm",
  tokens: number,
  questions: number,
  window: number,
): number {
  return 3 * systemFlops(system, { tokens, positions: mode === "qa" ? questions : tokens, window });
}
