/** How fast agents train: episodes per second, acting and learning apart. */
import { median } from "../../statistics.ts";
import type { BenchCase, BenchOptions, BenchRow } from "../kind.ts";
import { openMetarl } from "./session.ts";
import type { MetarlSettings } from "./settings.ts";

/** Trains from fresh weights for a while and times it; the first two episodes are not counted. */
export async function benchMetarl(
  { label, settings }: BenchCase<MetarlSettings>,
  { steps, threads }: BenchOptions,
): Promise<BenchRow> {
  const { trainer, environments } = openMetarl(settings, threads ? { threads } : {});
  const { optimizer, entropyCoef } = settings.training;
  const acting: number[] = [];
  const learning: number[] = [];
  const warmup = 2;
  try {
    for (let episode = 0; episode < warmup + steps; episode++) {
      const start = performance.now();
      await trainer.rollout(environments.train, episode);
      const acted = performance.now();
      await trainer.update({ learningRate: optimizer.learningRate, entropyCoef });
      if (episode < warmup) continue;
      acting.push(acted - start);
      learning.push(performance.now() - acted);
    }
  } finally {
    await trainer.release();
  }
  const [act, update] = [median(acting), median(learning)];
  return {
    label,
    perSecond: 1000 / (act + update),
    stepMs: act + update,
    leastMs: Math.min(...acting.map((ms, i) => ms + learning[i]!)),
    peakMemoryMB: process.resourceUsage().maxRSS / 1024,
    gflops: null,
    shareOfPeak: null,
    parts: { act, update },
  };
}
