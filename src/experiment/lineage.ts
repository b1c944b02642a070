/** Where weights come from: the chain of runs behind a saved model. */
import { existsSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { type Ancestor, parseChain, provenanceFile } from "../report/chain.ts";
import { hoursOf, portableCommand } from "../report/result.ts";
import { metricsFile, readMetrics } from "../store/metrics.ts";
import { parseModelConfig } from "../store/modelConfig.ts";
import type { LoadedModel } from "../store/modelFolder.ts";
import { readRun, runFile } from "../store/runRecord.ts";

/** The runs that made a model, its own last; of a model folder without its provenance only what its files say. */
export async function chainOf(model: LoadedModel): Promise<Ancestor[]> {
  const run = dirname(model.path);
  if (model.kind !== "model" && existsSync(join(run, runFile))) return chainOfRun(run, model.step ?? 0);
  const saved = model.files[provenanceFile];
  const chain = parseChain(saved && new TextDecoder().decode(saved));
  if (chain.length > 0) return [...chain];
  const { experiment } = parseModelConfig(model.config, `${model.path}/config.json`);
  const unknown = { command: null, commit: null, seed: null, hours: null, data: null };
  return [{ name: basename(resolve(model.path)), experiment, steps: model.step ?? 0, ...unknown }];
}

async function chainOfRun(folder: string, step: number): Promise<Ancestor[]> {
  const { experiment, command, gitCommit, seed, summary } = await readRun(folder);
  const metrics = await readMetrics(join(folder, metricsFile));
  const own: Ancestor = {
    name: basename(resolve(folder)),
    experiment,
    command: portableCommand(command),
    commit: gitCommit,
    seed,
    steps: step,
    hours: hoursOf(metrics.filter((record) => record.step <= step)),
    data: typeof summary.data === "string" ? summary.data : null,
  };
  const before = parseChain(summary.chain);
  if (before.length > 0 || typeof summary.initFrom !== "string") return [...before, own];
  // A run of an earlier version says only whose weights it began with.
  const [, name = summary.initFrom, made = "0"] = /^(.*) after (\d+) steps$/.exec(summary.initFrom) ?? [];
  const unknown = { experiment: "", command: null, commit: null, seed: null, hours: null, data: null };
  return [{ ...unknown, name, steps: Number(made) }, own];
}
