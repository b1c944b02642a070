/** A sweep of very many members that do nothing, over a real Redis: how fast they pass, and what the sweep holds in memory. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { packageVersion } from "../src/cli/version.ts";
import { requireExperiment } from "../src/experiment/registry.ts";
import { withSetting } from "../src/experiment/settings.ts";
import { sweepMembers } from "../src/experiment/sweep/members.ts";
import { runSweep } from "../src/experiment/sweep/run.ts";
import { redisQueue } from "../src/queue/redisQueue.ts";
import { listRuns } from "../src/store/runRecord.ts";
import "./trivialKind.ts";

/** What was measured. */
export interface SweepLoad {
  readonly members: number;
  readonly workers: number;
  readonly seconds: number;
  readonly perSecond: number;
  /** Of the sweep's process, in MB: when so many members had ended. */
  readonly memory: readonly { readonly ended: number; readonly heapMB: number; readonly rssMB: number }[];
  /** Listing all runs, in milliseconds. */
  readonly listMs: number;
}

/** Runs the sweep; `redis` is the path of redis-server. */
export async function benchSweepLoad(options: {
  readonly members: number;
  readonly workers: number;
  readonly redis: string;
  readonly onNote: (text: string) => void;
}): Promise<SweepLoad> {
  const { members: count, workers, redis, onNote } = options;
  const scratch = await mkdtemp(join(tmpdir(), "fwm-sweep-load-"));
  const port = await freePort();
  const children: ChildProcess[] = [];
  const spawned = (path: string, argv: readonly string[]): void => {
    children.push(spawn(path, argv, { stdio: ["ignore", "ignore", "inherit"] }));
  };
  try {
    spawned(redis, ["--port", `${port}`, "--bind", "127.0.0.1", "--save", "", "--loglevel", "warning"]);
    const queueUrl = `redis://127.0.0.1:${port}`;
    const program = [
      "--import",
      here("./trivialKind"),
      here("../src/cli/main"),
      "worker",
      "--queue",
      queueUrl,
    ];
    const loader = import.meta.url.endsWith(".ts") ? ["--import", "tsx"] : [];
    for (let i = 0; i < workers; i++) {
      spawned(process.execPath, [
        ...[...loader, ...program, "--quiet", "--threads", "1", "--scratch", join(scratch, "workers")],
      ]);
    }
    const { settings } = requireExperiment("trivial");
    const out = join(scratch, "sweep");
    const members = sweepMembers(
      { vary: [], each: [], seeds: Array.from({ length: count }, (_, i) => i + 1) },
      { experiment: "trivial", out },
      ([seed]) => withSetting(settings, "training.seed", Number(seed!.value)),
    );
    const about = {
      command: ["bench"],
      packageVersion: packageVersion(),
      signal: new AbortController().signal,
    };
    const quiet = { onNote, onWarning: onNote };
    const queue = await redisQueue({ ...about, ...quiet, queue: queueUrl, sweep: "load", weights: false });
    const memory: { ended: number; heapMB: number; rssMB: number }[] = [];
    let ended = 0;
    let begin = performance.now();
    const onEnd = (): void => {
      // The first one has waited for the workers to start.
      if (++ended === 1) begin = performance.now();
      if (ended % Math.ceil(count / 10) !== 0) return;
      globalThis.gc?.();
      const { heapUsed, rss } = process.memoryUsage();
      memory.push({ ended, heapMB: Math.round(heapUsed / 2 ** 20), rssMB: Math.round(rss / 2 ** 20) });
      onNote(`${ended} members after ${((performance.now() - begin) / 1000).toFixed(0)} s`);
    };
    await runSweep(members, { ...about, ...quiet, env: process.env, queue, callbacks: { onEnd } });
    const seconds = (performance.now() - begin) / 1000;
    const listBegin = performance.now();
    await listRuns(out);
    const listMs = Math.round(performance.now() - listBegin);
    return { members: count, workers, seconds, perSecond: (count - 1) / seconds, memory, listMs };
  } finally {
    for (const child of children) child.kill("SIGTERM");
    await setTimeout(500);
    await rm(scratch, { recursive: true, force: true });
  }
}

function here(path: string): string {
  return fileURLToPath(new URL(path + (import.meta.url.endsWith(".ts") ? ".ts" : ".js"), import.meta.url));
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}
