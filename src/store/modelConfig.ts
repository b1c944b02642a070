/** `config.json` of a model folder: which kind of experiment trained it, and the settings it was trained under. */
import { z } from "zod";
import { DataError } from "../errors.ts";

/** What `format` says. */
export const modelFormat = "fwm-model";
/** The version of the format. */
export const modelVersion = 2;

const schema = z.strictObject({
  format: z.literal(modelFormat),
  version: z.literal(modelVersion),
  /** The kind of experiment: `catbabi`, `metarl`. */
  kind: z.string(),
  /** Name of the experiment it was trained by. */
  experiment: z.string(),
  /** Task, system and training. */
  settings: z.record(z.string(), z.unknown()),
});

/** What `config.json` of a model folder says. */
export type ModelConfig = z.infer<typeof schema>;

/** Checks the content of `config.json`. */
export function parseModelConfig(value: unknown, file = "config.json"): ModelConfig {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new DataError(`${file}: not a model this version understands`, {
    reason: z.prettifyError(parsed.error),
    hint: "the folder is of another kind, or was made by another version of fwm",
  });
}
