/**
 * Training from the page: `fwm train` itself in child processes, so that settings, checks and messages are the command's
 * own. Stopping is ^C to it: the run saves and can be resumed. When the studio ends, its runs are saved the same way.
 */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import type { Sink } from "../../cli/screen.ts";
import { shellLine } from "../../cli/shell.ts";
import { UsageError } from "../../errors.ts";
import type { BaseSettings } from "../../experiment/kind.ts";
import { findExperiment, kindOf } from "../../experiment/registry.ts";
import { flatten } from "../../store/flatten.ts";
import type { Job, ResumeRequest, TrainPlan, TrainRequest } from "../api.ts";
import { startChild } from "./childProcess.ts";
import { missing, Refusal } from "./requests.ts";
import type { IndexedRun } from "./runIndex.ts";

/** Lines of output that are kept of a job. */
const keptLines = 40;

interface Process {
  job: Job;
  readonly child: ChildProcess;
  readonly ended: Promise<unknown>;
}

/** How jobs are run. */
export interface JobsOptions {
  /** Absolute path of the folder of runs, and as the user gave it. */
  readonly root: string;
  readonly shown: string;
  /** Runs that may train at once. */
  readonly most?: number;
  /** Called whenever a job changes. */
  readonly onChange?: () => void;
}

/** The training processes of a studio. */
export class Jobs {
  private readonly processes = new Map<string, Process>();
  private closed = false;

  constructor(private readonly options: JobsOptions) {}

  /** All jobs, those that ended last among them. */
  list(): Job[] {
    return [...this.processes.values()].map(({ job }) => job);
  }

  /** Whether this studio trains a run now. */
  isTraining(run: string): boolean {
    const job = this.processes.get(run)?.job;
    return job !== undefined && job.state !== "ended";
  }

  /** Checks a run that is to be started, as `fwm train --print-config` does. */
  async plan(request: TrainRequest): Promise<TrainPlan> {
    const definition = findExperiment(request.experiment);
    if (!definition) throw missing("experiment");
    const words = trainWords(request);
    const checked = await output([...words, "--print-config", "--json"]);
    if (checked.code !== 0) throw new UsageError(checked.stderr.replace(/^error: /, "").trim());
    const { settings, origins } = JSON.parse(checked.stdout) as {
      settings: BaseSettings;
      origins: Readonly<Record<string, string>>;
    };
    refusePlaces(settings, definition.settings);
    const smoke = request.smoke ? "-smoke" : "";
    const name = request.name ?? `${request.experiment}${smoke}-seed${settings.training.seed}`;
    const exists = existsSync(join(this.options.root, name));
    return {
      name,
      command: shellLine("fwm", ...words, "--out", join(this.options.shown, name)),
      settings: Object.entries(flatten(settings)).map(([key, value]) => ({
        key,
        value: String(value),
        from: originOf(key, origins),
      })),
      problem: exists ? `${name} exists already; give the run another name, or resume that one` : null,
    };
  }

  /** Starts a run. */
  async start(request: TrainRequest): Promise<Job> {
    this.refuseMore();
    const { name, command, problem } = await this.plan(request);
    if (problem !== null) throw new Refusal(409, "usage", problem);
    return this.launch(name, command, [...trainWords(request), "--out", join(this.options.root, name)]);
  }

  /** Resumes a run of the list. */
  resume({ summary, path }: IndexedRun, { steps }: ResumeRequest): Job {
    this.refuseMore();
    const { name, state } = summary;
    if (state === "running") throw new Refusal(409, "usage", `${name} is being trained already`);
    const more = steps === undefined ? [] : ["--steps", String(steps)];
    const command = shellLine("fwm", "train", "--resume", join(this.options.shown, name), ...more);
    return this.launch(name, command, ["train", "--resume", path, ...more]);
  }

  /** Stops a run that this studio trains: as ^C, so it saves first. */
  stop(run: string): Job {
    const found = this.processes.get(run);
    if (!found || !this.isTraining(run)) {
      throw new Refusal(409, "usage", "this studio does not train that run; stop it where it was started");
    }
    this.change(found, { state: "stopping" });
    found.child.send("stop", () => undefined);
    return found.job;
  }

  /** Process ids of the runs that train. */
  get pids(): number[] {
    const training = [...this.processes.values()].filter(({ job }) => job.state !== "ended");
    return training.flatMap(({ child }) => child.pid ?? []);
  }

  /** Saves and ends all runs; after `patience` milliseconds they are ended in any case. */
  async close(patience = 60_000): Promise<void> {
    this.closed = true;
    const training = [...this.processes.values()].filter(({ job }) => job.state !== "ended");
    for (const { child } of training) child.send("stop", () => undefined);
    const timer = setTimeout(() => {
      for (const { child } of training) child.kill("SIGKILL");
    }, patience);
    await Promise.all(training.map(({ ended }) => ended));
    clearTimeout(timer);
  }

  private refuseMore(): void {
    if (this.closed) throw new Refusal(503, "busy", "the studio is closing");
    const { most = 2 } = this.options;
    if (this.pids.length < most) return;
    throw new Refusal(409, "busy", `${most} runs train already; wait for one to end, or stop it`);
  }

  private launch(run: string, command: string, words: readonly string[]): Job {
    if (this.isTraining(run)) throw new Refusal(409, "usage", `${run} is being trained already`);
    const child = startChild("trainChild", words, "pipe");
    const started = new Date().toISOString();
    const ended = once(child, "exit").catch(() => undefined);
    const job: Job = { run, command, state: "starting", exitCode: null, tail: [], started };
    const process: Process = { job, child, ended };
    this.processes.set(run, process);
    for (const stream of [child.stdout!, child.stderr!]) {
      let rest = "";
      stream.setEncoding("utf8").on("data", (text: string) => {
        const lines = (rest + text).split(/\r?\n/);
        rest = lines.pop()!.slice(0, 1000);
        this.say(process, lines);
      });
      stream.on("end", () => this.say(process, rest === "" ? [] : [rest]));
    }
    child.once("error", (error) => this.say(process, [error.message]));
    // After the last of its output.
    child.once("close", (code) => this.change(process, { state: "ended", exitCode: code ?? 1 }));
    this.options.onChange?.();
    return job;
  }

  private say(process: Process, lines: readonly string[]): void {
    if (lines.length === 0) return;
    const { job } = process;
    const tail = [...job.tail, ...lines.map((line) => line.slice(0, 1000))].slice(-keptLines);
    this.change(process, { tail, ...(job.state === "starting" ? { state: "running" } : {}) });
  }

  private change(process: Process, change: Partial<Job>): void {
    process.job = { ...process.job, ...change };
    this.options.onChange?.();
  }
}

/** The words of `fwm train` for a request. Every value is a word of its own or behind "=", so none is taken for an option. */
function trainWords({ experiment, smoke, steps, seed, batch, set = [] }: TrainRequest): string[] {
  const numbers = Object.entries({ steps, seed, batch }).flatMap(([option, value]) =>
    value === undefined ? [] : [`--${option}`, String(value)],
  );
  return [
    "train",
    experiment,
    ...(smoke ? ["--smoke"] : []),
    ...numbers,
    ...set.map((each) => `--set=${each}`),
  ];
}

/** Paths come from the command line alone: a page cannot make a run read a folder of its choice. */
function refusePlaces(settings: BaseSettings, usual: BaseSettings): void {
  const path = kindOf(settings).flags.data;
  if (path === undefined || flatten(settings)[path] === flatten(usual)[path]) return;
  throw new UsageError(`${path}: a page cannot choose folders`, {
    hint: "start the run on the command line, or give the studio FWM_DATA",
  });
}

/** Where a setting came from: its own origin, or that of the group it was given in. */
function originOf(key: string, origins: Readonly<Record<string, string>>): string {
  const own = Object.hasOwn(origins, key) ? origins[key] : undefined;
  if (own !== undefined || !key.includes(".")) return own ?? "default";
  return originOf(key.slice(0, key.lastIndexOf(".")), origins);
}

/** What a line of `fwm` says that neither computes nor writes; it is run in this process. */
async function output(words: readonly string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  // Loaded late: the program has the studio among its commands.
  const [{ fwm }, { runProgram }] = await Promise.all([
    import("../../cli/commands.ts"),
    import("../../cli/program.ts"),
  ]);
  const texts = { stdout: "", stderr: "" };
  const sink = (name: "stdout" | "stderr"): Sink => ({
    write(text) {
      texts[name] += text;
    },
  });
  const streams = { stdout: sink("stdout"), stderr: sink("stderr"), stdin: Readable.from([]) };
  const code = await runProgram(fwm, words, { ...streams, env: process.env });
  return { code, ...texts };
}
