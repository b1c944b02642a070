/**
 * The files of the built front-end. They are listed once when the studio starts; a request is answered with one of the
 * list or not at all, so no path of a request is ever opened.
 */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { extname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { programFolder } from "../../store/programFolder.ts";

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".mjs": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".json": "application/json",
  ".safetensors": "application/octet-stream",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".ico": "image/x-icon",
  ".wasm": "application/wasm",
  ".woff2": "font/woff2",
  ".txt": "text/plain; charset=utf-8",
  ".map": "application/json",
};

/** A file as it is served. */
export interface PageFile {
  readonly type: string;
  readonly etag: string;
  /** Whether its name changes with its content, so that a browser may keep it. */
  readonly immutable: boolean;
  read(): Buffer;
  /** Whether gzip makes it smaller. */
  readonly compressible: boolean;
  readCompressed(): Buffer;
}

/** The folder that `npm run build` puts the front-end into. */
export function builtPages(): string {
  return join(programFolder(), "dist", "web");
}

/** The files of a folder by the path they are asked for: `/assets/index-4f2a.js`. Empty where there is none. */
export function listPages(folder: string): ReadonlyMap<string, PageFile> {
  const pages = new Map<string, PageFile>();
  let names: string[];
  try {
    names = readdirSync(folder, { recursive: true, encoding: "utf8" });
  } catch {
    return pages;
  }
  for (const name of names) {
    const path = join(folder, name);
    const type = types[extname(name)];
    if (!type || !statSync(path).isFile()) continue;
    const url = `/${name.replaceAll("\\", "/")}`;
    let content: Buffer | undefined;
    let compressed: Buffer | undefined;
    let etag: string | undefined;
    const read = (): Buffer => (content ??= readFileSync(path));
    pages.set(url, {
      type,
      get etag() {
        return (etag ??= `"${createHash("sha256").update(read()).digest("base64url").slice(0, 22)}"`);
      },
      immutable: /[.-][\w-]{8,}\.\w+$/.test(name) && url.startsWith("/assets/"),
      read,
      compressible: !/^image\/png|^font\/|octet-stream/.test(type),
      readCompressed: () => (compressed ??= gzipSync(read())),
    });
  }
  return pages;
}
