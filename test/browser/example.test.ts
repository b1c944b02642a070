/**
 * examples/browser, which docs/library.md shows, in real Chromium with the packed package: built by Vite, and as plain
 * modules. It answers as the model does in Node.
 */
import { execFile } from "node:child_process";
import { cpSync, readFileSync, symlinkSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize } from "node:path";
import { promisify } from "node:util";
import { type Browser, chromium } from "playwright";
import { build } from "vite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { loadModel } from "../../src/inference/load.ts";
import { packedProject } from "../package/project.ts";
import { skipUnless } from "../support/skip.ts";

const root = join(import.meta.dirname, "../..");

test("docs/library.md shows the page that is tested", () => {
  const page = readFileSync(join(root, "examples/browser/page.js"), "utf8");
  const [, , shown] = /## In a browser[\s\S]*?(```js\n)([\s\S]*?)```/.exec(
    readFileSync(join(root, "docs/library.md"), "utf8"),
  )!;
  expect(shown).toBe(page);
});

const script = join(root, "scripts/install-chromium.mjs");
const found = await promisify(execFile)(process.execPath, [script]).then(
  ({ stdout }) => ({ path: stdout.trim(), why: "" }),
  ({ stderr }: { stderr: string }) => ({ path: "", why: stderr.trim() }),
);

const types: Readonly<Record<string, string>> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".mjs": "text/javascript",
  ".wasm": "application/wasm",
  ".json": "application/json",
};

/** Serves the files of a folder on a free port of this machine alone. */
async function serve(folder: string): Promise<Server> {
  const server = createServer((request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url!, "http://localhost").pathname));
    readFile(join(folder, path)).then(
      (body) =>
        response
          .writeHead(200, { "Content-Type": types[extname(path)] ?? "application/octet-stream" })
          .end(body),
      () => response.writeHead(404).end(),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

describe("examples/browser in Chromium", skipUnless(found.path !== "", `no browser: ${found.why}`), () => {
  let place: string;
  let browser: Browser;
  const servers: Server[] = [];

  beforeAll(async () => {
    place = await packedProject();
    symlinkSync(
      join(root, "node_modules/onnxruntime-web"),
      join(place, "node_modules/onnxruntime-web"),
      "dir",
    );
    cpSync(join(place, "node_modules/fwm/examples/browser"), place, { recursive: true });
    browser = await chromium.launch({
      executablePath: found.path,
      headless: true,
      args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
    });
  });

  afterAll(async () => {
    await browser?.close();
    for (const server of servers) server.close();
  });

  /** Opens a page of a folder, asks, and gives what it answered. */
  async function ask(folder: string, path: string, question?: string): Promise<string> {
    const server = await serve(folder);
    servers.push(server);
    const page = await browser.newPage();
    const errors: string[] = [];
    page.on("pageerror", (error) => errors.push(error.message));
    page.on("response", (answer) => {
      if (!answer.ok()) errors.push(`${answer.url()}: ${answer.status()}`);
    });
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/${path}`);
    await page.waitForSelector("button:enabled", { timeout: 30_000 }).catch(() => {
      throw new Error(`the page did not load its model: ${errors.join("; ")}`);
    });
    if (question) await page.fill("input", question);
    await page.click("button");
    await page.waitForFunction(() => document.querySelector("output")!.value !== "");
    const said = await page.evaluate(() => document.querySelector("output")!.value);
    await page.close();
    expect(errors).toEqual([]);
    return said;
  }

  async function inNode(): Promise<string> {
    const model = await loadModel();
    const stream = model.stream();
    await stream.read("Mary took the apple. Mary went to the garden.");
    const { answers } = await stream.ask("Where is the apple?", { top: 3 });
    await model.release();
    return answers.map(({ word, probability }) => `${word} ${(100 * probability).toFixed(1)}%`).join("\n");
  }

  test("as plain modules", async () => {
    const said = await ask(place, "plain.html");
    expect(said).toMatch(/^garden /);
    expect(said).toBe(await inNode());
    expect(await ask(place, "plain.html", "Where is the aple?")).toContain('does not know "aple"');
  });

  test("built by Vite", async () => {
    const outDir = join(place, "dist");
    await build({ root: place, logLevel: "error", build: { outDir, emptyOutDir: true } });
    expect(await ask(outDir, "index.html")).toBe(await inNode());
  });
});
