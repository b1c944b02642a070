/**
 * The trainer: steps and scores in both modes against a whole model in plain loops, averages, what is not finite, and
 * that everything it holds comes back from a snapshot.
 */
import { afterEach, describe, expect, test } from "vitest";
import type { Batch } from "../../src/data/batches.ts";
import { type Mode, objectiveOf } from "../../src/experiment/catbabi/objective.ts";
import { scoreStream } from "../../src/experiment/catbabi/score.ts";
import { add, cast, mul, reshape, state, sum, type Tensor, unsqueeze } from "../../src/graph/index.ts";
import { releasedCatbabi } from "../../src/model/fwm.ts";
import { fwmModel } from "../../src/model/fwmModel.ts";
import type { SequenceModel } from "../../src/model/sequence.ts";
import { nodeRuntime } from "../../src/runtime/node.ts";
import { adam, asgd, muon, type Optimizer, sgd } from "../../src/train/optimizers.ts";
import { SequenceEvaluator } from "../../src/train/sequenceEvaluator.ts";
import { SequenceTrainer } from "../../src/train/sequenceTrainer.ts";
import { fwmReference } from "../model/fwmReference.ts";
import { lstmReference } from "../model/lstmReference.ts";
import { centralDifferences, expectClose } from "../support/check.ts";

const options = { runtime: nodeRuntime, threads: 1 };
const sizes = { vocabulary: 6, embedding: 3, hidden: 4, memory: 2, reads: 2 };
const { vocabulary: V, embedding: E, hidden: H, memory: D, reads: R } = sizes;
const [T, B] = [5, 2];

/** Two windows of two rows; token 2 asks, and row 1 ends in padding. */
const windows: Batch[] = [
  [3, 1, 4, 2, 2, 5, 5, 2, 1, 4],
  [4, 3, 2, 1, 5, 2, 2, 0, 3, 0],
].map((tokens, epoch) => ({
  batch: B,
  window: T,
  tokens: Int32Array.from(tokens),
  targets: Int32Array.from(tokens, (token, i) => (token === 0 ? 0 : 1 + ((token + i) % (V - 1)))),
  questions: Uint8Array.from(tokens, (token) => (token === 2 ? 1 : 0)),
  tasks: Uint8Array.from(tokens, (_, i) => (i % B === 0 ? 1 : 15)),
  epoch,
  padded: tokens.filter((token) => token === 0).length,
}));

let trainer: SequenceTrainer | undefined;
afterEach(async () => {
  await trainer?.release();
  trainer = undefined;
});

function open(
  optimizers: { first: Optimizer; averaging?: Optimizer },
  { model = fwmModel({ ...sizes, chunk: 2 }), clip = 0, emaDecay = 0, seed = 3 } = {},
): SequenceTrainer {
  trainer = new SequenceTrainer(model, { optimizers, clip, emaDecay, seed }, options);
  return trainer;
}

type Arrays = Readonly<Record<string, Float64Array>>;
const float64 = (data: ArrayLike<number>): Float64Array => Float64Array.from(data);
const weightsOf = ({ state: held, model }: SequenceTrainer): Arrays =>
  Object.fromEntries(
    held
      .names()
      .slice(0, model.parameters.length)
      .map((name) => [name, float64(held.get(name).data as Float32Array)]),
  );
const atStart = (): Arrays => ({
  h: new Float64Array(B * H),
  c: new Float64Array(B * H),
  F: new Float64Array(B * D * D * D),
});

/** The whole model in plain loops: logits [T · B][V] and the state after the window. */
function plainWindow(w: Arrays, { tokens }: Batch, before: Arrays) {
  const x = float64([...tokens].flatMap((token) => [...w.embedding!.subarray(token * E, (token + 1) * E)]));
  const mask = float64([...tokens].map((token) => (token === 0 ? 0 : 1)));
  const lstm = lstmReference(
    { T, B, E, H },
    {
      x,
      h0: before.h!,
      c0: before.c!,
      Wx: w["lstm.Wx"]!,
      Wh: w["lstm.Wh"]!,
      b: w["lstm.b"]!,
      forget: 1,
      mask,
    },
    { coef: new Float64Array(T * B * H), coefC: new Float64Array(B * H) },
  );
  const memory = fwmReference(
    releasedCatbabi,
    { T, B, H, D, R },
    {
      h: lstm.y,
      F: before.F!,
      writeW: w["fwm.write.W"]!,
      writeB: w["fwm.write.b"]!,
      readW: w["fwm.read.W"]!,
      readB: w["fwm.read.b"]!,
      outW: w["fwm.out.W"]!,
      outB: w["fwm.out.b"]!,
      mask,
    },
  );
  const logits = Array.from({ length: T * B }, (_, at) =>
    Array.from({ length: V }, (_, word) => {
      let total = 0;
      for (let j = 0; j < H; j++) total += memory.y[at * H + j]! * w["output.W"]![j * V + word]!;
      return total;
    }),
  );
  return { logits, after: { h: lstm.h, c: lstm.c, F: memory.F } };
}

const lossAt = (logits: readonly number[], target: number): number =>
  Math.log(logits.reduce((total, z) => total + Math.exp(z), 0)) - logits[target]!;
const counts = (mode: Mode, { tokens, questions }: Batch, at: number): boolean =>
  mode === "qa" ? questions[at] === 1 : tokens[at] !== 0;

/** Mean loss over the places that count. */
function plainLoss(mode: Mode, w: Arrays, batch: Batch, before: Arrays): number {
  const { logits } = plainWindow(w, batch, before);
  const places = [...batch.tokens.keys()].filter((at) => counts(mode, batch, at));
  return places.reduce((total, at) => total + lossAt(logits[at]!, batch.targets[at]!), 0) / places.length;
}

describe.each(["lm", "qa"] as const)("%s mode against plain loops", (mode) => {
  test("three steps of gradient descent give the losses, the gradient norms and the weights", async () => {
    const rate = 0.5;
    const made = open({ first: sgd() });
    let w = weightsOf(made);
    let carried = atStart();
    // The first window comes again: the recurrent state is carried, so it is another step.
    for (const [step, batch] of [windows[0]!, windows[1]!, windows[0]!].entries()) {
      const gradient = Object.fromEntries(
        Object.entries(w).map(([name, values]) => [
          name,
          centralDifferences((moved) => plainLoss(mode, { ...w, [name]: moved }, batch, carried), values),
        ]),
      );
      const norm = Math.hypot(...Object.values(gradient).flatMap((part) => [...part]));
      const { loss, gradNorm } = await made.step(objectiveOf(batch, mode), {
        learningRate: rate,
        key: { seed: 1, step },
      });
      expect(loss).toBeCloseTo(plainLoss(mode, w, batch, carried), 5);
      expect(gradNorm).toBeCloseTo(norm, 4);
      carried = plainWindow(w, batch, carried).after;
      w = Object.fromEntries(
        Object.entries(w).map(([name, values]) => [
          name,
          values.map((x, i) => x - rate * gradient[name]![i]!),
        ]),
      );
    }
    for (const [name, values] of Object.entries(weightsOf(made))) {
      expectClose(values, w[name]!, { rtol: 1e-4, atol: 1e-5, label: name });
    }
    for (const [name, want] of Object.entries(carried)) {
      const got = made.state.get(`train.${name}`).data as Float32Array;
      expectClose(got, want, { rtol: 1e-4, atol: 1e-5, label: name });
    }
  });

  test("a stream is scored as plain loops score it: answers alone, whatever is learned", async () => {
    const made = open({ first: sgd() });
    const w = weightsOf(made);
    const evaluator = new SequenceEvaluator(made.model, options);
    evaluator.load(made.evaluationWeights());
    // One story per row, long enough for three windows; both rows end in padding.
    const stories = [7, 11].map((seed, row) => {
      const tokens = Uint16Array.from({ length: 12 - row }, (_, i) => 2 + ((i * seed + row) % 4));
      return {
        tokens,
        answers: Uint8Array.from(tokens, (_, i) => (tokens[i - 1] === 2 ? 1 : 0)),
        task: 1 + 14 * row,
      };
    });
    const source = { storiesPerEpoch: 2, story: (_: number, position: number) => stories[position]! };
    try {
      const score = await scoreStream(evaluator, source, { mode, batch: B, window: T });
      let [correct, questions, loss, answers, seen] = [0, 0, 0, 0, 0];
      let carried = atStart();
      for (let start = 0; start < 15; start += T) {
        const row = (b: number) => [1, ...stories[b]!.tokens]; // <eos> comes first
        const at = (b: number, t: number, shift = 0): number => row(b)[start + t + shift] ?? (shift ? 1 : 0);
        const places = Array.from({ length: T * B }, (_, i) => ({ b: i % B, t: Math.floor(i / B) }));
        const tokens = Int32Array.from(places, ({ b, t }) => at(b, t));
        const batch: Batch = {
          ...windows[0]!,
          tokens,
          targets: Int32Array.from(places, ({ b, t }) => (at(b, t) === 0 ? 0 : at(b, t, 1))),
          questions: Uint8Array.from(places, ({ b, t }) =>
            start + t < stories[b]!.tokens.length ? stories[b]!.answers[start + t]! : 0,
          ),
        };
        const { logits, after } = plainWindow(w, batch, carried);
        const mean = (wanted: (i: number) => boolean): number => {
          const chosen = [...tokens.keys()].filter(wanted);
          const total = chosen.reduce((sumOf, i) => sumOf + lossAt(logits[i]!, batch.targets[i]!), 0);
          return chosen.length === 0 ? 0 : total / chosen.length;
        };
        loss += mean((i) => counts(mode, batch, i));
        answers += mean((i) => batch.questions[i] === 1);
        for (const i of tokens.keys()) {
          if (batch.questions[i] !== 1) continue;
          questions++;
          if (logits[i]!.indexOf(Math.max(...logits[i]!)) === batch.targets[i]) correct++;
        }
        carried = after;
        seen++;
      }
      expect(questions).toBeGreaterThan(3);
      expect(score).toMatchObject({ correct, questions });
      expect(score!.loss).toBeCloseTo(loss / seen, 5);
      expect(score!.perplexity).toBeCloseTo(Math.exp(answers / seen), 5);
    } finally {
      await evaluator.release();
    }
  });
});

/** A model of one weight per word, the same logits everywhere; its state counts windows, from 2 on. */
function toyModel(penalty?: (w: Tensor) => Tensor): SequenceModel {
  const w = state("w", [V], { kind: "uniform", low: -1, high: 1 });
  return {
    parameters: [w],
    recurrent: [{ name: "seen", shape: (rows) => [rows, 1], initial: { kind: "constant", value: 2 } }],
    window: ({ tokens, state: [seen], positions, training }) => ({
      logits: add(reshape(w, [1, 1, V]), mul(cast(unsqueeze(positions ?? tokens, -1), "f32"), 0)),
      state: [add(seen!, training ? 1 : 10)],
      ...(penalty ? { penalty: penalty(w) } : {}),
    }),
    step: () => {
      throw new Error("unused");
    },
  };
}

test("a window without anything to learn moves the recurrent state alone", async () => {
  const made = open({ first: adam() });
  const before = weightsOf(made);
  const nothing = objectiveOf({ ...windows[0]!, questions: new Uint8Array(T * B) }, "qa");
  const { loss, gradNorm, predicted } = await made.step(nothing, {
    learningRate: 1,
    key: { seed: 1, step: 0 },
  });
  expect([loss, gradNorm, predicted.length]).toEqual([0, 0, 0]);
  expect(weightsOf(made)).toEqual(before);
  const { after } = plainWindow(before, windows[0]!, atStart());
  expectClose(made.state.get("train.F").data as Float32Array, after.F, { rtol: 1e-4, atol: 1e-6 });
  expect(made.state.has("adam.correction1")).toBe(false);
});

test("a stream that is put back to its start begins as a new one does", async () => {
  const made = open({ first: sgd() }, { model: toyModel() });
  made.resetState(); // before the first step there is nothing to put back
  const lm = objectiveOf(windows[0]!, "lm");
  const seen = async (): Promise<number[]> => {
    await made.step(lm, { learningRate: 0, key: { seed: 1, step: 0 } });
    return [...(made.state.get("train.seen").data as Float32Array)];
  };
  expect(await seen()).toEqual([3, 3]);
  expect(await seen()).toEqual([4, 4]);
  made.resetState();
  expect(await seen()).toEqual([3, 3]);

  const memory = open({ first: sgd() });
  const loss = async (): Promise<number> =>
    (await memory.step(lm, { learningRate: 0, key: { seed: 1, step: 0 } })).loss;
  const first = await loss();
  expect(await loss()).not.toBe(first);
  memory.resetState();
  expect(await loss()).toBe(first);
  await made.release();
});

test("clipping scales all gradients together", async () => {
  const move = async (clip: number): Promise<{ moved: number; gradNorm: number }> => {
    const made = open({ first: sgd() }, { clip });
    const before = weightsOf(made);
    const { gradNorm } = await made.step(objectiveOf(windows[0]!, "lm"), {
      learningRate: 1,
      key: { seed: 1, step: 0 },
    });
    const after = weightsOf(made);
    const differences = Object.entries(after).flatMap(([name, values]) =>
      [...values].map((x, i) => x - before[name]![i]!),
    );
    await made.release();
    return { moved: Math.hypot(...differences), gradNorm };
  };
  const free = await move(0);
  expect(free.moved).toBeCloseTo(free.gradNorm, 4);
  const clipped = await move(free.gradNorm / 4);
  expect(clipped.moved).toBeCloseTo(free.moved / 4, 4);
  expect(clipped.gradNorm).toBeCloseTo(free.gradNorm, 5);
});

test("a step that is not finite changes nothing and names what was not", async () => {
  const made = open({ first: sgd() });
  made.state.set("output.W", new Float32Array(H * V).fill(3e38));
  const before = weightsOf(made);
  const step = await made.step(objectiveOf(windows[0]!, "lm"), {
    learningRate: 1,
    key: { seed: 1, step: 0 },
  });
  expect(step.nonFinite).toMatch(/^(loss|gradient norm|[a-z]+\.\S+|embedding)$/);
  expect(weightsOf(made)).toEqual(before);
  expect([...(made.state.get("train.F").data as Float32Array)].every((x) => x === 0)).toBe(true);
});

describe("averages", () => {
  const lm = windows.map((batch) => objectiveOf(batch, "lm"));
  const run = async (
    made: SequenceTrainer,
    from: number,
    to: number,
    averaging?: (step: number) => boolean,
  ) => {
    for (let step = from; step < to; step++) {
      const learningRate = 0.3;
      const more = averaging ? { averaging: averaging(step) } : {};
      await made.step(lm[step % 2]!, { learningRate, key: { seed: 1, step }, ...more });
    }
  };
  const evaluated = (made: SequenceTrainer): number[] =>
    [...made.evaluationWeights().values()].flatMap((values) => Array.from(values));

  test("the moving average is what evaluation uses", async () => {
    const [plain, averaged] = [open({ first: sgd() }), open({ first: sgd() }, { emaDecay: 0.9 })];
    const seen: number[][] = [];
    for (let step = 0; step < 4; step++) {
      await run(plain, step, step + 1);
      await run(averaged, step, step + 1);
      seen.push(evaluated(plain));
    }
    // a ← d a + (1-d) p with d = min(0.9, t / (t + 9)) at step t.
    let want = seen[0]!;
    seen.forEach((p, t) => {
      const d = Math.min(0.9, t / (t + 9));
      want = want.map((a, i) => d * a + (1 - d) * p[i]!);
    });
    expectClose(evaluated(averaged), want, { rtol: 1e-4, atol: 1e-6 });
    await plain.release();
  });

  test("averaged descent takes over when it is told to, and stays", async () => {
    const made = open({ first: sgd(), averaging: asgd() });
    await run(made, 0, 2);
    expect(made.averaging).toBe(false);
    const before = evaluated(made);
    await run(made, 2, 5, (step) => step === 2 || made.averaging);
    expect(made.averaging).toBe(true);
    const raw = Object.values(weightsOf(made)).flatMap((values) => [...values]);
    expect(evaluated(made)).not.toEqual(raw);
    expect(evaluated(made)).not.toEqual(before);
  });

  test.each([
    ["Adam", { first: adam() }, 0, undefined],
    ["Adam with a moving average", { first: adam() }, 0.9, undefined],
    ["Muon", { first: muon({ byAdam: ["embedding"], blocks: { "lstm.Wx": 4 } }) }, 0, undefined],
    ["SGD, then averaged", { first: sgd(), averaging: asgd() }, 0, (step: number) => step >= 2],
  ] as const)(
    "%s: a snapshot restored at any step gives the bits of a run that never stopped",
    async (_, optimizers, emaDecay, averaging) => {
      const whole = open(optimizers, { emaDecay });
      await run(whole, 0, 5, averaging);
      for (let stop = 1; stop < 5; stop++) {
        const first = open(optimizers, { emaDecay });
        await run(first, 0, stop, averaging);
        const saved = first.snapshot();
        const second = open(optimizers, { emaDecay, seed: 99 });
        second.restore(saved, "a checkpoint");
        expect(evaluated(second)).toEqual(evaluated(first));
        await run(second, stop, 5, averaging);
        expect(second.snapshot(), `stopped at ${stop}`).toEqual(whole.snapshot());
        await first.release();
        await second.release();
      }
      trainer = whole;
    },
  );

  test("what does not fit is refused by name", () => {
    const made = open({ first: sgd() });
    const { model, optimizer } = made.snapshot();
    const without = new Map([...model].filter(([name]) => name !== "output.W"));
    expect(() => made.restore({ model: without, optimizer }, "x")).toThrow("x: tensor output.W is missing");
    const shape = [V, H];
    const turned = new Map([...model, ["output.W", { ...model.get("output.W")!, shape }]]);
    expect(() => made.restore({ model: turned, optimizer }, "x")).toThrow(
      "x: tensor output.W has another shape",
    );
  });
});

describe("a system", () => {
  const batch = objectiveOf(windows[0]!, "lm");
  const once = { learningRate: 1, key: { seed: 1, step: 0 } };

  test("may add a penalty: it is learned from, and is no part of the loss", async () => {
    const plain = open({ first: sgd() }, { model: toyModel() });
    const { loss } = await plain.step(batch, once);
    const moved = weightsOf(plain).w!;
    await plain.release();
    // The gradient of 3 Σ w is 3 in every entry.
    const penalised = open({ first: sgd() }, { model: toyModel((w) => mul(sum(w), 3)) });
    expect((await penalised.step(batch, once)).loss).toBeCloseTo(loss, 6);
    expectClose(
      weightsOf(penalised).w!,
      moved.map((x) => x - 3),
      { rtol: 1e-5, atol: 1e-5 },
    );
  });

  test("knows whether it trains, and its state starts as it says", async () => {
    const made = open({ first: sgd() }, { model: toyModel() });
    await made.step(batch, once);
    await made.step(batch, once);
    expect([...(made.state.get("train.seen").data as Float32Array)]).toEqual([4, 4]);
    const evaluator = new SequenceEvaluator(made.model, options);
    try {
      evaluator.load(made.evaluationWeights());
      evaluator.start(B);
      const { losses, predicted, loss } = await evaluator.run(batch);
      const w = [...weightsOf(made).w!];
      expectClose(
        losses,
        [...batch.targets].map((target) => lossAt(w, target)),
        { rtol: 1e-5, atol: 1e-6 },
      );
      expect([...predicted]).toEqual(new Array(T * B).fill(w.indexOf(Math.max(...w))));
      expect(loss).toBeCloseTo(losses.reduce((total, x) => total + x, 0) / (T * B), 5);
    } finally {
      await evaluator.release();
    }
  });
});
