/**
 * ^C, SIGTERM and SIGHUP (the terminal was closed): a graceful command finishes its step and saves at the first signal; the second one ends the
 * program at once, and so does the first where there is nothing to save.
 */
import { exitCode } from "../errors.ts";
import type { Output } from "./output.ts";

type Signal = "SIGINT" | "SIGTERM" | "SIGHUP";

/** Where signals come from and how the program is ended: the process, or a stand-in for it in tests. */
export interface SignalSource {
  on(signal: Signal, handler: () => void): unknown;
  off(signal: Signal, handler: () => void): unknown;
  exit(code: number): void;
}

/** Watches for signals while one command runs. */
export interface SignalWatch {
  readonly signal: AbortSignal;
  /** 130 or 143 once a signal has come. */
  exitCode(): number | undefined;
  /** Whether an error is only the abort coming back out of the command. */
  isAbort(error: unknown): boolean;
  stop(): void;
}

/** Starts watching; without a source nothing ever aborts. */
export function watchSignals(source: SignalSource | undefined, graceful: boolean, out: Output): SignalWatch {
  const controller = new AbortController();
  let received: number | undefined;
  const receive = (code: number) => () => {
    if (!graceful || received !== undefined) {
      out.settle();
      return source?.exit(code);
    }
    received = code;
    out.note("stopping after this step; press ^C again to stop at once");
    controller.abort();
  };
  const handlers = [
    ["SIGINT", receive(exitCode.interrupted)],
    ["SIGTERM", receive(exitCode.terminated)],
    ["SIGHUP", receive(exitCode.terminated)],
  ] as const;
  for (const [name, handler] of handlers) source?.on(name, handler);
  return {
    signal: controller.signal,
    exitCode: () => received,
    isAbort: (error) =>
      error === controller.signal.reason || (error instanceof Error && error.name === "AbortError"),
    stop() {
      for (const [name, handler] of handlers) source?.off(name, handler);
    },
  };
}
