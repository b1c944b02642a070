/** How fast a trained system answers: microseconds a token for one stream, tokens per second for many. */

import { input, state } from "../graph/index.ts";
import { fwmDefaults } from "../model/fwmModel.ts";
import { buildSystem } from "../model/registry.ts";
import { nodeRuntime } from "../runtime/node.ts";
import { compile } from "../runtime/program.ts";
import { elapsed, summary } from "./measure.ts";

/** What `fwm bench ask` reports. */
export interface AskReport {
  readonly rows: readonly {
    readonly streams: number;
    readonly microsecondsPerStep: number;
    readonly tokensPerSecond: number;
  }[];
}

/** Measures the step program at the paper's sizes. */
export async function benchAsk({ streams = [1, 64], tokens = 300 } = {}): Promise<AskReport> {
  const rows: { streams: number; microsecondsPerStep: number; tokensPerSecond: number }[] = [];
  for (const batch of streams) {
    const model = buildSystem(fwmDefaults);
    const before = model.recurrent.map(({ name, shape }) => state(`stream.${name}`, shape(batch)));
    const { logits, state: after } = model.step(input("tokens", [batch], "i32"), before);
    const program = await compile(
      { outputs: { logits }, updates: before.map((tensor, i) => [tensor, after[i]!] as const) },
      { runtime: nodeRuntime },
    );
    const ids = (t: number): Int32Array =>
      Int32Array.from({ length: batch }, (_, b) => 2 + ((t * 7 + b * 13) % 170));
    const times: number[] = [];
    for (let t = 0; t < tokens + 20; t++) {
      const ms = await elapsed(() => program.run({ tokens: ids(t) }));
      if (t >= 20) times.push(ms);
    }
    await program.release();
    const ms = summary(times).median;
    rows.push({ streams: batch, microsecondsPerStep: 1000 * ms, tokensPerSecond: (batch / ms) * 1000 });
  }
  return { rows };
}
