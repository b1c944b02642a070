#!/usr/bin/env node
/** The `fwm` command: runs the built program, or says how to build it. */
import { existsSync } from "node:fs";

const program = new URL("../dist/src/cli/main.js", import.meta.url);
if (existsSync(program)) await import(program.href);
else {
  process.stderr.write(
    "error: fwm is not built yet; run this in the folder of its package.json: npm run build\n",
  );
  process.exitCode = 1;
}
