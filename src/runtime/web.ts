/**
 * Runs programs in a browser with `onnxruntime-web` (wasm).
 *
 * One page has one ONNX Runtime: the first session settles its number of threads, and later ones share them.
 */
import * as ort from "onnxruntime-web/wasm";
import { UsageError } from "../errors.ts";
import { ortRuntime, withoutSlowFusions } from "./ort.ts";
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
    return {
      executionProviders: ["wasm"],
      graphOptimizationLevel: "all",
      logSeverityLevel: 3,
      extra: { optimization: withoutSlowFusions },
    };
  },
});

/** Threads a page can have: the machine's cores if it is cross-origin isolated, otherwise 1. */
export function availableThreads(): number {
  return globalThis.crossOriginIsolated ? navigator.hardwareConcurrency : 1;
}

let settled: number | undefined;

/** ONNX Runtime itself would go on with one thread or hang, and at best warn on the console. */
function settleThreads(asked: number | undefined): void {
  if (asked !== undefined && asked > 1) requireThreads(asked);
  // More than four, which is ONNX Runtime's own limit, is for those who ask.
  settled ??= asked ?? (knowsScript() ? Math.min(4, availableThreads()) : 1);
  if (asked !== undefined && asked !== settled) {
    throw new UsageError(`threads: ${asked} asked for, but this page already runs with ${settled}`, {
      hint: "the first session settles it for the whole page",
    });
  }
  ort.env.wasm.numThreads = settled;
}

function requireThreads(asked: number): void {
  if (!globalThis.crossOriginIsolated) {
    throw new UsageError(`threads: ${asked} asked for, but this page is not cross-origin isolated`, {
      hint: "serve it with Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp",
    });
  }
  if (!knowsScript()) {
    throw new UsageError(`threads: ${asked} asked for, but the address of the threads' script is not known`, {
      hint: "give setWasmPaths the folder of ort-wasm-simd-threaded.mjs and .wasm, or the address of both",
    });
  }
}

/**
 * Whether the script of the threads has an address of its own. Otherwise ONNX Runtime starts them from the script
 * it is in itself: in a bundle that is the page, which then starts over in every worker, and nothing is computed.
 */
function knowsScript(): boolean {
  const paths = ort.env.wasm.wasmPaths;
  return typeof paths === "string" || paths?.mjs !== undefined;
}

/**
 * Where the page serves ONNX Runtime's files from: the folder they are in, or the address of each. Call it before
 * the first session. More than one thread needs both.
 */
export function setWasmPaths(paths: string | { readonly wasm?: string; readonly mjs?: string }): void {
  ort.env.wasm.wasmPaths = paths;
}
