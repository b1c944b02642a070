/** How the cost of a training step grows with one size at a time, in our form and token by token. */

import { elapsed, summary } from "../src/bench/measure.ts";
import { StreamBatcher } from "../src/data/batches.ts";
import { generatedSource } from "../src/data/streams.ts";
import { objectiveOf } from "../src/experiment/catbabi/objective.ts";
import { fwmDefaults } from "../src/model/fwmModel.ts";
import { buildSystem } from "../src/model/registry.ts";
import { nodeRuntime } from "../src/runtime/node.ts";
import { adam } from "../src/train/optimizers.ts";
import { SequenceTrainer } from "../src/train/sequenceTrainer.ts";
import { tokenByToken } from "./peers.ts";

/** One measured point. */
export interface GrowthPoint {
  readonly value: number;
  readonly parallelMs: number;
  /** Absent where the plain form was not measured. */
  readonly plainMs?: number;
}

/** Points over one size, and the exponent p of ms ~ value^p that fits them best. */
export interface GrowthSeries {
  readonly over: "batch" | "window" | "memory" | "reads";
  readonly points: readonly GrowthPoint[];
  readonly exponent: number;
  readonly plainExponent: number | null;
}

const base = { batch: 16, window: 200, memory: 32, reads: 3 };
const values = {
  batch: [8, 16, 32, 64],
  window: [50, 100, 200, 400],
  memory: [16, 32, 64],
  reads: [1, 2, 3, 4],
};
/** Sizes that take seconds: a check that the measurement works. */
const quickBase = { batch: 2, window: 10, memory: 4, reads: 1 };
const quickValues = { batch: [1, 2], window: [5, 10], memory: [4, 8], reads: [1, 2] };

/** Measures every series in LM mode, where reads happen at every token. */
export async function benchGrowth({
  repeats = 3,
  quick = false,
  onNote = (_text: string): void => {},
} = {}): Promise<GrowthSeries[]> {
  const series: GrowthSeries[] = [];
  for (const over of ["batch", "window", "memory", "reads"] as const) {
    const points: GrowthPoint[] = [];
    for (const value of (quick ? quickValues : values)[over]) {
      onNote(`${over} ${value}`);
      const sizes = { ...(quick ? quickBase : base), [over]: value };
      const parallelMs = await stepTime(sizes, repeats, false);
      // Token by token a step keeps a memory per token: 6 GB at batch 64, so only the small ones are run.
      const affordable = sizes.batch * sizes.window * (sizes.memory / 32) ** 3 <= 16 * 200;
      points.push({ value, parallelMs, ...(affordable ? { plainMs: await stepTime(sizes, 1, true) } : {}) });
    }
    const plainPoints = points.flatMap(({ value, plainMs }) => (plainMs ? [[value, plainMs] as const] : []));
    series.push({
      over,
      points,
      exponent: slope(points.map(({ value, parallelMs }) => [value, parallelMs] as const)),
      plainExponent: plainPoints.length > 1 ? slope(plainPoints) : null,
    });
  }
  return series;
}

async function stepTime(
  { batch, window, memory, reads }: { batch: number; window: number; memory: number; reads: number },
  repeats: number,
  plain: boolean,
): Promise<number> {
  const system = { ...fwmDefaults, memory, reads };
  const model = buildSystem(system);
  const trainer = new SequenceTrainer(
    plain ? tokenByToken(model) : model,
    { optimizers: { first: adam() }, clip: 0, emaDecay: 0, seed: 1 },
    { runtime: nodeRuntime },
  );
  const batcher = new StreamBatcher(generatedSource(1), { batch, window });
  const times: number[] = [];
  for (let step = 0; step < repeats + 1; step++) {
    const ms = await elapsed(() =>
      trainer.step(objectiveOf(batcher.next(), "lm"), { learningRate: 1e-3, key: { seed: 1, step } }),
    );
    if (step > 0) times.push(ms);
  }
  await trainer.release();
  return summary(times).median;
}

/** Least-squares slope of log y over log x. */
function slope(points: readonly (readonly [number, number])[]): number {
  const logs = points.map(([x, y]) => [Math.log(x), Math.log(y)] as const);
  const mean = (pick: 0 | 1): number => logs.reduce((sum, point) => sum + point[pick], 0) / logs.length;
  const [mx, my] = [mean(0), mean(1)];
  const over = logs.reduce((sum, [x, y]) => sum + (x - mx) * (y - my), 0);
  return over / logs.reduce((sum, [x]) => sum + (x - mx) ** 2, 0);
}
