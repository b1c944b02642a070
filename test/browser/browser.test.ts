/**
 * The shared cases in real Chromium on `onnxruntime-web`: on a plain page with one thread, and on a cross-origin
 * isolated one with two. Chromium is looked for, or installed where that is possible, by
 * scripts/install-chromium.mjs; without it the tests are skipped and say so.
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Browser, chromium, type Page } from "playwright";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cases } from "../support/cases.ts";
import { expectCase } from "./expectCase.ts";
import type { CasePage } from "./page.ts";
import { startServer, type TestServer } from "./server.ts";

const script = join(import.meta.dirname, "../../scripts/install-chromium.mjs");
const found = await promisify(execFile)(process.execPath, [script]).then(
  ({ stdout }) => ({ path: stdout.trim(), why: "" }),
  ({ stderr }: { stderr: string }) => ({ path: "", why: stderr.trim() }),
);
if (!found.path) {
  const banner = process.env.CI ? `\n${"!".repeat(80)}\n` : "";
  console.warn(`${banner}skipped: the browser tests. ${found.why}${banner}`);
}

const flags = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** The page's own globals, as seen by the functions we send there. */
declare const casePage: CasePage;

describe.skipIf(!found.path)("onnxruntime-web in Chromium", () => {
  let server: TestServer;
  let browser: Browser;

  beforeAll(async () => {
    server = await startServer();
    // Playwright gives the browser a fresh profile folder and removes it afterwards.
    browser = await chromium.launch({ executablePath: found.path, headless: true, args: flags });
  });

  afterAll(async () => {
    await browser.close();
    await server.close();
  });

  async function open(path: string): Promise<{ page: Page; errors: string[] }> {
    const page = await browser.newPage();
    const errors: string[] = [];
    page.on("pageerror", (error) => errors.push(error.message));
    page.on("requestfailed", (request) => errors.push(`${request.url()} failed`));
    page.on("response", (answer) => {
      if (!answer.ok()) errors.push(`${answer.url()}: ${answer.status()}`);
    });
    await page.goto(server.url + path);
    await page
      .waitForFunction(() => "casePage" in globalThis, undefined, { timeout: 20_000 })
      .catch(() => {
        throw new Error(`the page did not start: ${errors.join("; ") || "no error was reported"}`);
      });
    return { page, errors };
  }

  describe.each([
    ["one thread on a plain page", { path: "/plain", threads: 1, isolated: false }],
    ["two threads on an isolated page", { path: "/isolated", threads: 2, isolated: true }],
  ])("%s", (_, { path, threads, isolated }) => {
    let page: Page;
    let errors: string[];

    beforeAll(async () => {
      ({ page, errors } = await open(path));
    });

    test("the page has the cases, and the threads its headers allow", async () => {
      expect(await page.evaluate(() => casePage.names)).toEqual(cases.map(({ name }) => name));
      const cores = await page.evaluate(() => navigator.hardwareConcurrency);
      expect(await page.evaluate(() => casePage.availableThreads)).toBe(isolated ? cores : 1);
    });

    test.each(cases.map((each) => [each.name, each] as const))("%s", async (_, each) => {
      const run = (given: { name: string; threads: number }) => casePage.run(given.name, given.threads);
      expectCase(each, await page.evaluate(run, { name: each.name, threads }));
    });

    test("another number of threads is refused, with the reason", async () => {
      const message = await page.evaluate(
        (name) => casePage.run(name, 3).catch((error: Error) => error.message),
        cases[0]!.name,
      );
      expect(message).toContain(isolated ? "already runs with 2" : "not cross-origin isolated");
    });

    test("nothing went wrong besides, and threads are threads", () => {
      expect(errors).toEqual([]);
      // Every thread but the page's own is a worker.
      expect(page.workers()).toHaveLength(threads - 1);
    });
  });
});
