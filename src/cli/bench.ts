/** `fwm bench`: how fast training and answering are on this machine. */

import type { TrainRow } from "../../bench/train.ts";
import { experimentNames, findExperiment } from "../../experiments/index.ts";
import { UsageError } from "../errors.ts";
import { schemaFor } from "../experiment/kinds.ts";
import type { MetarlSettings } from "../experiment/metarlSettings.ts";
import type { Settings } from "../experiment/settings.ts";
import { command, group } from "./command.ts";
import { assignments, layer, resolveSettings } from "./config.ts";
import type { Output } from "./output.ts";
import { flag, integer, oneOf, texts, value } from "./params.ts";
import { table, thousands } from "./table.ts";

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
  args: { experiment: oneOf(experimentNames, { default: "catbabi-qa-fwm" }) },
  options: {
    set: texts({ placeholder: "key=value", help: "change a setting, e.g. system.memory=64" }),
    batches: value(
      { placeholder: "sizes", default: [32, 64] as readonly number[], help: "batch sizes" },
      integers,
    ),
    window: integer({ min: 2, help: "tokens per row; default: the experiment's" }),
    mode: oneOf(["qa", "lm", "both"], { default: "both", help: "which loss" }),
    steps: integer({ min: 1, default: 9, help: "steps to time in each row" }),
    threads: integer({ min: 1, help: "threads; default: all cores", env: "FWM_THREADS" }),
  },
  run: async ({ args, options, out }) => {
    const definition = findExperiment(args.experiment);
    const { settings } = resolveSettings(schemaFor(definition.settings), [
      layer("experiment", definition.settings),
      assignments(options.set),
    ]);
    const threads = options.threads ? { threads: options.threads } : {};
    if (settings.task.name === "metarl") {
      await benchAgents(out, args.experiment, settings as MetarlSettings, threads);
      return;
    }
    const { system, training } = settings as Settings;
    const { benchRow, partNames } = await import("../../bench/train.ts");
    const modes = options.mode === "both" ? (["qa", "lm"] as const) : [options.mode];
    const rows: TrainRow[] = [];
    for (const mode of modes) {
      for (const batch of options.batches) {
        out.note(`${args.experiment}: ${mode} mode, batch ${batch}`);
        rows.push(
          await benchRow({
            system,
            mode,
            batch,
            window: options.window ?? training.window,
            steps: options.steps,
            ...threads,
          }),
        );
      }
    }
    out.result({ experiment: args.experiment, rows }, () => {
      const numbers = rows.map((row) => [
        row.mode,
        row.batch,
        thousands(Math.round(row.tokensPerSecond)),
        row.stepMs.toFixed(0),
        thousands(Math.round(row.peakMemoryMB)),
        row.gflops.toFixed(0),
        `${(100 * row.shareOfPeak).toFixed(0)}%`,
      ]);
      const parts = rows.map((row) => [
        row.mode,
        row.batch,
        ...partNames.map((part) => row.parts[part].toFixed(1)),
      ]);
      return [
        table([["mode", "batch", "tokens/s", "step ms", "peak MB", "GFLOPS", "of peak"], ...numbers]),
        "",
        "milliseconds by part",
        table([["mode", "batch", ...partNames], ...parts]),
      ].join("\n");
    });
  },
});

async function benchAgents(
  out: Output,
  experiment: string,
  settings: MetarlSettings,
  threads: { threads?: number },
): Promise<void> {
  const { benchMetarl } = await import("../../bench/metarl.ts");
  out.note(`${experiment}: ${settings.training.batch} agents, one update an episode`);
  const report = await benchMetarl({ experiment: { settings }, seconds: 10, ...threads });
  out.result({ experiment, ...report }, () =>
    table([
      ["episodes/s", "act ms", "learn ms", "episodes timed"],
      [
        report.episodesPerSecond.toFixed(2),
        report.actMs.toFixed(1),
        report.learnMs.toFixed(1),
        report.episodes,
      ],
    ]),
  );
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
  run: async ({ options, out }) => {
    const { benchPeers } = await import("../../bench/peers.ts");
    const report = await benchPeers({ ...options, onNote: (text) => out.note(text) });
    out.result(report, () =>
      table([
        ["form", "mode", "step ms", "times ours"],
        ["ours, parallel", "qa", report.oursQaMs.toFixed(0), "1"],
        ["ours, token by token", "qa", report.plainFormQaMs.toFixed(0), report.plainFormRatio.toFixed(1)],
        ["ours, parallel", "lm", report.oursLmMs.toFixed(0), "1"],
        ["ours, token by token", "lm", report.plainFormLmMs.toFixed(0), report.plainFormLmRatio.toFixed(1)],
        [report.tfjsBackend, "qa", report.tfjsMs.toFixed(0), report.tfjsRatio.toFixed(1)],
      ]),
    );
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
  run: async ({ options, out }) => {
    const { benchGrowth } = await import("../../bench/growth.ts");
    const series = await benchGrowth({ ...options, onNote: (text) => out.note(text) });
    out.result({ series }, () =>
      series
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
        .join("\n"),
    );
  },
});

const askCommand = command({
  name: "ask",
  summary: "Time answering: one stream, and many at once.",
  examples: ["fwm bench ask", "fwm bench ask --json"],
  options: {
    streams: value(
      { placeholder: "sizes", default: [1, 64] as readonly number[], help: "streams at once" },
      integers,
    ),
  },
  run: async ({ options, out }) => {
    const { benchAsk } = await import("../../bench/ask.ts");
    const report = await benchAsk({ streams: [...options.streams] });
    out.result(report, () =>
      table([
        ["streams", "µs per step", "tokens/s"],
        ...report.rows.map((row) => [
          row.streams,
          row.microsecondsPerStep.toFixed(0),
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
  commands: [trainCommand, peersCommand, growthCommand, askCommand],
});
