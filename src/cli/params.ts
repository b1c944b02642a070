/**
 * The values a command takes, as arguments or options: how each is written, checked and explained.
 *
 *   seed:  integer({ default: 1, help: "seed of the weights" })     absent: 1
 *   out:   folder({ help: "where to write" })                       absent: undefined
 *   task:  text({ required: true, help: "which task" })             absent: an error
 *   from:  text({ help: "…", env: "FWM_FROM" })                     absent: the variable, then undefined
 */
import { availableParallelism } from "node:os";
import { nearest, UsageError } from "../errors.ts";

/** A value a command takes: `T` when given, `Absent` when not (`never` when it must be given). */
export interface Param<T, Absent> {
  readonly help: string;
  /** Stands for the value in the help: `--seed <integer>`. */
  readonly placeholder: string;
  /** What follows the option's name: nothing (a flag), one value, maybe one, or one each time it is repeated. */
  readonly takes: "nothing" | "one" | "maybe" | "many";
  readonly required: boolean;
  readonly absent: Absent | undefined;
  /** The environment variable that supplies the value when the command line does not. */
  readonly env: string | undefined;
  /** Turns the given texts into the value; throws a `UsageError` that begins with `name`. */
  parse(texts: readonly string[], name: string): T;
}

/** A parameter of whatever type, for code that handles all of them. */
export type AnyParam = Param<unknown, unknown>;

/** The types of a command's options. */
export type OptionValues<P extends Record<string, AnyParam>> = {
  readonly [K in keyof P]: P[K] extends Param<infer T, infer Absent> ? T | Absent : never;
};

/** The types of a command's arguments: an argument without a default must be given. */
export type ArgumentValues<P extends Record<string, AnyParam>> = {
  readonly [K in keyof P]: P[K] extends Param<infer T, infer Absent> ? T | Exclude<Absent, undefined> : never;
};

/** What every kind of parameter is described by. */
export interface ParamSpec<D> {
  readonly help?: string;
  readonly default?: D;
  readonly required?: boolean;
  readonly env?: string;
  readonly placeholder?: string;
}

type Absent<S, T> = S extends { readonly required: true }
  ? never
  : S extends { readonly default: T }
    ? T
    : undefined;

/** A parameter with its own way of reading one text. */
export function value<T, const S extends ParamSpec<T>>(
  spec: S & { placeholder: string },
  parse: (text: string, name: string) => T,
): Param<T, Absent<S, T>> {
  return param(spec, spec.placeholder, "one", (texts, name) => parse(texts[0]!, name));
}

/** Any text. */
export function text<const S extends ParamSpec<string>>(spec: S): Param<string, Absent<S, string>> {
  return param(spec, "text", "one", ([given]) => given!);
}

/** A path of a file; whether it must exist is the command's business. */
export function file<const S extends ParamSpec<string>>(spec: S): Param<string, Absent<S, string>> {
  return param(spec, "file", "one", nonEmpty);
}

/** A path of a folder; whether it must exist is the command's business. */
export function folder<const S extends ParamSpec<string>>(spec: S): Param<string, Absent<S, string>> {
  return param(spec, "folder", "one", nonEmpty);
}

/** The name of a file without folder and ending. */
export function fileName<const S extends ParamSpec<string>>(spec: S): Param<string, Absent<S, string>> {
  return param(spec, "name", "one", ([given], name) => {
    if (/^[\w.=+,-]+$/.test(given!)) return given!;
    throw new UsageError(`${name} ${given}: expected a plain file name`);
  });
}

/** A text that may be left out after the option's name: `--resume` or `--resume PATH`; `true` without it. */
export function maybeText<const S extends ParamSpec<string | true>>(
  spec: S,
): Param<string | true, Absent<S, string | true>> {
  return param(spec, "text", "maybe", ([given]) => given ?? true);
}

/** A whole number, by default from 0. */
export function integer<const S extends ParamSpec<number> & { min?: number; max?: number }>(
  spec: S,
): Param<number, Absent<S, number>> {
  const { min = 0, max = Number.MAX_SAFE_INTEGER } = spec;
  return param(spec, "integer", "one", ([given], name) => {
    const read = /^[+-]?\d[\d_]*$/.test(given!) ? Number(given!.replaceAll("_", "")) : Number.NaN;
    if (Number.isSafeInteger(read) && read >= min && read <= max) return read;
    const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
    throw new UsageError(`${name}: expected an integer ${range}, got ${JSON.stringify(given)}`);
  });
}

/** Threads to compute with: no more than there are cores, where they would only wait for each other. */
export function threadCount(usual = "all cores"): Param<number, undefined> {
  const cores = availableParallelism();
  const { parse, ...shared } = integer({ min: 1, help: `threads; default: ${usual}`, env: "FWM_THREADS" });
  return {
    ...shared,
    parse(given, name) {
      const threads = parse(given, name);
      if (threads <= cores) return threads;
      throw new UsageError(
        `${name} ${threads}: this machine has ${cores} ${cores === 1 ? "core" : "cores"}`,
        {
          hint: "more threads than cores are slower, not faster; leave it out to use all cores",
        },
      );
    },
  };
}

/** Any finite number. */
export function number<const S extends ParamSpec<number>>(spec: S): Param<number, Absent<S, number>> {
  return param(spec, "number", "one", ([given], name) => {
    const read = given!.trim() === "" ? Number.NaN : Number(given);
    if (Number.isFinite(read)) return read;
    throw new UsageError(`${name}: expected a number, got ${JSON.stringify(given)}`);
  });
}

/** One of a list of names; an unknown one is answered with the nearest. */
export function oneOf<const N extends string, const S extends ParamSpec<N>>(
  names: readonly N[],
  spec: S = {} as S,
): Param<N, Absent<S, N>> {
  const help = [spec.help, `one of: ${names.join(", ")}`].filter(Boolean).join("; ");
  return param({ ...spec, help }, "name", "one", ([given], name) => {
    const found = names.find((known) => known === given);
    if (found !== undefined) return found;
    throw new UsageError(`${name}: there is no ${JSON.stringify(given)}`, {
      "did you mean": nearest(given!, names).join(", "),
      known: names.join(", "),
    });
  });
}

/** Texts collected from every time the option is given, `--set a=1 --set b=2`; as an argument, the last, from all words. */
export function texts(spec: {
  help: string;
  placeholder?: string;
  required?: boolean;
}): Param<readonly string[], readonly string[]> {
  return param({ default: [] as readonly string[], ...spec }, "text", "many", (given) => given);
}

/** True when the option is there. As an environment variable: 1, true or yes; 0, false, no or empty. */
export function flag(spec: { help: string; env?: string }): Param<boolean, boolean> {
  return param({ default: false as boolean, ...spec }, "", "nothing", ([given], name) => {
    if (given === undefined || /^(1|true|yes)$/i.test(given)) return true;
    if (/^(0|false|no|)$/i.test(given)) return false;
    throw new UsageError(`${name}: expected 1 or 0, got ${JSON.stringify(given)}`);
  });
}

function param<T, A>(
  spec: ParamSpec<unknown>,
  placeholder: string,
  takes: Param<T, A>["takes"],
  parse: Param<T, A>["parse"],
): Param<T, A> {
  return {
    help: spec.help ?? "",
    placeholder: spec.placeholder ?? placeholder,
    takes,
    required: spec.required ?? false,
    absent: spec.default as A,
    env: spec.env,
    parse,
  };
}

function nonEmpty([given]: readonly string[], name: string): string {
  if (given !== "") return given!;
  throw new UsageError(`${name}: expected a path, got an empty text`);
}
