/** Small models of every registered system, and what the tests of all systems do with one. */
import { greater, input, reshape, scan, stateAttrs, type Tensor, where } from "../../src/graph/index.ts";
import type { Value } from "../../src/graph/op.ts";
import { sizeOf } from "../../src/graph/tensor.ts";
import { awdFwmPtb } from "../../src/model/awdFwm.ts";
import { awdLstmPtb } from "../../src/model/awdLstm.ts";
import { awdTxlPtb } from "../../src/model/awdTxl.ts";
import { deltaNetDefaults } from "../../src/model/deltaNetModel.ts";
import { fwmDefaults } from "../../src/model/fwmModel.ts";
import { jbfwDefaults } from "../../src/model/jbfwModel.ts";
import { lstmDefaults } from "../../src/model/lstmModel.ts";
import { mnmDefaults } from "../../src/model/mnmModel.ts";
import { buildSystem, type SystemSettings } from "../../src/model/registry.ts";
import type { SequenceModel } from "../../src/model/sequence.ts";
import { transformerXlDefaults } from "../../src/model/transformerXlModel.ts";
import { integer, keyOf, normal } from "../../src/random.ts";
import { State } from "../../src/runtime/state.ts";

const sizes = { vocabulary: 11, embedding: 3, hidden: 4 };

const awd = {
  ...sizes,
  layers: 3,
  dropout: { word: 0.2, input: 0.3, between: 0.4, output: 0.5, weight: 0.4 },
};

/**
 * Settings of every system, small, with all its dropout on: a system without its line here does not compile, and with
 * it has the tests of systems.test.ts.
 */
export const smallSystems: { [Name in SystemSettings["name"]]: Extract<SystemSettings, { name: Name }> } = {
  "awd-fwm": { ...awdFwmPtb, ...awd, memory: 3, reads: 2, chunk: 4 },
  "awd-lstm": { ...awdLstmPtb, ...awd },
  "awd-txl": { ...awdTxlPtb, vocabulary: 11, embedding: 6, layers: 2, heads: 2, headSize: 3, inner: 10 },
  fwm: {
    ...fwmDefaults,
    ...sizes,
    memory: 3,
    reads: 2,
    chunk: 4,
    wordDropout: 0.2,
    weightDropout: 0.3,
    hiddenDropout: 0.4,
    outputDropout: 0.5,
  },
  lstm: {
    ...lstmDefaults,
    ...sizes,
    layers: 3,
    wordDropout: 0.2,
    inputDropout: 0.3,
    weightDropout: 0.4,
    hiddenDropout: 0.5,
  },
  "transformer-xl": {
    ...transformerXlDefaults,
    ...sizes,
    layers: 2,
    heads: 2,
    inner: 5,
    memory: 13,
    dropout: 0.2,
    attentionDropout: 0.3,
  },
  mnm: { ...mnmDefaults, ...sizes, memory: 3, heads: 2, metaWeight: 0.5, chunk: 4 },
  jbfw: { ...jbfwDefaults, ...sizes, innerSteps: 2, chunk: 4 },
  "delta-net": { ...deltaNetDefaults, ...sizes, layers: 2, heads: 2, inner: 5, dropout: 0.3, chunk: 4 },
};

/** The settings with a cache of at least so many tokens: what it has cached, a step sees as a window does. */
export function reachingBack(settings: SystemSettings, tokens: number): SystemSettings {
  return settings.name === "transformer-xl" ? { ...settings, memory: tokens } : settings;
}

/** A model and weights for the oracle: off their initial values, among which are zeros and numbers too small to matter. */
export function drawnModel(settings: SystemSettings, seed = 3) {
  const model = buildSystem(settings);
  const state = new State(seed);
  const weights = new Map<Tensor, Value>(
    model.parameters.map((parameter) => {
      const attrs = stateAttrs(parameter)!;
      state.declare(attrs);
      const key = keyOf(seed, "drawn", attrs.name);
      const initial = state.get(attrs.name).data as Float32Array;
      const data = Float64Array.from(initial, (x, i) => Math.fround(x + 0.3 * normal(key, i)));
      return [parameter, { shape: parameter.shape, data }];
    }),
  );
  return { model, weights };
}

/** Inputs for the state of a batch, and the zeros a stream starts with. */
export function freshState(model: SequenceModel, batch: number, prefix = "") {
  const tensors = model.recurrent.map(({ name, shape }) => input(`${prefix}${name}`, shape(batch)));
  return { tensors, values: new Map(tensors.map((tensor) => [tensor, zeroValue(tensor.shape)])) };
}

/** All zeros. */
export function zeroValue(shape: readonly number[]): Value {
  return { shape, data: new Float64Array(sizeOf(shape)) };
}

/** Tokens from 1 up: 0 is padding. */
export function drawTokens(shape: readonly number[], vocabulary: number, seed: number): Value {
  const key = keyOf(seed, "tokens");
  return {
    shape,
    data: Float64Array.from({ length: sizeOf(shape) }, (_, i) => 1 + integer(key, i, vocabulary - 1)),
  };
}

/** The model token by token by its step, with the state frozen at padding. */
export function stepwise(model: SequenceModel, tokens: Tensor, before: readonly Tensor[], mask: Tensor) {
  const { carry, ys } = scan({ carry: before, xs: [tokens, mask] }, (state, [token, alive]) => {
    const step = model.step(token!, state);
    const kept = step.state.map((next, i) => {
      const ones = new Array<number>(next.shape.length - 1).fill(1);
      return where(greater(reshape(alive!, [next.shape[0]!, ...ones]), 0), next, state[i]!);
    });
    return { carry: kept, ys: [step.logits] };
  });
  return { logits: ys[0]!, state: carry };
}
