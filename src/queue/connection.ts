/** The connection to Redis: a URL with password and TLS, which is never shown whole, and the optional packages. */
import { setTimeout } from "node:timers/promises";
import type * as Bullmq from "bullmq";
import { FwmError, missingPackage, UsageError } from "../errors.ts";

/** Where the queue is. */
export interface QueueAddress {
  /** As BullMQ takes it; holds the password. */
  readonly options: Bullmq.RedisOptions;
  /** The URL as it may be printed. */
  readonly shown: string;
  /** A text without the password. */
  hide(text: string): string;
}

/** Reads `redis://user:password@host:port/db`, or `rediss://` for TLS. */
export function parseQueueUrl(text: string, name: string): QueueAddress {
  const refuse = (why: string): UsageError =>
    // The text may hold a password: it is not repeated.
    new UsageError(`${name}: ${why}`, {
      hint: "expected redis://user:password@host:6379, rediss:// for TLS",
    });
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw refuse("not a URL");
  }
  if (url.protocol === "postgres:" || url.protocol === "postgresql:")
    throw refuse("PostgreSQL is not supported");
  if (url.protocol !== "redis:" && url.protocol !== "rediss:") throw refuse(`${url.protocol}// is not Redis`);
  const db = /^\/?(\d*)$/.exec(url.pathname)?.[1];
  if (url.hostname === "" || db === undefined || url.search !== "" || url.hash !== "") {
    throw refuse("not an address of Redis");
  }
  const [username, password] = [url.username, url.password].map(decodeURIComponent) as [string, string];
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const isTls = url.protocol === "rediss:";
  const hidden = [password, url.password].filter((secret) => secret !== "");
  return {
    options: {
      ...{ host, port: Number(url.port || 6379), db: Number(db || 0) },
      ...(username === "" ? {} : { username }),
      ...(password === "" ? {} : { password }),
      ...(isTls ? { tls: { servername: host } } : {}),
      // Commands wait for a connection that comes back, however long that takes.
      maxRetriesPerRequest: null,
      retryStrategy: (times: number) => Math.min(200 * times, 5000),
      keepAlive: 10_000,
    },
    shown: `${url.protocol}//${password === "" ? "" : `${url.username}:***@`}${url.host}${db ? `/${db}` : ""}`,
    hide: (said) => hidden.reduce((shown, secret) => shown.replaceAll(secret, "***"), said),
  };
}

/** The package that talks to Redis; it is optional. `load` imports both parts of it. */
export async function loadBullmq(what: string, load = loadBoth): Promise<typeof Bullmq> {
  try {
    return await load();
  } catch (error) {
    throw missingPackage(what, ["bullmq", "ioredis"], error);
  }
}

async function loadBoth(): Promise<typeof Bullmq> {
  await import("ioredis");
  return import("bullmq");
}

/**
 * Waits until Redis answers. One that is not there yet is waited for; a wrong password, a host that does not exist and a
 * server that is no Redis are errors.
 */
export async function reachRedis(
  { options, shown, hide }: QueueAddress,
  signal: AbortSignal,
  onWait: (text: string) => void,
): Promise<void> {
  const { Redis } = await import("ioredis");
  for (let attempt = 0; !signal.aborted; attempt++) {
    const client = new Redis({
      ...options,
      lazyConnect: true,
      retryStrategy: () => null,
      maxRetriesPerRequest: 0,
    });
    let reason = "";
    client.on("error", (error: Error) => {
      reason = error.message;
    });
    try {
      await Promise.race([client.connect().then(() => client.ping()), noAnswer(signal)]);
      return;
    } catch (error) {
      const text = hide(reason || (error as Error).message);
      if (/NOAUTH|WRONGPASS|NOPERM|ENOTFOUND|ERR |certificate|self.signed|wrong version number/i.test(text)) {
        throw new UsageError(`${shown}: ${text}`, {
          hint: "check host, password and TLS of the queue's URL",
        });
      }
      if (attempt === 0 && !signal.aborted) onWait(`${shown}: not there yet (${text}); waiting for it`);
    } finally {
      client.disconnect();
    }
    await setTimeout(500, undefined, { signal }).catch(() => undefined);
  }
}

/** Seconds that a server has for its first answer. */
const patience = 5;

async function noAnswer(signal: AbortSignal): Promise<never> {
  await setTimeout(1000 * patience, undefined, { signal, ref: false });
  throw new Error(`no answer for ${patience} seconds`);
}

/** Without Redis there is nothing to take leave of: who ends does not wait for it longer than this, in milliseconds. */
const parting = 3000;

/** Waits for some work with Redis, but not for one that does not answer; gives whether it was done. */
export async function inTime(work: Promise<unknown>): Promise<boolean> {
  const late = setTimeout(parting, false, { ref: false });
  return Promise.race([work.then(() => true), late]);
}

/** Tells of a connection that was lost, once, and again when it is back. */
export function tellConnection(address: QueueAddress, tell: (text: string) => void) {
  let isLost = false;
  return {
    onError: (error: Error): void => {
      if (error instanceof FwmError || isLost) return;
      isLost = true;
      tell(`${address.shown}: ${address.hide(error.message)}; trying again`);
    },
    onReady: (): void => {
      if (isLost) tell(`${address.shown}: back`);
      isLost = false;
    },
  };
}
