/**
 * Runs programs in a browser with `onnxruntime-web` (wasm).
 *
 * One page has one ONNX Runtime: the first session settles its number of threads, and later ones share them.
 */
import * as ort from "onnxruntime-web/wasm";
import { UsageError } from "../errors.ts";
import { ortRuntime } from "./ort.ts";
import type { Runtime } from "./runtime.ts";

/** ONNX Runtime for the browser. Results are copied out of its memory: the API has no other way. */
export const webRuntime: Runtime = ortRuntime({
  name: "onnxruntime-web",
  ort,
  writesIntoOutputs: false,
  sessionOptions({ threads, device = "wasm", profile }) {
    if (device !== "wasm") throw new UsageError(`device ${device} is not available in a browser; use wasm`);
    if (profile) throw new UsageError("profiles are written in Node only");
    settleThreads(threads);
    return { executionProviders: ["wasm"], graphOptimizationLevel: "all", logSeverityLevel: 3 };
  },
});

/** Threads a page can have: the machine's cores if it is cross-origin isolated, otherwise 1. */
export function availableThreads(): number {
  return globalThis.crossOriginIsolated ? navigator.hardwareConcurrency : 1;
}

let settled: number | undefined;

/** ONNX Runtime itself would go on with one thread, or with those it has, and only warn on the console. */
function settleThreads(asked: number | undefined): void {
  if (asked !== undefined && asked > 1 && !globalThis.crossOriginIsolated) {
    throw new UsageError(`threads: ${asked} asked for, but this page is not cross-origin isolated`, {
      hint: "serve it with Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp",
    });
  }
  // More than four, which is ONNX Runtime's own limit, is for those who ask.
  settled ??= asked ?? Math.min(4, availableThreads());
  if (asked !== undefined && asked !== settled) {
    throw new UsageError(`threads: ${asked} asked for, but this page already runs with ${settled}`, {
      hint: "the first session settles it for the whole page",
    });
  }
  ort.env.wasm.numThreads = settled;
}

/**
 * Where the page serves ONNX Runtime's two files from: the folder they are in, or the address of each. Call it
 * before the first session. Without `mjs` a bundled page would start itself over in place of every thread, and hang.
 */
export function setWasmPaths(paths: string | { readonly wasm: string; readonly mjs: string }): void {
  ort.env.wasm.wasmPaths = paths;
}
