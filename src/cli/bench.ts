/** `fwm bench`: how fast training and answering are on this machine. */

import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { UsageError } from "../errors.ts";
import type { BenchRow, Kind } from "../experiment/kind.ts";
import { experimentNames, kindOf, requireExperiment } from "../experiment/registry.ts";
import { table, thousands } from "../report/table.ts";
import { programFolder } from "../store/programFolder.ts";
import { command, group } from "./command.ts";
import { assignments, layer, resolveSettings } from "./config.ts";
import type { Output } from "./output.ts";
import { flag, integer, oneOf, texts, threadCount, value } from "./params.ts";

const integers = (text: string, name: string): readonly number[] => {
  const list = text.split(",").map(Number);
  if (list.every((n) => Number.isInteger(n) && n > 0)) return list;
  throw new UsageError(`${name}: expected numbers such as 32,64, got ${JSON.stringify(text)}`);
};

const trainCommand = command({
  name: "train",
  summary: "Time a full training step of an experiment.",
  details: "Each row runs in a process of its own; times are medians. See docs/performance.md.",
  examples: [
    { line: "fwm bench train", trial: "fwm bench train --steps 1 --batches 2 --window 20 --mode qa" },
    {
      line: "fwm bench train catbabi-lm-fwm --batches 32 --json",
      trial:
        "fwm bench train catbabi-lm-fwm --batches 2 --window 20 --steps 1 --mode lm --set system.memory=8 --json",
    },
  ],
  args: { experiment: oneOf(experimentNames(), { default: "catbabi-qa-fwm" }) },
  options: {
    set: texts({ placeholder: "key=value", help: "change a setting, e.g. system.memory=64" }),
    batches: value(
      { placeholder: "sizes", default: [32, 64] as readonly number[], help: "batch sizes" },
      integers,
    ),
    window: integer({ min: 2, help: "tokens per row; default: the experiment's" }),
    mode: oneOf(["qa", "lm", "both"], { default: "both", help: "which loss" }),
    steps: integer({ min: 1, default: 9, help: "steps to time in each row" }),
    threads: threadCount(),
  },
  run: async ({ args, options, out }) => {
    const { settings: own } = requireExperiment(args.experiment);
    const kind = kindOf(own);
    const { set, ...given } = options;
    const { settings } = resolveSettings(
      kind.schema,
      [layer("experiment", own), assignments(set)],
      kind.renamed,
    );
    const chosen = Object.fromEntries(Object.entries(given).filter(([, is]) => is !== undefined));
    const bench = { steps: options.steps, ...chosen };
    const { benchRow } = await import("../experiment/benchRow.ts");
    const rows: BenchRow[] = [];
    for (const row of kind.benchRows(settings, bench)) {
      out.note(`${args.experiment}: ${Object.entries(row.label).flat().join(" ")}`);
      rows.push(await benchRow(row, bench));
    }
    out.result({ experiment: args.experiment, rows }, () => showRows(kind, rows));
  },
});

/** Speed, memory and the parts of a step, a row for each measurement. */
function showRows({ speed, unit }: Kind, rows: readonly BenchRow[]): string {
  const labels = Object.keys(rows[0]?.label ?? {});
  const parts = [...new Set(rows.flatMap((row) => Object.keys(row.parts)))];
  const label = (row: BenchRow): (string | number)[] => labels.map((name) => row.label[name]!);
  return [
    table([
      [...labels, speed.label, `${unit} ms`, "least ms", "peak MB", "GFLOPS", "of peak"],
      ...rows.map((row) => [
        ...label(row),
        row.perSecond >= 100 ? thousands(Math.round(row.perSecond)) : row.perSecond.toFixed(2),
        row.stepMs.toFixed(0),
        row.leastMs.toFixed(0),
        thousands(Math.round(row.peakMemoryMB)),
        row.gflops?.toFixed(0) ?? "-",
        row.shareOfPeak ? showShare(row.shareOfPeak) : "-",
      ]),
    ]),
    "",
    "milliseconds by part",
    table([
      [...labels, ...parts],
      ...rows.map((row) => [...label(row), ...parts.map((part) => row.parts[part]?.toFixed(1) ?? "-")]),
    ]),
  ].join("\n");
}

function showShare({ median, least, most }: NonNullable<BenchRow["shareOfPeak"]>): string {
  const percent = (share: number): string => (100 * share).toFixed(0);
  return `${percent(median)}% (${percent(least)}-${percent(most)})`;
}

/** Runs a benchmark that lives beside the package's sources and needs its development dependencies. */
async function runFromClone(what: string, flags: readonly string[], out: Output): Promise<void> {
  const script = join(programFolder(), "dist", "bench", "main.js");
  if (!existsSync(script)) {
    throw new UsageError(
      `fwm bench ${what}: needs a clone of the repository with its development dependencies`,
      {
        hint: "git clone, npm ci, npm run build",
      },
    );
  }
  const child = spawn(process.execPath, [script, what, ...flags, ...(out.json ? ["--json"] : [])], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => (text += chunk.toString()));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", resolve);
  });
  if (code !== 0) throw new UsageError(`fwm bench ${what}: the benchmark ended with code ${code}`);
  out.result(out.json ? (JSON.parse(text) as unknown) : undefined, text);
}

const peersCommand = command({
  name: "peers",
  summary: "Time our step beside the plain token-by-token form and TensorFlow.js.",
  details: "From a clone with its development dependencies; takes a few minutes.",
  examples: [
    { line: "fwm bench peers --json", trial: "fwm bench peers --batch 2 --window 4 --repeats 1 --json" },
  ],
  options: {
    batch: integer({ min: 1, default: 32, help: "rows" }),
    window: integer({ min: 2, default: 200, help: "tokens per row" }),
    repeats: integer({ min: 1, default: 3, help: "timed steps of each" }),
  },
  run: ({ options: { batch, window, repeats }, out }) =>
    runFromClone("peers", [`--batch=${batch}`, `--window=${window}`, `--repeats=${repeats}`], out),
});

const loopCommand = command({
  name: "loop",
  summary: "Time a system's training step beside its equations token by token.",
  details:
    "From a clone with its development dependencies. Both forms run in turn on one thread; the loop keeps what every " +
    "token's gradient needs, gigabytes at large batches.",
  examples: [
    {
      line: "fwm bench loop catbabi-lm-jbfw --json",
      trial: "fwm bench loop catbabi-qa-fwm --batch 1 --window 3 --repeats 1 --json",
    },
  ],
  args: { experiment: oneOf(experimentNames(), { default: "catbabi-lm-mnm" }) },
  options: {
    batch: integer({ min: 1, default: 16, help: "rows" }),
    window: integer({ min: 2, default: 200, help: "tokens per row" }),
    repeats: integer({ min: 1, default: 5, help: "timed steps of each" }),
  },
  run: ({ args, options: { batch, window, repeats }, out }) => {
    const sizes = [`--batch=${batch}`, `--window=${window}`, `--repeats=${repeats}`];
    return runFromClone("loop", [`--experiment=${args.experiment}`, ...sizes], out);
  },
});

const growthCommand = command({
  name: "growth",
  summary: "How a step's cost grows with batch, window, memory and reads.",
  details: "LM mode, batch 16, window 200, one size changed at a time; token by token where memory allows.",
  examples: [{ line: "fwm bench growth --json", trial: "fwm bench growth --quick --json" }],
  options: {
    repeats: integer({ min: 1, default: 3, help: "timed steps of each" }),
    quick: flag({ help: "tiny sizes: a check, not a measurement" }),
  },
  run: ({ options: { repeats, quick }, out }) =>
    runFromClone("growth", [`--repeats=${repeats}`, ...(quick ? ["--quick"] : [])], out),
});

const askCommand = command({
  name: "ask",
  summary: "Time answering: one stream, and many at once.",
  details:
    "Stories of catbAbI's lengths, read word by word, by the sentence, or whole. See docs/performance.md.",
  examples: [
    { line: "fwm bench ask", trial: "fwm bench ask --streams 1,2 --repeats 1" },
    { line: "fwm bench ask --json", trial: "fwm bench ask --streams 2 --repeats 1 --json" },
  ],
  options: {
    streams: value(
      { placeholder: "sizes", default: [1, 64] as readonly number[], help: "streams at once" },
      integers,
    ),
    repeats: integer({ min: 1, default: 15, help: "stories to time in each row" }),
    threads: integer({ min: 1, default: 1, help: "threads inside one operator; a loaded model has 1" }),
  },
  run: async ({ options, out }) => {
    const { benchAsk } = await import("../bench/ask.ts");
    const report = await benchAsk(options);
    out.result(report, () =>
      table([
        ["streams", "each call reads a", "µs per token", "least µs", "tokens/s"],
        ...report.rows.map((row) => [
          row.streams,
          row.reading,
          row.microsecondsPerToken.toFixed(0),
          row.leastMicrosecondsPerToken.toFixed(0),
          thousands(Math.round(row.tokensPerSecond)),
        ]),
      ]),
    );
  },
});

/** The `bench` commands. */
export const benchCommands = group({
  name: "bench",
  summary: "Measure speed on this machine.",
  commands: [trainCommand, peersCommand, loopCommand, growthCommand, askCommand],
});
