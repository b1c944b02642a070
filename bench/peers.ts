/**
 * The same training step in other forms, side by side in one run: our parallel form, our engine token by token,
 * and TensorFlow.js token by token.
 */

import { interleaved } from "../src/bench/measure.ts";
import type { Batch } from "../src/data/batches.ts";
import { type Mode, objectiveOf } from "../src/experiment/catbabi/objective.ts";
import { gatherRows, mean, reshape, scan, type Tensor } from "../src/graph/index.ts";
import { fwmDefaults } from "../src/model/fwmModel.ts";
import { buildSystem } from "../src/model/registry.ts";
import type { SequenceModel } from "../src/model/sequence.ts";
import { nodeRuntime } from "../src/runtime/node.ts";
import { adam } from "../src/train/optimizers.ts";
import { SequenceTrainer } from "../src/train/sequenceTrainer.ts";
import { fwmBenchSizes, fwmProblem } from "./peers/fwmProblem.ts";

/** What `fwm bench peers` reports: milliseconds per step and how many times slower than ours. */
export interface PeersReport {
  readonly batch: number;
  readonly window: number;
  readonly oursQaMs: number;
  readonly oursLmMs: number;
  readonly plainFormQaMs: number;
  readonly plainFormLmMs: number;
  /** The plain form in QA mode, over ours in QA mode. */
  readonly plainFormRatio: number;
  /** The plain form in LM mode, over ours in LM mode. */
  readonly plainFormLmRatio: number;
  readonly tfjsMs: number;
  /** TensorFlow.js in QA mode, over ours in QA mode. */
  readonly tfjsRatio: number;
  readonly tfjsBackend: string;
}

/** Measures all of them, by default at the paper's sizes. */
export async function benchPeers({
  batch = fwmBenchSizes.batch,
  window = fwmBenchSizes.steps,
  repeats = 3,
  onNote = (_text: string): void => {},
} = {}): Promise<PeersReport> {
  const sizes = { ...fwmBenchSizes, batch, steps: window };
  const problem = fwmProblem(sizes);
  const cut: Batch = {
    batch,
    window,
    tokens: problem.inputs.map((token) => Math.max(1, token)),
    targets: problem.targets,
    questions: problem.questions,
    tasks: new Uint8Array(batch * window),
    epoch: 0,
    padded: 0,
  };
  const open = (plain: boolean): SequenceTrainer => {
    const model = buildSystem(fwmDefaults);
    const settings = { optimizers: { first: adam() }, clip: 0, emaDecay: 0, seed: 1 };
    return new SequenceTrainer(plain ? tokenByToken(model) : model, settings, { runtime: nodeRuntime });
  };
  let step = 0;
  const stepper = (trainer: SequenceTrainer, mode: Mode) => {
    const window = objectiveOf(cut, mode);
    return () => trainer.step(window, { learningRate: 1e-3, key: { seed: 1, step: step++ } });
  };

  // Two trainers at a time: the plain form keeps a memory per token and needs gigabytes.
  const compared = async (mode: Mode): Promise<{ ours: number; plain: number }> => {
    onNote(`${mode} mode: ours and the plain form`);
    const [ours, plain] = [open(false), open(true)];
    const times = await interleaved(
      { plain: stepper(plain, mode), ours: stepper(ours, mode) },
      { repeats, warmup: 1 },
    );
    await ours.release();
    await plain.release();
    return { ours: times.ours.median, plain: times.plain.median };
  };
  const qa = await compared("qa");
  const lm = await compared("lm");

  onNote("qa mode: ours and TensorFlow.js");
  const { tfjsFwm } = await import("./peers/tfjsFwm.ts");
  const peer = await tfjsFwm(sizes);
  const ours = open(false);
  const beside = await interleaved(
    { tfjs: () => peer.run(), settle: stepper(ours, "qa"), ours: stepper(ours, "qa") },
    { repeats, warmup: 1 },
  );
  peer.dispose();
  await ours.release();
  return {
    batch,
    window,
    oursQaMs: qa.ours,
    oursLmMs: lm.ours,
    plainFormQaMs: qa.plain,
    plainFormLmMs: lm.plain,
    plainFormRatio: qa.plain / qa.ours,
    plainFormLmRatio: lm.plain / lm.ours,
    tfjsMs: beside.tfjs.median,
    tfjsRatio: beside.tfjs.median / beside.ours.median,
    tfjsBackend: peer.backend,
  };
}

/** A system whose window is its step, token by token. */
export function tokenByToken(model: SequenceModel): SequenceModel {
  return {
    ...model,
    window({ tokens, state, mask, positions }) {
      if (mask) throw new Error("internal: the plain form is measured without padding");
      const { carry, ys } = scan({ carry: state, xs: [tokens] }, (before, [token]) => {
        const next = model.step(token!, before);
        return { carry: next.state, ys: [next.logits, ...(next.penalty ? [next.penalty] : [])] };
      });
      const [every, penalties] = ys as [Tensor, Tensor | undefined];
      const [T, B, V] = every.shape as [number, number, number];
      const logits = positions ? gatherRows(reshape(every, [T * B, V]), positions) : every;
      return { logits, state: carry, ...(penalties ? { penalty: mean(penalties) } : {}) };
    },
  };
}
