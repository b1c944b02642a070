/** The worker as the page sees it: calls that are promises, and how training stands as signals. */
import { signal } from "@preact/signals";
import { type Backend, BackendError } from "../backend.ts";
import type { CallMessage, CallName, Calls, Curves, Status, WorkerMessage } from "./messages.ts";

/** How training stands; null until the worker has said something. */
export const status = signal<Status | null>(null);

/** The evaluations so far. */
export const curves = signal<Curves>({});

/** Why the worker does not run at all. */
export const breakdown = signal<string | null>(null);

interface Waiting {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

const waiting = new Map<number, Waiting>();
let lastId = 0;

const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module", name: "training" });
worker.addEventListener("error", (event) => {
  event.preventDefault();
  breakdown.value = event.message || "the worker could not be started";
  for (const { reject } of waiting.values()) reject(new Error(breakdown.value));
  waiting.clear();
});
worker.addEventListener("message", ({ data }: MessageEvent<WorkerMessage>) => {
  switch (data.kind) {
    case "status":
      status.value = data.status;
      break;
    case "curves":
      curves.value = data.curves;
      break;
    case "answer":
      waiting.get(data.id)?.resolve(data.value);
      waiting.delete(data.id);
      break;
    case "refusal":
      waiting.get(data.id)?.reject(new BackendError(data.message, data.unknownWords));
      waiting.delete(data.id);
      break;
  }
});

/** Calls the worker. What it refuses is a `BackendError` with its words. */
export function call<Name extends CallName>(
  name: Name,
  argument: Parameters<Calls[Name]>[0],
): Promise<ReturnType<Calls[Name]>> {
  const id = ++lastId;
  return new Promise((resolve, reject) => {
    waiting.set(id, { resolve: resolve as Waiting["resolve"], reject });
    worker.postMessage({ id, name, argument } satisfies CallMessage);
  });
}

/** Training pauses while nobody looks, and goes on when somebody does. */
let pausedByHiding = false;
document.addEventListener("visibilitychange", () => {
  const training = status.peek()?.phase === "training" || status.peek()?.phase === "compiling";
  if (document.hidden && training) {
    pausedByHiding = true;
    void call("pause", "paused while the page is hidden");
  } else if (!document.hidden && pausedByHiding) {
    pausedByHiding = false;
    void call("play", null);
  }
});

/** The worker as the backend of Ask and Memory. */
export const workerBackend: Backend = {
  models: () => call("models", null),
  vocabulary: () => call("vocabulary", null),
  ask: (request) => call("ask", request),
};
