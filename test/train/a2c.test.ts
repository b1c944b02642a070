/** A2C: returns, policy and loss against plain loops, and the gradient against differences. */
import { describe, expect, test } from "vitest";
import { grad } from "../../src/compile/grad.ts";
import { input, type Tensor } from "../../src/graph/index.ts";
import type { Value } from "../../src/graph/op.ts";
import { fwmAgent, lstmAgent } from "../../src/model/agents.ts";
import { interpret } from "../../src/runtime/oracle.ts";
import { type A2cSettings, a2cLoss, policyOf, returnsOf } from "../../src/train/a2c.ts";
import { sampleActions } from "../../src/train/rollout.ts";
import { centralDifferences, expectClose, normals } from "../support/check.ts";

const exact = { rtol: 1e-9, atol: 1e-11 };
const weights = { discount: 0.9, lambda: 1, valueCoef: 0.1, entropyCoef: 0.03 };

test("returns: what is still to come, discounted", () => {
  // Two agents, three steps: agent 0 gets 1, 0, 10 and agent 1 gets 0, -2, 0.
  const rewards = Float32Array.of(1, 0, 0, -2, 10, 0);
  const V = Float32Array.of(7, 7, 7, 7, 7, 7);
  const returns = returnsOf(rewards, V, 2, { discount: 0.5, lambda: 1 });
  expect([...returns]).toEqual([1 + 0.5 * 5, 0 + 0.5 * -2, 5, -2, 10, 0]);
  const one = returnsOf(Float32Array.of(3, 4), Float32Array.of(9, 9), 2, { discount: 0.9, lambda: 0.5 });
  expect([...one]).toEqual([3, 4]);
});

test("returns with λ: the advantage is the decayed sum of the critic's one-step errors", () => {
  const rewards = Float32Array.of(1, 0, 0, -2, 10, 0);
  const V = Float32Array.of(0.5, -1, 2, 3, -4, 6);
  const [discount, lambda, agents, steps] = [0.5, 0.25, 2, 3];
  const returns = returnsOf(rewards, V, agents, { discount, lambda });
  for (let agent = 0; agent < agents; agent++) {
    for (let t = 0; t < steps; t++) {
      let advantage = 0;
      for (let later = t; later < steps; later++) {
        const at = later * agents + agent;
        const error = rewards[at]! + discount * (V[at + agents] ?? 0) - V[at]!;
        advantage += (discount * lambda) ** (later - t) * error;
      }
      expect(returns[t * agents + agent]! - V[t * agents + agent]!).toBeCloseTo(advantage, 6);
    }
  }
});

test("actions: the cumulated probabilities cut [0, 1) into intervals", () => {
  const policy = Float32Array.of(0.25, 0.5, 0.25);
  const chosen = [0, 0.2499, 0.25, 0.7499, 0.75, 0.9999].map((u) => {
    const into = new Int32Array(1);
    sampleActions(policy, Float32Array.of(u), into);
    return into[0];
  });
  expect(chosen).toEqual([0, 0, 1, 1, 2, 2]);
  // Rounding may leave the sum a little below 1: the last action takes what is left.
  const into = new Int32Array(2);
  sampleActions(Float32Array.of(0.3, 0.3, 0.3999, 1, 0, 0), Float32Array.of(0.99999, 0.5), into);
  expect([...into]).toEqual([2, 0]);
});

test("policy: never 0, sums to 1", () => {
  const logits = input("logits", [2, 3]);
  const values: Value = { shape: [2, 3], data: Float64Array.of(0, 0, 0, 1000, 0, -1000) };
  const [policy] = interpret([policyOf(logits)], new Map([[logits, values]]));
  const all = 1 + 3e-8;
  const want = [1 / 3, 1 / 3, 1 / 3, (1 + 1e-8) / all, 1e-8 / all, 1e-8 / all];
  expectClose(policy!.data, want, exact);
});

interface Sample {
  readonly logits: Float64Array;
  readonly V: Float64Array;
  readonly G: Float64Array;
  readonly actions: Float64Array;
  /** 1 for every action that a teacher might take. */
  readonly advice?: Float64Array;
  /** 0 where an action was not the agent's own. */
  readonly own?: Float64Array;
  /** Shares of the writes in two reads, [B, T, T] each, and the writes that each should find, [T, B, 2, T]. */
  readonly matches?: readonly [Float64Array, Float64Array];
  readonly facts?: Float64Array;
}

/** Weight of a teacher's advice. */
const teacherCoef = 0.7;

/** Weight of the facts. */
const factCoef = 0.3;

/** The loss in plain loops, from the specification; the advantage may be given, as if it were a constant. */
function plainLoss(
  { logits, V, G, actions, advice, own, matches, facts }: Sample,
  [T, B, A]: readonly [number, number, number],
  { valueCoef, entropyCoef, advantage }: A2cSettings & { entropyCoef: number },
  frozenV = V,
) {
  let [policyLoss, valueLoss, uncertainty, teacherLoss, factLoss] = [0, 0, 0, 0, 0];
  for (let t = 0; t < T; t++) {
    for (let j = 0; j < B; j++) {
      const at = t * B + j;
      const row = logits.slice(at * A, (at + 1) * A);
      const total = row.reduce((sum, z) => sum + Math.exp(z), 0);
      const pi = row.map((z) => (Math.exp(z) / total + 1e-8) / (1 + A * 1e-8));
      const logChosen = (own?.[at] ?? 1) * Math.log(pi[actions[at]!]!);
      uncertainty -= pi.reduce((sum, p) => sum + p * Math.log(p), 0) / (T * B);
      if (advice) {
        const advised = pi.reduce((sum, p, a) => sum + p * advice[at * A + a]!, 0);
        teacherLoss -= Math.log(advised) / (T * B);
      }
      // The last read is told its facts first.
      [matches?.[1], matches?.[0]].forEach((shares, which) => {
        if (!shares || !facts) return;
        const wanted = facts.slice((at * 2 + which) * T, (at * 2 + which + 1) * T);
        if (!wanted.includes(1)) return;
        const found = wanted.reduce((sum, is, i) => sum + is * shares[(j * T + t) * T + i]!, 0);
        factLoss -= Math.log(Math.max(found, 1e-6)) / (T * B);
      });
      if (advantage === "a2c") {
        policyLoss -= (logChosen * (G[at]! - frozenV[at]!)) / (T * B);
        valueLoss += (G[at]! - V[at]!) ** 2 / (T * B);
      } else {
        // G [B] minus V [B, 1] is [B, B] in the authors' program.
        for (let i = 0; i < B; i++) {
          policyLoss -= (logChosen * (G[at]! - frozenV[t * B + i]!)) / (T * B * B);
          valueLoss += (G[at]! - V[t * B + i]!) ** 2 / (T * B * B);
        }
      }
    }
  }
  const taught = teacherCoef * teacherLoss + factCoef * factLoss;
  const loss = policyLoss + valueCoef * valueLoss - entropyCoef * uncertainty + taught;
  return { loss, policyLoss, valueLoss, entropy: uncertainty, teacherLoss, factLoss };
}

const sizes = [3, 4, 3] as const;
const [T, B, A] = sizes;
const sample: Sample = {
  logits: normals([T, B, A], 1).data,
  V: normals([T, B], 2).data,
  G: normals([T, B], 3, 5).data,
  actions: Float64Array.from({ length: T * B }, (_, i) => (i * 7) % A),
};

const lesson = {
  advice: Float64Array.from({ length: T * B * A }, (_, i) => ([0, 4, 5, 6].includes(i % 9) ? 1 : 0)),
  own: Float64Array.from({ length: T * B }, (_, i) => (i % 5 === 0 ? 0 : 1)),
  // Shares that sum to less than 1.
  matches: [4, 5].map((seed) =>
    normals([B, T, T], seed).data.map((x) => Math.abs(x) / (1 + Math.abs(x)) / T),
  ) as [Float64Array, Float64Array],
  // Told at every second moment, sometimes two writes, sometimes to one read only.
  facts: Float64Array.from({ length: T * B * 2 * T }, (_, i) => {
    const moment = Math.floor(i / (2 * T));
    return moment % 2 === 0 && [0, 2, 5].includes((i + moment) % 7) ? 1 : 0;
  }),
};

describe.each([
  ["a2c", false],
  ["broadcast", false],
  ["a2c", true],
] as const)("loss with advantage %s, in a lesson with a teacher: %s", (advantage, isTaught) => {
  const settings = { ...weights, advantage };
  const taught: Sample = isTaught ? { ...sample, ...lesson } : sample;
  const [advice, own] = [input("advice", [T, B, A]), input("own", [T, B])];
  const [logits, V, G] = [input("logits", [T, B, A]), input("V", [T, B]), input("G", [T, B])];
  const actions = input("actions", [T, B], "i32");
  const [facts, reads] = [
    input("facts", [T, B, 2, T]),
    [0, 1].map((i) => input(`read${i}`, [B, T, T])),
  ] as const;
  const extras = isTaught
    ? { own, teaching: { advice, coef: teacherCoef }, facts: { facts, coef: factCoef } }
    : {};
  const output = { logits, value: V, matches: () => reads };
  const parts = a2cLoss(output, actions, G, settings, settings.entropyCoef, extras);
  const given = new Map<Tensor, Value>([
    [logits, { shape: [T, B, A], data: sample.logits }],
    [V, { shape: [T, B], data: sample.V }],
    [G, { shape: [T, B], data: sample.G }],
    [actions, { shape: [T, B], data: sample.actions }],
    [advice, { shape: [T, B, A], data: lesson.advice }],
    [own, { shape: [T, B], data: lesson.own }],
    [facts, { shape: [T, B, 2, T], data: lesson.facts }],
    ...reads.map((read, i): [Tensor, Value] => [read, { shape: [B, T, T], data: lesson.matches[i]! }]),
  ]);

  test("equals plain loops over steps and agents", () => {
    const want = plainLoss(taught, sizes, settings);
    const always = ["loss", "policyLoss", "valueLoss", "entropy"] as const;
    const names = isTaught ? ([...always, "teacherLoss", "factLoss"] as const) : always;
    expect(Object.keys(parts).sort()).toEqual([...names].sort());
    const got = interpret(
      names.map((name) => parts[name]!),
      given,
    );
    names.forEach((name, i) => {
      expectClose(got[i]!.data, [want[name]], { ...exact, label: name });
    });
  });

  test("the advantage is a constant to the gradient", () => {
    const [dLogits, dV] = interpret(grad(parts.loss, [logits, V]), given);
    const lossOf = (change: Partial<Sample>): number =>
      plainLoss({ ...taught, ...change }, sizes, settings, sample.V).loss;
    const close = { rtol: 1e-6, atol: 1e-8 };
    const wantLogits = centralDifferences((data) => lossOf({ logits: data }), sample.logits);
    expectClose(dLogits!.data, wantLogits, { ...close, label: "logits" });
    const wantV = centralDifferences((data) => lossOf({ V: data }), sample.V);
    expectClose(dV!.data, wantV, { ...close, label: "V" });
    if (!isTaught) return;
    const dReads = interpret(grad(parts.loss, reads), given);
    dReads.forEach(({ data }, read) => {
      const lossWith = (shares: Float64Array): number =>
        lossOf({ matches: lesson.matches.map((own, i) => (i === read ? shares : own)) as never });
      expectClose(data, centralDifferences(lossWith, lesson.matches[read]!), {
        ...close,
        label: `read ${read}`,
      });
    });
  });
});

describe("gradient of the loss with respect to an agent's weights", () => {
  const small = { observation: 3, actions: A, hidden: 4, memory: 3, reads: 2 };
  test.each([
    ["FWM", fwmAgent(small), "broadcast"],
    ["LSTM", lstmAgent(small), "a2c"],
  ] as const)("%s against differences in the oracle", (_, agent, advantage) => {
    const settings = { ...weights, advantage };
    const x = input("x", [T, B, 3]);
    const [G, actions] = [input("G", [T, B]), input("actions", [T, B], "i32")];
    const output = agent.episode(x);
    const { loss } = a2cLoss(output, actions, G, settings, settings.entropyCoef);
    const given = new Map<Tensor, Value>([
      [x, normals([T, B, 3], 4)],
      [G, { shape: [T, B], data: sample.G }],
      [actions, { shape: [T, B], data: sample.actions }],
      ...agent.parameters.map((tensor, i) => [tensor, normals(tensor.shape, 50 + i, 0.6)] as const),
    ]);
    const gradients = interpret(grad(loss, agent.parameters), given);
    const frozenV = interpret([output.value], given)[0]!.data;
    agent.parameters.forEach((parameter, i) => {
      const want = centralDifferences((data) => {
        const moved = new Map([...given, [parameter, { shape: parameter.shape, data }] as const]);
        const [logits, V] = interpret([output.logits, output.value], moved);
        return plainLoss({ ...sample, logits: logits!.data, V: V!.data }, sizes, settings, frozenV).loss;
      }, given.get(parameter)!.data);
      expectClose(gradients[i]!.data, want, { rtol: 1e-5, atol: 1e-7, label: `parameter ${i}` });
    });
  });
});

test("an agent of one read is told what the last one should find", () => {
  const [logits, V, G] = [input("logits", [T, B, A]), input("V", [T, B]), input("G", [T, B])];
  const [facts, read] = [input("facts", [T, B, 2, T]), input("read", [B, T, T])];
  const output = { logits, value: V, matches: () => [read] };
  const settings = { ...weights, advantage: "a2c" } as const;
  const { factLoss } = a2cLoss(output, input("actions", [T, B], "i32"), G, settings, 0, {
    facts: { facts, coef: factCoef },
  });
  const given = new Map<Tensor, Value>([
    [facts, { shape: [T, B, 2, T], data: lesson.facts }],
    [read, { shape: [B, T, T], data: lesson.matches[1] }],
  ]);
  // Where the read before it finds everything, only the last one counts.
  const all = lesson.matches[0].map(() => 1);
  const lastOnly = lesson.facts.map((is, i) => (Math.floor(i / T) % 2 === 0 ? is : 0));
  const want = plainLoss({ ...sample, matches: [all, lesson.matches[1]], facts: lastOnly }, sizes, settings);
  expect(want.factLoss).toBeGreaterThan(0);
  expectClose(interpret([factLoss!], given)[0]!.data, [want.factLoss], exact);
});
