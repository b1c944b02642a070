/** A model folder as files in memory: what `fwm ask`, `fwm eval` and the library read. */

import { DataError, UsageError } from "../../src/errors.ts";
import { catbabiSchema } from "../../src/experiment/catbabi/settings.ts";
import { exportModel } from "../../src/inference/export.ts";
import { buildModel, tokenModelConfig } from "../../src/inference/model.ts";
import { decodeUtf8, parseJson } from "../../src/store/json.ts";
import { decodeSafetensors, encodeSafetensors, type Tensors } from "../../src/store/safetensors.ts";
import type { Choices, SystemName } from "./choices.ts";
import type { FolderFiles } from "./messages.ts";
import { choicesOf } from "./settings.ts";
import { type TrainingSession, vocabularyFile } from "./trainingSession.ts";

/** Version that exported files name as their producer's. */
const producerVersion = "playground";

/** The files of a system's model folder, with a manifest where the browser can compute checksums. */
export async function folderOf(session: TrainingSession, system: SystemName): Promise<FolderFiles> {
  const files: Record<string, Uint8Array<ArrayBuffer>> = {
    "config.json": text(`${JSON.stringify(session.config(system), null, 2)}\n`),
    "model.safetensors": encodeSafetensors(session.weights(system)),
    "vocab.json": text(vocabularyFile),
  };
  const manifest = await manifestOf(files, session.step);
  return manifest ? { ...files, "manifest.json": manifest } : files;
}

/** The model as an `.onnx` file: one step of a stream. */
export function onnxOf(session: TrainingSession, system: SystemName): Uint8Array<ArrayBuffer> {
  const source = {
    path: system,
    step: session.step,
    config: session.config(system),
    model: session.weights(system),
    files: { "vocab.json": text(vocabularyFile) },
  };
  return exportModel(source, { batch: 1 }, producerVersion).bytes as Uint8Array<ArrayBuffer>;
}

/** What a model folder gives to go on from. Whatever does not fit is an error that says what. */
export function readFolder(files: FolderFiles): { choices: Choices; weights: Tensors } {
  const file = (name: string): Uint8Array => {
    const bytes = files[name];
    if (bytes) return bytes;
    throw new UsageError(`${name} is missing`, {
      hint: "choose config.json, model.safetensors and vocab.json of a model folder together",
    });
  };
  const config = tokenModelConfig(
    parseJson(decodeUtf8(file("config.json"), "config.json"), { file: "config.json" }),
  );
  const settings = catbabiSchema.safeParse(config.settings);
  const choices = settings.success ? choicesOf(settings.data) : undefined;
  if (!choices) {
    throw new DataError("config.json: a model that cannot be trained here", {
      hint: "a Fast Weight Memory of catbAbI with at most 256 hidden units; ask others in fwm studio",
    });
  }
  const { tensors } = decodeSafetensors(file("model.safetensors"), {
    file: "model.safetensors",
    finite: true,
  });
  buildModel(config.system, tensors);
  return { choices, weights: tensors };
}

async function manifestOf(files: FolderFiles, step: number): Promise<Uint8Array<ArrayBuffer> | undefined> {
  // Only secure pages have it.
  if (typeof crypto.subtle === "undefined") return undefined;
  const entries: [string, { size: number; sha256: string }][] = [];
  for (const [name, bytes] of Object.entries(files)) {
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
    const sha256 = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
    entries.push([name, { size: bytes.length, sha256 }]);
  }
  const manifest = {
    format: "fwm-folder",
    version: 1,
    kind: "model",
    step,
    best: null,
    files: Object.fromEntries(entries),
  };
  return text(`${JSON.stringify(manifest, null, 2)}\n`);
}

function text(of: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(of);
}
