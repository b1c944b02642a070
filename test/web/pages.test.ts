/** The studio's pages Ask, Memory and Agent in real Chromium, over the shipped models and a small run. */
import { join } from "node:path";
import type { Browser, Page } from "playwright";
import { build } from "vite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type CatbabiSettings,
  catbabiSchema,
  catbabiTask,
  releasedTraining,
} from "../../src/experiment/catbabi/settings.ts";
import { trainRun } from "../../src/experiment/trainRun.ts";
import { lstmDefaults } from "../../src/model/lstmModel.ts";
import { transformerXlDefaults } from "../../src/model/transformerXlModel.ts";
import { scratch, studio } from "../studio/support.ts";
import { skipUnless } from "../support/skip.ts";
import { expectAccessible, found, launch, open } from "./chromium.ts";
import { compressedSizes } from "./site.ts";

const root = join(import.meta.dirname, "../..");
/** A model is loaded in a process of its own, beside other tests. */
const patient = { timeout: 30_000 };
const wolves = [
  "Mice are afraid of wolves.",
  "Gertrude is a mouse.",
  "Cats are afraid of sheep.",
  "Winona is a sheep.",
  "What is gertrude afraid of?\twolf",
].join("\n");
/** A system without a memory, and one whose attention can be shown, at the smallest sizes. */
const trained: Readonly<Record<string, CatbabiSettings["system"]>> = {
  "tiny-lstm": { ...lstmDefaults, embedding: 8, hidden: 8 },
  "tiny-txl": {
    ...transformerXlDefaults,
    ...{ embedding: 8, hidden: 8, heads: 2, layers: 1, inner: 8, memory: 20 },
  },
};

/** Two steps, each with a checkpoint. */
async function trainSmall(
  folder: string,
  experiment: string,
  system: CatbabiSettings["system"],
): Promise<void> {
  const settings = catbabiSchema.parse({
    task: { ...catbabiTask, source: "generated", tasks: "1" },
    system,
    training: {
      ...releasedTraining,
      batch: 2,
      window: 20,
      steps: 2,
      logEvery: 1,
      evalEvery: 1,
      evalBatch: 256,
      saveEvery: 1,
      // A step that shows.
      optimizer: { ...releasedTraining.optimizer, learningRate: 0.1 },
    },
  });
  await trainRun(
    { action: "start", experiment, settings, folder },
    { env: {}, signal: new AbortController().signal, command: ["test"], packageVersion: "0", threads: 1 },
  );
}

const address = (page: string, state: Readonly<Record<string, string>> = {}): string =>
  `#/${page}?${new URLSearchParams(state)}`;

describe("the studio's pages in Chromium", skipUnless(found.path !== "", `no browser: ${found.why}`), () => {
  const folder = scratch("pages");
  let browser: Browser;
  let url: string;

  beforeAll(async () => {
    const pages = join(folder, "web");
    await build({
      configFile: join(root, "web/vite.config.ts"),
      logLevel: "error",
      build: { outDir: pages, emptyOutDir: false },
    });
    for (const [name, system] of Object.entries(trained))
      await trainSmall(join(folder, "runs", name), name, system);
    ({ url } = await studio({ runs: join(folder, "runs"), pages }));
    browser = await launch();
  });

  afterAll(() => browser?.close());

  const answers = (page: Page) => page.getByRole("list", { name: "Most probable answers" });

  test("the first page is below 200 kB compressed, and shown within a second", async () => {
    const sizes = compressedSizes(join(folder, "web"));
    const first = [...sizes].filter(([name]) => !/playground|worker|\/ort-/.test(name));
    const total = first.reduce((sum, [, size]) => sum + size, 0);
    console.info(`all pages of the studio: ${(total / 1000).toFixed(0)} kB compressed`);
    expect(total).toBeLessThan(200_000);
    const { page, errors } = await open(browser, url);
    await page.getByRole("navigation").waitFor();
    const painted = await page.evaluate(
      () => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Number.NaN,
    );
    console.info(`first contentful paint of the studio: ${painted.toFixed(0)} ms`);
    // A second, and what other tests on the same cores take.
    expect(painted).toBeLessThan(3000);
    expect(errors).toEqual([]);
    await page.context().close();
  });

  test("Ask answers, shows the reads, and answers again when a word changes", {
    timeout: 120_000,
  }, async () => {
    const { page, errors } = await open(browser, url + address("ask", { story: wolves }));
    await answers(page).locator("li").first().waitFor({ timeout: 60_000 });
    expect(await answers(page).locator("li").first().innerText()).toMatch(/^wolf/);
    expect(await page.getByText("The story gives the true answer: wolf").isVisible()).toBe(true);
    // Three reads and the write's strength under every word.
    const word = page.locator(".story-word", { hasText: "gertrude" }).first();
    expect(await word.locator("rect.share").count()).toBe(3);
    await word.getByRole("button").focus();
    expect(await page.locator(".story-numbers").innerText()).toMatch(
      /read 1 .*write strength 0\.\d+.*memory norm/s,
    );

    // A mouse becomes a cat: cats are afraid of sheep.
    await page.getByRole("button", { name: "mouse", exact: true }).click();
    await page.getByLabel("Instead of mouse").fill("cat");
    await page.keyboard.press("Enter");
    await answers(page).locator("li").first().getByText("sheep").waitFor();
    expect(new URL(page.url()).hash).toContain("cat");
    await expectAccessible(page);

    // The link shows the same thing.
    const { page: other } = await open(browser, page.url());
    await answers(other).locator("li").first().getByText("sheep").waitFor();
    await other.context().close();
    expect(errors).toEqual([]);
    await page.context().close();
  });

  test("Ask names unknown words and offers known ones; examples come from the generator", {
    timeout: 120_000,
  }, async () => {
    const { page, errors } = await open(
      browser,
      url + address("ask", { story: "Mary went to the kitchn.\nWhere is Mary?" }),
    );
    await page.getByText("The model does not know this word").waitFor({ timeout: 60_000 });
    await page.getByRole("button", { name: "kitchen", exact: true }).click();
    await answers(page).locator("li").first().getByText("kitchen").waitFor();

    const story = page.getByRole("textbox", { name: "Story and question" });
    for (const task of ["1", "19", "20"]) {
      const before = await story.inputValue();
      await page.getByLabel("Example of task").selectOption(task);
      await expect.poll(() => story.inputValue(), patient).not.toBe(before);
    }
    const first = await story.inputValue();
    await page.getByRole("button", { name: "Another one" }).click();
    await expect.poll(() => story.inputValue(), patient).not.toBe(first);
    // The refusal of the unknown word is an answer with a status; nothing else may go wrong.
    expect(errors.filter((error) => !error.includes("400"))).toEqual([]);
    await page.context().close();
  });

  test("Ask puts two models side by side, at any checkpoint, and shows what each has", {
    timeout: 120_000,
  }, async () => {
    const state = { story: wolves, model: "run:tiny-lstm", second: "run:tiny-txl" };
    const { page, errors } = await open(browser, url + address("ask", state));
    await page.getByText("keeps nothing that could be traced back").waitFor({ timeout: 60_000 });
    await page.getByRole("heading", { name: "What each head attended to" }).waitFor({ timeout: 60_000 });
    expect(await answers(page).count()).toBe(2);
    const word = page
      .getByRole("region", { name: /What each head/ })
      .locator(".story-word")
      .first();
    expect(await word.locator("rect.share").count()).toBe(2);

    // From the best checkpoint to the first one: other weights, another answer.
    const [slider] = await page.getByRole("slider").all();
    const first = await answers(page).first().innerText();
    const step = Number(await slider!.inputValue());
    await slider!.press(step === 0 ? "ArrowRight" : "ArrowLeft");
    await expect.poll(() => answers(page).first().innerText(), patient).not.toBe(first);
    expect(decodeURIComponent(page.url())).toMatch(/run:tiny-lstm@checkpoint-\d/);
    await expectAccessible(page);
    expect(errors).toEqual([]);
    await page.context().close();
  });

  test("Memory steps through the story and retrieves by pairs of words", { timeout: 120_000 }, async () => {
    const { page, errors } = await open(browser, url + address("memory", { story: wolves }));
    await page.getByRole("heading", { name: "After “?”" }).waitFor({ timeout: 60_000 });
    await page.getByRole("button", { name: "Word back" }).click();
    await page.getByRole("heading", { name: "After “of”" }).waitFor();
    await page.getByLabel("first key of").selectOption({ label: "2 mice" });
    await page.getByLabel("second key of").selectOption({ label: "2 mice" });
    const retrieved = page.getByRole("list", { name: "Values that the retrieved one resembles" });
    await retrieved.getByText("2 mice").waitFor();
    expect(new URL(page.url()).hash).toMatch(/first=1.*second=1/);
    expect(await page.getByRole("row").count()).toBeGreaterThan(3);
    await expectAccessible(page);
    expect(errors).toEqual([]);
    await page.context().close();
  });

  test("Agent plays an episode beside the explorer", { timeout: 120_000 }, async () => {
    const { page, errors } = await open(browser, url + address("agent", { seed: "3" }));
    await page.getByText("step 1 of 30").waitFor({ timeout: 60_000 });
    await page.getByRole("button", { name: "Step", exact: true }).click();
    await page.getByText("step 2 of 30").waitFor();
    expect(await page.getByRole("list", { name: "Policy" }).locator("li").count()).toBe(3);
    expect(await page.getByRole("img", { name: /explorer: agent at \d/ }).isVisible()).toBe(true);
    await page.getByRole("button", { name: "Play" }).click();
    await page.getByText("step 3 of 30").waitFor();
    await page.getByRole("button", { name: "Pause" }).click();
    await expectAccessible(page);
    const graph = await page.getByRole("img", { name: /^agent/ }).innerHTML();
    await page.getByRole("button", { name: "New graph" }).click();
    await page.getByText("step 1 of 30").waitFor();
    await expect.poll(() => page.getByRole("img", { name: /^agent/ }).innerHTML(), patient).not.toBe(graph);
    expect(new URL(page.url()).hash).toContain("seed=4");
    expect(errors).toEqual([]);
    await page.context().close();
  });

  test("the studio serves the playground, isolated, under its own policy", { timeout: 120_000 }, async () => {
    const state = "#/train?tasks=1&hidden=8&memory=4&reads=1&batch=2&window=20&steps=20&lstm=false";
    const { page, errors } = await open(browser, `${url}playground/${state}`);
    expect(await page.evaluate(() => crossOriginIsolated)).toBe(true);
    await page.getByRole("button", { name: "Step", exact: true }).click();
    await page.getByText("Checkpoint of step 1 kept").waitFor({ timeout: 60_000 });
    expect(errors).toEqual([]);
    await page.context().close();
  });

  test("a page that is not there, and a theme that is chosen", async () => {
    const { page, errors } = await open(browser, url + address("nowhere"));
    await page.getByRole("heading", { name: "There is no such page" }).waitFor();
    await page.getByRole("button", { name: "Theme: system" }).click();
    await page.getByRole("button", { name: "Theme: light" }).click();
    expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe("dark");
    await page.reload();
    expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe("dark");
    expect(errors).toEqual([]);
    await page.context().close();
  });
});
