/** Small language models with drawn weights, as files, and what they predict token by token in the float64 oracle. */
import { input, stateAttrs } from "../../src/graph/index.ts";
import type { Value } from "../../src/graph/op.ts";
import { awdFwmPtb } from "../../src/model/awdFwm.ts";
import { awdLstmPtb } from "../../src/model/awdLstm.ts";
import { awdTxlPtb, awdTxlWt2 } from "../../src/model/awdTxl.ts";
import { lstmDefaults } from "../../src/model/lstmModel.ts";
import { buildSystem, type SystemSettings } from "../../src/model/registry.ts";
import { interpret } from "../../src/runtime/oracle.ts";
import type { TensorData } from "../../src/store/safetensors.ts";
import { normals } from "./check.ts";

/** Words of the models below: the marks and nine letters. */
export const textWords = ["<unk>", "<eos>", ..."abcdefghi"];

const noDropout = { word: 0, input: 0, between: 0, output: 0, weight: 0 };
const sizes = { vocabulary: 11, embedding: 4, hidden: 5, layers: 2, dropout: noDropout };
const attention = { vocabulary: 11, embedding: 4, layers: 2, heads: 2, headSize: 3, inner: 5 };

/** Every system that reads text, in a small size. */
export const textSystems = {
  "awd-lstm": { ...awdLstmPtb, ...sizes },
  "awd-fwm": { ...awdFwmPtb, ...sizes, memory: 3, chunk: 3 },
  "awd-txl with a context": { ...awdTxlPtb, ...attention, context: 6 },
  "awd-txl with a memory": { ...awdTxlWt2, ...attention, memory: 5, cutoffs: [6, 9] },
  lstm: { ...lstmDefaults, vocabulary: 11, embedding: 3, hidden: 4 },
} as const satisfies Readonly<Record<string, SystemSettings>>;

/** Weights in the order of the system's parameters, large enough that predictions differ. */
export function textWeights(system: SystemSettings, seed = 0): Value[] {
  return buildSystem(system).parameters.map(({ shape }, i) => ({
    shape,
    data: Float64Array.from(Float32Array.from(normals(shape, 100 * seed + i + 1, 0.7).data)),
  }));
}

/** The weights by name, as an evaluator takes them. */
export function namedWeights(system: SystemSettings, seed = 0): Map<string, Float32Array> {
  const values = textWeights(system, seed);
  return new Map(
    buildSystem(system).parameters.map((parameter, i) => [
      stateAttrs(parameter)!.name,
      Float32Array.from(values[i]!.data),
    ]),
  );
}

/** What a model folder of a system holds; settings beside the system where something is to be evaluated. */
export function textModel(
  system: SystemSettings,
  {
    words = textWords,
    kind = "text",
    seed = 0,
    settings = {},
  }: { words?: readonly string[]; kind?: string; seed?: number; settings?: object } = {},
) {
  const weights = namedWeights(system, seed);
  const model: Record<string, TensorData> = Object.fromEntries(
    buildSystem(system).parameters.map((parameter) => {
      const { name, shape } = stateAttrs(parameter)!;
      return [name, { dtype: "f32" as const, shape: [...shape], data: weights.get(name)! }];
    }),
  );
  const config = {
    format: "fwm-model",
    version: 2,
    kind,
    experiment: "test",
    settings: { ...settings, system },
  };
  return { config, model, files: { "vocab.json": JSON.stringify(words) } };
}

/** Reads tokens one by one in float64: each call gives the logits after its token. */
export function plainReader(
  system: SystemSettings,
  weights: readonly Value[] = textWeights(system),
): (token: number) => Float64Array {
  const model = buildSystem(system);
  const token = input("token", [1], "i32");
  const before = model.recurrent.map(({ name, shape }) => input(name, shape(1)));
  const { logits, state } = model.step(token, before);
  let values: Value[] = before.map(({ shape }) => ({
    shape,
    data: new Float64Array(shape.reduce((a, b) => a * b, 1)),
  }));
  return (now) => {
    const given = new Map([
      ...model.parameters.map((parameter, j) => [parameter, weights[j]!] as const),
      ...before.map((tensor, j) => [tensor, values[j]!] as const),
      [token, { shape: [1], data: Float64Array.of(now) }] as const,
    ]);
    const [scores, ...after] = interpret([logits, ...state], given);
    values = after;
    return scores!.data as Float64Array;
  };
}
