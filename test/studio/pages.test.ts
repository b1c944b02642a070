/**
 * The pages Runs, Sweep and Text in real Chromium over `fwm studio` as it is installed: what is seen, what is in the
 * address, a run that trains while it is watched, and a server that is killed and started again.
 */
import { appendFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Download, Page } from "playwright";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { thisProcess } from "../../src/store/lock.ts";
import { run } from "../cli/support.ts";
import { skipUnless } from "../support/skip.ts";
import { expectAccessible, found, launch, open, watch } from "../web/chromium.ts";
import { type Line, logOf, record, type StudioProcess, scratch, studioProcess, writeRun } from "./support.ts";

const folder = scratch("browser");
const runs = join(folder, "runs");
const markup = "<img src=x onerror=alert(1)>";

/** A log that learns: the loss falls from 2 to 0, with noise that depends on the step alone. */
function learning(points: number, level: number): Line[] {
  return Array.from({ length: points }, (_, i) => i + 1).flatMap((i): Line[] => {
    const noise = Math.sin(i * 12.9898) / 20;
    const train: Line = {
      step: 10 * i,
      at: 1_700_000_000 + 36 * i,
      values: { loss: 2 - (2 * i) / points + noise, accuracy: (level * i) / points },
      times: { tokensPerSecond: 1000 },
    };
    if (i % 10 !== 0) return [train];
    const accuracy = (level * i) / points;
    return [
      train,
      { ...train, split: "valid", values: { loss: 2 - i / points, accuracy, task1: accuracy, task2: 1 } },
    ];
  });
}

const settingsWith = (
  change: (settings: { training: Record<string, unknown>; system: Record<string, unknown> }) => void,
) => {
  const settings = structuredClone(record("catbabi-qa-fwm").settings) as Parameters<typeof change>[0];
  change(settings);
  return settings as unknown as Record<string, unknown>;
};

function finished(
  name: string,
  level: number,
  change: Parameters<typeof settingsWith>[0] = () => undefined,
): void {
  const summary = {
    bestStep: 1000,
    "best.loss": 1,
    "best.accuracy": level,
    "last.loss": 1,
    "last.accuracy": level,
  };
  writeRun(
    join(runs, name),
    record("catbabi-qa-fwm", { step: 1000, summary, settings: settingsWith(change) }),
    learning(100, level),
  );
}

finished("first", 0.9);
finished("second", 0.95, ({ training }) => {
  training.batch = 64;
});
finished(markup, 0.5);
for (const reads of [1, 2, 3]) {
  for (const seed of [1, 2]) {
    finished(`sweep/reads=${reads}-seed${seed}`, 0.6 + reads / 10 + seed / 1000, ({ system, training }) => {
      system.reads = reads;
      training.seed = seed;
    });
  }
}
const live = record("catbabi-qa-fwm", {
  state: "running",
  process: thisProcess(),
  updated: new Date().toISOString(),
});
writeRun(join(runs, "watched"), live, learning(20, 0.3));

/** Waits for something to become true; other tests on the same cores take their time. */
const soon = <T>(read: () => T | Promise<T>) => expect.poll(read, { timeout: 30_000 });

const address = (page: string, state: Readonly<Record<string, string>> = {}): string =>
  `#/${page}?${new URLSearchParams(state)}`;

describe(
  "Runs, Sweep and Text in Chromium",
  skipUnless(found.path !== "", `no browser: ${found.why}`),
  () => {
    let browser: Browser;
    let studio: StudioProcess;

    beforeAll(async () => {
      for (const [name, experiment] of [
        ["text-a", "ptb-fwm-small"],
        ["text-b", "ptb-lstm-small"],
      ] as const) {
        const { code, stderr } = await run([
          "train",
          experiment,
          "--smoke",
          "--steps",
          "2",
          "--threads",
          "1",
          "--out",
          join(runs, name),
        ]);
        expect(code, stderr).toBe(0);
      }
      studio = await studioProcess(runs);
      browser = await launch();
    });

    afterAll(async () => {
      await browser?.close();
      studio?.child.kill("SIGKILL");
    });

    const row = (page: Page, name: string) =>
      page.getByRole("row").filter({ has: page.getByRole("link", { name, exact: true }) });
    const names = (page: Page) => page.locator("table.runs tbody td.name a:first-of-type").allTextContents();
    const legend = (page: Page) => page.getByRole("region", { name: "Curves" }).locator(".curve-legend li");

    test("the table is sorted, filtered and grouped, and the address says so", async () => {
      const { page, errors } = await open(browser, studio.url);
      await row(page, "first").waitFor();
      // Names are text, whatever they look like.
      expect(await row(page, markup).count()).toBe(1);
      expect(await page.locator("table.runs img").count()).toBe(0);
      await page.getByRole("button", { name: "Best" }).click();
      await soon(async () => (await names(page)).slice(0, 3)).toEqual(["second", "sweep of 6", "first"]);
      await soon(() => page.url()).toContain("sort=best");
      await soon(() => page.getByText("batch 64").count()).toBeGreaterThan(0);
      await page.getByRole("button", { name: "sweep", exact: true }).click();
      await soon(() => names(page)).toContain("reads=3-seed2");
      await page.getByRole("searchbox", { name: "Filter" }).fill("batch 64");
      await soon(() => names(page)).toEqual(["second"]);
      // The same address shows the same thing.
      const again = await open(browser, page.url());
      await row(again.page, "second").waitFor();
      await soon(() => names(again.page)).toEqual(["second"]);
      expect([...errors, ...again.errors]).toEqual([]);
      await page.context().close();
      await again.page.context().close();
    });

    test("curves are compared with their settings, tasks and the paper, and downloaded as they are seen", async () => {
      const { page, errors } = await open(browser, studio.url + address("runs", { sel: "first\nsecond" }));
      await soon(() => legend(page).allTextContents()).toEqual([
        expect.stringContaining("first90 %") as string,
        expect.stringContaining("second95 %") as string,
      ]);
      const differ = page.getByRole("region", { name: "Settings that differ" });
      await soon(() => differ.getByRole("row").allTextContents()).toContain("training.batch3264");
      const tasks = page.getByRole("region", { name: "Accuracy by task" });
      await soon(() => tasks.getByRole("img", { name: "first: 90.0 %" }).count()).toBe(1);
      const download = async (kind: string): Promise<Buffer> => {
        const [saved] = await Promise.all([
          page.waitForEvent("download") as Promise<Download>,
          page.getByRole("region", { name: "Curves" }).getByRole("button", { name: kind }).click(),
        ]);
        expect(saved.suggestedFilename()).toBe(`valid-accuracy.${kind.toLowerCase()}`);
        return readFileSync(await saved.path());
      };
      const svg = (await download("SVG")).toString();
      expect(svg).toContain("paper, test");
      expect(svg.match(/<path[^>]* stroke-width="2"/g)).toHaveLength(2);
      expect((await download("PNG")).subarray(1, 4).toString()).toBe("PNG");
      const csv = (await download("CSV")).toString().split("\n");
      expect(csv[0]).toBe('"run","steps","valid/accuracy","smoothed"');
      expect(csv.filter((line) => line.startsWith('"first"'))).toHaveLength(10);
      expect(csv).toContain('"first",1000,0.9,');

      await page.getByRole("combobox", { name: "Measure" }).selectOption("train/loss");
      await page.getByRole("combobox", { name: "Over" }).selectOption("hours");
      await page.getByRole("slider", { name: "Smoothing" }).fill("0.9");
      await page.getByRole("checkbox", { name: "log y" }).check();
      await soon(() => page.url()).toMatch(/series=train%2Floss.*x=hours.*smooth=0.9.*logy=1/);
      // Debiased over all points: of a falling line above its last value, below the mean of the last twenty.
      await soon(async () =>
        Number((await legend(page).first().textContent())?.replace("first", "")),
      ).toBeGreaterThan(0.1);
      expect(Number((await legend(page).first().textContent())!.replace("first", ""))).toBeLessThan(0.3);
      await page.getByRole("slider", { name: "Where to read the values" }).fill("0.5");
      await soon(() => page.getByText(/^at 0\.495 hours$/).count()).toBe(1);
      expect(errors).toEqual([]);
      await page.context().close();
    });

    test("a log that grows is drawn on with what is new, not fetched again", async () => {
      const { page, errors } = await open(
        browser,
        studio.url + address("runs", { sel: "watched", series: "train/loss" }),
      );
      await soon(() => legend(page).first().textContent()).toContain("watched");
      const sizes: number[] = [];
      page.on("response", (answer) => {
        if (!answer.url().endsWith("/api/metrics")) return;
        void answer.json().then((body: { runs: { series: Record<string, { steps: number[] }> }[] }) => {
          for (const { series } of body.runs) sizes.push(series["train/loss"]?.steps.length ?? 0);
        });
      });
      for (const [i, loss] of [7.25, 8.5, 9.75].entries()) {
        appendFileSync(
          join(runs, "watched/metrics.jsonl"),
          logOf([{ step: 300 + i, at: 1_700_100_000 + i, values: { loss } }]),
        );
        await soon(() => legend(page).first().textContent()).toBe(`watched${loss}`);
      }
      await soon(() => [...sizes]).toEqual([1, 1, 1]);
      expect(errors).toEqual([]);
      await page.context().close();
    });

    test("a run is started, watched, stopped and found again after the studio was killed", async () => {
      const { page } = await open(browser, studio.url + address("runs", { new: "1" }));
      const form = page.getByRole("region", { name: "New run" });
      await form.getByRole("textbox", { name: "Changed settings" }).fill("training.bach=3");
      await soon(() => form.getByRole("alert").textContent()).toContain("did you mean");
      expect(await form.getByRole("button", { name: "Start training" }).isDisabled()).toBe(true);
      await form
        .getByRole("textbox", { name: "Changed settings" })
        .fill("training.logEvery=1\ntraining.evalEvery=5");
      await form.getByRole("checkbox").check();
      await form.getByRole("textbox", { name: "Steps" }).fill("100000");
      await form.getByRole("textbox", { name: "Name of the run" }).fill("fresh");
      await soon(() => form.locator("code").first().textContent()).toMatch(
        /--smoke --steps 100000 --set=training.logEvery=1 .*fresh$/,
      );
      await form.getByRole("button", { name: "Start training" }).click();
      const panel = page.getByRole("region", { name: "Run fresh" });
      await row(page, "fresh").getByText("running").waitFor({ timeout: 40_000 });
      await page.goto(studio.url + address("runs", { run: "fresh", sel: "fresh", series: "train/loss" }));
      const steps = async (): Promise<number> =>
        Number.parseInt((await row(page, "fresh").locator("td").nth(6).textContent()) ?? "0", 10);
      const before = await steps();
      await soon(steps).toBeGreaterThan(before + 3);
      await soon(() => legend(page).first().textContent()).toMatch(/^fresh\d/);
      await panel.getByRole("button", { name: "Stop and save" }).click();
      await row(page, "fresh").getByText("interrupted").waitFor({ timeout: 30_000 });
      await panel
        .getByRole("link", { name: /step \d+ \(.*\)/ })
        .first()
        .waitFor();
      await panel.getByRole("button", { name: "Resume" }).click();
      await row(page, "fresh").getByText("running").waitFor({ timeout: 40_000 });
      const kept = await steps();

      studio.child.kill("SIGKILL");
      await page.getByText("connection lost").waitFor();
      studio = await studioProcess(runs, studio.port);
      await page.getByText("live", { exact: true }).waitFor({ timeout: 20_000 });
      await row(page, "fresh").getByText("interrupted").waitFor({ timeout: 20_000 });
      expect(await steps()).toBeGreaterThanOrEqual(kept);
      expect(watch(page)).toEqual([]);
      await page.context().close();
    });

    test("a sweep shows its history, what matters, and every member", async () => {
      const { page, errors } = await open(browser, studio.url + address("sweep"));
      const importance = page.getByRole("list", { name: /^Share of the variance/ }).getByRole("listitem");
      await soon(() => importance.first().textContent()).toMatch(/^system\.reads\s*(99\.\d|100\.0) %/);
      expect(await importance.last().textContent()).toMatch(/^training\.seed\s*0\.0 %/);
      expect(await page.locator(".parallel polyline").count()).toBe(6);
      const best = page.getByRole("region", { name: "Members", exact: true }).getByRole("row").nth(1);
      expect(await best.textContent()).toContain("reads=3-seed2");
      await page.getByRole("combobox", { name: "Measure" }).selectOption("loss");
      await soon(() => page.url()).toContain("measure=loss");
      await page.getByRole("link", { name: "Compare their curves" }).click();
      await soon(() => legend(page).count()).toBe(6);
      expect(errors).toEqual([]);
      await page.context().close();
    });

    test("two language models read a passage word by word, and write", async () => {
      const text = "bill is carrying a box .\ndaniel did";
      const { page, errors } = await open(
        browser,
        studio.url + address("text", { model: "run:text-a", second: "run:text-b", text }),
      );
      const words = page.getByRole("list", { name: "Words with their bits" }).getByRole("listitem");
      await soon(() => words.count()).toBe(9);
      await soon(() => words.first().textContent()).toMatch(/^bill\d+\.\d\d and \d+\.\d\d bits$/);
      await page.getByRole("textbox", { name: "Passage" }).fill("bill is");
      await soon(() => words.count()).toBe(2);
      await page.getByRole("textbox", { name: "Prompt" }).fill("bill");
      await page.getByRole("spinbutton", { name: "Words" }).fill("5");
      await page.getByRole("spinbutton", { name: "Words" }).press("Enter");
      await page.getByRole("button", { name: "Generate" }).first().click();
      await soon(() => page.locator(".generated-text").first().textContent()).toMatch(/^bill( \S+)*\s*$/);
      expect(errors).toEqual([]);
      await expectAccessible(page);
      await page.context().close();
    });

    test("axe finds nothing on Runs and Sweep, with everything open", async () => {
      const state = { sel: "first\nsecond", run: "first", new: "1", open: "sweep", smooth: "0.5" };
      const { page } = await open(browser, studio.url + address("runs", state));
      await page.getByRole("region", { name: "Settings that differ" }).waitFor();
      await page.getByRole("region", { name: "Run first" }).getByText("Checkpoints").waitFor();
      await expectAccessible(page);
      await page.goto(`${studio.url}${address("sweep")}`);
      await page.getByRole("region", { name: "Members", exact: true }).waitFor();
      await expectAccessible(page);
      await page.context().close();
    });
  },
);
