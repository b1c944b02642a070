/**
 * The downloader against a local server that breaks off, stalls, redirects, lies about sizes or ignores ranges.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, test } from "vitest";
import { DownloadError, download } from "../../src/data/sources/download.ts";
import { prepareCatbabi } from "../../src/data/sources/prepare.ts";
import { DataError } from "../../src/errors.ts";
import { needsRealData, realData } from "../support/realData.ts";
import { emptyFolder, tarBytes, tinyMembers } from "./support/tiny.ts";

const content = Buffer.from(Array.from({ length: 50_000 }, (_, i) => (i * 7919) % 251));
let server: Server | undefined;

afterEach(() => {
  server?.closeAllConnections();
  server?.close();
  server = undefined;
});

/** Starts a server; `answer` is called with the number of the request, from 1. */
async function serve(answer: (n: number, request: IncomingMessage, response: ServerResponse) => void) {
  const ranges: (string | undefined)[] = [];
  server = createServer((request, response) => {
    ranges.push(request.headers.range);
    answer(ranges.length, request, response);
  });
  await new Promise<void>((listening) => server!.listen(0, "127.0.0.1", listening));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/file`, ranges };
}

/** Answers with the range asked for, as a good server does; `stopAfter` bytes the connection is cut. */
function send(request: IncomingMessage, response: ServerResponse, bytes: Buffer, stopAfter = Infinity): void {
  const start = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1] ?? 0);
  if (start >= bytes.length) {
    response.writeHead(416, { "content-range": `bytes */${bytes.length}` }).end();
    return;
  }
  response.writeHead(start > 0 ? 206 : 200, {
    "content-length": bytes.length - start,
    ...(start > 0 ? { "content-range": `bytes ${start}-${bytes.length - 1}/${bytes.length}` } : {}),
  });
  if (stopAfter >= bytes.length - start) response.end(bytes.subarray(start));
  else
    response.write(bytes.subarray(start, start + stopAfter), () => setTimeout(() => response.destroy(), 20));
}

const options = { maxBytes: 100_000, retryDelay: 1, stallTimeout: 2000 };

describe("a download", () => {
  test("comes whole, with its progress", async () => {
    const { url } = await serve((_, request, response) => send(request, response, content));
    const path = join(emptyFolder(), "deep", "file");
    const seen: [number, number | undefined][] = [];
    await download(url, path, { ...options, onProgress: (done, total) => seen.push([done, total]) });
    expect(readFileSync(path).equals(content)).toBe(true);
    expect(seen[0]).toEqual([0, content.length]);
    expect(seen.at(-1)).toEqual([content.length, content.length]);
    expect(existsSync(`${path}.part`)).toBe(false);
  });

  test("goes on after every interruption, asking only for the rest", async () => {
    const { url, ranges } = await serve((_, request, response) => send(request, response, content, 9_000));
    const path = join(emptyFolder(), "file");
    await download(url, path, { ...options, retries: 30 });
    expect(readFileSync(path).equals(content)).toBe(true);
    // A connection cut right behind its bytes may lose them on the way, so a place can be asked for twice;
    // but what was kept is never asked for again.
    const starts = ranges.map((range) => Number(/\d+/.exec(range ?? "0")![0]));
    expect(starts).toEqual(starts.toSorted((a, b) => a - b));
    expect(new Set(starts).size).toBeGreaterThanOrEqual(6);
  });

  test("goes on from a part that an earlier program left", async () => {
    const { url, ranges } = await serve((_, request, response) => send(request, response, content));
    const path = join(emptyFolder(), "file");
    writeFileSync(`${path}.part`, content.subarray(0, 20_000));
    await download(url, path, options);
    expect(readFileSync(path).equals(content)).toBe(true);
    expect(ranges).toEqual(["bytes=20000-"]);
  });

  test("begins again when the part is longer than the file", async () => {
    const { url } = await serve((_, request, response) => send(request, response, content));
    const path = join(emptyFolder(), "file");
    writeFileSync(`${path}.part`, Buffer.alloc(60_000));
    await download(url, path, options);
    expect(readFileSync(path).equals(content)).toBe(true);
  });

  test("begins again when the server does not know ranges", async () => {
    const { url } = await serve((n, _, response) => {
      response.writeHead(200, { "content-length": content.length });
      if (n === 1) response.write(content.subarray(0, 5_000), () => setTimeout(() => response.destroy(), 5));
      else response.end(content);
    });
    const path = join(emptyFolder(), "file");
    await download(url, path, options);
    expect(readFileSync(path).equals(content)).toBe(true);
  });

  test("follows a redirect and rides out a busy server", async () => {
    const { url } = await serve((n, request, response) => {
      if (n <= 2) response.writeHead(503).end();
      else if (request.url === "/file") response.writeHead(302, { location: "/moved" }).end();
      else send(request, response, content);
    });
    const path = join(emptyFolder(), "file");
    await download(url, path, options);
    expect(readFileSync(path).equals(content)).toBe(true);
  });

  test("is refused when it is larger than said, announced or not, and leaves nothing", async () => {
    for (const announced of [true, false]) {
      const { url } = await serve((_, __, response) => {
        if (announced) response.writeHead(200, { "content-length": content.length });
        response.end(content);
      });
      const path = join(emptyFolder(), "file");
      await expect(download(url, path, { ...options, maxBytes: 10_000 })).rejects.toThrow(
        "larger than 10000 bytes",
      );
      expect(existsSync(path) || existsSync(`${path}.part`)).toBe(false);
      server!.closeAllConnections();
      server!.close();
    }
  });

  test("ends with the reason when there is no such file, no server or no progress", async () => {
    const { url, ranges } = await serve((_, __, response) => response.writeHead(404).end());
    const path = join(emptyFolder(), "file");
    await expect(download(url, path, options)).rejects.toThrow(`${url}: the server answered 404`);
    expect(ranges.length).toBe(1);
    server!.close();
    await expect(download("http://127.0.0.1:9/", path, { ...options, retries: 1 })).rejects.toThrow(
      DownloadError,
    );
    const stalled = await serve((_, __, response) => response.writeHead(200).flushHeaders());
    const impatient = { ...options, retries: 1, stallTimeout: 50 };
    await expect(download(stalled.url, path, impatient)).rejects.toThrow("no data for 0.05 s");
  });

  test("stops at a signal and keeps what it has", async () => {
    const stop = new AbortController();
    const { url } = await serve((_, __, response) => {
      response.writeHead(200, { "content-length": content.length });
      response.write(content.subarray(0, 8_000));
    });
    const path = join(emptyFolder(), "file");
    const onProgress = (done: number) => {
      if (done >= 8_000) setTimeout(() => stop.abort(), 20);
    };
    await expect(download(url, path, { ...options, signal: stop.signal, onProgress })).rejects.toThrow(
      "abort",
    );
    expect(readFileSync(`${path}.part`).length).toBe(8_000);
  });
});

describe("the downloaded archive", () => {
  const choice = { variant: "10k", tasks: [1, 15], keepLastStory: false, allowMissing: true } as const;

  test("is refused and thrown away when its files are not the official ones", async () => {
    const archive = gzipSync(tarBytes(tinyMembers("tasks_1-20_v1-2/en-valid-10k")));
    const { url, ranges } = await serve((_, request, response) => send(request, response, archive));
    const downloads = emptyFolder();
    const preparing = prepareCatbabi({ ...choice, downloads, addresses: [url, url] });
    await expect(preparing).rejects.toThrow(DataError);
    await expect(preparing).rejects.toThrow("qa1_train.txt: its checksum is not the official one");
    expect(ranges.length).toBe(2);
    expect(existsSync(join(downloads, "tasks_1-20_v1-2.tar.gz"))).toBe(false);
  });

  test("that no address has is a failure of the network, not of the data", async () => {
    const { url } = await serve((_, __, response) => response.writeHead(404).end());
    const preparing = prepareCatbabi({ ...choice, downloads: emptyFolder(), addresses: [url] });
    await expect(preparing).rejects.toThrow(DownloadError);
  });

  test("is taken from the second address, checked, and kept for the next time", needsRealData, async () => {
    const archive = readFileSync(join(realData, "babi-en-valid-10k.tar.gz"));
    const { url, ranges } = await serve((n, request, response) => {
      if (n === 1) response.writeHead(404).end();
      else send(request, response, archive, 1_000_000);
    });
    const options = { ...choice, downloads: emptyFolder(), addresses: [`${url}/gone`, url] };
    const first = await prepareCatbabi(options);
    expect(first.provenance.files.map(({ state }) => state)).toEqual(Array(6).fill("official"));
    expect(first.splits.train.stories).toBe(1799 + 2249);
    const before = ranges.length;
    expect((await prepareCatbabi(options)).provenance).toEqual(first.provenance);
    expect(ranges.length).toBe(before);
  });
});
