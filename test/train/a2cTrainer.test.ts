/** What an update is made of: scaled rewards, clipped gradients, and returns that end with the episode. */
import { describe, expect, test } from "vitest";
import { type Agent, lstmAgent } from "../../src/model/agents.ts";
import { nodeRuntime } from "../../src/runtime/node.ts";
import { A2cTrainer } from "../../src/train/a2cTrainer.ts";
import type { A2cTrainerSettings } from "../../src/train/agentTrainer.ts";
import { sgd } from "../../src/train/optimizers.ts";
import type { Environment } from "../../src/train/rollout.ts";
import { expectClose, normals } from "../support/check.ts";

const [T, B, O, A] = [5, 4, 3, 2];

/** Sees fixed numbers; action 1 pays `pay` to every second agent. */
function environment(pay: number): Environment {
  const seen = Float32Array.from(normals([T, B, O], 9).data);
  let step = 0;
  return {
    agents: B,
    steps: T,
    reset() {
      step = 0;
    },
    observe: (into, offset) => into.set(seen.subarray(step * B * O, (step + 1) * B * O), offset),
    step(actions) {
      step++;
      return Float32Array.from(actions, (action, agent) => (agent % 2 === 0 ? pay * action : 0));
    },
    meanReturn: () => 0,
    noise: (into, _, at) => void into.forEach((__, agent) => void (into[agent] = ((agent + at) % 4) / 4)),
  };
}

/** One episode and its update: what it tells, and the weights before and after. */
async function update(
  change: Partial<A2cTrainerSettings>,
  pay: number,
  agent = lstmAgent({ observation: O, actions: A, hidden: 6 }),
) {
  const trainer = new A2cTrainer(
    agent,
    {
      agents: B,
      steps: T,
      observation: O,
      seed: 3,
      optimizer: sgd(),
      rewardScale: 1,
      guided: false,
      advised: 0,
      factCoef: 0,
      clip: 0,
      discount: 0.9,
      lambda: 0.8,
      valueCoef: 0.5,
      advantage: "a2c",
      ...change,
    },
    { runtime: nodeRuntime, threads: 1 },
  );
  const weights = () =>
    [...trainer.weightNames].flatMap((name) => [...(trainer.state.get(name).data as Float32Array)]);
  try {
    await trainer.rollout(environment(pay), 0);
    const before = weights();
    const result = await trainer.update({ learningRate: 1, entropyCoef: 0.03 });
    const after = weights();
    return { result, moved: Math.hypot(...after.map((weight, i) => weight - before[i]!)), after };
  } finally {
    await trainer.release();
  }
}

describe("an update", () => {
  test("learns from rewards times their scale", async () => {
    const plain = await update({}, 2);
    const scaled = await update({ rewardScale: 0.25 }, 8);
    expect(scaled).toEqual(plain);
    expect((await update({}, 8)).result.loss).not.toBeCloseTo(plain.result.loss, 3);
  });

  test("is the same whether acting stored its gates or they are computed again", async () => {
    const agent = lstmAgent({ observation: O, actions: A, hidden: 6 });
    const forgetful: Agent = {
      ...agent,
      savedActivations: [],
      act: (given) => ({ ...agent.act(given), savedActivations: [] }),
      episode: (x) => agent.episode(x),
    };
    const [stored, computed] = [await update({}, 2, agent), await update({}, 2, forgetful)];
    expect(stored.result.gradNorm).toBeCloseTo(computed.result.gradNorm, 5);
    expect(stored.moved).toBeGreaterThan(0);
    expectClose(stored.after, computed.after, { rtol: 1e-5, atol: 1e-6 });
  });

  test("is no longer than the clip allows, and shorter ones are left alone", async () => {
    const free = await update({}, 2);
    expect(free.moved).toBeCloseTo(free.result.gradNorm, 4);
    const clipped = await update({ clip: free.result.gradNorm / 3 }, 2);
    expect(clipped.moved).toBeCloseTo(free.moved / 3, 4);
    expect(clipped.result.gradNorm).toBe(free.result.gradNorm);
    const wide = await update({ clip: 2 * free.result.gradNorm }, 2);
    expect(wide.moved).toBeCloseTo(free.moved, 4);
  });

  test("trusts the critic as far as λ says", async () => {
    const [trusting, not] = [await update({ lambda: 0 }, 2), await update({ lambda: 1 }, 2)];
    // With λ = 0 the critic is compared with itself one step on: a fresh one, near 0, errs by less.
    expect(trusting.result.valueLoss).toBeLessThan(not.result.valueLoss);
  });
});
