/** A studio over a folder of made-up runs, and requests that can say anything. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
// Registers the experiments, as the command line does.
import "../../experiments/index.ts";
import { findExperiment } from "../../src/experiment/registry.ts";
import { describeEnvironment, newRecord, type RunRecord } from "../../src/store/runRecord.ts";
import { type StudioOptions, startStudio } from "../../src/studio/server/studio.ts";

/** A folder that goes when the tests of the file are done. */
export function scratch(name: string): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), `fwm-studio-${name}-`)));
  afterAll(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

/** Starts a studio that is closed when the tests of the file are done. */
export async function studio(options: Partial<StudioOptions> & Pick<StudioOptions, "runs">) {
  const started = await startStudio({
    port: 0,
    version: "0.0.0",
    pages: "/nowhere",
    interval: 50,
    ...options,
  });
  afterAll(() => started.close());
  return started;
}

/** `fwm studio` as it is installed: a process of its own, from `dist/`. */
export interface StudioProcess {
  readonly child: ChildProcess;
  readonly port: number;
  readonly url: string;
}

/** Starts `fwm studio`; `npm test` has built it. */
export async function studioProcess(runs: string, port = 0): Promise<StudioProcess> {
  mkdirSync(runs, { recursive: true });
  const binary = join(import.meta.dirname, "../../bin/fwm.js");
  const words = [binary, "studio", "--port", String(port), "--runs", runs, "--json"];
  const child = spawn(process.execPath, words, { stdio: ["ignore", "pipe", "pipe"] });
  const text = await new Promise<string>((resolve, reject) => {
    let [said, told] = ["", ""];
    child.stderr.setEncoding("utf8").on("data", (part: string) => {
      told += part;
    });
    child.stdout.setEncoding("utf8").on("data", (part: string) => {
      said += part;
      if (said.trimEnd().endsWith("}")) resolve(said);
    });
    child.once("exit", () => reject(new Error(`fwm studio ended: ${told}`)));
  });
  const { url } = JSON.parse(text) as { url: string };
  return { child, url, port: Number(new URL(url).port) };
}

/** Whether a process is still there. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** What a request says. */
export interface Asked {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** Sent as it is, in pieces, without a length. */
  readonly raw?: string;
  readonly host?: string;
}

/** An answer. */
export interface Answered {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  json<T>(): T;
}

/** Sends a request to a port of this machine; a body is JSON unless the headers say otherwise. */
export function send(port: number, { method, path, headers, body, raw, host }: Asked): Promise<Answered> {
  const text = raw ?? (body === undefined ? undefined : JSON.stringify(body));
  return new Promise((resolve, reject) => {
    const asked = httpRequest(
      {
        host: host ?? "127.0.0.1",
        port,
        path,
        method: method ?? (text === undefined ? "GET" : "POST"),
        headers: { ...(text === undefined ? {} : { "content-type": "application/json" }), ...headers },
        agent: false,
      },
      (answer) => {
        let received = "";
        answer.setEncoding("utf8").on("data", (part: string) => {
          received += part;
        });
        answer.on("end", () =>
          resolve({
            status: answer.statusCode!,
            headers: answer.headers,
            text: received,
            json: <T>() => JSON.parse(received) as T,
          }),
        );
        answer.on("error", reject);
      },
    );
    asked.on("error", reject);
    asked.end(text);
  });
}

/** One line of a made-up log. */
export interface Line {
  readonly step: number;
  readonly split?: string;
  readonly values: Readonly<Record<string, number | string>>;
  readonly at?: number;
  readonly times?: Readonly<Record<string, number>>;
}

/** The record of a made-up run of an experiment. */
export function record(experiment: string, change: Partial<RunRecord> = {}): RunRecord {
  const { settings } = findExperiment(experiment)!;
  return {
    ...newRecord(
      {
        experiment,
        settings: settings as unknown as RunRecord["settings"],
        seed: 1,
        command: ["fwm", "train", experiment],
        packageVersion: "0.1.0",
        gitCommit: null,
        environment: describeEnvironment({ threads: 1, ort: "1.30.0", device: "cpu" }),
      },
      "2026-01-01T00:00:00.000Z",
    ),
    state: "finished",
    ...change,
  };
}

/** Writes a run folder that nobody trains. */
export function writeRun(folder: string, content: RunRecord, lines: readonly Line[] = []): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "run.json"), JSON.stringify(content));
  if (lines.length > 0) writeFileSync(join(folder, "metrics.jsonl"), logOf(lines));
}

/** Lines as `metrics.jsonl` has them. */
export function logOf(lines: readonly Line[]): string {
  return lines
    .map(
      ({ step, split = "train", values, at = step, times = {} }) =>
        `${JSON.stringify({ step, split, values, times: { at, ...times } })}\n`,
    )
    .join("");
}
