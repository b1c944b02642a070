/**
 * How the studio holds up: `node dist/bench/studio.js [--runs 200] [--points 2000] [--asks 1000] [--rounds 5]`.
 *
 * Made-up runs in a temporary folder, `fwm studio` as it is installed, and requests as pages send them: the first list and
 * curves, what a change costs after that, the time of an answer, and many asks at once with the memory they leave behind.
 * With Chromium also the page itself: until all curves are drawn, and the frames while the pointer moves over them.
 */
import { execFileSync, spawn } from "node:child_process";
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { formatStories } from "../src/babi/format.ts";
import { generateStory, tasks } from "../src/babi/generator/generate.ts";
import "../experiments/index.ts";
import { findExperiment } from "../src/experiment/registry.ts";
import { median } from "../src/statistics.ts";
import { thisProcess } from "../src/store/lock.ts";
import { programFolder } from "../src/store/programFolder.ts";
import { describeEnvironment, newRecord, type RunRecord } from "../src/store/runRecord.ts";
import {
  type AskAnswer,
  type MetricsAnswer,
  type MetricsRequest,
  type RunsAnswer,
  routes,
} from "../src/studio/api.ts";

const { values: given } = parseArgs({
  options: {
    runs: { type: "string", default: "200" },
    points: { type: "string", default: "2000" },
    asks: { type: "string", default: "1000" },
    rounds: { type: "string", default: "5" },
  },
});
const [runCount, pointCount, askCount, rounds] = [given.runs, given.points, given.asks, given.rounds].map(
  Number,
) as [number, number, number, number];

const folder = mkdtempSync(join(tmpdir(), "fwm-studio-bench-"));
const name = (i: number): string => `run-${String(i).padStart(3, "0")}`;

function line(step: number, i: number): string {
  const loss = 3 * Math.exp(-step / (pointCount * 5)) + 0.1 * Math.sin(step * 12.9898 + i);
  const values = { loss, gradNorm: 1 + loss, accuracy: 1 - loss / 3, fallbacks: 0, learningRate: 1e-3 };
  const times = { at: 1_700_000_000 + step / 3, tokensPerSecond: 15_000 };
  return `${JSON.stringify({ step, split: "train", values, times })}\n`;
}

function writeRuns(): void {
  const { settings } = findExperiment("catbabi-qa-fwm")!;
  for (let i = 0; i < runCount; i++) {
    const about = {
      experiment: "catbabi-qa-fwm",
      settings: settings as unknown as RunRecord["settings"],
      seed: i,
      command: ["fwm", "train", "catbabi-qa-fwm"],
      packageVersion: "0",
      gitCommit: null,
      environment: describeEnvironment({ threads: 1 }),
    };
    const record: RunRecord = {
      ...newRecord(about, new Date(1.7e12 + i * 1000).toISOString()),
      state: "finished",
    };
    // The first is being trained, so that the studio follows its log.
    const live = {
      ...record,
      state: "running" as const,
      process: thisProcess(),
      updated: new Date().toISOString(),
    };
    mkdirSync(join(folder, name(i)));
    writeFileSync(join(folder, name(i), "run.json"), JSON.stringify(i === 0 ? live : record));
    const lines = Array.from({ length: pointCount }, (_, k) => line((k + 1) * 10, i));
    writeFileSync(join(folder, name(i), "metrics.jsonl"), lines.join(""));
  }
}

/** Stories of the generator up to their first question: what people ask, about 20 to 100 words. */
function story(i: number): string {
  const made = generateStory({ task: tasks[i % tasks.length]!, seed: 7, index: i });
  const end = made.lines.findIndex(({ kind }) => kind === "question") + 1;
  return formatStories([{ ...made, lines: made.lines.slice(0, end) }]);
}

async function startStudio(): Promise<{ url: string; pid: number; stop: () => void }> {
  const words = [join(programFolder(), "bin/fwm.js"), "studio", "--runs", folder, "--port", "0", "--json"];
  const child = spawn(process.execPath, words, { stdio: ["ignore", "pipe", "inherit"] });
  const text = await new Promise<string>((resolve) => {
    let said = "";
    child.stdout.setEncoding("utf8").on("data", (part: string) => {
      said += part;
      if (said.trimEnd().endsWith("}")) resolve(said);
    });
  });
  const { url } = JSON.parse(text) as { url: string };
  return { url, pid: child.pid!, stop: () => child.kill("SIGINT") };
}

async function timed<T>(act: () => Promise<T>): Promise<[result: T, ms: number]> {
  const begin = performance.now();
  const result = await act();
  return [result, performance.now() - begin];
}

/** Resident memory of a process, in MB. */
function memory(pid: number): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kilobytes) / 1024;
}

/** Seconds that a process has computed: on a machine that others use too it says more than the clock. */
function computed(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /, "")
    .split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

function childrenOf(pid: number): number[] {
  const text = execFileSync("ps", ["-o", "pid=", "--ppid", String(pid)], { encoding: "utf8" });
  return text.trim().split(/\s+/).map(Number);
}

function say(what: string, value: string): void {
  process.stdout.write(`${what.padEnd(58)} ${value}\n`);
}

/** The value that a share of all are not above. */
function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)]!;
}

const ms = (value: number): string => `${value < 10 ? value.toFixed(1) : value.toFixed(0)} ms`;
const spread = (values: readonly number[]): string =>
  `median ${ms(median(values))}, p99 ${ms(quantile(values, 0.99))}, most ${ms(Math.max(...values))}`;

writeRuns();
const studio = await startStudio();
const origin = studio.url.replace(/\/$/, "");
const get = async <T>(path: string): Promise<T> => (await (await fetch(origin + path)).json()) as T;
const post = async <T>(path: string, body: unknown): Promise<T> => {
  const headers = { "content-type": "application/json" };
  const answer = await fetch(origin + path, { method: "POST", headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as T;
};

try {
  say("runs, points of each", `${runCount}, ${pointCount}`);
  const cpu = (before: number, pid = studio.pid): string =>
    `${(computed(pid) - before).toFixed(2)} s of computing`;
  let before = computed(studio.pid);
  const [listed, firstList] = await timed(() => get<RunsAnswer>(routes.runs.path));
  say(`first list of ${listed.runs.length} runs`, `${ms(firstList)}, ${cpu(before)}`);
  const [, nextList] = await timed(() => get<RunsAnswer>(`${routes.runs.path}?since=${listed.cursor}`));
  say("list again, nothing changed", ms(nextList));

  const parts = Array.from({ length: Math.ceil(runCount / 50) }, (_, k) =>
    listed.runs.slice(50 * k, 50 * (k + 1)).map((run) => ({ name: run.name })),
  );
  const cursors: { name: string; cursor: string }[] = [];
  let sent = 0;
  before = computed(studio.pid);
  const [, firstCurves] = await timed(async () => {
    for (const runs of parts) {
      const body: MetricsRequest = { runs, series: ["train/loss"], points: 800, smoothing: 0.9 };
      const answer = await post<MetricsAnswer>(routes.metrics.path, body);
      sent += JSON.stringify(answer).length;
      cursors.push(...answer.runs.map((run) => ({ name: run.name, cursor: run.cursor })));
    }
  });
  say(`curves of all runs, first time (${(sent / 1e6).toFixed(1)} MB)`, `${ms(firstCurves)}, ${cpu(before)}`);
  const update: number[] = [];
  let size = 0;
  for (let i = 0; i < 30; i++) {
    appendFileSync(join(folder, name(0), "metrics.jsonl"), line((pointCount + 1 + i) * 10, 0));
    const body: MetricsRequest = { runs: [cursors[0]!], series: ["train/loss"], points: 800, smoothing: 0.9 };
    const [answer, took] = await timed(() => post<MetricsAnswer>(routes.metrics.path, body));
    cursors[0] = { name: name(0), cursor: answer.runs[0]!.cursor };
    size = JSON.stringify(answer).length;
    update.push(took);
  }
  say(`a new point of one curve (${size} bytes)`, spread(update));
  say("memory of the server", `${memory(studio.pid).toFixed(0)} MB`);

  const ask = (i: number): Promise<AskAnswer> =>
    post<AskAnswer>(routes.ask.path, { model: { id: "shipped:catbabi-qa" }, story: story(i) });
  await ask(0);
  const [child] = childrenOf(studio.pid);
  before = computed(child!);
  const single: number[] = [];
  const lengths: number[] = [];
  for (let i = 1; i <= 100; i++) {
    const [answer, took] = await timed(() => ask(i));
    single.push(took);
    lengths.push(answer.tokens.length);
  }
  say(`an answer, one at a time (${median(lengths)} words in the median)`, spread(single));
  say("what the model computes for an answer", ms(10 * (computed(child!) - before)));

  for (let round = 1; round <= rounds; round++) {
    const times: number[] = [];
    const [serverBefore, modelBefore] = [computed(studio.pid), computed(child!)];
    const [answers, whole] = await timed(() =>
      Promise.all(
        Array.from({ length: askCount }, async (_, i) => {
          const [answer, took] = await timed(() => ask(1000 * round + i));
          times.push(took);
          return answer;
        }),
      ),
    );
    const per = (pid: number, since: number): string => ms((1000 * (computed(pid) - since)) / askCount);
    const lost = askCount - answers.filter(({ questions }) => questions.length === 1).length;
    say(
      `round ${round}: ${askCount} asks at once, ${lost} lost, ${((1000 * askCount) / whole).toFixed(0)} per second`,
      `${spread(times)}; computing per ask ${per(studio.pid, serverBefore)} server, ${per(child!, modelBefore)} model; ` +
        `memory ${memory(studio.pid).toFixed(0)} MB server, ${memory(child!).toFixed(0)} MB model`,
    );
  }
  await measurePage();
} finally {
  studio.stop();
  rmSync(folder, { recursive: true, force: true });
}

/** The page with all runs compared: until it is drawn, and frames while the pointer moves and points come in. */
async function measurePage(): Promise<void> {
  const script = join(programFolder(), "scripts/install-chromium.mjs");
  let executablePath: string;
  try {
    executablePath = execFileSync(process.execPath, [script, "--find"], { encoding: "utf8" }).trim();
  } catch {
    say("the page", "not measured: there is no Chromium");
    return;
  }
  const { chromium } = await import("playwright");
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
  try {
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
    const chosen = Array.from({ length: runCount }, (_, i) => name(i)).join("\n");
    const address = `${origin}/#/runs?${new URLSearchParams({ sel: chosen, series: "train/loss", smooth: "0.9" })}`;
    const [, drawn] = await timed(async () => {
      await page.goto(address);
      await page.getByText(`and ${runCount - 24} more`).waitFor();
    });
    say(`the page with ${runCount} curves is drawn after`, ms(drawn));
    const box = (await page.locator(".curve-chart-box").boundingBox())!;
    const frames = page.evaluate(async () => {
      const gaps: number[] = [];
      let last = performance.now();
      for (const end = last + 5000; last < end; ) {
        const now = await new Promise<number>((resolve) => requestAnimationFrame(resolve));
        gaps.push(now - last);
        last = now;
      }
      return gaps.slice(1);
    });
    for (let i = 0; i < 100; i++) {
      await page.mouse.move(box.x + 80 + ((box.width - 120) * i) / 100, box.y + 100 + (i % 50));
      if (i % 20 === 0) {
        appendFileSync(join(folder, name(0), "metrics.jsonl"), line((pointCount + 100 + i) * 10, 0));
      }
      await new Promise((resolve) => setTimeout(resolve, 40));
    }
    say("frames while the pointer moves and points come in", spread(await frames));
  } finally {
    await browser.close();
  }
}
