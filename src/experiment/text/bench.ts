/** How fast a training step on text is: cutting the window, forward, backward, optimizer and carried state together. */
import { timedBesidePeak } from "../../bench/peak.ts";
import { profileParts, sharesOf } from "../../bench/profile.ts";
import { systemFlops } from "../../model/registry.ts";
import type { BenchCase, BenchOptions, BenchRow } from "../kind.ts";
import { openTextSession } from "./session.ts";
import type { TextSettings } from "./settings.ts";

/** Measures one row in this process, so that its peak memory is its own; its windows are all of one length. */
export async function benchText(
  { label, settings }: BenchCase<TextSettings>,
  { steps, threads: asked }: BenchOptions,
): Promise<BenchRow> {
  const { system, training } = settings;
  const threads = asked ? { threads: asked } : {};
  // The first step compiles the program.
  const warmup = 2;
  const session = await openTextSession(settings, { env: {}, ...threads });
  try {
    for (let i = 0; i < warmup; i++) await session.step(i);
    const timed = await timedBesidePeak((step) => session.step(warmup + step), steps, threads);
    const { batch, window } = training;
    const tokens = batch * window;
    // Forward, and twice that backward.
    const flops = 3 * systemFlops(system, { tokens, positions: tokens, window });
    return { label, ...timed.rates(flops, tokens), parts: await partsOf(settings, timed.stepMs, threads) };
  } finally {
    await session.release();
  }
}

/** Milliseconds of each part: the runtime's profile of a few steps, scaled to the step that was timed. */
async function partsOf(
  settings: TextSettings,
  stepMs: number,
  threads: { threads?: number },
): Promise<Record<string, number>> {
  const totals = await profileParts(async (profile) => {
    const session = await openTextSession(settings, { env: {}, ...threads, profile });
    for (let step = 0; step < 4; step++) await session.step(step);
    await session.release();
  });
  return sharesOf(totals, stepMs);
}
