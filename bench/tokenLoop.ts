/**
 * A system's training step beside the same step without what makes it fast: the equations of one token as they stand, in a
 * loop over the window. Both run in this engine, with the same gradient, optimizer and batch, in turn.
 */

import { StreamBatcher } from "../src/data/batches.ts";
import { generatedSource } from "../src/data/streams.ts";
import { UsageError } from "../src/errors.ts";
import { objectiveOf } from "../src/experiment/catbabi/objective.ts";
import type { CatbabiSettings } from "../src/experiment/catbabi/settings.ts";
import { requireExperiment } from "../src/experiment/registry.ts";
import { buildSystem } from "../src/model/registry.ts";
import { nodeRuntime } from "../src/runtime/node.ts";
import { median } from "../src/statistics.ts";
import { adam } from "../src/train/optimizers.ts";
import { SequenceTrainer } from "../src/train/sequenceTrainer.ts";
import { tokenByToken } from "./peers.ts";

/** What `fwm bench loop` reports: medians of processor time, and the median of the ratios of neighbouring steps. */
export interface TokenLoopReport {
  readonly experiment: string;
  readonly batch: number;
  readonly window: number;
  readonly windowMs: number;
  readonly loopMs: number;
  readonly ratio: number;
  /** Each pair's ratio. */
  readonly ratios: readonly number[];
}

/** Measures both forms of a catbAbI experiment's system, one thread each. */
export async function benchTokenLoop({
  experiment = "catbabi-lm-mnm",
  batch = 16,
  window = 200,
  repeats = 5,
  onNote = (_text: string): void => {},
} = {}): Promise<TokenLoopReport> {
  const { settings } = requireExperiment(experiment);
  if (settings.task.name !== "catbabi") {
    throw new UsageError(`fwm bench loop ${experiment}: only experiments on catbAbI`);
  }
  // Dropout would differ between the two forms, and is no part of either's cost.
  const { task, system } = settings as CatbabiSettings;
  const quiet = Object.fromEntries(
    Object.entries(system).map(([name, value]) => [name, /dropout$/i.test(name) ? 0 : value]),
  ) as typeof system;
  const source = new StreamBatcher(generatedSource(1), { batch, window });
  const cut = objectiveOf(source.next(), task.mode);
  const open = (plain: boolean): SequenceTrainer => {
    const model = buildSystem(quiet);
    const how = { optimizers: { first: adam() }, clip: 0, emaDecay: 0, seed: 1 };
    return new SequenceTrainer(plain ? tokenByToken(model) : model, how, {
      runtime: nodeRuntime,
      threads: 1,
    });
  };
  const [ours, loop] = [open(false), open(true)];
  const timed = async (trainer: SequenceTrainer, step: number): Promise<number> => {
    const before = process.cpuUsage();
    await trainer.step(cut, { learningRate: 1e-4, key: { seed: 1, step } });
    const { user, system: kernel } = process.cpuUsage(before);
    return (user + kernel) / 1000;
  };
  const pairs: [number, number][] = [];
  // The first step of each compiles.
  for (let step = 0; step <= repeats; step++) {
    onNote(step === 0 ? "compiling" : `pair ${step} of ${repeats}`);
    const pair: [number, number] = [await timed(ours, step), await timed(loop, step)];
    if (step > 0) pairs.push(pair);
  }
  await ours.release();
  await loop.release();
  const ratios = pairs.map(([mine, theirs]) => theirs / mine);
  return {
    ...{ experiment, batch, window },
    windowMs: median(pairs.map(([mine]) => mine)),
    loopMs: median(pairs.map(([, theirs]) => theirs)),
    ratio: median(ratios),
    ratios,
  };
}
