/**
 * The thread behind `PrefetchedBatches`: opens the stream, and makes one batch for each that is asked for.
 */
import { parentPort, workerData } from "node:worker_threads";
import { StreamBatcher } from "./batches.ts";
import type { PrefetchOrder, PrefetchReply, PrefetchRequest } from "./prefetch.ts";
import { openStream } from "./sources/open.ts";

const port = parentPort;
if (port === null) throw new Error("this file runs in a worker thread");

function reply(message: PrefetchReply, transfer: ArrayBuffer[] = []): void {
  port!.postMessage(message, transfer);
}

function failed(error: unknown): void {
  const { name, message } = error as Error;
  reply({ kind: "failed", name, message });
  port!.close();
}

try {
  const { settings, ...first } = workerData as PrefetchOrder;
  const open = async ({ spec, state }: Omit<PrefetchOrder, "settings">): Promise<StreamBatcher> => {
    const source = await openStream(spec);
    const opened =
      state === null ? new StreamBatcher(source, settings) : StreamBatcher.resume(source, settings, state);
    reply({ kind: "ready", state: opened.state() });
    return opened;
  };
  let batcher = await open(first);
  port.on("message", (request: PrefetchRequest) => {
    if (request === "end") return port.close();
    if (request !== "more") {
      // Nothing is asked for before the reply to this.
      open(request).then((opened) => {
        batcher = opened;
      }, failed);
      return;
    }
    try {
      const batch = batcher.next();
      const { tokens, targets, questions, tasks, facts } = batch;
      const arrays = [tokens, targets, questions, tasks, ...(facts ? [facts] : [])];
      reply(
        { kind: "batch", batch, state: batcher.state() },
        arrays.map(({ buffer }) => buffer as ArrayBuffer),
      );
    } catch (error) {
      failed(error);
    }
  });
} catch (error) {
  failed(error);
}
