/** Where the program itself lies: its version, its commit and the models that ship are found from there. */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";

/** The nearest folder above this file that has a package.json: the same from `src/` and from `dist/`. */
export function programFolder(): string {
  for (let folder = import.meta.dirname; ; folder = dirname(folder)) {
    if (existsSync(join(folder, "package.json"))) return folder;
    if (dirname(folder) === folder) throw new Error("package.json was not found above the program");
  }
}
