/**
 * Running the program in-process: its streams are kept as text.
 */
import { EventEmitter } from "node:events";
import { Readable } from "node:stream";
import { fwm } from "../../src/cli/commands.ts";
import { type CommandLine, runProgram } from "../../src/cli/program.ts";
import type { Sink } from "../../src/cli/screen.ts";
import type { SignalSource } from "../../src/cli/signals.ts";

/** A sink that remembers what was written to it. */
export class Written implements Sink {
  text = "";
  readonly isTTY: boolean;
  readonly columns = 100;

  constructor(isTTY = false) {
    this.isTTY = isTTY;
  }

  write(text: string): void {
    this.text += text;
  }
}

/** A stand-in for the process: signals are emitted by hand, and the exit is noted. */
export class FakeProcess extends EventEmitter implements SignalSource {
  exited: number | undefined;
  exit(code: number): void {
    this.exited ??= code;
  }
}

/** How a program is run in a test. */
export interface RunSettings {
  readonly program?: CommandLine;
  readonly env?: Record<string, string>;
  readonly terminal?: boolean;
  readonly signals?: SignalSource;
  /** What is typed in or piped in. */
  readonly typed?: string;
}

/** Runs a command line; returns its exit code and what it wrote. */
export async function run(argv: readonly string[], settings: RunSettings = {}) {
  const { program = fwm, env = {}, terminal = false, signals, typed } = settings;
  const stdout = new Written(terminal);
  const stderr = new Written(terminal);
  const surroundings = { stdout, stderr, stdin: Readable.from(typed === undefined ? [] : [typed]), env };
  const code = await runProgram(program, argv, surroundings, signals);
  return { code, stdout: stdout.text, stderr: stderr.text };
}
