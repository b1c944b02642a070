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
import { exportModel } from "../../src/inference/export.ts";
import { modelFromBytes } from "../../src/inference/index.ts";
import { nodeRuntime } from "../../src/runtime/node.ts";
import { encodeSafetensors } from "../../src/store/safetensors.ts";
import { cases } from "../support/cases.ts";
import { expectClose } from "../support/check.ts";
import { savedModel, smallSystems, streamed } from "../support/savedModel.ts";
import { skipUnless } from "../support/skip.ts";
import { expectCase } from "./expectCase.ts";
import type { CasePage } from "./page.ts";
import { startServer, type TestServer } from "./server.ts";

const script = join(import.meta.dirname, "../../scripts/install-chromium.mjs");
const found = await promisify(execFile)(process.execPath, [script]).then(
  ({ stdout }) => ({ path: stdout.trim(), why: "" }),
  ({ stderr }: { stderr: string }) => ({ path: "", why: stderr.trim() }),
);

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

describe("onnxruntime-web in Chromium", skipUnless(found.path !== "", `no browser: ${found.why}`), () => {
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

    test("the same training gives the same numbers to the last bit", async () => {
      const { name } = cases.find((each) => each.name.startsWith("FWM"))!;
      const run = (given: { name: string; threads: number }) => casePage.run(given.name, given.threads);
      const [first, second] = [
        await page.evaluate(run, { name, threads }),
        await page.evaluate(run, { name, threads }),
      ];
      expect(second).toEqual(first);
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

  test("threads without the address of their script are refused, and one thread needs none", async () => {
    const { page } = await open("/isolated?paths=wasm");
    const [{ name }] = cases as [(typeof cases)[0]];
    const message = await page.evaluate(
      (of) => casePage.run(of, 2).catch((error: Error) => error.message),
      name,
    );
    expect(message).toContain("address of the threads' script");
    expectCase(cases[0]!, await page.evaluate((of) => casePage.run(of, 1), name));
  });

  describe("a saved model", () => {
    let page: Page;

    beforeAll(async () => {
      ({ page } = await open("/plain"));
    });

    test.each(Object.entries(smallSystems))(
      "%s, exported, answers with ONNX Runtime alone",
      async (_, system) => {
        const { bytes, inputs } = exportModel(savedModel(system), { batch: 2 }, "0.0.0");
        server.files.set("/step.onnx", bytes);
        const tokens = [3, 141];
        const feeds = inputs.map(({ name, shape, dtype }) => ({
          name,
          type: dtype === "i32" ? ("int32" as const) : ("float32" as const),
          shape,
          data: name === "tokens" ? tokens : new Array<number>(shape.reduce((a, b) => a * b, 1)).fill(0),
        }));
        const got = await page.evaluate((given) => casePage.runModel("/step.onnx", given), feeds);
        const { logits, state } = streamed(system, [tokens]);
        const tolerance = { rtol: 1e-4, atol: 1e-5 };
        expectClose(got.logits!, logits[0]!, tolerance);
        for (const [name, { data }] of Object.entries(state))
          expectClose(got[`next_${name}`]!, data, tolerance);
      },
    );

    test.each(Object.entries(smallSystems))(
      "%s, as a folder, answers as it does in Node",
      async (_, system) => {
        const { config, model, files } = savedModel(system);
        const vocab = files["vocab.json"];
        const safetensors = encodeSafetensors(model);
        server.files.set("/model/config.json", new TextEncoder().encode(JSON.stringify(config)));
        server.files.set("/model/model.safetensors", safetensors);
        server.files.set("/model/vocab.json", vocab);
        const [text, question] = ["mary went to the kitchen .", "where is mary ?"];
        const got = await page.evaluate((given) => casePage.ask("/model", ...given), [
          text,
          question,
        ] as const);

        const inNode = modelFromBytes({ config, safetensors, vocab }, { runtime: nodeRuntime });
        const stream = inNode.stream();
        await stream.read(text);
        const { answers } = await stream.ask(question);
        await inNode.release();
        expect(got.map(({ word }) => word)).toEqual(answers.map(({ word }) => word));
        const shares = (of: typeof answers) => of.map(({ probability }) => probability);
        expectClose(shares(got), shares(answers), { rtol: 1e-4, atol: 0 });
      },
    );
  });
});
