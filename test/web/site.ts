/** The playground built as `npm run site` builds it, and a plain static server: files and types, nothing else. */
import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "vite";

const root = join(import.meta.dirname, "../..");

/** Builds the site into a folder that is the caller's to remove. */
export async function buildSite(): Promise<{ folder: string; remove: () => void }> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "fwm-site-")));
  await build({
    configFile: join(root, "web/vite.config.ts"),
    mode: "site",
    logLevel: "error",
    build: { outDir: folder, emptyOutDir: false },
  });
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }) };
}

const types: Readonly<Record<string, string>> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".mjs": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
  ".json": "application/json",
  ".wasm": "application/wasm",
};

/** Serves a folder on a free port of this machine; `headers` are sent with everything. */
export async function serve(
  folder: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ url: string; close: () => Promise<void> }> {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url!, "http://localhost");
    const path = normalize(decodeURIComponent(pathname.endsWith("/") ? `${pathname}index.html` : pathname));
    readFile(join(folder, path)).then(
      (body) =>
        response
          .writeHead(200, { "Content-Type": types[extname(path)] ?? "application/octet-stream", ...headers })
          .end(body),
      () => response.writeHead(404).end(),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** Bytes that a page's files have when they are compressed, by name. */
export function compressedSizes(folder: string): ReadonlyMap<string, number> {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
  const files = names.filter((name) => /\.(html|js|mjs|css|svg)$/.test(name));
  return new Map(files.map((name) => [name, gzipSync(readFileSync(join(folder, name))).length]));
}
