/**
 * The package's version, read from the package.json that this file lies under (in `src/` and in `dist/`).
 */
import { existsSync, readFileSync } from "node:fs";

/** The version in package.json. */
export function packageVersion(): string {
  for (let folder = new URL(".", import.meta.url); ; folder = new URL("..", folder)) {
    const file = new URL("package.json", folder);
    if (existsSync(file)) return (JSON.parse(readFileSync(file, "utf8")) as { version: string }).version;
    if (folder.pathname === "/" || new URL("..", folder).href === folder.href) {
      throw new Error("package.json was not found above the program");
    }
  }
}
