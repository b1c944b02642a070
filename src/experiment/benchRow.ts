/** One row of `fwm bench train` in a process of its own: what to measure comes as JSON, the row goes out as JSON. */
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { BaseSettings, BenchCase, BenchOptions, BenchRow } from "./kind.ts";
import { kindOf } from "./registry.ts";

/** Measures one row in a child process. */
export function benchRow(row: BenchCase<BaseSettings>, options: BenchOptions): Promise<BenchRow> {
  const script = fileURLToPath(import.meta.url);
  // From a clone the sources run as they are; tsx is among the development dependencies.
  const loader = script.endsWith(".ts") ? ["--import", "tsx"] : [];
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...loader, script, JSON.stringify({ row, options })], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let text = "";
    child.stdout.on("data", (chunk: Buffer) => (text += chunk.toString()));
    child.on("error", reject);
    child.on("close", (code, signal) => {
      if (code === 0) resolve(JSON.parse(text) as BenchRow);
      else reject(new Error(`the measuring process ended with ${signal ?? code}`));
    });
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { row, options } = JSON.parse(process.argv[2]!) as {
    row: BenchCase<BaseSettings>;
    options: BenchOptions;
  };
  const measured = await kindOf(row.settings).bench(row, options);
  process.stdout.write(JSON.stringify(measured), () => process.exit(0));
}
