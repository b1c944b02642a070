/** Runs programs in Node with `onnxruntime-node`. */
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import * as ort from "onnxruntime-node";
import { UsageError } from "../errors.ts";
import { ortRuntime, withoutSlowFusions } from "./ort.ts";
import type { Device, Runtime } from "./runtime.ts";

/** Threads that are used by default. */
export const defaultThreads = availableParallelism();

/** Version of ONNX Runtime. */
export const ortVersion: string = ort.env.versions.node ?? ort.env.versions.common;

/** ONNX Runtime for Node. Outputs are written into the arrays they are given. */
export const nodeRuntime: Runtime = ortRuntime({
  name: "onnxruntime-node",
  ort,
  writesIntoOutputs: true,
  sessionOptions({ threads = defaultThreads, device = "cpu", profile, stopSpinning = false, arena = true }) {
    checkDevice(device);
    return {
      executionProviders: [device],
      intraOpNumThreads: threads,
      interOpNumThreads: 1,
      executionMode: "sequential",
      graphOptimizationLevel: "all",
      // A plan of all buffers in one block: loops hold several such blocks at once, up to twice the memory, and are not faster.
      enableMemPattern: false,
      enableCpuMemArena: arena,
      logSeverityLevel: 3,
      ...(profile ? { enableProfiling: true, profileFilePrefix: profile } : {}),
      // Values that have faded below 1e-38 make arithmetic up to a hundred times slower and mean nothing here.
      extra: {
        session: { set_denormal_as_zero: "1", force_spinning_stop: stopSpinning ? "1" : "0" },
        optimization: withoutSlowFusions,
      },
    };
  },
});

/** Fails with what to do when programs cannot run on `device` here. */
export function checkDevice(device: Device): void {
  if (device === "wasm") throw new UsageError("device wasm runs in a browser; use cpu or cuda in Node");
  if (device === "cpu") return;
  const folder = dirname(createRequire(import.meta.url).resolve("onnxruntime-node/package.json"));
  const library = join(
    folder,
    "bin/napi-v6",
    process.platform,
    process.arch,
    "libonnxruntime_providers_cuda.so",
  );
  if (!existsSync(library)) {
    throw new UsageError("device cuda: ONNX Runtime's CUDA library is not installed", {
      hint: "Linux x64 with CUDA 12: npm rebuild onnxruntime-node --ignore-scripts=false",
    });
  }
}
