/**
 * The `fwm` program: a list of commands becomes a parser with help, and one command line becomes an exit code.
 *
 * Commander splits the line into names and texts and writes the help. Reading the texts as values, the order
 * flag > environment > default, messages and exit codes are here, so that they are the same everywhere.
 */
import { CommanderError, type Command as Parser, Command as ParserClass } from "commander";
import { exitCode, type FwmError, nearest, UsageError } from "../errors.ts";
import { type Command, type CommandEntry, type Origin, optionFlag } from "./command.ts";
import { describeError } from "./failure.ts";
import { Output, type OutputFlags, type Surroundings } from "./output.ts";
import type { AnyParam } from "./params.ts";
import { type SignalSource, watchSignals } from "./signals.ts";

/** What the program is made of. */
export interface CommandLine {
  readonly name: string;
  readonly summary: string;
  readonly version: string;
  readonly commands: readonly CommandEntry[];
}

const commonFlags: Readonly<Record<keyof OutputFlags, [flags: string, help: string]>> = {
  json: ["--json", "one JSON document on standard output, nothing else"],
  quiet: ["--quiet", "no progress or notes; warnings and errors stay"],
  verbose: ["--verbose", "more detail on standard error"],
  color: ["--no-color", "plain text (as with NO_COLOR=1; FORCE_COLOR=1 forces colour)"],
};

/** Runs one command line and returns its exit code. Nothing is thrown: every failure becomes a message. */
export async function runProgram(
  program: CommandLine,
  argv: readonly string[],
  surroundings: Surroundings,
  signals?: SignalSource,
): Promise<number> {
  const { stdout, stderr, env } = surroundings;
  // Until the line is parsed, colour is decided by the raw arguments.
  let out = new Output(surroundings, flagsOf({ color: !argv.includes("--no-color") }));
  try {
    let chosen: { command: Command; parser: Parser } | undefined;
    const root = new ParserClass(program.name)
      .description(program.summary)
      .version(program.version, "--version", "print the version")
      .exitOverride()
      .showSuggestionAfterError(false)
      .configureHelp({ showGlobalOptions: true })
      .configureOutput({
        writeOut: (text) => void stdout.write(text),
        writeErr: (text) => void stderr.write(text),
        outputError: () => {},
        getOutHelpWidth: () => Math.min(stdout.columns || 80, 110),
        getErrHelpWidth: () => Math.min(stderr.columns || 80, 110),
        getOutHasColors: () => false,
        getErrHasColors: () => false,
      })
      .helpOption("-h, --help", "show this help")
      .helpCommand("help [command]", "show the help of a command");
    for (const [flags, help] of Object.values(commonFlags)) root.option(flags, help);
    for (const entry of program.commands) addEntry(root, entry, (pick) => (chosen = pick));
    refuseUnknownHelp(program, root, argv);
    try {
      root.parse(argv, { from: "user" });
    } catch (error) {
      if (!(error instanceof CommanderError)) throw error;
      return endOfParsing(error, program, root, argv);
    }
    if (chosen === undefined) throw new Error("the parser chose no command");
    const { command, parser } = chosen;
    out = new Output(surroundings, flagsOf(root.opts()));
    const { args, options, origins } = readValues(command, parser, env);
    const watch = watchSignals(command.blocking ? undefined : signals, command.graceful, out);
    try {
      const ending = await command.run({
        args,
        options,
        origins,
        out,
        signal: watch.signal,
        env,
        stdin: surroundings.stdin,
      });
      if (ending === "finished") return exitCode.ok;
    } catch (error) {
      if (watch.exitCode() === undefined || !watch.isAbort(error)) throw error;
    } finally {
      watch.stop();
    }
    return watch.exitCode() ?? exitCode.ok;
  } catch (error) {
    const { text, code } = describeError(error, out.noteColor);
    stderr.write(text + "\n");
    return code;
  }
}

function flagsOf(given: Partial<OutputFlags>): OutputFlags {
  return { json: false, quiet: false, verbose: false, color: true, ...given };
}

function addEntry(
  parent: Parser,
  entry: CommandEntry,
  choose: (pick: { command: Command; parser: Parser }) => void,
): void {
  const parser = parent.command(entry.name).summary(entry.summary);
  if (entry.kind === "group") {
    parser.description(entry.summary);
    for (const child of entry.commands) addEntry(parser, child, choose);
    return;
  }
  parser.description([entry.summary, entry.details].filter(Boolean).join("\n\n"));
  for (const [name, param] of Object.entries(entry.args)) {
    const isOptional = param.absent !== undefined && !param.required;
    const shown = param.takes === "many" ? `${name}...` : name;
    parser.argument(isOptional ? `[${shown}]` : `<${shown}>`, helpOf({ ...param, required: false }));
  }
  for (const [name, param] of Object.entries(entry.options)) {
    const flags = optionFlag(name);
    const help = helpOf(param);
    const collect = (text: string, before: readonly string[] | undefined) => [...(before ?? []), text];
    if (param.takes === "many") parser.option(`${flags} <${param.placeholder}>`, help, collect);
    else if (param.takes === "one") parser.option(`${flags} <${param.placeholder}>`, help);
    else if (param.takes === "maybe") parser.option(`${flags} [${param.placeholder}]`, help);
    else parser.option(flags, help);
  }
  const examples = entry.examples.map((example) => (typeof example === "string" ? example : example.line));
  parser.addHelpText("after", `\nExamples:\n${examples.map((line) => `  ${line}\n`).join("")}`);
  parser.action(() => choose({ command: entry, parser }));
}

function helpOf(param: AnyParam): string {
  const { absent } = param;
  const shown = typeof absent === "string" || typeof absent === "number" ? `default: ${absent}` : "";
  const notes = [shown, param.env ? `env: ${param.env}` : "", param.required ? "required" : ""].filter(
    Boolean,
  );
  return notes.length === 0 ? param.help : `${param.help} (${notes.join(", ")})`;
}

function readValues(command: Command, parser: Parser, env: Surroundings["env"]) {
  const args: Record<string, unknown> = {};
  const origins: Record<string, Origin> = {};
  Object.entries(command.args).forEach(([name, param], index) => {
    const given = param.takes === "many" ? parser.args.slice(index) : parser.args.slice(index, index + 1);
    args[name] = given.length === 0 ? param.absent : param.parse(given, name);
    origins[name] = given.length === 0 ? "default" : "argument";
  });
  const raw = parser.opts<Record<string, string | readonly string[] | true | undefined>>();
  const options: Record<string, unknown> = {};
  for (const [name, param] of Object.entries(command.options)) {
    const given = raw[name];
    const fromEnv = param.env === undefined ? undefined : env[param.env];
    if (given !== undefined) {
      const texts = given === true ? [] : typeof given === "string" ? [given] : given;
      options[name] = param.parse(texts, optionFlag(name));
      origins[name] = "flag";
    } else if (fromEnv !== undefined && fromEnv !== "") {
      options[name] = param.parse([fromEnv], param.env!);
      origins[name] = "environment";
    } else {
      if (param.required) {
        throw new UsageError(`${optionFlag(name)} is missing`, {
          hint: `give ${optionFlag(name)} <${param.placeholder}>`,
        });
      }
      options[name] = param.absent;
      origins[name] = "default";
    }
  }
  return { args, options, origins };
}

/** Help and version end the parsing well; anything else is a misuse, told with the nearest names. */
function endOfParsing(
  error: CommanderError,
  program: CommandLine,
  root: Parser,
  argv: readonly string[],
): number {
  if (error.code === "commander.helpDisplayed" || error.code === "commander.version") return exitCode.ok;
  if (error.code === "commander.help") return error.exitCode === 0 ? exitCode.ok : exitCode.usage;
  const { path, parser, entries } = locate(program, root, argv);
  const help = `${path} --help`;
  const subject = /'([^']*)'/.exec(error.message)?.[1] ?? "";
  switch (error.code) {
    case "commander.unknownOption": {
      const flags = [...parser.options, ...root.options].flatMap((option) => [option.long, option.short]);
      const known = [...flags, "--help"].filter((flag) => typeof flag === "string");
      throw misuse(`${path}: there is no option ${subject}`, nearest(subject.split("=")[0]!, known), help);
    }
    case "commander.unknownCommand": {
      const names = entries.map((entry) => entry.name);
      throw misuse(`${path}: there is no command ${JSON.stringify(subject)}`, nearest(subject, names), help);
    }
    default:
      throw misuse(`${path}: ${error.message.replace(/^error: /, "")}`, [], help);
  }
}

/** `fwm help foo` is about a command that there is. */
function refuseUnknownHelp(program: CommandLine, root: Parser, argv: readonly string[]): void {
  const [first, ...names] = argv.filter((word) => !word.startsWith("-"));
  if (first !== "help" || program.commands.some(({ name }) => name === "help")) return;
  const { path, entries, depth } = locate(program, root, names);
  const unknown = names[depth];
  if (unknown === undefined) return;
  const close = nearest(
    unknown,
    entries.map(({ name }) => name),
  );
  throw misuse(`${path}: there is no command ${JSON.stringify(unknown)}`, close, `${path} --help`);
}

/** How far the names on the line lead into the tree of commands. */
function locate(program: CommandLine, root: Parser, argv: readonly string[]) {
  let path = program.name;
  let parser = root;
  let entries = program.commands;
  let depth = 0;
  for (const word of argv) {
    if (word.startsWith("-")) continue;
    const entry: CommandEntry | undefined = entries.find(({ name }) => name === word);
    const next: Parser | undefined = parser.commands.find((child) => child.name() === word);
    if (entry === undefined || next === undefined) break;
    path += ` ${word}`;
    parser = next;
    depth++;
    entries = entry.kind === "group" ? entry.commands : [];
    if (entry.kind === "command") break;
  }
  return { path, parser, entries, depth };
}

function misuse(what: string, close: readonly string[], help: string): FwmError {
  return new UsageError(what, { "did you mean": close.join(", "), hint: `see ${help}` });
}
