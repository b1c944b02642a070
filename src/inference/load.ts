/** Loads a model from a folder: the part of inference that touches the file system. */
import { DataError } from "../errors.ts";
import { nodeRuntime } from "../runtime/node.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { loadModelFolder } from "../store/modelFolder.ts";
import { shippedModels } from "../store/shippedModels.ts";
import { type FwmModel, modelFromBytes, tokenModelConfig } from "./model.ts";

/** Choices for loading. */
export interface LoadOptions {
  /** What runs the model; ONNX Runtime for Node by default. */
  readonly runtime?: Runtime;
  /** Threads inside one operator; 1 by default, which is the fastest for a few streams. */
  readonly threads?: number;
  /** Of a run: its best checkpoint (else its last), or the last. */
  readonly which?: "best" | "last";
}

/**
 * Loads a model from a run, checkpoint or model folder, checked file by file. By default, and by the name
 * `"catbabi-qa"`, the model that comes with the package.
 */
export async function loadModel(
  path: string = shippedModels.answers,
  options: LoadOptions = {},
): Promise<FwmModel> {
  const { runtime = nodeRuntime, threads, which } = options;
  const folder = await loadModelFolder(path, which ? { which } : {});
  // Before anything is missed that such a model has not got.
  tokenModelConfig(folder.config, `${folder.path}/config.json`);
  const vocab = folder.files["vocab.json"];
  if (!vocab) {
    throw new DataError(`${folder.path}: vocab.json is missing`, {
      hint: "a model that answers needs the list of its words; copy it from the run it came from",
    });
  }
  return modelFromBytes(
    { config: folder.config, safetensors: folder.model, vocab },
    { runtime, name: folder.path, verified: folder.verified, ...(threads ? { threads } : {}) },
  );
}
