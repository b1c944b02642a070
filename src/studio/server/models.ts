/** The models that can be asked: those that come with the package, and every run with a checkpoint. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { listCheckpoints, readPointer } from "../../store/checkpoint.ts";
import { parseJsonObject } from "../../store/json.ts";
import { manifestFile } from "../../store/manifest.ts";
import { parseModelConfig } from "../../store/modelConfig.ts";
import { findModel, shippedModels } from "../../store/shippedModels.ts";
import type { CheckpointInfo, ModelEntry, ModelRef, ModelUse } from "../api.ts";
import { missing } from "./requests.ts";
import type { IndexedRun, RunIndex } from "./runIndex.ts";

/** What models of each kind of experiment are used for. */
const uses: Readonly<Record<string, ModelUse>> = { catbabi: "answers", metarl: "agent", text: "text" };

/** Systems with a fast weight memory that shows its writes. */
const memories: ReadonlySet<string> = new Set(["fwm", "awd-fwm"]);

/** A model and where it lies. */
export interface FoundModel {
  readonly folder: string;
  readonly system: string;
  readonly experiment: string;
  /** Steps it was trained for; null where only its files know. */
  readonly step: number | null;
  readonly use: ModelUse;
}

/** The checkpoints of a run, oldest first; none where they cannot be read. */
export async function checkpointsOf(folder: string): Promise<CheckpointInfo[]> {
  const entries = await listCheckpoints(folder).catch(() => []);
  if (entries.length === 0) return [];
  const [best, last] = await Promise.all(
    (["best", "last"] as const).map((pointer) => readPointer(folder, pointer).catch(() => undefined)),
  );
  return entries.map(({ name, step }) => ({ name, step, best: name === best, last: name === last }));
}

/** All models: the shipped ones first, then runs, newest first. */
export async function listModels(index: RunIndex): Promise<ModelEntry[]> {
  const shipped = await Promise.all(Object.values(shippedModels).map(shippedEntry));
  const runs = await Promise.all([...index.all()].reverse().map(runEntry));
  return [...shipped, ...runs].filter((entry) => entry !== undefined);
}

async function shippedEntry(name: string): Promise<ModelEntry | undefined> {
  const found = await shippedModel(name).catch(() => undefined);
  if (!found) return undefined;
  const { use, system, experiment } = found;
  return {
    id: `shipped:${name}`,
    label: `${name} (shipped)`,
    use,
    system,
    experiment,
    memory: use !== "agent" && memories.has(system),
    checkpoints: [],
  };
}

async function runEntry({ summary, path }: IndexedRun): Promise<ModelEntry | undefined> {
  const use = uses[summary.kind ?? ""];
  if (!use) return undefined;
  const checkpoints = await checkpointsOf(path);
  if (checkpoints.length === 0) return undefined;
  const { name, system, experiment } = summary;
  const memory = use !== "agent" && memories.has(system);
  return { id: `run:${name}`, label: name, use, system, experiment, memory, checkpoints };
}

/** The folder of a model: looked up in the listings, so that no text of a request becomes a path. */
export async function findModelFolder(index: RunIndex, { id, checkpoint }: ModelRef): Promise<FoundModel> {
  const [, source, name = ""] = /^(shipped|run):(.*)$/s.exec(id) ?? [];
  if (source === "shipped") {
    const known = Object.values<string>(shippedModels).find((each) => each === name);
    if (known === undefined || checkpoint !== undefined) throw missing("model");
    return shippedModel(known);
  }
  await index.refresh(1_000);
  const run = index.find(name);
  const use = uses[run?.summary.kind ?? ""];
  if (source !== "run" || !run || !use) throw missing("model");
  const checkpoints = await checkpointsOf(run.path);
  const wanted = checkpoint ?? (checkpoints.some(({ best }) => best) ? "best" : "last");
  const found = checkpoints.find(
    (each) => each.name === wanted || (wanted === "best" && each.best) || (wanted === "last" && each.last),
  );
  if (!found) throw missing("checkpoint");
  const { system, experiment } = run.summary;
  return { folder: join(run.path, found.name), system, experiment, step: found.step, use };
}

async function shippedModel(name: string): Promise<FoundModel> {
  const folder = findModel(`models/${name}`);
  const file = join(folder, "config.json");
  const config = parseModelConfig(parseJsonObject(await readFile(file), { file }), file);
  const system = config.settings.system as { readonly name?: unknown } | undefined;
  const manifest = join(folder, manifestFile);
  const { step } = parseJsonObject(await readFile(manifest), { file: manifest });
  return {
    folder,
    system: String(system?.name ?? ""),
    experiment: config.experiment,
    step: typeof step === "number" ? step : null,
    use: uses[config.kind] ?? "answers",
  };
}
