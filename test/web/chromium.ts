/** Real Chromium for the tests of the pages: found or installed, started, and pages that remember what went wrong. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { AxeBuilder } from "@axe-core/playwright";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright";
import { expect } from "vitest";

const script = join(import.meta.dirname, "../../scripts/install-chromium.mjs");

/** Where Chromium is, or why there is none. */
export const found = await promisify(execFile)(process.execPath, [script]).then(
  ({ stdout }) => ({ path: stdout.trim(), why: "" }),
  ({ stderr }: { stderr: string }) => ({ path: "", why: stderr.trim() }),
);

/** Starts it with a fresh profile. */
export function launch(): Promise<Browser> {
  return chromium.launch({
    executablePath: found.path,
    headless: true,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-sync",
    ],
  });
}

/** A page and everything that went wrong on it. */
export interface Watched {
  readonly page: Page;
  /** Errors of scripts, requests that failed or were refused, what the content security policy forbade. */
  readonly errors: string[];
}

/** Opens an address in a context of its own: nothing is shared with other pages but by `page.context()`. */
export async function open(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<Watched> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const watched = { page, errors: watch(page) };
  await page.goto(url);
  return watched;
}

/** Errors of a page from now on. Requests to any other host are errors too: nothing is loaded from outside. */
export function watch(page: Page): string[] {
  const errors: string[] = [];
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error") errors.push(message.text());
  });
  page.on("requestfailed", (request) => {
    const reason = request.failure()?.errorText ?? "failed";
    // The page itself let it go: another question took its place.
    if (reason !== "net::ERR_ABORTED") errors.push(`${request.url()}: ${reason}`);
  });
  page.on("response", (answer) => {
    if (answer.status() >= 400) errors.push(`${answer.url()}: ${answer.status()}`);
  });
  page.on("request", (request) => {
    const { protocol, hostname } = new URL(request.url());
    if (protocol.startsWith("http") && hostname !== "127.0.0.1") errors.push(`${request.url()} is outside`);
  });
  return errors;
}

/** No violation that axe finds, in both themes, at 1280 and at 400 pixels; and nothing is wider than the page. */
export async function expectAccessible(page: Page): Promise<void> {
  for (const [width, colorScheme] of [
    [1280, "light"],
    [400, "dark"],
  ] as const) {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme });
    await page.waitForFunction((scheme) => document.documentElement.dataset.theme === scheme, colorScheme);
    const { violations } = await new AxeBuilder({ page }).analyze();
    expect(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])).toEqual([]);
    const excess = await page.evaluate(
      () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
    );
    expect(excess, `pixels beyond ${width}`).toBeLessThanOrEqual(0);
  }
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.emulateMedia({ colorScheme: "light" });
}
