/** Child processes of the studio: how a module of this folder is started, built or from its sources. */
import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";

/** Modules that run as processes of their own. */
export type ChildModule = "modelChild" | "trainChild";

/**
 * Starts a module as a child process that talks by JSON. It is not of the terminal's group: ^C reaches the studio alone,
 * which then ends its children in its own way. A child whose studio is gone ends by itself.
 */
export function startChild(
  module: ChildModule,
  words: readonly string[],
  output: "ignore" | "pipe" = "ignore",
): ChildProcess {
  const ending = import.meta.url.endsWith(".ts") ? "ts" : "js";
  const entry = fileURLToPath(new URL(`./${module}.${ending}`, import.meta.url));
  return fork(entry, words, {
    // From a clone the sources run as they are; tsx is among the development dependencies.
    execArgv: ending === "ts" ? ["--import", "tsx"] : [],
    stdio: ["ignore", output, output, "ipc"],
    serialization: "json",
    detached: true,
  });
}
