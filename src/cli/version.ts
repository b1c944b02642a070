/** The package's version, read from its package.json. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { programFolder } from "../store/programFolder.ts";

/** The version in package.json. */
export function packageVersion(): string {
  const text = readFileSync(join(programFolder(), "package.json"), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}
