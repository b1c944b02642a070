/**
 * What a command writes: results to standard output, everything else (progress, notes, warnings) to standard
 * error. With `--json` standard output carries JSON alone. Commands get an `Output` instead of the process's
 * streams, so that tests run them in-process.
 */
import pc from "picocolors";
import { printable } from "../errors.ts";
import { type Progress, type ProgressSpec, startProgress } from "./progress.ts";
import { colorCode, columnsOf, Screen, type Sink } from "./screen.ts";

/** The streams and environment a program runs with. */
export interface Surroundings {
  readonly stdout: Sink;
  readonly stderr: Sink;
  readonly stdin: NodeJS.ReadableStream;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Functions that colour a text, or leave it as it is where colour is not wanted. */
export type Colors = ReturnType<typeof pc.createColors>;

/** How a command was asked to write: the flags that every command has. */
export interface OutputFlags {
  readonly json: boolean;
  readonly quiet: boolean;
  readonly verbose: boolean;
  /** False after `--no-color`. */
  readonly color: boolean;
}

/** Whether a stream gets colour: never after `--no-color` or NO_COLOR, always with FORCE_COLOR, else on a terminal. */
export function wantsColor(sink: Sink, env: Surroundings["env"], flag = true): boolean {
  if (!flag || env.NO_COLOR) return false;
  if (env.FORCE_COLOR !== undefined && env.FORCE_COLOR !== "") return env.FORCE_COLOR !== "0";
  return sink.isTTY === true && env.TERM !== "dumb" && !inCI(env);
}

function inCI(env: Surroundings["env"]): boolean {
  return env.CI !== undefined && env.CI !== "" && env.CI !== "false" && env.CI !== "0";
}

/** Where one command's results and notes go. */
export class Output {
  readonly json: boolean;
  readonly quiet: boolean;
  readonly verbose: boolean;
  /** Whether standard output is a terminal. */
  readonly isTTY: boolean;
  /** Columns of the terminal, or 80. */
  readonly columns: number;
  /** Columns that a table may take: the terminal's; in files and pipes there is no limit. */
  readonly tableWidth: number;
  /** Colours for standard output. */
  readonly color: Colors;
  /** Colours for standard error. */
  readonly noteColor: Colors;
  readonly #stdout: Sink;
  readonly #stderr: Sink;
  readonly #bars: boolean;
  readonly #screen = new Screen();
  #resultGiven = false;

  constructor({ stdout, stderr, env }: Surroundings, flags: OutputFlags) {
    this.json = flags.json;
    this.quiet = flags.quiet;
    this.verbose = flags.verbose;
    this.isTTY = stdout.isTTY === true;
    this.columns = columnsOf(stdout);
    this.tableWidth = this.isTTY ? this.columns : Number.POSITIVE_INFINITY;
    this.color = pc.createColors(wantsColor(stdout, env, flags.color));
    this.noteColor = pc.createColors(wantsColor(stderr, env, flags.color));
    this.#stdout = stdout;
    this.#stderr = stderr;
    this.#bars = stderr.isTTY === true && !inCI(env) && !flags.json;
  }

  /** The command's result: `document` as JSON with `--json`, otherwise the text. Once per command. */
  result(document: unknown, text: string | (() => string)): void {
    if (this.#resultGiven) throw new Error("a command has one result; use record() for a stream of them");
    this.#resultGiven = true;
    this.#give(document, text, 2);
  }

  /** One of a stream of results: a line of JSON with `--json`, otherwise the text. */
  record(document: unknown, text: string | (() => string)): void {
    this.#give(document, text);
  }

  #give(document: unknown, text: string | (() => string), indent?: number): void {
    const written = this.json
      ? terminalJson(JSON.stringify(document, null, indent))
      : terminalText(typeof text === "string" ? text : text(), this.color);
    this.#screen.write(this.#stdout, ended(written));
  }

  /** A piece of a text that comes bit by bit, as it is; the caller ends the line. */
  write(text: string): void {
    this.#screen.write(this.#stdout, terminalText(text, this.color));
  }

  /** A note for people, left out with `--quiet`. */
  note(text: string): void {
    if (!this.quiet) this.#screen.write(this.#stderr, ended(terminalText(text, this.noteColor)));
  }

  /** A detail, only with `--verbose`. */
  detail(text: string): void {
    if (this.verbose) this.#screen.write(this.#stderr, ended(this.noteColor.dim(printable(text))));
  }

  /** Something the user should know before trusting the result; `--quiet` does not hide it. */
  warn(text: string): void {
    this.#screen.write(this.#stderr, ended(`${this.noteColor.yellow("warning:")} ${printable(text)}`));
  }

  /** A progress bar on a terminal's standard error, plain lines elsewhere, nothing with `--quiet`. */
  progress(spec: ProgressSpec): Progress {
    return startProgress(this.#screen, this.quiet ? undefined : this.#stderr, this.#bars, spec);
  }

  /** A picture on a terminal's standard output, in the place of the one before. */
  frame(text: string): void {
    this.#screen.draw(this.#stdout, terminalText(text, this.color));
  }

  /** Leaves a bar or picture where it is, and goes on below: before the program ends, or something else is written. */
  settle(): void {
    this.#screen.keep();
  }
}

/** A text whose colours, where there are any, are all that it can do to a terminal. */
function terminalText(text: string, { isColorSupported }: Colors): string {
  if (!isColorSupported) return printable(text);
  const parts = text.split(colorCode);
  return parts.map((part, i) => (i % 2 === 0 ? printable(part) : part)).join("");
}

/** JSON escapes most control characters by itself; the others are escaped as it would. */
function terminalJson(json: string): string {
  return json.replace(/\p{Cc}/gu, (char) =>
    char === "\n" ? char : `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

function ended(text: string): string {
  return text.endsWith("\n") ? text : text + "\n";
}
