/** Small models for tests of inference: settings, weights under a seed, files as bytes. */
import { catbabiVocabulary } from "../../src/data/vocabulary.ts";
import { stateAttrs } from "../../src/graph/index.ts";
import type { ModelBytes } from "../../src/inference/model.ts";
import { fwmDefaults } from "../../src/model/fwmModel.ts";
import { lstmDefaults } from "../../src/model/lstmModel.ts";
import { buildSystem, type SystemSettings } from "../../src/model/registry.ts";
import { State } from "../../src/runtime/state.ts";
import { encodeSafetensors, type TensorData } from "../../src/store/safetensors.ts";

/** A small Fast Weight Memory. */
export const smallFwm: SystemSettings = { ...fwmDefaults, embedding: 12, hidden: 12, memory: 5, reads: 3 };
/** A small LSTM. */
export const smallLstm: SystemSettings = { ...lstmDefaults, embedding: 12, hidden: 12 };

/** The tensors of an untrained model. */
export function weightsOf(system: SystemSettings, seed = 1): Record<string, TensorData> {
  const state = new State(seed);
  const tensors: Record<string, TensorData> = {};
  for (const parameter of buildSystem(system).parameters) {
    const attrs = stateAttrs(parameter)!;
    state.declare(attrs);
    tensors[attrs.name] = {
      dtype: "f32",
      shape: attrs.shape,
      data: state.get(attrs.name).data as Float32Array,
    };
  }
  return tensors;
}

/** The files of an untrained model. */
export function modelBytes(system: SystemSettings, seed = 1) {
  return {
    config: JSON.stringify({
      format: "fwm-model",
      version: 2,
      kind: "catbabi",
      experiment: "test",
      settings: { system },
    }),
    safetensors: encodeSafetensors(weightsOf(system, seed)),
    vocab: JSON.stringify(catbabiVocabulary.words),
  } satisfies ModelBytes;
}
