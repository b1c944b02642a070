/** `fwm studio`: runs, models and training in the browser. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { DataError, UsageError } from "../errors.ts";
import { runFile } from "../store/runRecord.ts";
import { command } from "./command.ts";
import { describeError } from "./failure.ts";
import { flag, folder, integer, text } from "./params.ts";
import { packageVersion } from "./version.ts";

/** The `studio` command. */
export const studioCommand = command({
  name: "studio",
  summary: "Watch runs, question models and train in the browser.",
  details:
    "Serves pages to this machine alone and prints their address (docs/studio.md). Another --host needs the token that " +
    "is printed with it. ^C saves the runs that were started from the pages, and ends.",
  examples: [
    { line: "fwm studio", trial: "fwm studio --runs $EMPTY --check" },
    { line: "fwm studio --runs runs --port 4000 --open", trial: "fwm studio --runs $EMPTY --port 0 --check" },
  ],
  options: {
    runs: folder({ default: "runs", help: "folder that holds runs and sweeps" }),
    port: integer({ default: 4000, max: 65_535, help: "port; 0: any free one" }),
    host: text({
      default: "127.0.0.1",
      help: "address to listen at; any but this machine's own needs a token",
    }),
    open: flag({ help: "open the address in the browser" }),
    check: flag({ help: "start, print the address, and stop" }),
  },
  graceful: true,
  run: async ({ options, out, signal }) => {
    const { runs, port, host } = options;
    if (existsSync(join(runs, runFile))) {
      throw new UsageError(`--runs ${runs}: this is a run; give the folder that holds it`);
    }
    if (existsSync(runs) && !statSync(runs).isDirectory())
      throw new DataError(`--runs ${runs}: not a folder`);
    if (runs !== "runs" && !existsSync(runs)) {
      throw new DataError(`${resolve(runs)}: no such folder`, { hint: "give the folder that holds runs" });
    }
    const { startStudio } = await import("../studio/server/studio.ts");
    const studio = await startStudio({
      runs,
      port,
      host,
      version: packageVersion(),
      onError: (error) => out.warn(describeError(error, out.noteColor).text),
    });
    try {
      out.result({ url: studio.url, runs: resolve(runs) }, `studio at ${studio.url}`);
      if (options.open) openBrowser(studio.url, (problem) => out.warn(problem));
      if (!options.check && !signal.aborted) await once(signal, "abort");
    } finally {
      await studio.close();
    }
    return options.check ? "finished" : "interrupted";
  },
});

/** Opens an address in the user's browser; what went wrong is told, and the address stands above. */
function openBrowser(url: string, onProblem: (problem: string) => void): void {
  const openers: Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>> = {
    darwin: ["open"],
    win32: ["explorer.exe"],
  };
  const [program, ...words] = openers[process.platform] ?? ["xdg-open"];
  const child = spawn(program, [...words, url], { stdio: "ignore", detached: true });
  child.once("error", () => onProblem(`${program} was not found; open the address yourself`));
  child.unref();
}
