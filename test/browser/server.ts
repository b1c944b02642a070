/**
 * A tiny web server for the browser tests: our sources with their types taken off, and the packages they import,
 * resolved by an import map. No bundler, no build: a page gets what is in the folder now.
 */
import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize, sep } from "node:path";
import ts from "typescript";

const root = join(import.meta.dirname, "../..");

/** Folders a page may read. */
const served = [
  "src",
  "test/support",
  "test/browser",
  "node_modules/onnxruntime-web/dist",
  "node_modules/@bufbuild/protobuf/dist/esm",
  "node_modules/onnx-buf",
  "node_modules/zod",
];

const imports: Readonly<Record<string, string>> = {
  "onnxruntime-web/wasm": "/node_modules/onnxruntime-web/dist/ort.wasm.bundle.min.mjs",
  "@bufbuild/protobuf": "/node_modules/@bufbuild/protobuf/dist/esm/index.js",
  "@bufbuild/protobuf/codegenv2": "/node_modules/@bufbuild/protobuf/dist/esm/codegenv2/index.js",
  "@bufbuild/protobuf/wkt": "/node_modules/@bufbuild/protobuf/dist/esm/wkt/index.js",
  zod: "/node_modules/zod/index.js",
  "onnx-buf": "/node_modules/onnx-buf/dist/onnx_pb.js",
};

const types: Readonly<Record<string, string>> = {
  ".ts": "text/javascript",
  ".js": "text/javascript",
  ".mjs": "text/javascript",
  ".wasm": "application/wasm",
};

/** What threads in a page need. */
const isolation = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
};

const page = `<!doctype html>
<meta charset="utf-8">
<title>fwm</title>
<link rel="icon" href="data:,">
<script type="importmap">${JSON.stringify({ imports })}</script>
<script type="module" src="/test/browser/page.ts"></script>
`;

/** A running server. */
export interface TestServer {
  /** Address of a page with (`/isolated`) or without (`/plain`) cross-origin isolation. */
  readonly url: string;
  /** Bytes by path, for what a test makes. */
  readonly files: Map<string, Uint8Array>;
  close(): Promise<void>;
}

/** Starts a server on a free port of this machine alone. */
export async function startServer(): Promise<TestServer> {
  const files = new Map<string, Uint8Array>();
  const scripts = new Map<string, string>();
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? "/", "http://127.0.0.1").pathname;
    answer(path, files, scripts).then(
      ({ type, body }) => {
        response.writeHead(200, { "Content-Type": type, ...(path === "/plain" ? {} : isolation) }).end(body);
      },
      (error: unknown) => {
        response.writeHead(404, { "Content-Type": "text/plain" }).end(String(error));
      },
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, files, close: () => closed(server) };
}

function closed(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(() => resolve()));
}

async function answer(
  path: string,
  files: ReadonlyMap<string, Uint8Array>,
  scripts: Map<string, string>,
): Promise<{ type: string; body: string | Uint8Array }> {
  if (path === "/plain" || path === "/isolated") return { type: "text/html", body: page };
  const made = files.get(path);
  if (made) return { type: "application/octet-stream", body: made };
  const file = normalize(join(root, decodeURIComponent(path)));
  const type = types[extname(file)];
  if (!type || !served.some((folder) => file.startsWith(join(root, folder) + sep))) {
    throw new Error(`${path} is not served`);
  }
  if (extname(file) !== ".ts") return { type, body: await readFile(file) };
  const body = scripts.get(file) ?? withoutTypes(await readFile(file, "utf8"));
  scripts.set(file, body);
  return { type, body };
}

function withoutTypes(source: string): string {
  const { ESNext: module } = ts.ModuleKind;
  const { ES2023: target } = ts.ScriptTarget;
  return ts.transpileModule(source, { compilerOptions: { module, target, verbatimModuleSyntax: true } })
    .outputText;
}
