/** Learning rates over time. */

/** How the rate moves. */
export interface ScheduleSettings {
  /** The rate after the warm-up. */
  readonly learningRate: number;
  /** Steps over which it rises: at step s < warmup it is learningRate · s / warmup, as in the released trainer. */
  readonly warmup: number;
  readonly decay: "none" | "cosine" | "linear";
  /** Share of the rate left at the last step. */
  readonly final: number;
  /** Step at which the decay begins; before it the rate is constant. */
  readonly decayFrom: number;
}

/** The rate at a step of `steps`. */
export function rateAt(step: number, steps: number, settings: ScheduleSettings): number {
  const { learningRate, warmup, decay, final, decayFrom } = settings;
  if (step < warmup) return (learningRate * step) / warmup;
  // The released trainer never quite reaches the rate: it stops rising one step before.
  const top = warmup > 0 && decay === "none" ? (learningRate * (warmup - 1)) / warmup : learningRate;
  if (decay === "none") return top;
  const start = Math.max(warmup, decayFrom);
  if (step < start) return top;
  const progress = Math.min(1, (step - start) / Math.max(1, steps - start));
  const left = decay === "cosine" ? (1 + Math.cos(Math.PI * progress)) / 2 : 1 - progress;
  return top * (final + (1 - final) * left);
}
