/**
 * What `bin/fwm.js` runs: the program with the process's own streams, signals and exit code.
 */
import pc from "picocolors";
import { removeUnfinished } from "../store/atomic.ts";
import { fwm } from "./commands.ts";
import { describeError } from "./failure.ts";
import { wantsColor } from "./output.ts";
import { runProgram } from "./program.ts";

/** Nobody reads any more: the pipe was closed early (`| head`), or the terminal. */
const isUnread = ({ code }: NodeJS.ErrnoException, { isTTY }: NodeJS.WriteStream): boolean =>
  code === "EPIPE" || (code === "EIO" && isTTY);

// Whoever closes a pipe has what it wanted, and whoever closes a terminal wants the run saved: no message.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    // A full disk behind standard output is told of at the end, with an exit code.
    if (!isUnread(error, stream) && stream !== process.stdout) throw error;
  });
}

process.on("exit", removeUnfinished);

process.on("uncaughtException", (error) => {
  const { text, code } = describeError(error, pc.createColors(wantsColor(process.stderr, process.env)));
  process.stderr.write(text + "\n", () => process.exit(code));
});

const code = await runProgram(fwm, process.argv.slice(2), process, process);
process.stdout.write("", (error) => {
  if (error && !isUnread(error, process.stdout)) {
    process.stderr.write(`error: standard output: ${error.message}\n`, () => process.exit(code || 1));
  } else process.exit(code);
});
