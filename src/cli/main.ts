#!/usr/bin/env node
/**
 * The `fwm` binary: the program with the process's own streams, signals and exit code.
 */
import pc from "picocolors";
import { fwm } from "./commands.ts";
import { describeError } from "./failure.ts";
import { wantsColor } from "./output.ts";
import { runProgram } from "./program.ts";

// A reader that closes the pipe early (`| head`) has what it wanted: no message, and no further writes.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
  });
}

process.on("uncaughtException", (error) => {
  const { text, code } = describeError(error, pc.createColors(wantsColor(process.stderr, process.env)));
  process.stderr.write(text + "\n", () => process.exit(code));
});

const code = await runProgram(fwm, process.argv.slice(2), process, process);
process.stdout.write("", () => process.exit(code));
