/** Our systems against the authors' own outputs, states and gradients. */
import { describe, test } from "vitest";
import { grad } from "../../src/compile/grad.ts";
import {
  add,
  crossEntropy,
  input,
  mul,
  scan,
  sizeOf,
  stateAttrs,
  sum,
  type Tensor,
} from "../../src/graph/index.ts";
import type { Value } from "../../src/graph/op.ts";
import {
  type FwmVariant,
  type FwmWeights,
  fwmStep,
  fwmWeights,
  releasedCatbabi,
  releasedLanguageModel,
  releasedMetaRl,
} from "../../src/model/fwm.ts";
import { fwmModel } from "../../src/model/fwmModel.ts";
import { fwmWindow } from "../../src/model/fwmWindow.ts";
import { type LstmWeights, lstm, lstmWeights } from "../../src/model/lstm.ts";
import { interpret } from "../../src/runtime/oracle.ts";
import { expectClose } from "../support/check.ts";
import { asValue, fixture, type StoredTensor, transposed } from "../support/fixtures.ts";
import { checkTensors, exact } from "../support/originals.ts";
import { stepwise } from "../support/systems.ts";

type Stored = Record<string, StoredTensor>;

interface Fixture {
  inputs: Stored;
  weights: Stored;
  outputs: Stored & { loss: number };
  gradients: Stored;
}

function lstmValues(w: LstmWeights, stored: Stored, prefix: string): [Tensor, Value][] {
  return [
    [w.Wx, transposed(stored[`${prefix}weight_ih_l0`]!)],
    [w.Wh, transposed(stored[`${prefix}weight_hh_l0`]!)],
    [w.biases[0]!, asValue(stored[`${prefix}bias_ih_l0`]!)],
    [w.biases[1]!, asValue(stored[`${prefix}bias_hh_l0`]!)],
  ];
}

test("LSTM layer: PyTorch's outputs, state and gradients", async () => {
  const { inputs, weights, outputs, gradients } = fixture<Fixture>("torch-lstm");
  const [T, B, E] = inputs.x!.shape as [number, number, number];
  const H = 4;
  const w = lstmWeights("l", { in: E, hidden: H }, "pytorch");
  const x = input("x", [T, B, E]);
  const h = input("h", [B, H]);
  const c = input("c", [B, H]);
  const coef = input("coef", [T, B, H]);
  for (const unroll of [false, true]) {
    const run = lstm(w, x, { h, c }, { unroll });
    const loss = add(sum(mul(run.h, coef)), sum(mul(run.state.c, run.state.c)));
    const params = [w.Wx, w.Wh, w.biases[0]!, w.biases[1]!, x, h, c];
    const grads = grad(loss, params);
    const given = new Map<Tensor, Value>([
      ...lstmValues(w, weights, ""),
      [x, asValue(inputs.x!)],
      [h, asValue(inputs.h0!, [B, H])],
      [c, asValue(inputs.c0!, [B, H])],
      [coef, asValue(inputs.coef!)],
    ]);
    const wanted = [
      ...lstmValues(w, gradients, "").map(([, value]) => value),
      asValue(gradients.x!),
      asValue(gradients.h0!, [B, H]),
      asValue(gradients.c0!, [B, H]),
    ];
    await checkTensors(
      new Map([
        ["y", { tensor: run.h, value: asValue(outputs.y!) }],
        ["h", { tensor: run.state.h, value: asValue(outputs.h!, [B, H]) }],
        ["c", { tensor: run.state.c, value: asValue(outputs.c!, [B, H]) }],
        ["loss", { tensor: loss, value: { shape: [], data: Float64Array.of(outputs.loss) } }],
        ...wanted.map((value, i) => [`gradient ${i}`, { tensor: grads[i]!, value }] as const),
      ]),
      given,
    );
  }
});

function memoryValues(w: FwmWeights, stored: Stored, prefix: string, out: string): [Tensor, Value][] {
  return [
    [w.write.W, transposed(stored[`${prefix}W_write.weight`]!)],
    [w.write.b!, asValue(stored[`${prefix}W_write.bias`]!)],
    [w.read.W, transposed(stored[`${prefix}W_read.weight`]!)],
    [w.read.b!, asValue(stored[`${prefix}W_read.bias`]!)],
    [w.out.W, transposed(stored[`${out}weight`]!)],
    [w.out.b!, asValue(stored[`${out}bias`]!)],
  ];
}

/** The layer's forms over h [T, B, H]. */
const forms = {
  plain(w: FwmWeights, h: Tensor, F: Tensor) {
    const { carry, ys } = scan({ carry: [F], xs: [h] }, ([memory], [ht]) => {
      const step = fwmStep(w, ht!, memory!);
      return { carry: [step.F], ys: [step.y] };
    });
    return { y: ys[0]!, F: carry[0]! };
  },
  parallel: (w: FwmWeights, h: Tensor, F: Tensor) => fwmWindow(w, h, F, { chunk: 3 }),
  "fixed point": (w: FwmWeights, h: Tensor, F: Tensor) => fwmWindow(w, h, F, { fixedPoint: { block: 3 } }),
};

const layers: [string, string, FwmVariant][] = [
  ["language-model", "fwm-lm-released", releasedLanguageModel],
  ["meta-RL", "fwm-metarl-released", releasedMetaRl],
];

for (const [title, file, variant] of layers) {
  describe(`${title} layer: the authors' outputs, memory and gradients`, () => {
    for (const form of ["plain", "parallel", "fixed point"] as const) {
      test(`${form} form`, async () => {
        const { inputs, weights, outputs, gradients } = fixture<Fixture>(file);
        const [T, B, E] = inputs.x!.shape as [number, number, number];
        const [H, D] = [6, 4];
        const controller = lstmWeights("l", { in: E, hidden: H }, "pytorch");
        const w = fwmWeights("m", { hidden: H, memory: D, reads: 3 }, variant);
        const x = input("x", [T, B, E]);
        const zero = input("zero", [B, H]);
        const F = input("F", [B, D * D, D]);
        const coef = input("coef", [T, B, H]);
        const run = lstm(controller, x, { h: zero, c: zero });
        const layer = forms[form](w, run.h, F);
        const loss = sum(mul(layer.y, coef));
        const named = (stored: Stored): [Tensor, Value][] => [
          ...lstmValues(controller, stored, "rnn."),
          ...memoryValues(w, stored, "fwm.", "linear."),
        ];
        const grads = grad(
          loss,
          named(weights).map(([tensor]) => tensor),
        );
        await checkTensors(
          new Map([
            ["y", { tensor: layer.y, value: asValue(outputs.y!) }],
            ["h", { tensor: run.state.h, value: asValue(outputs.h!, [B, H]) }],
            ["c", { tensor: run.state.c, value: asValue(outputs.c!, [B, H]) }],
            ["F", { tensor: layer.F, value: asValue(outputs.F!, [B, D * D, D]) }],
            ["loss", { tensor: loss, value: { shape: [], data: Float64Array.of(outputs.loss) } }],
            ...named(gradients).map(
              ([tensor, value], i) =>
                [`gradient of ${stateAttrs(tensor)!.name}`, { tensor: grads[i]!, value }] as const,
            ),
          ]),
          new Map<Tensor, Value>([
            ...named(weights),
            [x, asValue(inputs.x!)],
            [zero, { shape: [B, H], data: new Float64Array(B * H) }],
            [F, asValue(inputs.F0!, [B, D * D, D])],
            [coef, asValue(inputs.coef!)],
          ]),
        );
      });
    }
  });
}

interface CatbabiWindow {
  x: StoredTensor;
  y: StoredTensor;
  logits: StoredTensor;
  loss: number;
  state: Stored;
  gradients: Stored;
}

interface CatbabiCase {
  config: {
    vocab_size: number;
    embedding_size: number;
    hidden_size: number;
    s_size: number;
    n_reads: number;
  } & {
    residual: boolean;
    ra_mode: boolean;
  };
  weights: Stored;
  windows: CatbabiWindow[];
}

/** [B, T] as [T, B]. */
function timeFirst(stored: StoredTensor): Value {
  return transposed(stored);
}

describe("catbAbI system: the authors' logits, state, loss and gradients", () => {
  const { cases } = fixture<{ cases: Record<string, CatbabiCase> }>("fwm-catbabi-released");
  for (const [title, { config, weights, windows }] of Object.entries(cases)) {
    for (const form of ["plain", "parallel", "fixed point"] as const) {
      test(`${title}, ${form} form`, async () => {
        const D = config.s_size;
        const [B, T] = windows[0]!.x.shape as [number, number];
        const model = fwmModel({
          vocabulary: config.vocab_size,
          embedding: config.embedding_size,
          hidden: config.hidden_size,
          memory: D,
          reads: config.n_reads,
          variant: { ...releasedCatbabi, residual: config.residual },
          chunk: 4,
        });
        const tokens = input("tokens", [T, B], "i32");
        const targets = input("targets", [T, B], "i32");
        const counted = input("counted", [T, B]);
        const mask = input("mask", [T, B]);
        const before = model.recurrent.map(({ name, shape }) => input(name, shape(B)));
        const run =
          form === "plain"
            ? stepwise(model, tokens, before, mask)
            : model.window({ tokens, state: before, mask, training: true, exact: form === "parallel" });
        const loss = crossEntropy(run.logits, targets, counted);
        const grads = grad(loss, model.parameters);
        const cell = "rnn.cells.0.";
        const inOrder = (stored: Stored): Value[] => [
          asValue(stored["embedding.weight"]!),
          transposed(stored[`${cell}lstm.W_ih`]!),
          transposed(stored[`${cell}lstm.W_hh`]!),
          asValue(stored[`${cell}lstm.bias`]!),
          transposed(stored[`${cell}W_write.weight`]!),
          asValue(stored[`${cell}W_write.bias`]!),
          transposed(stored[`${cell}W_read.weight`]!),
          asValue(stored[`${cell}W_read.bias`]!),
          transposed(stored[`${cell}linear.weight`]!),
          asValue(stored[`${cell}linear.bias`]!),
          transposed(stored["linear.weight"]!),
        ];
        let state: Value[] = before.map(({ shape }) => ({ shape, data: new Float64Array(sizeOf(shape)) }));
        for (const window of windows) {
          const x = timeFirst(window.x);
          const alive = x.data.map((token) => (token === 0 ? 0 : 1));
          const asked = x.data.map((token) => (token === 2 ? 1 : 0));
          const where = config.ra_mode ? asked : alive;
          const after = [
            asValue(window.state.h!),
            asValue(window.state.c!),
            asValue(window.state.F!, [B, D * D, D]),
          ];
          const given = new Map<Tensor, Value>([
            [tokens, x],
            [targets, timeFirst(window.y)],
            [counted, { shape: [T, B], data: where }],
            [mask, { shape: [T, B], data: alive }],
            ...before.map((tensor, i) => [tensor, state[i]!] as const),
            ...model.parameters.map((tensor, i) => [tensor, inOrder(weights)[i]!] as const),
          ]);
          await checkTensors(
            new Map([
              ["loss", { tensor: loss, value: { shape: [], data: Float64Array.of(window.loss) } }],
              ...after.map(
                (value, i) => [model.recurrent[i]!.name, { tensor: run.state[i]!, value }] as const,
              ),
              ...inOrder(window.gradients).map(
                (value, i) =>
                  [
                    `gradient of ${stateAttrs(model.parameters[i]!)!.name}`,
                    { tensor: grads[i]!, value },
                  ] as const,
              ),
            ]),
            given,
          );
          const V = config.vocab_size;
          const logits = interpret([run.logits], given)[0]!.data;
          for (let b = 0; b < B; b++) {
            for (let t = 0; t < T; t++) {
              // The released program leaves logits at zero where it does not read.
              if (!where[t * B + b]) continue;
              const at = (b * T + t) * V;
              expectClose(
                logits.subarray((t * B + b) * V, (t * B + b + 1) * V),
                window.logits.data.slice(at, at + V),
                {
                  ...exact,
                  label: `logits at ${t} of row ${b}`,
                },
              );
            }
          }
          state = after;
        }
      });
    }
  }
});
