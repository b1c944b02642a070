/** Learning rates over time. */
import type { ScheduleSettings } from "./optimizerSettings.ts";

/** Where training stands. */
export interface ScheduleTime {
  /** Steps made. */
  readonly step: number;
  /** Steps in all. */
  readonly steps: number;
  /** Passes over the data that are complete. */
  readonly epoch?: number;
}

/** The factor on the learning rate at a step. */
export function scheduleFactor(schedule: ScheduleSettings, { step, steps, epoch = 0 }: ScheduleTime): number {
  const { warmup } = schedule;
  if (step < warmup) return step / warmup;
  switch (schedule.name) {
    case "constant":
      // The released trainer never quite reaches the rate: it stops rising one step before.
      return warmup > 0 ? (warmup - 1) / warmup : 1;
    case "epochs":
      return schedule.factor ** schedule.epochs.filter((at) => at <= epoch).length;
    case "cosine":
    case "linear": {
      const start = Math.max(warmup, schedule.decayStart);
      if (step < start) return 1;
      const end = schedule.decayEnd ?? steps;
      const progress = Math.min(1, (step - start) / Math.max(1, end - start));
      const left = schedule.name === "cosine" ? (1 + Math.cos(Math.PI * progress)) / 2 : 1 - progress;
      return schedule.finalLrRatio + (1 - schedule.finalLrRatio) * left;
    }
  }
}
