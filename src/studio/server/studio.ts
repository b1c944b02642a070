/** A running studio: one process that serves pages, follows runs and looks after its child processes. */
import { once } from "node:events";
import type { Server } from "node:http";
import { resolve } from "node:path";
import { serve } from "@hono/node-server";
import { FwmError, UsageError } from "../../errors.ts";
import { errorCode } from "../../store/atomic.ts";
import { ChangeFeed, studioApp } from "./app.ts";
import { allowedHosts, isLoopback, newToken, type Rate } from "./guard.ts";
import { Jobs } from "./jobs.ts";
import { ModelPool, type PoolOptions } from "./modelPool.ts";
import { builtPages, listPages } from "./pages.ts";
import { RunIndex } from "./runIndex.ts";

/** How a studio is started. */
export interface StudioOptions {
  /** Folder of runs, as the user gave it. */
  readonly runs: string;
  /** 0: any free port. */
  readonly port: number;
  /** 127.0.0.1 unless other machines are to reach it. */
  readonly host?: string;
  readonly version: string;
  /** Told of errors that are ours. */
  readonly onError?: (error: unknown) => void;
  /** Folder of the built front-end. */
  readonly pages?: string;
  readonly pool?: PoolOptions;
  readonly rate?: Rate;
  /** Milliseconds between looks at the runs while a page follows them. */
  readonly interval?: number;
}

/** A studio that runs. */
export interface Studio {
  /** Where to open it, with the token if one is needed. */
  readonly url: string;
  readonly port: number;
  /** Process ids of the children. */
  readonly pids: () => readonly number[];
  /** Saves and ends the runs it trains, ends its models, and closes. */
  close(): Promise<void>;
}

/** Connections that may be open at once. */
const mostConnections = 4_096;

/** Starts a studio. */
export async function startStudio(options: StudioOptions): Promise<Studio> {
  const { runs, version, host = "127.0.0.1", interval = 1_000 } = options;
  const onError = options.onError ?? (() => undefined);
  const token = isLoopback(host) ? undefined : newToken();
  const feed = new ChangeFeed();
  const jobs: Jobs = new Jobs({ root: resolve(runs), shown: runs, onChange: () => feed.notify() });
  const index = new RunIndex(runs, (name) => jobs.isTraining(name));
  const pool = new ModelPool(options.pool);
  let hosts: ReadonlySet<string> = new Set();
  const app = studioApp({
    index,
    pool,
    jobs,
    feed,
    pages: listPages(options.pages ?? builtPages()),
    guard: { hosts: () => hosts, token, ...(options.rate ? { rate: options.rate } : {}) },
    version,
    shown: runs,
    onError,
  });
  const server = serve({
    fetch: app.fetch,
    hostname: host,
    port: options.port,
    overrideGlobalObjects: false,
  }) as Server;
  server.maxConnections = mostConnections;
  await once(server, "listening").catch((error: unknown) => {
    throw cannotListen(error, host, options.port);
  });
  const { port } = server.address() as { port: number };
  hosts = allowedHosts(host, port);

  // Nobody looks, nobody is told: the folder is scanned only while a page follows it.
  const timer = setInterval(() => {
    if (feed.size === 0) return;
    const before = index.cursor;
    index.refresh().then(() => {
      if (index.cursor !== before) feed.notify();
    }, onError);
  }, interval);

  const shown = host.includes(":") ? `[${host}]` : host;
  return {
    url: `http://${shown}:${port}/${token === undefined ? "" : `?token=${token}`}`,
    port,
    pids: () => [...pool.state.pids, ...jobs.pids],
    async close() {
      clearInterval(timer);
      // Runs first: what they have learned matters more than an answer that is under way.
      await Promise.all([jobs.close(), pool.close()]);
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function cannotListen(error: unknown, host: string, port: number): Error {
  switch (errorCode(error)) {
    case "EADDRINUSE":
      return new UsageError(`port ${port} of ${host} is in use`, { hint: "give --port 0 for any free one" });
    case "EACCES":
      return new UsageError(`port ${port} of ${host} may not be used`, { hint: "give a port above 1023" });
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return new UsageError(`${host} is no address of this machine`);
    default:
      return new FwmError(`cannot listen at ${host}:${port}: ${(error as Error).message}`);
  }
}
