/** Runs programs in a browser with `onnxruntime-web` (wasm). */
import * as ort from "onnxruntime-web/wasm";
import { UsageError } from "../errors.ts";
import { ortRuntime } from "./ort.ts";
import type { Runtime } from "./runtime.ts";

/** ONNX Runtime for the browser. Threads need a cross-origin isolated page; without one there is one thread. */
export const webRuntime: Runtime = ortRuntime({
  name: "onnxruntime-web",
  ort,
  writesIntoOutputs: false,
  sessionOptions({ threads, device = "wasm" }) {
    if (device !== "wasm") throw new UsageError(`device ${device} is not available in a browser; use wasm`);
    if (threads !== undefined) ort.env.wasm.numThreads = threads;
    return { executionProviders: ["wasm"], graphOptimizationLevel: "all" };
  },
});

/** Where the page serves ONNX Runtime's wasm file from, when it is not beside the script. */
export function setWasmPaths(paths: string | { wasm?: string; mjs?: string }): void {
  ort.env.wasm.wasmPaths = paths;
}
