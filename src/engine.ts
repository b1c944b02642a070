/**
 * The engine: `import { … } from "fwm/engine"`. Tensors as graphs, exact gradients, compiled programs with state,
 * the two runtimes and the optimizers. Nothing here knows of stories or memories, and all of it can be imported
 * in a browser: a runtime is loaded only when it is asked for.
 */
import { missingPackage } from "./errors.ts";
import type { Runtime } from "./runtime/runtime.ts";

export { type ExportSpec, exportOnnx } from "./compile/export.ts";
export { grad, gradients } from "./compile/grad.ts";
export { type LowerOptions, lower, type NamedGraph } from "./compile/lower.ts";
export { printGraph } from "./compile/print.ts";
export { simplify } from "./compile/simplify.ts";
export * from "./graph/index.ts";
export * as random from "./random.ts";
export { ProgramCache } from "./runtime/cache.ts";
export type { HostData, HostTensor, HostValue } from "./runtime/host.ts";
export { interpret } from "./runtime/oracle.ts";
export {
  type CompileOptions,
  compile,
  type Outputs,
  type OutputValues,
  Program,
  type ProgramPlan,
  type ProgramSpec,
  planProgram,
  type RunKey,
} from "./runtime/program.ts";
export type { Device, Runtime, Session, SessionOptions } from "./runtime/runtime.ts";
export { State } from "./runtime/state.ts";
export type { OptimizerSettings, ScheduleSettings } from "./train/optimizerSettings.ts";
export {
  adam,
  asgd,
  clipByNorm,
  globalNorm,
  movingAverage,
  muon,
  type Optimizer,
  sgd,
  type Update,
} from "./train/optimizers.ts";
export { type ScheduleTime, scheduleFactor } from "./train/schedules.ts";

/** ONNX Runtime for Node. */
export async function loadNodeRuntime(): Promise<Runtime> {
  return (await import("./runtime/node.ts")).nodeRuntime;
}

/** ONNX Runtime for the browser (WebAssembly); `wasmPaths` says where its files are served, if not beside the script. */
export async function loadWebRuntime(
  options: { readonly wasmPaths?: string | { readonly wasm?: string; readonly mjs?: string } } = {},
): Promise<Runtime> {
  const { setWasmPaths, webRuntime } = await import("./runtime/web.ts").catch((error: unknown) => {
    throw missingPackage("loadWebRuntime", ["onnxruntime-web"], error);
  });
  if (options.wasmPaths !== undefined) setWasmPaths(options.wasmPaths);
  return webRuntime;
}
