/**
 * One file over HTTP, as someone with a poor connection wants it: goes on where a broken download stopped,
 * never larger than said, and in place only when it is whole.
 */
import type { Stats } from "node:fs";
import { mkdir, open, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { FwmError } from "../../errors.ts";

/** A download that did not come through; trying again may help. */
export class DownloadError extends FwmError {
  override readonly name = "DownloadError";
}

/** How a download is done. */
export interface DownloadOptions {
  /** A larger file is refused, whether the server says its size or not. */
  readonly maxBytes: number;
  /** How often a broken connection is taken up again. */
  readonly retries?: number;
  /** Milliseconds before the first retry; doubled each time. */
  readonly retryDelay?: number;
  /** Milliseconds without a byte after which the connection counts as broken. */
  readonly stallTimeout?: number;
  readonly signal?: AbortSignal;
  /** Bytes so far, and in all if the server says so. */
  readonly onProgress?: (done: number, total: number | undefined) => void;
}

/** Downloads `url` to `path`. What has come so far is kept in `path.part`, and a later call goes on from there. */
export async function download(url: string, path: string, options: DownloadOptions): Promise<void> {
  const part = `${path}.part`;
  await mkdir(dirname(path), { recursive: true });
  const { retries = 4, retryDelay = 500 } = options;
  for (let attempt = 0; ; attempt++) {
    const had = await sizeOf(part);
    try {
      await fetchRest(url, part, had, options);
      break;
    } catch (error) {
      options.signal?.throwIfAborted();
      const isFinal = error instanceof DownloadError || isDiskError(error);
      if (isFinal) throw error;
      // A connection that delivered something is not counted as a failed attempt.
      if ((await sizeOf(part)) > had) attempt = 0;
      if (attempt >= retries)
        throw new DownloadError(`${url}: ${reasonOf(error)}`, { hint: "try again later" });
      await sleep(
        Math.min(retryDelay * 2 ** attempt, 10_000),
        undefined,
        options.signal ? { signal: options.signal } : {},
      );
    }
  }
  await rename(part, path);
}

/** Asks for the bytes from `have` on and appends them to `part`. */
async function fetchRest(url: string, part: string, have: number, options: DownloadOptions): Promise<void> {
  const { maxBytes, stallTimeout = 30_000, onProgress } = options;
  const stall = new AbortController();
  const stopped = () => stall.abort(new Error(`no data for ${stallTimeout / 1000} s`));
  let timer = setTimeout(stopped, stallTimeout);
  try {
    const signal = options.signal ? AbortSignal.any([options.signal, stall.signal]) : stall.signal;
    const headers: Record<string, string> = { "accept-encoding": "identity" };
    if (have > 0) headers.range = `bytes=${have}-`;
    const response = await fetch(url, { headers, signal });
    if (response.status === 416 || (response.status === 206 && rangeStart(response) !== have)) {
      // What we have does not fit what the server has: begin again.
      await response.body?.cancel();
      await rm(part, { force: true });
      if (have === 0)
        throw new DownloadError(`${url}: the server refuses the whole file (${response.status})`);
      throw new Error("the partial file did not fit");
    }
    if (!response.ok || response.body === null) throw refusedBy(url, response);
    const resumed = response.status === 206;
    let done = resumed ? have : 0;
    const length = Number(response.headers.get("content-length") ?? Number.NaN);
    const total = Number.isNaN(length) ? undefined : done + length;
    if (total !== undefined && total > maxBytes) throw tooLarge(url, maxBytes);
    onProgress?.(done, total);
    const file = await open(part, resumed ? "a" : "w");
    try {
      for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
        clearTimeout(timer);
        timer = setTimeout(stopped, stallTimeout);
        done += chunk.length;
        if (done > maxBytes) throw tooLarge(url, maxBytes);
        await file.writeFile(chunk);
        onProgress?.(done, total);
      }
    } finally {
      await file.close();
    }
    if (total !== undefined && done !== total)
      throw new Error(`the connection ended at ${done} of ${total} bytes`);
  } catch (error) {
    if (error instanceof DownloadError) await rm(part, { force: true });
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

function rangeStart(response: Response): number {
  return Number(/^bytes (\d+)-/.exec(response.headers.get("content-range") ?? "")?.[1] ?? Number.NaN);
}

function refusedBy(url: string, { status, statusText }: Response): Error {
  const what = `the server answered ${status} ${statusText}`.trimEnd();
  // 5xx and "too many requests" pass; anything else will be the same next time.
  if (status >= 500 || status === 429) return new Error(what);
  return new DownloadError(`${url}: ${what}`);
}

function tooLarge(url: string, maxBytes: number): DownloadError {
  return new DownloadError(`${url}: larger than ${maxBytes} bytes, so not the file meant`);
}

function isDiskError(error: unknown): boolean {
  return ["open", "write", "rename", "mkdir"].includes((error as NodeJS.ErrnoException).syscall ?? "");
}

function reasonOf(error: unknown): string {
  const { message, cause } = error as Error;
  return cause instanceof Error
    ? `${message}: ${cause.message || (cause as NodeJS.ErrnoException).code}`
    : message;
}

async function sizeOf(path: string): Promise<number> {
  const found: Stats | undefined = await stat(path).catch(() => undefined);
  return found?.size ?? 0;
}
