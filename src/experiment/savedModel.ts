/** Saved models of any kind: what `config.json` says, and how a model is evaluated by its kind. */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { UsageError } from "../errors.ts";
import { type ModelConfig, modelFormat, modelVersion, parseModelConfig } from "../store/modelConfig.ts";
import { type LoadedModel, loadModelFolder } from "../store/modelFolder.ts";
import { readRun, runFile } from "../store/runRecord.ts";
import type { BaseEvaluation, BaseSettings, EvaluationContext, Kind, SavedModel } from "./kind.ts";
import { kindNamed } from "./registry.ts";
import { checkSettings, withSetting } from "./settings.ts";

/** What `config.json` says of a model: enough to build it again, and to evaluate it as it was trained. */
export function modelConfig(kind: Kind, experiment: string, settings: BaseSettings): ModelConfig {
  // Where the data lay on this machine is not part of the model.
  const portable = kind.flags.data ? withSetting(settings, kind.flags.data, "") : settings;
  return {
    format: modelFormat,
    version: modelVersion,
    kind: kind.name,
    experiment,
    settings: { ...portable },
  };
}

/** A saved model and its kind; of a run the best checkpoint by default. */
export async function loadSaved(
  from: string | LoadedModel,
  { which }: { readonly which?: "best" | "last" } = {},
): Promise<SavedModel<BaseSettings> & { readonly kind: Kind }> {
  const folder = typeof from === "string" ? await loadModelFolder(from, which ? { which } : {}) : from;
  const file = `${folder.path}/config.json`;
  const config = parseModelConfig(folder.config, file);
  const kind = kindNamed(config.kind, file);
  // A run knows where its data is; a model folder has only what travels.
  const run = dirname(folder.path);
  const isRun = folder.kind !== "model" && existsSync(join(run, runFile));
  const settings = isRun
    ? checkSettings(kind, (await readRun(run)).settings, run)
    : checkSettings(kind, config.settings, file);
  return { folder, kind, experiment: config.experiment, settings };
}

/** Options of an evaluation by name, and which checkpoint of a run. */
export type EvaluateOptions = Readonly<Record<string, string | number | undefined>>;

/** Evaluates a run, checkpoint or model folder, or what was loaded from one, as its kind does. */
export async function evaluateSaved(
  from: string | LoadedModel,
  options: EvaluateOptions & { readonly which?: "best" | "last" },
  context: EvaluationContext = { env: process.env },
): Promise<{ kind: Kind; evaluation: BaseEvaluation }> {
  const { which, ...chosen } = options;
  const { kind, ...saved } = await loadSaved(from, which ? { which } : {});
  for (const [name, value] of Object.entries(chosen)) {
    if (value === undefined) continue;
    const option = Object.hasOwn(kind.evaluationOptions, name) ? kind.evaluationOptions[name] : undefined;
    if (!option) throw new UsageError(`--${name}: not for models of the kind ${kind.name}`);
    if (option.type === "choice" && !option.values.includes(String(value))) {
      throw new UsageError(`--${name} ${value}: not for models of the kind ${kind.name}`, {
        choices: option.values.join(", "),
      });
    }
  }
  return { kind, evaluation: await kind.evaluate(saved, chosen, context) };
}
