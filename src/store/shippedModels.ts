/** Models that come with the package, by name: found where the package lies, from any project. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { programFolder } from "./programFolder.ts";

/** The model that answers, the agent, and the language model, that are used where none is named. */
export const shippedModels = { answers: "catbabi-qa", agent: "metarl", text: "wikitext-2" } as const;

/** The path itself if it exists, else the shipped model of this name: `catbabi-qa` or `models/catbabi-qa`. */
export function findModel(path: string): string {
  const [, name] = /^(?:\.\/)?(?:models\/)?([\w-]+)$/.exec(path) ?? [];
  if (name === undefined || existsSync(path)) return path;
  const shipped = join(programFolder(), "models", name);
  return existsSync(join(shipped, "config.json")) ? shipped : path;
}
