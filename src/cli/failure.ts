/**
 * How a failure ends the program: what is printed, and the exit code.
 */
import { exitCode, FwmError } from "../errors.ts";
import type { Colors } from "./output.ts";

/** The text and exit code of an error: a message for what the user can mend, the stack for mistakes of ours. */
export function describeError(error: unknown, color: Colors): { text: string; code: number } {
  if (error instanceof FwmError) {
    return { text: `${color.red("error:")} ${error.message}`, code: error.exitCode };
  }
  const system = systemMessage(error);
  if (system !== undefined) return { text: `${color.red("error:")} ${system}`, code: exitCode.failure };
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { text: `internal: ${stack}`, code: exitCode.failure };
}

// What the disk and the operating system refuse is nobody's programming mistake.
const systemReasons: Readonly<Record<string, string>> = {
  EACCES: "permission denied",
  EDQUOT: "the disk quota is used up",
  EEXIST: "it exists already",
  EISDIR: "it is a folder",
  EMFILE: "too many open files",
  ENOENT: "no such file or folder",
  ENOSPC: "no space left on the disk",
  ENOTDIR: "a part of the path is not a folder",
  EPERM: "not permitted",
  EROFS: "the file system is read-only",
};

function systemMessage(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code, path, syscall } = error as NodeJS.ErrnoException;
  const reason = code === undefined ? undefined : systemReasons[code];
  if (reason === undefined || syscall === undefined) return undefined;
  return `${path ?? "the disk"}: ${reason} (${syscall}: ${code})`;
}
