/**
 * The playground in real Chromium, built as `npm run site` builds it and served as plain files: it learns, answers in the
 * middle of training, survives a reload, saves and loads.
 */
import { readFileSync } from "node:fs";
import * as ort from "onnxruntime-node";
import type { Browser, Page } from "playwright";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { skipUnless } from "../support/skip.ts";
import { expectAccessible, found, launch, open, watch } from "./chromium.ts";
import { buildSite, compressedSizes, serve } from "./site.ts";

/** Small enough to learn something in seconds. */
const small = "#/train?tasks=1&hidden=32&memory=8&reads=1&batch=16&window=50&steps=120&rate=0.01&lstm=false";

/** One of the numbers above the chart. */
async function figure(page: Page, name: string): Promise<string> {
  const entry = page.locator(".figures div").filter({ has: page.getByText(new RegExp(`^${name}( of |$)`)) });
  return entry.locator("dd").innerText();
}

async function stepOf(page: Page): Promise<number> {
  return Number((await figure(page, "step")).replaceAll(",", ""));
}

const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });

/** Waits until a number above the chart passes a test. */
async function until(page: Page, name: string, fits: (value: number) => boolean): Promise<number> {
  let value = Number.NaN;
  await expect
    .poll(async () => fits((value = Number.parseFloat(await figure(page, name)))), {
      timeout: 60_000,
      interval: 100,
    })
    .toBe(true);
  return value;
}

describe("the playground in Chromium", skipUnless(found.path !== "", `no browser: ${found.why}`), () => {
  let browser: Browser;
  let site: Awaited<ReturnType<typeof buildSite>>;
  let server: Awaited<ReturnType<typeof serve>>;

  beforeAll(async () => {
    site = await buildSite();
    server = await serve(site.folder);
    browser = await launch();
  });

  afterAll(async () => {
    await browser?.close();
    await server?.close();
    site?.remove();
  });

  test("the first page is below 200 kB compressed, its worker included, ONNX Runtime's files not", () => {
    const sizes = compressedSizes(site.folder);
    const first = [...sizes].filter(([name]) => !/\/ort-|(ask|memory|useModels)-/.test(name));
    expect(first.some(([name]) => /worker-/.test(name))).toBe(true);
    const total = first.reduce((sum, [, size]) => sum + size, 0);
    console.info(`first page of the playground: ${(total / 1000).toFixed(0)} kB compressed`);
    expect(total).toBeLessThan(200_000);
  });

  test("learns, answers in the middle, survives a reload, and goes on", { timeout: 180_000 }, async () => {
    const { page, errors } = await open(browser, server.url + small);
    await expectAccessible(page);
    expect(await page.getByText("one thread: this page is not cross-origin isolated").isVisible()).toBe(true);

    // From chance to well above: one place in six would be 17 %.
    await button(page, "Train").click();
    expect(await until(page, "held-out accuracy", (value) => value >= 0)).toBeLessThan(20);
    await until(page, "held-out accuracy", (value) => value > 35);
    expect(Number.parseFloat(await figure(page, "steps/s"))).toBeGreaterThan(0);

    // Asked while it trains.
    const story = page.getByRole("textbox", { name: "Story and question" });
    await story.fill("Mary went to the kitchen.\nWhere is Mary?\tkitchen");
    await page
      .getByRole("list", { name: "Answers of the Fast Weight Memory" })
      .getByText("kitchen")
      .waitFor();
    expect(await button(page, "Pause").isVisible()).toBe(true);

    // Hidden, it pauses and saves; seen again, it goes on.
    await page.evaluate(() => {
      Object.defineProperty(document, "hidden", { value: true, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    });
    await page.getByText("paused while the page is hidden").waitFor();
    const hiddenAt = await stepOf(page);
    await page.evaluate(() => {
      Object.defineProperty(document, "hidden", { value: false, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    });
    await until(page, "step", (value) => value > hiddenAt);

    await button(page, "Pause").click();
    await page.locator(".badge").getByText("paused").waitFor();
    const step = await stepOf(page);
    await button(page, "Step").click();
    await until(page, "step", (value) => value === step + 1);
    await page.getByText(`Checkpoint of step ${step + 1} kept`).waitFor();

    await page.reload();
    await page.getByText("restored from this browser").waitFor();
    expect(await stepOf(page)).toBe(step + 1);
    expect(Number.parseFloat(await figure(page, "held-out accuracy"))).toBeGreaterThan(30);
    await button(page, "Continue").click();
    await until(page, "step", (value) => value > step + 1);
    expect(errors).toEqual([]);
    await page.context().close();
  });

  test("saves a model folder and an ONNX file, and loads the folder again", {
    timeout: 120_000,
  }, async () => {
    const { page, errors } = await open(browser, "about:blank");
    // Without the picker of folders files are downloaded one by one.
    await page.addInitScript(() => Reflect.deleteProperty(window, "showDirectoryPicker"));
    await page.goto(server.url + small.replace("hidden=32", "hidden=16"));
    await button(page, "Step").click();
    await until(page, "step", (value) => value === 1);

    const downloads = new Map<string, Buffer>();
    page.on("download", (download) => {
      void download.path().then((path) => downloads.set(download.suggestedFilename(), readFileSync(path)));
    });
    await button(page, "Save model folder").click();
    await expect
      .poll(() => [...downloads.keys()].sort(), { timeout: 20_000 })
      .toEqual(["config.json", "manifest.json", "model.safetensors", "vocab.json"]);
    const files = [...downloads].map(([name, buffer]) => ({
      name,
      mimeType: "application/octet-stream",
      buffer,
    }));
    await button(page, "Export ONNX").click();
    const onnx = "fwm-playground-step-1.onnx";
    await expect.poll(() => downloads.has(onnx), { timeout: 20_000 }).toBe(true);
    const session = await ort.InferenceSession.create(downloads.get(onnx)!);
    expect(session.inputNames).toEqual(["tokens", "h", "c", "F"]);
    await session.release();

    await button(page, "Start over").click();
    await until(page, "step", (value) => value === 0);
    const picker = page.getByLabel("Files of a model folder");
    await picker.setInputFiles(files.filter(({ name }) => name !== "model.safetensors"));
    await page.getByText("model.safetensors is missing").waitFor();
    await picker.setInputFiles(files);
    await page.getByText("training goes on from these weights").waitFor();
    expect(page.url()).toContain("hidden=16");
    expect(errors).toEqual([]);
    await page.context().close();
  });

  test("every choice is in the address, and by keyboard alone training starts", {
    timeout: 120_000,
  }, async () => {
    const { page, errors } = await open(browser, server.url);
    await button(page, "one fact").click();
    await page.getByLabel("hidden units").selectOption("16");
    await page.getByLabel("an LSTM of the same width").uncheck();
    expect(new URL(page.url()).hash).toBe("#/?tasks=1&hidden=16&lstm=false");
    const other = await page.context().newPage();
    const more = watch(other);
    await other.goto(page.url());
    expect(await other.getByLabel("hidden units").inputValue()).toBe("16");
    // Until the worker has answered there is nothing to start.
    await expect.poll(() => button(other, "Train").isEnabled(), { timeout: 30_000 }).toBe(true);
    await button(other, "Train").focus();
    await other.keyboard.press("Enter");
    await until(other, "step", (value) => value >= 1);
    expect([...errors, ...more]).toEqual([]);
    await page.context().close();
  });

  test("Ask and Memory work on the model in training", { timeout: 120_000 }, async () => {
    const { page, errors } = await open(browser, server.url + small);
    await button(page, "Step").click();
    await until(page, "step", (value) => value === 1);
    await page.getByRole("link", { name: "Ask", exact: true }).click();
    await page.getByRole("heading", { name: "What each read matched" }).waitFor();
    expect(await page.getByRole("list", { name: "Most probable answers" }).locator("li").count()).toBe(5);
    await page.getByRole("link", { name: "Memory", exact: true }).click();
    await page.getByRole("heading", { name: "Write keys against each other" }).waitFor();
    await button(page, "Word back").click();
    await page.getByRole("heading", { name: /^After “(?!\?)/ }).waitFor();
    // Training is still there.
    await page.getByRole("link", { name: "Train", exact: true }).click();
    expect(await stepOf(page)).toBe(1);
    expect(errors).toEqual([]);
    await page.context().close();
  });

  test("an isolated page trains with threads", { timeout: 120_000 }, async () => {
    const isolated = await serve(site.folder, {
      "Cross-Origin-Opener-Policy": "same-origin",
      "Cross-Origin-Embedder-Policy": "require-corp",
    });
    try {
      const { page, errors } = await open(browser, isolated.url + small);
      const cores = await page.evaluate(() => navigator.hardwareConcurrency);
      await page.getByText(cores > 1 ? /Trains with \d threads/ : "this machine shows one core").waitFor();
      await button(page, "Step").click();
      await until(page, "step", (value) => value === 1);
      expect(errors).toEqual([]);
      await page.context().close();
    } finally {
      await isolated.close();
    }
  });
});
