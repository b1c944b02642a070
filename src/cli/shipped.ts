/** Models that come with the package: found in the present folder, else where the package lies. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { UsageError } from "../errors.ts";
import { programFolder } from "../store/programFolder.ts";

/** The model that `fwm ask` asks, and the agent that `fwm rollout` watches, by default. */
export const shipped = { answers: "models/catbabi-qa", agent: "models/metarl" } as const;

/** The folder that was named; a shipped one also where the package lies. */
export function whereIs(path: string, hint: string): string {
  if (!Object.values<string>(shipped).includes(path) || existsSync(path)) return path;
  const found = join(programFolder(), path);
  if (existsSync(found)) return found;
  throw new UsageError("no model was named, and none comes with this package", { hint });
}
