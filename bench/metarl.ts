/** How fast a meta-reinforcement-learning experiment trains: episodes per second, acting and learning apart. */

import { makeTrainer, makeWorlds } from "../src/experiment/metarl.ts";
import type { MetarlExperiment } from "../src/experiment/metarlSettings.ts";
import type { OpenContext } from "../src/experiment/openRun.ts";
import { median } from "../src/report/median.ts";

/** What to time, and for how long. */
export interface MetarlBenchOptions extends Pick<OpenContext, "threads" | "device"> {
  readonly experiment: Pick<MetarlExperiment, "settings">;
  /** Time to spend on measured episodes; at least three are measured. */
  readonly seconds: number;
}

/** Medians over the measured episodes, each of all agents and followed by one update. */
export interface MetarlBench {
  readonly episodesPerSecond: number;
  /** Playing one episode: observations, policy, sampled actions, environment. */
  readonly actMs: number;
  /** One update from it. */
  readonly learnMs: number;
  /** Episodes measured. */
  readonly episodes: number;
}

/** Trains from fresh weights for a while and times it; the first two episodes are not counted. */
export async function benchMetarl(options: MetarlBenchOptions): Promise<MetarlBench> {
  const { settings } = options.experiment;
  const trainer = makeTrainer(settings, options);
  const { train } = makeWorlds(settings);
  const acting: number[] = [];
  const learning: number[] = [];
  const warmup = 2;
  try {
    let end = Number.POSITIVE_INFINITY;
    for (let episode = 0; episode < warmup + 3 || performance.now() < end; episode++) {
      const start = performance.now();
      if (episode === warmup) end = start + 1000 * options.seconds;
      await trainer.play(train, episode);
      const played = performance.now();
      await trainer.learn(settings.training);
      if (episode < warmup) continue;
      acting.push(played - start);
      learning.push(performance.now() - played);
    }
  } finally {
    await trainer.release();
  }
  const [actMs, learnMs] = [median(acting), median(learning)];
  return { episodesPerSecond: 1000 / (actMs + learnMs), actMs, learnMs, episodes: acting.length };
}
