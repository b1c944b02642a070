/** How fast a training step on text is: cutting the window, forward, backward, optimizer and carried state together. */
import { elapsed, summary } from "../../bench/measure.ts";
import { matmulPeak, peakFlops } from "../../bench/peak.ts";
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
  const session = await openTextSession(settings, { env: {}, ...threads });
  try {
    // The first step compiles the program.
    const warmup = 2;
    for (let i = 0; i < warmup; i++) await session.step(i);
    const peak = await matmulPeak(threads);
    const stepTimes: number[] = [];
    const peakTimes: number[] = [];
    for (let i = 0; i < steps; i++) {
      stepTimes.push(await elapsed(() => session.step(warmup + i)));
      peakTimes.push(await elapsed(peak.run));
    }
    await peak.release();
    const stepMs = summary(stepTimes).median;
    const { batch, window } = training;
    const tokens = batch * window;
    // Forward, and twice that backward.
    const gflops = (3 * systemFlops(system, { tokens, positions: tokens, window })) / stepMs / 1e6;
    return {
      label,
      perSecond: (tokens / stepMs) * 1000,
      stepMs,
      peakMemoryMB: process.resourceUsage().maxRSS / 1024,
      gflops,
      shareOfPeak: gflops / (peakFlops / summary(peakTimes).least / 1e6),
      parts: {},
    };
  } finally {
    await session.release();
  }
}
