/** Small deterministic contents for the store's tests; also used outside the test runner, by killed children. */
import type { CheckpointContent } from "../../src/store/checkpoint.ts";
import type { MetricRecord } from "../../src/store/metrics.ts";
import type { RunDescription } from "../../src/store/runRecord.ts";

/** A number in [0, 1) that depends on a seed and an index alone. */
export function keyed(seed: number, index: number): number {
  let x = (seed * 0x9e3779b1 + index * 0x85ebca6b) >>> 0;
  x = Math.imul(x ^ (x >>> 16), 0x21f0aaad) >>> 0;
  x = Math.imul(x ^ (x >>> 15), 0x735a2d97) >>> 0;
  return ((x ^ (x >>> 15)) >>> 0) / 2 ** 32;
}

/** A small checkpoint whose every number depends on its step. */
export function sample(step: number, extra: Partial<CheckpointContent> = {}): CheckpointContent {
  const weights = Float32Array.from({ length: 6 }, (_, i) => keyed(step, i) - 0.5);
  return {
    step,
    config: { system: "fwm", hidden: 2 },
    model: { "lstm.weight": { dtype: "f32", shape: [2, 3], data: weights } },
    optimizer: { "adam.m": { dtype: "f32", shape: [6], data: weights.map((x) => x / 10) } },
    state: { step, stream: { epoch: 1, row: [step, 2, 3] }, key: [7, step], best: 0.25 },
    ...extra,
  };
}

/** A run's description with nothing special in it. */
export function description(extra: Partial<RunDescription> = {}): RunDescription {
  return {
    experiment: "catbabi-qa-fwm",
    settings: { system: { hidden: 32, memory: 8 }, tasks: [1, 2] },
    seed: 1,
    command: ["fwm", "train", "catbabi-qa-fwm"],
    packageVersion: "0.1.0",
    gitCommit: null,
    environment: {
      node: "v20.19.0",
      os: "linux 6 x64",
      cpu: "a processor",
      cores: 2,
      threads: 2,
      ort: "1.30.0",
      device: "cpu",
    },
    ...extra,
  };
}

/** What a run records at a step. */
export function recordsAt(step: number): MetricRecord[] {
  const train: MetricRecord = { step, split: "train", values: { loss: keyed(1, step) } };
  return step % 5 === 0 ? [train, { step, split: "valid", values: { accuracy: keyed(2, step) } }] : [train];
}
