/**
 * Makes the screenshots of the README: the studio's Ask page, and the playground after some training.
 *
 *   npm run build && npm run site && node scripts/screenshots.mjs [ask] [playground]
 *
 * Chromium is found as for the tests (scripts/install-chromium.mjs). The playground trains for real until it answers 90 % of
 * the held-out questions, for ten minutes at most.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { createInterface } from "node:readline";
import { chromium } from "playwright";

const root = join(import.meta.dirname, "..");
const images = join(root, "docs/images");
const largest = 200_000;
const story = [
  "Mice are afraid of wolves.",
  "Gertrude is a mouse.",
  "Cats are afraid of sheep.",
  "Winona is a sheep.",
  "What is gertrude afraid of?\twolf",
].join("\n");

mkdirSync(images, { recursive: true });
const executablePath = execFileSync(process.execPath, [join(root, "scripts/install-chromium.mjs")], {
  encoding: "utf8",
}).trim();
const browser = await chromium.launch({
  executablePath,
  headless: true,
  args: ["--no-sandbox", "--disable-gpu"],
});
const made = { ask, playground };
const wanted = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(made);
try {
  for (const name of wanted) await made[name]();
} finally {
  await browser.close();
}

async function ask() {
  const runs = mkdtempSync(join(tmpdir(), "fwm-screenshots-"));
  const studio = spawn(
    process.execPath,
    [join(root, "bin/fwm.js"), "studio", "--runs", runs, "--port", "0", "--json"],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  try {
    let text = "";
    for await (const line of createInterface({ input: studio.stdout })) {
      text += line;
      if (line.startsWith("}") || line.endsWith("}")) break;
    }
    const { url } = JSON.parse(text);
    const page = await open(`${url}#/ask?${new URLSearchParams({ story })}`, 860);
    await page.getByRole("list", { name: "Most probable answers" }).locator("li").first().waitFor();
    await page.locator(".story-word", { hasText: "wolves" }).first().hover();
    await save(page, "studio-ask.png");
  } finally {
    studio.kill("SIGINT");
    await once(studio, "exit");
    rmSync(runs, { recursive: true, force: true });
  }
}

async function playground() {
  const server = createServer((request, response) => {
    const path = new URL(request.url, "http://localhost").pathname.replace(/\/$/, "/index.html");
    const types = {
      ".html": "text/html",
      ".js": "text/javascript",
      ".mjs": "text/javascript",
      ".css": "text/css",
    };
    const more = { ".svg": "image/svg+xml", ".wasm": "application/wasm" };
    readFile(join(root, "dist/site", path)).then(
      (body) =>
        response.writeHead(200, { "Content-Type": { ...types, ...more }[extname(path)] ?? "" }).end(body),
      () => response.writeHead(404).end(),
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    const page = await open(`http://127.0.0.1:${server.address().port}/`, 1010);
    await page.getByRole("button", { name: "Train", exact: true }).click();
    await page.waitForFunction(
      () => Number.parseFloat(document.querySelector(".figures dd")?.textContent ?? "") >= 90,
      undefined,
      { timeout: 600_000, polling: 1000 },
    );
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByText("paused", { exact: true }).waitFor();
    await page.waitForTimeout(1000);
    await save(page, "playground.png");
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

async function open(address, height) {
  const page = await browser.newPage({ viewport: { width: 1180, height }, colorScheme: "light" });
  await page.goto(address);
  return page;
}

async function save(page, name) {
  const path = join(images, name);
  await page.screenshot({ path });
  const { size } = statSync(path);
  if (size > largest) throw new Error(`${name} has ${size} bytes; at most ${largest} are meant to be`);
  console.log(`${name}: ${size} bytes`);
}
