/**
 * A command as data: its name, what it takes, examples that a test runs, and the function that does the work.
 * `program.ts` turns the list of commands into the `fwm` program.
 */
import type { Output, Surroundings } from "./output.ts";
import type { AnyParam, ArgumentValues, OptionValues } from "./params.ts";

/** Where a value came from. */
export type Origin = "argument" | "flag" | "environment" | "default";

/** What a running command is given. */
export interface CommandContext<A, O> {
  readonly args: A;
  readonly options: O;
  /** Where the value of each argument and option came from. */
  readonly origins: Readonly<Record<string, Origin>>;
  readonly out: Output;
  /** Aborted at the first SIGINT or SIGTERM, if the command is `graceful`. */
  readonly signal: AbortSignal;
  readonly env: Surroundings["env"];
  readonly stdin: Surroundings["stdin"];
}

/**
 * A line of the help's examples. A test runs each one; `trial` is run in its stead where the line itself would
 * download or take long. `$NAME` in a trial is replaced by what the test has prepared.
 */
export type Example = string | { readonly line: string; readonly trial: string };

/** How a command ended: one that says `finished` came to its end, and a signal that came just then does not matter. */
// biome-ignore lint/suspicious/noConfusingVoidType: most commands have nothing to say.
export type Ending = void | "finished" | "interrupted";

interface Described {
  readonly name: string;
  readonly summary: string;
}

/** One command, its types erased. */
export interface Command extends Described {
  readonly kind: "command";
  /** More to say in the help, below the summary. */
  readonly details: string;
  readonly examples: readonly Example[];
  readonly args: Readonly<Record<string, AnyParam>>;
  readonly options: Readonly<Record<string, AnyParam>>;
  /** True if a signal lets the command finish and save; otherwise the program ends at once. */
  readonly graceful: boolean;
  /** True if it computes without giving signals a turn: they keep their default, which ends the process at once. */
  readonly blocking: boolean;
  readonly run: (context: CommandContext<unknown, unknown>) => Ending | Promise<Ending>;
}

/** Commands under one name: `fwm data prepare`, `fwm data stats`. */
export interface CommandGroup extends Described {
  readonly kind: "group";
  readonly commands: readonly CommandEntry[];
}

/** What the program's list of commands holds. */
export type CommandEntry = Command | CommandGroup;

/** Declares a command; `run` gets the values with the types of `args` and `options`. */
export function command<
  A extends Record<string, AnyParam> = Record<never, never>,
  O extends Record<string, AnyParam> = Record<never, never>,
>(
  spec: Described & {
    details?: string;
    examples: readonly Example[];
    args?: A;
    options?: O;
    graceful?: boolean;
    blocking?: boolean;
    run: (context: CommandContext<ArgumentValues<A>, OptionValues<O>>) => Ending | Promise<Ending>;
  },
): Command {
  return {
    kind: "command",
    name: spec.name,
    summary: spec.summary,
    details: spec.details ?? "",
    examples: spec.examples,
    args: spec.args ?? {},
    options: spec.options ?? {},
    graceful: spec.graceful ?? false,
    blocking: spec.blocking ?? false,
    // The program fills in exactly the values that args and options describe.
    run: spec.run as Command["run"],
  };
}

/** Puts commands under one name. */
export function group(spec: Described & { commands: readonly CommandEntry[] }): CommandGroup {
  return { kind: "group", ...spec };
}

/** The option as it is typed: `keepLastStory` is `--keep-last-story`. */
export function optionFlag(name: string): string {
  return "--" + name.replace(/[A-Z]/g, (letter) => "-" + letter.toLowerCase());
}
