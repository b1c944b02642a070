/** Trains one member in a child process: the engine blocks the process that it runs in, and the worker has to answer. */
import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { MemberMessage, MemberOrder } from "./memberMain.ts";

/** How the child ended. */
export type MemberEnd =
  | { readonly kind: "end" | "stopped" | "busy" }
  /** It could not be trained, or the process died: its last words, and the signal or exit code. */
  | { readonly kind: "failed"; readonly message: string };

/** A member that is being trained. */
export interface MemberProcess {
  readonly end: Promise<MemberEnd>;
  /** Lets it save and stop; one that does not is killed. */
  stop(): void;
}

/** How much of what a dying child writes is kept. */
const lastWords = 2000;
/** A step, a checkpoint and the end of an evaluation's piece fit into this, in milliseconds. */
const stopPatience = 60_000;

/** Starts to train a member. */
export function trainInChild(
  order: MemberOrder,
  told: { onStep(step: number): void; onWarning(text: string): void },
): MemberProcess {
  const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
  const { FWM_QUEUE: _, ...env } = process.env;
  const child = fork(fileURLToPath(new URL(`./memberMain.${extension}`, import.meta.url)), {
    env,
    stdio: ["ignore", "ignore", "pipe", "ipc"],
  });
  let words = "";
  let isStopped = false;
  child.stderr!.on("data", (chunk: Buffer) => (words = (words + chunk.toString()).slice(-lastWords)));
  const end = new Promise<MemberEnd>((resolve) => {
    let said: MemberEnd | undefined;
    child.on("message", (message: MemberMessage) => {
      if (message.kind === "step") told.onStep(message.step);
      else if (message.kind === "warning") told.onWarning(message.text);
      else said = message;
    });
    child.on("error", (error) => resolve({ kind: "failed", message: error.message }));
    child.on("close", (code, signal) => {
      // One that was told to stop before it listened has nothing to say, and nothing to save.
      if (!said && isStopped) said = { kind: "stopped" };
      resolve(said ?? { kind: "failed", message: obituary(code, signal, words) });
    });
  });
  child.send(order, () => undefined);
  return {
    end,
    stop() {
      if (isStopped) return;
      isStopped = true;
      stop(child);
    },
  };
}

function stop(child: ChildProcess): void {
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), stopPatience);
  timer.unref();
  child.once("close", () => clearTimeout(timer));
}

function obituary(code: number | null, signal: string | null, words: string): string {
  const how = signal ? `was ended by ${signal}` : `ended with exit code ${code}`;
  const said = words.trim();
  return `the training process ${how}${said === "" ? "" : `: ${said}`}`;
}
