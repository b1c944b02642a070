/**
 * How a failure ends the program: what is printed, and the exit code.
 */
import { exitCode, FwmError, printable } from "../errors.ts";
import { systemReason } from "../store/atomic.ts";
import type { Colors } from "./output.ts";

/** The text and exit code of an error: a message for what the user can mend, the stack for mistakes of ours. */
export function describeError(error: unknown, color: Colors): { text: string; code: number } {
  if (error instanceof FwmError) {
    return { text: `${color.red("error:")} ${error.message}`, code: error.exitCode };
  }
  const system = systemMessage(error);
  if (system !== undefined) return { text: `${color.red("error:")} ${system}`, code: exitCode.failure };
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { text: `internal: ${printable(stack)}`, code: exitCode.failure };
}

/** What the disk and the operating system refuse is nobody's programming mistake. */
function systemMessage(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code, path, syscall } = error as NodeJS.ErrnoException;
  const known = code === undefined ? undefined : systemReason(code);
  if (known === undefined || syscall === undefined) return undefined;
  const [reason, hint] = known;
  return new FwmError(`${path ?? "the disk"}: ${reason} (${syscall}: ${code})`, { hint }).message;
}
