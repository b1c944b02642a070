/** `npm run bench -- <what> [--json]`: benchmarks that are not part of the installed program. */
import { parseArgs } from "node:util";
import "../experiments/index.ts";
import { table } from "../src/report/table.ts";
import { benchEngine, describeEngine } from "./engine.ts";
import { benchGrowth, type GrowthSeries } from "./growth.ts";
import { benchPeers, type PeersReport } from "./peers.ts";
import { benchSweepLoad, type SweepLoad } from "./sweepLoad.ts";
import { benchTokenLoop, type TokenLoopReport } from "./tokenLoop.ts";

const onNote = (text: string): void => void process.stderr.write(`${text}\n`);

function describePeers(report: PeersReport): string {
  return table([
    ["form", "mode", "step ms", "times ours"],
    ["ours, parallel", "qa", report.oursQaMs.toFixed(0), "1"],
    ["ours, token by token", "qa", report.plainFormQaMs.toFixed(0), report.plainFormRatio.toFixed(1)],
    ["ours, parallel", "lm", report.oursLmMs.toFixed(0), "1"],
    ["ours, token by token", "lm", report.plainFormLmMs.toFixed(0), report.plainFormLmRatio.toFixed(1)],
    [report.tfjsBackend, "qa", report.tfjsMs.toFixed(0), report.tfjsRatio.toFixed(1)],
  ]);
}

function describeSweepLoad({ members, workers, seconds, perSecond, memory, listMs }: SweepLoad): string {
  return `${members} members over ${workers} workers in ${seconds.toFixed(0)} s: ${perSecond.toFixed(1)} a second; listed in ${listMs} ms\n${table(
    [
      ["members ended", "heap MB", "resident MB"],
      ...memory.map(({ ended, heapMB, rssMB }) => [ended, heapMB, rssMB]),
    ],
  )}`;
}

function describeGrowth(series: readonly GrowthSeries[]): string {
  return series
    .map(({ over, points, exponent, plainExponent }) =>
      table([
        [over, "ms", "token by token, ms"],
        ...points.map(({ value, parallelMs, plainMs }) => [
          `${value}`,
          parallelMs.toFixed(0),
          plainMs?.toFixed(0) ?? "",
        ]),
        ["exponent", exponent.toFixed(2), plainExponent?.toFixed(2) ?? ""],
      ]),
    )
    .join("\n");
}

function describeLoop(report: TokenLoopReport): string {
  return table([
    ["form", "processor ms", "times ours"],
    ["window", report.windowMs.toFixed(0), "1"],
    ["token by token", report.loopMs.toFixed(0), report.ratio.toFixed(2)],
  ]);
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: "boolean", default: false },
    quick: { type: "boolean", default: false },
    batch: { type: "string", default: "32" },
    window: { type: "string", default: "200" },
    repeats: { type: "string", default: "3" },
    members: { type: "string", default: "2000" },
    workers: { type: "string", default: "8" },
    redis: { type: "string", default: "/usr/bin/redis-server" },
    experiment: { type: "string", default: "catbabi-lm-mnm" },
  },
});
const [batch, window, repeats] = [values.batch, values.window, values.repeats].map(Number);
const benchmarks: Readonly<Record<string, () => Promise<readonly [document: unknown, text: string]>>> = {
  async engine() {
    const report = await benchEngine();
    return [report, describeEngine(report)];
  },
  async peers() {
    const report = await benchPeers({ batch, window, repeats, onNote });
    return [report, describePeers(report)];
  },
  async sweep() {
    const [members, workers] = [values.members, values.workers].map(Number) as [number, number];
    const report = await benchSweepLoad({ members, workers, redis: values.redis, onNote });
    return [report, describeSweepLoad(report)];
  },
  async loop() {
    const report = await benchTokenLoop({ experiment: values.experiment, batch, window, repeats, onNote });
    return [report, describeLoop(report)];
  },
  async growth() {
    const series = await benchGrowth({ repeats, quick: values.quick, onNote });
    return [{ series }, describeGrowth(series)];
  },
};
const benchmark = Object.hasOwn(benchmarks, positionals[0] ?? "") ? benchmarks[positionals[0]!] : undefined;
if (!benchmark) {
  process.stderr.write(
    "usage: npm run bench -- engine|peers|loop|growth|sweep [--json]\n       for training and streaming speed: fwm bench --help\n",
  );
  process.exit(2);
}
const [document, text] = await benchmark();
process.stdout.write(`${values.json ? JSON.stringify(document, null, 2) : text}\n`);
process.exit(0);
