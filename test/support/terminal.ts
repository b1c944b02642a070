/** A terminal for tests: what a screen shows after some output, and commands run on a pseudo-terminal. */
import { execFileSync, spawn } from "node:child_process";

const escapeMark = "\u001b";
/** Characters, and codes that move the cursor, erase or colour. */
const tokens = new RegExp(`${escapeMark}\\[[\\d;?]*[A-Za-z]|[^]`, "gu");

/**
 * The lines that a terminal of so many columns shows, those that it wrapped put together again; a control code that is
 * not known is an error.
 */
export function screenOf(output: string, columns: number): string[] {
  const lines: string[][] = [[]];
  /** Rows that go on in the next one. */
  const wrapped = new Set<number>();
  let [row, column] = [0, 0];
  const go = (to: number): void => {
    row = to;
    while (lines.length <= row) lines.push([]);
  };
  for (const [token] of output.matchAll(tokens)) {
    if (token === "\r") column = 0;
    else if (token === "\n") go(row + 1);
    else if (token === `${escapeMark}[J`) {
      lines.length = row + 1;
      for (const below of wrapped) if (below >= row) wrapped.delete(below);
      lines[row]!.length = Math.min(column, lines[row]!.length);
    } else if (token.startsWith(escapeMark) && token.endsWith("A"))
      row = Math.max(0, row - Number(token.slice(2, -1)));
    else if (token.startsWith(escapeMark) && token.endsWith("m")) continue;
    else if (token < " ") throw new Error(`control code ${JSON.stringify(token)}`);
    else {
      if (column === columns) {
        wrapped.add(row);
        go(row + 1);
        column = 0;
      }
      const line = lines[row]!;
      while (line.length < column) line.push(" ");
      line[column++] = token;
    }
  }
  const text = lines.map((line, i) => (wrapped.has(i) ? line.join("") : `${line.join("").trimEnd()}\n`));
  return text.join("").split("\n").slice(0, -1);
}

/** Whether `script` of util-linux is there, which runs a command on a pseudo-terminal. */
export const hasPseudoTerminal = ((): boolean => {
  try {
    return execFileSync("script", ["--version"], { encoding: "utf8" }).includes("util-linux");
  } catch {
    return false;
  }
})();

/** Why a test without one is skipped. */
export const noPseudoTerminal = "`script` of util-linux is not installed";

/**
 * Runs words on a pseudo-terminal. `typed` is called with all output so far and gives what to type now, if anything;
 * it may also close the terminal.
 */
export function onTerminal(
  words: readonly string[],
  {
    columns,
    cwd,
    typed,
  }: {
    columns: number;
    cwd: string;
    typed?: (output: string, close: () => void) => string | undefined;
  },
): Promise<{ code: number | null; screen: string[] }> {
  const quoted = words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
  const child = spawn("script", ["-qefc", `stty cols ${columns} rows 50; exec ${quoted}`, "/dev/null"], {
    cwd,
    stdio: ["pipe", "pipe", "inherit"],
    env: { PATH: process.env.PATH, HOME: process.env.HOME, TERM: "xterm-256color", SHELL: "/bin/sh" },
  });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    output += chunk;
    const text = typed?.(output, () => child.kill("SIGKILL"));
    if (text !== undefined) child.stdin.write(text);
  });
  return new Promise((resolve) =>
    child.on("close", (code) => resolve({ code, screen: screenOf(output, columns) })),
  );
}
