/** Models that come with the package: found in the present folder, else where the package lies. */
import { existsSync } from "node:fs";
import { UsageError } from "../errors.ts";
import { findModel, shippedModels } from "../store/shippedModels.ts";

/** The model that `fwm ask` asks, the agent that `fwm rollout` watches, and what `fwm generate` writes with, by default. */
export const shipped = {
  answers: `models/${shippedModels.answers}`,
  agent: `models/${shippedModels.agent}`,
  text: `models/${shippedModels.text}`,
} as const;

/** The folder that was named; a shipped one also where the package lies. */
export function whereIs(path: string, hint: string): string {
  const found = findModel(path);
  if (existsSync(found) || !Object.values<string>(shipped).includes(path)) return found;
  throw new UsageError("no model was named, and none comes with this package", { hint });
}
