/** Small saved models with drawn weights, and the plain equations they have to follow. */
import { catbabiVocabulary } from "../../src/data/vocabulary.ts";
import { input, stateAttrs, type Tensor } from "../../src/graph/index.ts";
import type { Value } from "../../src/graph/op.ts";
import { fwmDefaults } from "../../src/model/fwmModel.ts";
import { lstmDefaults } from "../../src/model/lstmModel.ts";
import { buildSystem, type SystemSettings } from "../../src/model/registry.ts";
import { integer, keyOf } from "../../src/random.ts";
import { interpret } from "../../src/runtime/oracle.ts";
import { State } from "../../src/runtime/state.ts";
import { smallSystems as allSystems, reachingBack } from "./systems.ts";

const small = { vocabulary: 200, embedding: 6, hidden: 7 };
/** Every registered system, small, over catbAbI's words; what it caches covers what the tests read. */
const registered = Object.fromEntries(
  Object.entries(allSystems).map(([name, settings]) => [
    name,
    { ...reachingBack(settings, 16), vocabulary: 200 },
  ]),
) as Readonly<Record<SystemSettings["name"], SystemSettings>>;

/** Small systems of every kind, some in several variants. */
export const smallSystems = {
  ...registered,
  fwm: { ...fwmDefaults, ...small, memory: 3, reads: 2, chunk: 4 },
  "fwm with concatenated keys": { ...fwmDefaults, ...small, memory: 3, reads: 2, keys: "concat" },
  "paper's fwm": { ...fwmDefaults, ...small, memory: 3, reads: 1, variant: "paper" },
  lstm: { ...lstmDefaults, ...small },
} as const satisfies Readonly<Record<string, SystemSettings>>;

/** A system with weights drawn under a seed. */
function weighted(system: SystemSettings) {
  const model = buildSystem(system);
  const state = new State(3);
  for (const parameter of model.parameters) state.declare(stateAttrs(parameter)!);
  const values = new Map<Tensor, Value>(
    model.parameters.map((parameter) => {
      const { data } = state.get(stateAttrs(parameter)!.name);
      return [parameter, { shape: parameter.shape, data: Float64Array.from(data as Float32Array) }];
    }),
  );
  return { model, state, values };
}

/** What a model folder of a system holds. */
export function savedModel(system: SystemSettings) {
  const tensors = [...weighted(system).state.snapshot()].map(
    ([name, { shape, data }]) =>
      [name, { dtype: "f32" as const, shape: [...shape], data: data as Float32Array }] as const,
  );
  return {
    path: "model",
    step: 12,
    config: {
      format: "fwm-model",
      version: 2,
      kind: "catbabi",
      experiment: "catbabi-qa-fwm",
      settings: { system },
    },
    model: Object.fromEntries(tensors),
    files: { "vocab.json": new TextEncoder().encode(JSON.stringify(catbabiVocabulary.words)) },
  };
}

/** The plain equations in float64, token by token: tokens [T][B] give logits [T][B · V] and the last state. */
export function streamed(system: SystemSettings, tokens: readonly number[][]) {
  const { model, values } = weighted(system);
  const B = tokens[0]!.length;
  const ids = input("tokens", [B], "i32");
  const before = model.recurrent.map(({ name, shape }) => input(name, shape(B)));
  const { logits, state } = model.step(ids, before);
  let now: Value[] = before.map(({ shape }) => ({
    shape,
    data: new Float64Array(shape.reduce((a, b) => a * b, 1)),
  }));
  const all = tokens.map((row) => {
    const given = new Map([
      ...values,
      [ids, { shape: [B], data: Float64Array.from(row) }] as const,
      ...before.map((tensor, i) => [tensor, now[i]!] as const),
    ]);
    const [first, ...rest] = interpret([logits, ...state], given);
    now = rest;
    return first!.data;
  });
  return { logits: all, state: Object.fromEntries(model.recurrent.map(({ name }, i) => [name, now[i]!])) };
}

/** Tokens [T][B] under a fixed key. */
export function drawTokens(T: number, B: number): number[][] {
  const key = keyOf(8, "tokens");
  return Array.from({ length: T }, (_, t) =>
    Array.from({ length: B }, (_, b) => integer(key, t * B + b, 200)),
  );
}
