/**
 * The errors a person can cause, and the exit code each one ends the program with.
 *
 * A message says what is wrong, where, and what to do next (`hint`). Anything that is not an `FwmError`
 * is a mistake of ours: the command line prints it as `internal:` and keeps its stack.
 */

/** Exit codes of the command line: conventions shared by every command. */
export const exitCode = {
  ok: 0,
  failure: 1,
  usage: 2,
  badData: 3,
  diverged: 4,
  interrupted: 130,
  terminated: 143,
} as const;

/** Values shown under an error's first line, one `name  value` per line. */
export type ErrorDetails = Readonly<Record<string, unknown>>;

/** An error whose cause lies in what the user gave: a name, a file, a shape, a setting. */
export class FwmError extends Error {
  override readonly name: string = "FwmError";
  readonly exitCode: number = exitCode.failure;

  constructor(what: string, details: ErrorDetails = {}) {
    super(printable([what, ...detailLines(details)].join("\n")));
  }
}

/** A command, option, name or configuration value that does not fit. */
export class UsageError extends FwmError {
  override readonly name = "UsageError";
  override readonly exitCode = exitCode.usage;
}

/** A data file, archive, model folder or checkpoint that cannot be used as it is. */
export class DataError extends FwmError {
  override readonly name = "DataError";
  override readonly exitCode = exitCode.badData;
}

/** Shapes, dtypes or names that do not fit together when a graph is built or fed. */
export class ShapeError extends FwmError {
  override readonly name = "ShapeError";
  override readonly exitCode = exitCode.usage;
}

/**
 * A text as a terminal may show it: control characters, which could move the cursor or change the screen, and marks
 * that turn the direction of writing, as escapes. Line breaks and tabs stay. Texts from files go through this.
 */
export function printable(text: string): string {
  return text.replace(unprintable, (char) => {
    const code = char.codePointAt(0)!.toString(16);
    return code.length > 2 ? `\\u${code.padStart(4, "0")}` : `\\x${code.padStart(2, "0")}`;
  });
}

const unprintable = /[^\P{Cc}\n\t]|[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;

function detailLines(details: ErrorDetails): string[] {
  const entries = Object.entries(details).filter(([, value]) => value !== undefined && value !== "");
  const width = Math.max(0, ...entries.map(([key]) => key.length)) + 2;
  return entries.map(([key, value]) => `  ${key.padEnd(width)}${show(value)}`);
}

function show(value: unknown): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return `[${value.map(show).join(", ")}]`;
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** The names closest to `wanted` by edit distance, best first; for "did you mean" hints. */
export function nearest(wanted: string, names: readonly string[], most = 3): string[] {
  const limit = Math.max(2, Math.floor(wanted.length / 2));
  return (
    names
      // Words differ by at least the difference of their lengths; a long one is not compared for nothing.
      .filter((name) => Math.abs(name.length - wanted.length) <= limit || name.includes(wanted))
      .map((name) => ({ name, distance: editDistance(wanted.toLowerCase(), name.toLowerCase()) }))
      .filter(({ name, distance }) => distance <= limit || name.includes(wanted))
      .sort((a, b) => a.distance - b.distance || a.name.localeCompare(b.name))
      .slice(0, most)
      .map(({ name }) => name)
  );
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      next[j] = Math.min(next[j - 1]! + 1, row[j]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1));
    }
    row = next;
  }
  return row[b.length]!;
}

/**
 * The error of an optional package that is not installed, with what to do; whatever else went wrong while it was
 * loaded stays as it is.
 */
export function missingPackage(what: string, packages: readonly string[], error: unknown): unknown {
  const { code, message } = error as { code?: unknown; message?: unknown };
  const absent = packages.some((name) => String(message).includes(`'${name}'`));
  if (code !== "ERR_MODULE_NOT_FOUND" || !absent) return error;
  const verb = packages.length === 1 ? "is" : "are";
  return new UsageError(`${what} needs ${packages.join(" and ")}, which ${verb} not installed`, {
    hint: `npm install ${packages.join(" ")}`,
  });
}
