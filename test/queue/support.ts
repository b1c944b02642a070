/** Shared by tests of the queue: a Redis, a network that can be cut, and the program in processes of its own. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { copyFileSync, existsSync, readFileSync, symlinkSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { promisify } from "node:util";
import type { SweepResult } from "../../src/report/sweep.ts";

const root = join(import.meta.dirname, "../..");

/** Password of the tests' Redis: it may appear nowhere. */
export const password = "open-sesame-4711";

/** Path of `redis-server`, installed first where that is possible; empty where it is not, which is an error in CI. */
export const redisServer = await promisify(execFile)(process.execPath, [
  join(root, "scripts/install-redis.mjs"),
]).then(
  ({ stdout }) => stdout.trim(),
  ({ stderr }: { stderr: string }) => {
    if (process.env.CI === "true") throw new Error(stderr.trim());
    return "";
  },
);

const running = new Set<ChildProcess>();

/** A port that nobody listens on. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Starts a Redis that keeps nothing on disk; gives what stops it, as a power cut would. */
export async function startRedis(port: number, extra?: readonly string[]): Promise<() => Promise<void>> {
  const server = spawn(redisServer, [
    ...(extra ?? ["--port", String(port)]),
    ...["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"],
    ...["--requirepass", password, "--loglevel", "warning"],
  ]);
  running.add(server);
  const ended = new Promise<void>((resolve) => {
    server.once("close", () => {
      running.delete(server);
      resolve();
    });
  });
  await until(() => answers(port));
  return async () => {
    server.kill("SIGKILL");
    await ended;
  };
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}

/** A way to a port that can be cut: nothing passes, and no connection is refused, until it is mended. */
export async function startNetwork(target: number) {
  const sockets = new Set<Socket>();
  let isCut = false;
  const server = createServer((from) => {
    const to = connect(target, "127.0.0.1");
    for (const [one, other] of [
      [from, to],
      [to, from],
    ] as const) {
      sockets.add(one);
      if (isCut) one.pause();
      one.on("data", (data) => void (other.destroyed || other.write(data)));
      one.on("close", () => {
        sockets.delete(one);
        other.destroy();
      });
      one.on("error", () => undefined);
      if (isCut) one.pause();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as { port: number }).port,
    cut(): void {
      isCut = true;
      for (const socket of sockets) socket.pause();
    },
    mend(): void {
      isCut = false;
      for (const socket of sockets) socket.resume();
    },
    async close(): Promise<void> {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A program that runs. */
export interface Running {
  readonly child: ChildProcess;
  /** All it has written to both streams. */
  output(): string;
  /** Its exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>;
  /** Waits until it has written something; fails with all it wrote if it ends before. */
  says(text: string | RegExp): Promise<void>;
}

/** Bundles the program as its sources are now into a folder: dozens of processes start several times as fast. */
export async function buildProgram(folder: string): Promise<void> {
  const { build } = await import("vite");
  const input = {
    main: "src/cli/main.ts",
    memberMain: "src/queue/memberMain.ts",
    preload: "test/queue/preload.ts",
  };
  await build({
    ...{ configFile: false, root, logLevel: "warn" },
    build: {
      ...{
        ssr: true,
        outDir: folder,
        target: "node20",
        minify: false,
        copyPublicDir: false,
        emptyOutDir: true,
      },
      rolldownOptions: { input, output: { entryFileNames: "[name].js", chunkFileNames: "[name]-[hash].js" } },
    },
  });
  copyFileSync(join(root, "package.json"), join(folder, "package.json"));
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  programFolder = folder;
}

let programFolder = "";

/** Starts `fwm`, with the toy kind unless told otherwise. */
export function start(
  argv: readonly string[],
  env: Record<string, string> = {},
  { knowsToy = true } = {},
): Running {
  const preload = knowsToy ? ["--import", join(programFolder, "preload.js")] : [];
  const child = spawn(process.execPath, [...preload, join(programFolder, "main.js"), ...argv], {
    cwd: programFolder,
    env: { ...process.env, NO_COLOR: "1", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  running.add(child);
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => (text += chunk.toString()));
  }
  let end: number | string | undefined;
  const ended = new Promise<number | string>((resolve) => {
    child.once("close", (code, signal) => {
      running.delete(child);
      resolve((end = signal ?? code ?? -1));
    });
  });
  return {
    child,
    ended,
    output: () => text,
    async says(wanted) {
      const isThere = (): boolean => (typeof wanted === "string" ? text.includes(wanted) : wanted.test(text));
      await until(() => {
        if (!isThere() && end !== undefined)
          throw new Error(`ended with ${end} before saying ${wanted}:\n${text}`);
        return isThere();
      });
    },
  };
}

/** Ends whatever a failed test left running. */
export function endAll(): void {
  for (const child of running) child.kill("SIGKILL");
}

/** Waits for something to become true. */
export async function until(isTrue: () => boolean | Promise<boolean>, seconds = 60): Promise<void> {
  for (let i = 0; !(await isTrue()); i++) {
    if (i > seconds * 50) throw new Error(`still not so after ${seconds} s: ${isTrue.toString()}`);
    await setTimeout(20);
  }
}

/** Waits for a file. */
export const appears = (path: string): Promise<void> => until(() => existsSync(path));

/** A result file, without what the machine and the clock decide; how long a toy's step takes is of the clock. */
export function filed(path: string): object {
  const document = JSON.parse(readFileSync(path, "utf8"), (key, value: unknown) =>
    key === "pause" ? undefined : value,
  ) as SweepResult;
  const { date: _, machine: __, hours: ___, command: ____, commit: _____, members, ...rest } = document;
  return {
    ...rest,
    // A commit may be made while this runs.
    members: members.map(({ hours: _h, speed: _s, commits: _c, machine: _m, ...member }) => member),
  };
}
