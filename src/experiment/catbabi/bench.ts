/** How fast a training step on catbAbI is: batch, forward, backward, optimizer and carried state together. */
import { timedBesidePeak } from "../../bench/peak.ts";
import { profileParts, sharesOf } from "../../bench/profile.ts";
import { StreamBatcher } from "../../data/batches.ts";
import { generatedSource } from "../../data/streams.ts";
import { buildSystem, systemFlops } from "../../model/registry.ts";
import { nodeRuntime } from "../../runtime/node.ts";
import { baseRate, optimizersOf } from "../../train/optimizerSettings.ts";
import { SequenceTrainer } from "../../train/sequenceTrainer.ts";
import type { BenchCase, BenchOptions, BenchRow } from "../kind.ts";
import { objectiveOf } from "./objective.ts";
import type { CatbabiSettings } from "./settings.ts";

/** Measures one row in this process, so that its peak memory is its own. */
export async function benchCatbabi(
  { label, settings }: BenchCase<CatbabiSettings>,
  { steps, threads: asked }: BenchOptions,
): Promise<BenchRow> {
  const { task, system, training } = settings;
  const threads = asked ? { threads: asked } : {};
  const trainer = openTrainer(settings, threads);
  const batcher = new StreamBatcher(generatedSource(1), training);
  let positions = 0;
  const one = async (step: number): Promise<void> => {
    const window = objectiveOf(batcher.next(), task.mode);
    await trainer.step(window, { learningRate: rateOf(settings), key: { seed: 1, step } });
    positions += task.mode === "qa" ? window.questions.length : window.tokens.length;
  };
  // The first steps compile the programs; questions per window vary, and so do their shapes.
  for (let i = 0; i < 4; i++) await one(i);
  positions = 0;
  const timed = await timedBesidePeak((step) => one(4 + step), steps, threads);
  await trainer.release();
  const { batch, window } = training;
  const tokens = batch * window;
  // Forward, and twice that backward.
  const flops = 3 * systemFlops(system, { tokens, positions: positions / steps, window });
  return { label, ...timed.rates(flops, tokens), parts: await partsOf(settings, timed.stepMs, threads) };
}

function rateOf({ training }: CatbabiSettings): number {
  return baseRate(training.optimizer, false);
}

function openTrainer(
  { system, training }: CatbabiSettings,
  options: { threads?: number; profile?: string },
): SequenceTrainer {
  const { optimizer, clip, emaDecay, seed } = training;
  const settings = { optimizers: optimizersOf(optimizer), clip, emaDecay, seed };
  return new SequenceTrainer(buildSystem(system), settings, { runtime: nodeRuntime, ...options });
}

/** Milliseconds of each part: the runtime's profile of a few steps, scaled to the step that was timed. */
async function partsOf(
  settings: CatbabiSettings,
  stepMs: number,
  threads: { threads?: number },
): Promise<Record<string, number>> {
  const steps = 6;
  let building = 0;
  const totals = await profileParts(async (profile) => {
    const trainer = openTrainer(settings, { ...threads, profile });
    const batcher = new StreamBatcher(generatedSource(1), settings.training);
    for (let step = 0; step < steps; step++) {
      const start = performance.now();
      const window = objectiveOf(batcher.next(), settings.task.mode);
      building += performance.now() - start;
      await trainer.step(window, { learningRate: rateOf(settings), key: { seed: 1, step } });
    }
    await trainer.release();
  });
  const data = building / steps;
  return { ...sharesOf(totals, stepMs - data), data };
}
